"""Check the guarantees of new rows on random tables, through the public functions.

``python -m benchmarks.promises.fuzz --cases 10000 --n-jobs 2``; ``--case 17`` runs one
case. A case draws rows of a random table, sometimes with constraints or totals, and
checks the rows in NumPy. No guarantee may be broken without a warning or an error.
"""

import argparse
import sys
import traceback
import warnings
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import polars as pl
from joblib import Parallel, delayed
from scipy.sparse import csr_array, issparse

from sklearn_pnl import PNLAugmenter, PNLSampler
from sklearn_pnl.control import ColumnConstraint, column_total

from ..tables import markdown, write_csv

ASKED = ("nothing", "constraints", "totals", "out of reach")
OUTCOMES = ("kept", "warned", "said", "refused", "error", "silent")
# Tolerances as shares of the range of the largest term, of the sum of terms, and in
# units in the last place of terms.
SHARE, ROUNDING = 1e-9, 16
EXTRAPOLATION = (0, 0, 0, 0.1, None)
RATIO = "sampling_strategy"
# Settings of the samplers.
SETTINGS = {
    "default": {},
    "order=1": {"order": 1},
    "paper": {"method": "paper"},
    "1/3": {RATIO: 1 / 3},
}
FIRST_DAY, DAY = np.datetime64("2024-01-01", "ns"), np.timedelta64(86400 * 10**9, "ns")


@dataclass
class Table:
    """Rows, labels, and the relations that all rows satisfy by construction."""

    frame: pd.DataFrame
    y: np.ndarray
    form: str
    equalities: list = field(default_factory=list)  # Coefficients by name, and a value.
    orders: list = field(default_factory=list)  # Names that rise from left to right.
    runs: list = field(default_factory=list)  # Names of which exactly one is 1.
    # Coefficients by name, and a value, of a sum of rounded values.
    near: list = field(default_factory=list)
    # Names of discrete columns whose combinations all occur in the rows.
    joint: list = field(default_factory=list)
    # Names of two columns. The second exceeds the first by a least difference.
    apart: list = field(default_factory=list)

    def __post_init__(self):
        # Columns of a frame have names, and types of their own.
        self.typed = self.form in ("pandas", "polars")
        self.dtype = "float64" if self.form == "sparse" else self.form

    def key(self, name):
        """Return the name of a column, or its position."""
        return name if self.typed else self.frame.columns.get_loc(name)

    def given(self):
        """Return the rows in their container."""
        if self.form == "pandas":
            return self.frame
        if self.form == "polars":
            return pl.from_pandas(self.frame)
        X = self.frame.to_numpy(self.dtype)
        return csr_array(X) if self.form == "sparse" else X

    def read(self, rows):
        """Convert new rows to a frame with the columns of the table."""
        rows = rows.toarray() if issparse(rows) else rows
        rows = rows.to_pandas() if isinstance(rows, pl.DataFrame) else rows
        return _words_as_objects(pd.DataFrame(rows, columns=self.frame.columns))


def _words_as_objects(frame):
    words = frame.select_dtypes(exclude=["number", "datetime"])
    return frame.astype(dict.fromkeys(words, object))


REAL = "normal amount missing zeros constant total cents composition ordered counted"
WHOLE = " whole whole_total one_hot flags stay"
NEAR = " shares bill ledger pair"
GROUPS = {
    "float64": REAL + WHOLE + NEAR,
    "float32": REAL + WHOLE,
    **dict.fromkeys(
        ["pandas", "polars"],
        REAL + WHOLE + NEAR + " words words day single grid weeks coded named interval",
    ),
    "int64": WHOLE + " grid",
    "sparse": "zeros one_hot flags total ordered",
}
SINGLE = {
    "normal": lambda rng, n, size: rng.normal(size=n) * size,
    "amount": lambda rng, n, size: rng.lognormal(size=n) * size,
    "missing": lambda rng, n, size: np.where(
        rng.random(n) < 0.1, np.nan, rng.random(n)
    ),
    "zeros": lambda rng, n, size: rng.integers(0, 2, n) * rng.gamma(2.0, size=n),
    "constant": lambda rng, n, size: np.full(n, size),
    "whole": lambda rng, n, size: rng.poisson(rng.gamma(4.0), n),
    "single": lambda rng, n, size: np.float32(rng.normal(size=n) * size),
    "day": lambda rng, n, size: FIRST_DAY + rng.integers(0, 500, n) * DAY,
    "grid": lambda rng, n, size: 7 + 50 * rng.integers(0, 80, n),
    "weeks": lambda rng, n, size: FIRST_DAY + 7 * rng.integers(0, 99, n) * DAY,
}


