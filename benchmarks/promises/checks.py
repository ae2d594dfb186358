"""What new rows must have, in plain NumPy: what of it they miss, in words.

Of what the package found in the rows it is asked (``invariants_``, ``marks_``) what it
says; the rest is read from the training rows here.
"""

import numpy as np
import polars as pl

# What is asked, of the range of what it is about; rounding of a type, of its terms.
SHARE, ROUNDINGS = 1e-9, 8
# Default slack of ranges, with what the last step of a column adds.
SLACK = 0.1
# Evidence of a one-hot group.
ENOUGH_ROWS, ENOUGH_OF_A_LEVEL = 40, 3


def misses(training, new, parameters, groups, ask, augmenter, own=slice(None)):
    """Words for each promise that new rows (n, D) miss.

    They have the ranges of the training rows that are their ``own``.
    """
    rows, known = np.asarray(new, float), np.asarray(training, float)
    unit = np.finfo(new.dtype).eps if new.dtype.kind == "f" else 0.0
    found = list(_asked(rows, known, ask, unit))
    about = ask.about(known.shape[1])
    equations = augmenter.invariants_
    found += _equations(rows, known, equations, unit)
    free = ~about & ~(equations.coefficients != 0).any(axis=0)
    if new.dtype != training.dtype:
        found.append(f"type {new.dtype} for {training.dtype}")
    if parameters.get("marks", "auto") is not None:
        whole = (np.rint(known) == known) | np.isnan(known)
        whole = whole.all(axis=0)
        if not _all_whole(rows[:, whole]):
            found.append("whole numbers")
    if "marks" not in parameters:
        for j in np.flatnonzero(free):
            if j in augmenter.marks_.grids and not _among(rows[:, j], known[:, j]):
                found.append(f"values of column {j}")
    if not parameters:
        found += _in_ranges(rows[:, ~about], known[own][:, ~about], unit)
        found += _one_hot(rows, known, [g for g in groups if not about[g].any()])
    return found


def _all_whole(values):
    values = values[~np.isnan(values)]
    return bool((values == np.rint(values)).all())


def _among(values, known):
    return bool((np.isin(values, known) | np.isnan(values)).all())


def _asked(rows, known, ask, unit):
    # Nothing is asked of columns with holes.
    rows, known = np.nan_to_num(rows), np.nan_to_num(known)
    for weights, low, high in ask.bounds:
        value = rows @ weights
        room = _room(rows, known, weights, unit)
        if np.any((value < low - room) | (value > high + room)):
            yield f"constraint '{ask.name}'"
    for weights, total in ask.sums:
        terms = np.abs(rows * weights).sum() + np.ptp(known @ weights)
        if abs((rows @ weights).sum() - total) > (SHARE + ROUNDINGS * unit) * terms:
            yield f"total '{ask.name}'"
    for j, counts in ask.counts.items():
        if any((rows[:, j] == value).sum() != n for value, n in counts.items()):
            yield f"total '{ask.name}'"


def _room(rows, known, weights, unit):
    range_ = (np.abs(weights) * np.ptp(known, axis=0)).max()
    return SHARE * range_ + ROUNDINGS * unit * (np.abs(rows) @ np.abs(weights))


def _equations(rows, known, equations, unit):
    each = (
        equations.coefficients,
        equations.values,
        equations.rounding,
        equations.descriptions,
    )
    for weights, value, rounding, told in zip(*each, strict=True):
        used = weights != 0
        held, some = rows[:, used], known[~np.isnan(known[:, used]).any(axis=1)]
        held = held[~np.isnan(held).any(axis=1)]
        room = rounding + _room(held, some[:, used], weights[used], unit)
        if np.any(np.abs(held @ weights[used] - value) > room + 1e-13 * abs(value)):
            yield f"equation {told}"


def _in_ranges(rows, known, unit):
    low, high = np.fmin.reduce(known), np.fmax.reduce(known)
    rounding = ROUNDINGS * unit * np.maximum(abs(low), abs(high))
    room = (SLACK + SHARE) * (high - low) + rounding
    if np.any((rows < low - room) | (rows > high + room)):
        yield "ranges"
    if np.any((rows < 0) & (low >= 0)) or np.any((rows > 0) & (high <= 0)):
        yield "signs"


def _one_hot(rows, known, groups):
    """Of groups that rows give evidence of: a few of each of their levels."""
    for group in groups:
        part = known[:, group]
        low, high = part.min(axis=0), part.max(axis=0)
        least = (part == high).sum(axis=0).min()
        if len(group) < 2 or len(part) < ENOUGH_ROWS or least < ENOUGH_OF_A_LEVEL:
            continue
        away = np.minimum(abs(rows[:, group] - low), abs(rows[:, group] - high))
        if np.any(away > 1e-6 * (high - low)):
            yield f"values of the levels in columns {group[0]} to {group[-1]}"
        elif np.any((rows[:, group] > (low + high) / 2).sum(axis=1) != 1):
            yield f"one of the levels in columns {group[0]} to {group[-1]}"


def frame_misses(training, new, words, totals):
    """The same of data frames with ``totals`` by names of columns."""
    rows = new.to_pandas() if isinstance(new, pl.DataFrame) else new
    known = training.to_pandas() if isinstance(training, pl.DataFrame) else training
    for key, asked in totals.items():
        if isinstance(asked, dict):
            names = list(key) if isinstance(key, tuple) else key
            found = rows.groupby(names, observed=True).size().to_dict()
            if any(found.get(level, 0) != n for level, n in asked.items()):
                yield f"counts of {key}"
        else:
            values = rows[key].astype(float)
            if abs(values.sum() - asked) > SHARE * (values.abs().sum() + 1e-3):
                yield f"sum of {key}"
    for name in known:
        if rows[name].dtype != known[name].dtype:
            yield f"type of {name}: {rows[name].dtype} for {known[name].dtype}"
        elif name in words:
            if not set(rows[name]) <= set(known[name]):
                yield f"levels of {name}"
        elif known[name].dtype.kind in "iuf" and not _kept(rows[name], known[name]):
            yield f"whole numbers in {name}"


def _kept(values, known):
    values, known = (part.to_numpy(float, na_value=np.nan) for part in (values, known))
    return not _all_whole(known) or _all_whole(values)