def group(kind, rng, n):
    """Append columns, and the relations between them by position."""
    size, k = 10.0 ** rng.integers(-3, 6), rng.integers(2, 7)
    if kind in SINGLE:
        return [SINGLE[kind](rng, n, size)], {}
    match kind:
        case "total" | "cents" | "whole_total":
            parts = rng.gamma(2.0, size=(k, n)) * size
            parts = np.round(parts / size, 2) if kind == "cents" else parts
            parts = rng.poisson(3, (k, n)) if kind == "whole_total" else parts
            columns, signs = [*parts, parts.sum(axis=0)], [1.0] * k + [-1.0]
            turn = rng.choice([1, -1])
            return columns[::turn], {"equalities": [(signs[::turn], 0.0)]}
        case "composition":
            shares = rng.dirichlet(np.full(k, 2.0), n).T
            return list(shares), {"equalities": [([1.0] * k, 1.0)]}
        case "ordered":
            return list(rng.gamma(1.0, size=(3, n)).cumsum(axis=0)), {
                "orders": [range(3)]
            }
        case "counted":
            counts = rng.poisson(3, n)
            return [counts, counts + rng.gamma(1.0, size=n)], {"orders": [(0, 1)]}
        case "one_hot":
            levels = np.eye(k, dtype=int)[rng.integers(0, k, n)].T
            return list(levels), {"runs": [range(k)]}
        case "flags":
            implied = rng.integers(0, 2, n)
            return [implied * rng.integers(0, 2, n), implied], {"orders": [(0, 1)]}
        case "stay":
            first = rng.integers(0, 900, n)
            last = first + rng.integers(2, 40) + rng.poisson(9, n)
            return [first, last], {"orders": [(0, 1)], "apart": [(0, 1)]}
        case "interval":
            first = rng.integers(0, 900, n)
            last = first + rng.integers(1, 20) + rng.poisson(30, n)
            days = [FIRST_DAY + value * DAY for value in (first, last)]
            return days, {"apart": [(0, 1)]}
        case "shares":
            shares = rng.dirichlet(np.full(k, 3.0), n).T
            return list((100 * shares).round(1)), {"near": [([1.0] * k, 100.0)]}
        case "bill":
            parts = rng.lognormal(3, 1, (k, n))
            columns = [*parts.round(2), parts.sum(axis=0).round(2)]
            return columns, {"near": [([1.0] * k + [-1.0], 0.0)]}
        case "ledger":
            opening, paid_in, paid_out = rng.gamma(2.0, size=(3, n)) * size
            columns = [opening, paid_in, paid_out, opening + paid_in - paid_out]
            return columns, {"equalities": [([1.0, 1.0, -1.0, -1.0], 0.0)]}
        case "pair":
            count = rng.poisson(2, n) * rng.integers(0, 2, n)
            amount = count * rng.gamma(9.0, size=n) * size
            return [count, amount], {}
        case "coded":
            level = rng.integers(0, 2, n)
            other = level | (rng.random(n) < 0.3)
            words = np.array(["no", "yes"])[level]
            return [words, level, other.astype(int)], {"joint": [range(3)]}
        case "named":
            level = rng.integers(0, k, n)
            levels = list(np.eye(k, dtype=int)[level].T)
            return [np.array(list("abcdefg"))[level], *levels], {
                "runs": [range(1, k + 1)],
                "joint": [range(k + 1)],
            }
        case "words":
            country = rng.integers(0, 3, n)
            city = 2 * country + rng.integers(0, 2, n)
            return [np.array(list("xyz"))[country], np.array(list("abcdef"))[city]], {}


def random_table(rng):
    """Make 3 to 400 rows of groups of columns, with 1 to 40 minority rows."""
    form, columns, made = str(rng.choice(list(GROUPS))), {}, {}
    n = int(rng.choice([3, 8, 20, 60, 150, 400]) * rng.uniform(0.85, 1.0) + 0.45)
    for kind in rng.choice(GROUPS[form].split(), rng.integers(2, 7)):
        found, facts = group(kind, rng, n)
        names = [f"c{len(columns) + i}" for i in range(len(found))]
        columns |= dict(zip(names, found, strict=True))
        for key, (fact,) in facts.items():
            if key not in ("equalities", "near"):
                made.setdefault(key, []).append([names[i] for i in fact])
            else:
                terms = dict(zip(names, fact[0], strict=True))
                made.setdefault(key, []).append((terms, fact[1]))
    rare = int(np.clip(rng.choice([1, 2, 3, 6, 12, 40]), 1, n // 2))
    y = (rng.permutation(n) < rare).astype(int)
    frame = pd.DataFrame(columns)
    if form != "sparse" and rng.random() < 0.1:
        frame, y = panel(frame, y, rng)
    if form not in ("int64", "sparse") and rng.random() < 0.2:
        frame = with_gaps(frame, rng)
    return Table(_words_as_objects(frame), y, form, **made)


def panel(frame, y, rng):
    """Turn the rows into units of 4 to 12 years, sorted by unit or by year.

    Some numeric columns vary over the years, or in few rows only.
    """
    n_units, n_years = len(frame), int(rng.choice([4, 5, 8, 12]))
    unit, year = np.divmod(np.arange(n_units * n_years), n_years)
    if rng.random() < 0.3:
        year, unit = np.divmod(np.arange(n_units * n_years), n_units)
    frame = frame.iloc[unit].reset_index(drop=True)
    frame["unit"], frame["year"] = 1000 * (unit % 3) + unit, 1980 + year
    frame["first"] = (year == rng.integers(n_years)).astype(int)
    frame["age"] = rng.integers(15, 70, n_units)[unit] + year
    frame["rare"] = np.where(rng.random(len(frame)) < 0.005, year + 2, 1)
    return frame, y[unit]


def with_gaps(frame, rng):
    """Remove a tenth of the cells in some numeric columns."""
    numbers = frame.select_dtypes("number")
    for name in numbers.columns[numbers.nunique() > 2]:
        if rng.random() < 0.3:
            lost = rng.random(len(frame)) < 0.1
            frame[name] = frame[name].astype(float).mask(lost)
    return frame


@dataclass
class Ask:
    """Keywords of a call, and the requested bounds of rows, sums and counts."""

    given: dict = field(default_factory=dict)
    bounds: list = field(default_factory=list)  # Coefficients, lower and upper value.
    sums: list = field(default_factory=list)  # Coefficients, and the sum.
    counts: list = field(default_factory=list)  # A name, and rows by level.


def ask_for(kind, table, members, n, rng):
    """Return constraints that some row of the class satisfies, or totals of some rows.

    A class without new rows gets no request.
    """
    frame, ask = table.frame[members], Ask()
    varying = table.frame.select_dtypes("number").dropna(axis=1)
    varying = list(varying.columns[np.ptp(varying.to_numpy(float), axis=0) > 0])
    if kind == "nothing" or not varying or not n:
        return ask
    chosen = [str(name) for name in rng.permutation(varying)[: rng.integers(1, 4)]]
    if kind == "totals":
        rows = frame.iloc[rng.integers(0, len(frame), n)]
        ask.sums = [({name: 1.0}, float(rows[name].sum())) for name in chosen]
        totals = [column_total(table.key(name), v) for (name,), v in ask.sums]
        for name in list(frame.select_dtypes(object))[:1]:
            counts = {v: int((rows[name] == v).sum()) for v in frame[name].unique()}
            ask.counts.append((name, counts))
            totals.append({name: counts})
        ask.given = {"totals": totals}
        return ask
    terms = {name: float(rng.choice([1, 1, -1, 2])) for name in chosen}
    values = _sum(terms, frame)
    low = high = float(rng.choice(values))
    if kind == "out of reach":
        reach = [np.sort(c * table.frame[name])[[0, -1]] for name, c in terms.items()]
        low = high = float(np.sum(reach, axis=0) @ [-1, 2] + 1)
    elif rng.random() < 0.5:
        low, high = (float(v) for v in np.sort(rng.choice(values, 2)))
    asked = {"equal": low} if low == high else {"lower": low, "upper": high}
    by_key = {table.key(name): c for name, c in terms.items()}
    ask.given = {"constraints": [ColumnConstraint(by_key, **asked)]}
    ask.bounds = [(terms, low, high)]
    return ask


def _sum(terms, frame):
    return sum(c * frame[name].to_numpy(float) for name, c in terms.items())


def broken(table, members, new, ask, extrapolation=0, resolution=False):
    """Describe each guarantee that new rows of the class ``members`` break."""
    old = table.frame if table.typed else table.frame.astype(table.dtype)
    yield from _types(table, old, members, new)
    yield from _ranges(table, old, new, extrapolation)
    if resolution and not ask.given:
        yield from _resolutions(old, new)
    # With fewer rows, equalities can be due to chance, and the samplers do not search
    # for them. They also ignore equalities of columns that vary only in rows with
    # missing cells.
    varies = old.nunique() > 1
    hidden = set(old.columns[varies & (old.dropna().nunique() <= 1)])
    looked_for = len(old) >= min(8, old.shape[1] + 2)
    if old.select_dtypes(exclude=object).isna().any(axis=None):
        looked_for = len(old.dropna()) >= 2 * old.shape[1] + 2
    # Codes satisfy near equalities that are found, in twice as many rows as columns.
    is_found = len(old.dropna()) >= 2 * old.shape[1] + 2
    for terms, value in table.equalities * looked_for:
        # With few rows, only sums that equal one adjacent column are searched for.
        signs = [*terms.values()]
        is_sum = min(signs.count(1.0), signs.count(-1.0)) <= 1
        if not hidden.isdisjoint(terms) or not (is_sum or is_found):
            continue
        gap = np.abs(_sum(terms, new) - value)
        if np.any(gap > _room(terms, old, new) + _unit(old, terms) * abs(value)):
            yield f"equality of {' '.join(terms)}: off by {np.nanmax(gap):.2g}"
    for terms, value in table.near * (is_found and not ask.given):
        if not hidden.isdisjoint(terms):
            continue
        gaps = (np.abs(_sum(terms, x) - value) for x in (old, new))
        gaps = [np.fmax.reduce(gap, initial=0.0) for gap in gaps]
        if gaps[1] > 5 * gaps[0] + _unit(old, terms) * abs(value):
            yield f"near equality of {' '.join(terms)}: off by {gaps[1]:.2g}"
    for names in table.joint * (len(old) >= 60):
        seen = set(old[names].itertuples(index=False, name=None))
        if not ask.given and not seen.issuperset(
            new[names].dropna().itertuples(index=False, name=None)
        ):
            yield f"combination of {' '.join(names)}"
    for first, last in table.apart * (extrapolation == 0 and not ask.given):
        least = (old[last] - old[first]).min()
        if old[[first, last]].nunique().min() > 2 and (
            (new[last] - new[first]).min() < least
        ):
            yield f"least difference of {first} {last}"
    for names in table.orders:
        # No order is known of columns that are alike in all rows, or of constants.
        diff = np.nan_to_num(np.diff(old[names].to_numpy(float), axis=1))
        if not diff.any() or (old[names].nunique() < 2).any():
            continue
        # Rows that are moved together to totals are in order to the last digits.
        rounding = ROUNDING * _unit(old, names) * bool(ask.sums)
        rows = new[names].to_numpy(float)
        if np.any(np.diff(rows, axis=1) < -rounding * np.abs(rows[:, 1:])):
            yield f"order of {' '.join(names)}"
    for run in table.runs * looked_for:
        ones = new[run].to_numpy(float).sum(axis=1)
        if hidden.isdisjoint(run) and np.any(ones != 1):
            yield f"one-hot run {' '.join(run)}"
    for terms, low, high in ask.bounds:
        value = _sum(terms, new)
        rounding = ROUNDING * _unit(old, terms) * _size(terms, new)
        room = _room(terms, old, new) if low == high else rounding
        if not np.all((value >= low - room) & (value <= high + room)):
            yield f"constraint on {' '.join(terms)}"
    for terms, value in ask.sums:
        gap = abs(_sum(terms, new).sum() - value)
        room = SHARE + ROUNDING * _unit(old, terms)
        if not gap <= room * _size(terms, new).sum():
            yield f"total of {' '.join(terms)}: off by {gap:.2g}"
    for name, counts in ask.counts:
        if any((new[name] == level).sum() != n for level, n in counts.items()):
            yield f"counts of {name}"


def _unit(frame, names):
    """Return the unit in the last place of the least precise of some columns."""
    floats = [frame[name].dtype for name in names if frame[name].dtype.kind == "f"]
    return max((np.finfo(dtype).eps for dtype in floats), default=2.0**-52)


def _size(terms, frame):
    return sum(abs(c) * frame[name].abs().to_numpy(float) for name, c in terms.items())


def _room(terms, old, new):
    """Return the tolerance of an equality: a share of the range, plus rounding."""
    largest = max(abs(c) * np.ptp(old[name].dropna()) for name, c in terms.items())
    return SHARE * largest + ROUNDING * _unit(old, terms) * _size(terms, new)


def _types(table, old, members, new):
    """Check integers, binary columns, levels, days, and the donors of categories."""
    for name in old:
        mine, theirs = old[name].dropna(), new[name].dropna()
        if new[name].dtype != old[name].dtype:
            yield f"type of {name}: {new[name].dtype} for {old[name].dtype}"
        elif old[name].dtype == object or mine.nunique() <= 2:
            if not theirs.isin(mine).all():
                yield f"values of {name}"
        elif old[name].dtype.kind == "M" and (theirs != theirs.dt.floor("D")).any():
            yield f"whole days of {name}"
        if new[name].isna().any() and not old[name].isna().any():
            yield f"missing cells of {name}"
    named = [name for name in old if old[name].dtype == object]
    if named:
        seen = set(old.loc[members, named].itertuples(index=False, name=None))
        if not seen.issuperset(new[named].itertuples(index=False, name=None)):
            yield f"categories {' '.join(named)} of no row"


def _resolutions(old, new):
    """Yield integers and days without the common resolution of many values."""
    for name in old:
        if old[name].dtype.kind not in "iM":
            continue
        seen, ours = old[name].to_numpy(), new[name].to_numpy()
        unit = 1
        if old[name].dtype.kind == "M":
            seen, ours = (v.astype("M8[ns]").astype("int64") for v in (seen, ours))
            unit = 86_400 * 10**9
        step = np.gcd.reduce(seen - seen.min())
        is_found = len(np.unique(seen)) >= 12 and step > unit
        if is_found and ((ours - seen.min()) % step != 0).any():
            yield f"resolution of {name}"


def _ranges(table, old, new, extrapolation):
    for name in old.columns[[d.kind in "iufM" for d in old.dtypes]]:
        low, high = old[name].min(), old[name].max()
        if extrapolation != 0 and old[name].dtype.kind == "M":
            continue
        if old[name].dtype.kind == "f":
            share = 1e9 if extrapolation is None else extrapolation
            rounding = ROUNDING * _unit(old, [name]) * max(abs(low), abs(high))
            room = share * (high - low) + rounding
            low, high = low - room, high + room
        if (new[name] < low).any() or (new[name] > high).any():
            yield f"range of {name}"


def trial(seed, setting="default"):
    """Return a row with the outcome of one case."""
    rng, settings = np.random.default_rng(seed), SETTINGS[setting]
    table, asked = random_table(rng), str(rng.choice(ASKED, p=[0.4, 0.3, 0.2, 0.1]))
    door = str(rng.choice(["PNLSampler", "PNLAugmenter"]))
    extrapolation = EXTRAPOLATION[rng.integers(len(EXTRAPOLATION))]
    members, n = np.ones(len(table.y), bool), 25
    if door == "PNLSampler":
        members, ratio = table.y == 1, settings.get(RATIO, 1)
        n = int(np.sum(table.y == 0) * ratio) - int(np.sum(table.y))
        if n <= 0:
            # The class already has this share of the rows.
            settings, n = SETTINGS["default"], int(np.sum(1 - 2 * table.y))
    ask = ask_for(asked, table, members, n, rng)
    asked = asked if ask.given else "nothing"
    size = f"{len(table.y)} x {table.frame.shape[1]}, {members.sum()} of the class"
    row = {"seed": seed, "setting": setting, "door": door, "form": table.form}
    row |= {"asked": asked, "size": size}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            missed = _attempt(door, table, members, n, ask, extrapolation, settings)
        except Exception as error:
            return row | {"outcome": _kind(error), "says": f"{error}"[:300]}
    # Advice, such as too many neighbours for the rows, does not concern guarantees.
    said = [str(w.message) for w in caught if w.category is not UserWarning]
    with_warning, without = ("said", "silent") if missed else ("warned", "kept")
    outcome = with_warning if said else without
    return row | {"outcome": outcome, "says": "; ".join([*missed, *said])[:300]}


def _attempt(door, table, members, n, ask, extrapolation, settings):
    X, missed = table.given(), []
    if door == "PNLAugmenter":
        settings = {key: settings[key] for key in settings if key != RATIO}
        augmenter = PNLAugmenter(extrapolation=extrapolation, **settings).fit(X)
        new = table.read(augmenter.sample(n, random_state=0, **ask.given))
    else:
        given = {name: {1: asked} for name, asked in ask.given.items()}
        sampler = PNLSampler(
            extrapolation=extrapolation, random_state=0, **given, **settings
        )
        rows, labels = sampler.fit_resample(X, table.y)
        rows, parents = table.read(rows), sampler.parent_indices_
        new = rows[len(members) :].reset_index(drop=True)
        checks = {
            "rows that were there": rows[: len(members)].equals(table.read(X)),
            "labels": (np.asarray(labels)[len(members) :] == 1).all(),
            "parents of another class": members[parents[parents >= 0]].all(),
        }
        missed = [what for what, kept in checks.items() if not kept]
    missed += [f"{len(new)} rows for {n}"] * (len(new) != n)
    kept = door == "PNLAugmenter"
    return [*missed, *broken(table, members, new, ask, extrapolation, kept)]


def _kind(error):
    """Return "refused" for errors that this library explains, and otherwise "error"."""
    ours = "sklearn_pnl" in traceback.extract_tb(error.__traceback__)[-1].filename
    return "refused" if isinstance(error, ValueError) and ours else "error"


def summary(rows):
    """Count outcomes by kind of request, function and container."""
    for key in ("setting", "asked", "door", "form"):
        for value in dict.fromkeys(row[key] for row in rows):
            found = [row["outcome"] for row in rows if row[key] == value]
            counts = {what: found.count(what) for what in OUTCOMES}
            yield {"of": value, "cases": len(found), **counts}


def main():
    """Run the cases, print broken guarantees, and fail if a break was silent."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--case", type=int, help="this one alone")
    parser.add_argument("--settings", nargs="+", default=[*SETTINGS])
    parser.add_argument("--n-jobs", type=int, default=1)
    given = parser.parse_args()
    seeds = range(given.cases) if given.case is None else [given.case]
    rows = Parallel(given.n_jobs)(
        delayed(trial)(seed, setting) for seed in seeds for setting in given.settings
    )
    for row in rows:
        if row["outcome"] in ("error", "silent"):
            print(*row.values(), sep=" | ")
    counts = list(summary(rows))
    if given.case is None:
        write_csv(counts, "promises")
    print(markdown(counts))
    sys.exit(any(line["error"] or line["silent"] for line in counts))


if __name__ == "__main__":
    main()
