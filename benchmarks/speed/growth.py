"""How seconds and memory of every public call grow with the number of rows.

``python -m benchmarks.speed.growth`` measures each call at 1,000, 4,000, 16,000 and
64,000 training rows of 8 mixed columns, with as many new rows. A call that takes longer
than ``--limit`` seconds is stopped, and larger sizes of the call are left out.
``--only WORD ...`` measures the calls whose names contain one of the words and keeps
the other rows of the CSV.
"""

import argparse
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..tables import markdown, read_csv, write_csv
from .timing import peak_here

SIZES = 1_000, 4_000, 16_000, 64_000
# Seconds of a process before and after the call that is measured.
_OVERHEAD = 30


# --- data ---------------------------------------------------------------------------


def frame(n):
    """Make a data frame of amounts, their sum, counts, wages, a category, a flag."""
    import pandas as pd

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.gamma(2.0, size=(n, 3)), columns=["a", "b", "c"])
    X["total"] = X["a"] + X["b"] + X["c"]
    X["count"] = rng.poisson(3, n)
    X["wage"] = rng.normal(3_000, 500, n).round(2)
    X["kind"] = rng.choice(["x", "y", "z"], n)
    return X.assign(flag=rng.integers(0, 2, n))


def labelled(n):
    """Make the frame, and labels for which the sampler adds one row per row."""
    X = frame(2 * n)
    return X, np.arange(len(X)) % 4 == 0


def with_gaps(n):
    """Make the labelled frame with 5% of its cells missing."""
    X, y = labelled(n)
    return X.mask(np.random.default_rng(1).random(X.shape) < 0.05), y


def numbers(n, n_columns=8):
    """Make an array of correlated numbers."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, n_columns)) @ rng.normal(size=(n_columns, n_columns))


def numbers_with_gaps(n):
    """Make the array with 5% of its cells missing."""
    X = numbers(n)
    return np.where(np.random.default_rng(1).random(X.shape) < 0.05, np.nan, X)


def fitted(n):
    """Fit an augmenter to the frame, and return both."""
    from sklearn_pnl import PNLAugmenter

    X = frame(n)
    return PNLAugmenter().fit(X), X


def two_frames(n):
    """Make two frames of one population."""
    X = frame(2 * n)
    return X[:n], X[n:]


# --- calls --------------------------------------------------------------------------


def over_sample(data, **settings):
    from sklearn_pnl import PNLSampler

    X, y = data
    return PNLSampler(random_state=0, **settings).fit_resample(X, y)


def over_sample_groups(data):
    from sklearn_pnl import PNLSampler

    X, y = data
    groups = np.arange(len(X)) // 100
    return PNLSampler(random_state=0).fit_resample(X, y, groups=groups)


def over_sample_targets(X):
    from sklearn_pnl import PNLRegressionSampler

    y = X["wage"] + X["a"]
    sampler = PNLRegressionSampler(random_state=0)
    return sampler.fit_resample(X.drop(columns="wage"), y)


def augment(X):
    from sklearn_pnl import PNLAugmenter

    return PNLAugmenter().fit(X).sample(len(X), random_state=0)


def sample_one_value(data):
    from sklearn_pnl.control import ColumnConstraint

    augmenter, X = data
    wanted = ColumnConstraint("wage", lower=3_000)
    return augmenter.sample(len(X), random_state=0, constraints=wanted)


def sample_value_per_row(data):
    from sklearn_pnl.control import ColumnConstraint

    augmenter, X = data
    wanted = ColumnConstraint("wage", equal=X["wage"].to_numpy()[::-1])
    return augmenter.sample(len(X), random_state=0, constraints=wanted)


def sample_totals(data):
    augmenter, X = data
    return augmenter.sample(len(X), random_state=0, totals=totals(X))


def totals(X):
    """Return totals: a mean, a sum, and counts of a category."""
    from sklearn_pnl.control import column_total

    counts = {"x": len(X) // 2, "y": len(X) // 4, "z": len(X) // 4}
    mean = column_total("wage", 3_100, mean=True)
    return [mean, column_total("kind", counts)]


def adjust_constraints(X):
    from sklearn_pnl.control import ColumnConstraint, adjust

    return adjust(X, ColumnConstraint({"a": 1, "b": -1}, lower=0))


def adjust_totals(X):
    from sklearn_pnl.control import adjust, column_total

    return adjust(X, totals=column_total("wage", 3_100, mean=True))


def weigh(X, **settings):
    from sklearn_pnl.control import calibrate

    return calibrate(X, totals(X), **settings)


def weigh_by_integers(X):
    from sklearn_pnl.control import calibrate

    counts = {"x": len(X), "y": len(X) // 2, "z": len(X) // 2}
    return calibrate(X, {"kind": counts}, integer=True)


def impute(X):
    from sklearn_pnl import ManyBodyImputer

    return ManyBodyImputer().fit_transform(X)


def compare(data):
    from sklearn_pnl import compare_samples

    return compare_samples(*data, random_state=0)


def find(X):
    from sklearn_pnl.control import find_equalities

    return find_equalities(X)


def encode(n):
    """Make rows of 12 columns and their labels."""
    return numbers(2 * n, 12), np.arange(2 * n) % 4 == 0


def codes_of_order_2(data):
    from sklearn_pnl import Codes

    return over_sample(data, method=Codes(2))


def codes_of_the_paper(data):
    from sklearn_pnl import Codes

    return over_sample(data, method=Codes.paper())


@dataclass(frozen=True)
class Call:
    """A public call on the data that a function of the number of rows makes."""

    setup: Callable
    job: Callable


CALLS = {
    "`PNLSampler`": Call(labelled, over_sample),
    "`PNLSampler`, 5% of the cells missing": Call(with_gaps, over_sample),
    "`PNLSampler` with groups": Call(labelled, over_sample_groups),
    "`PNLRegressionSampler`": Call(frame, over_sample_targets),
    "`PNLAugmenter`: `fit` and `sample`": Call(frame, augment),
    "`sample`, one constraint for all rows": Call(fitted, sample_one_value),
    "`sample`, one constraint value per row": Call(fitted, sample_value_per_row),
    "`sample` with a mean and counts": Call(fitted, sample_totals),
    "`adjust` with constraints": Call(frame, adjust_constraints),
    "`adjust` with totals": Call(frame, adjust_totals),
    "`calibrate`, real weights": Call(frame, weigh),
    "`calibrate`, integer weights": Call(frame, weigh_by_integers),
    "`ManyBodyImputer`, 5% of the cells missing": Call(numbers_with_gaps, impute),
    "`compare_samples`": Call(two_frames, compare),
    "`find_equalities`": Call(frame, find),
    "`PNLSampler(method=Codes(2))`, 12 columns": Call(encode, codes_of_order_2),
    "`PNLSampler(method=Codes.paper())`, 12 columns": Call(encode, codes_of_the_paper),
}


# --- measuring ----------------------------------------------------------------------


def measure(name, n, limit):
    """Return seconds and MiB of a call in its own process; None above the limit."""
    module = [sys.executable, "-W", "ignore", "-m", "benchmarks.speed.growth"]
    command = [*module, "--call", name, str(n)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit + _OVERHEAD
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise RuntimeError(f"{name} with {n} rows failed:\n{done.stderr}")
    seconds, mib = json.loads(done.stdout.splitlines()[-1])
    return None if seconds > limit else (seconds, mib)


def print_measured(name, n):
    """Print seconds and MiB of a call in this process, after a call on few rows."""
    call = CALLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call.job(call.setup(SIZES[0] // 2))
        found = peak_here(lambda: call.setup(n), call.job)
    print(json.dumps([found.seconds, found.beyond_input]))


def row_of(name, sizes, limit):
    """Return a row: seconds by size, the exponent of the last two sizes, memory."""
    found = []
    for n in sizes:
        one = measure(name, n, limit)
        print(f"{name} {n:,}: {one}", file=sys.stderr, flush=True)
        if one is None:
            break
        found.append(one)
    seconds = [f"{s:.3g}" for s, _ in found]
    if len(found) < len(sizes):
        seconds += [f"> {limit:g}"] + [""] * (len(sizes) - len(found) - 1)
    row = {"call": name}
    row |= {f"{n} rows, s": s for n, s in zip(sizes, seconds, strict=True)}
    exponent = mib = ""
    if len(found) > 1:
        (before, _), (after, _) = found[-2:]
        step = np.log(sizes[len(found) - 1] / sizes[len(found) - 2])
        exponent = f"{np.log(after / before) / step:.2f}"
    if found:
        mib = f"{found[-1][1]:.0f}"
    return row | {"exponent": exponent, "peak MiB": mib}


def main():
    """Read the command line, measure, print the table and write the CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=[""], help="words of names")
    parser.add_argument("--limit", type=float, default=120, help="seconds of a call")
    parser.add_argument("--quick", action="store_true", help="1,000 and 4,000 rows")
    parser.add_argument("--call", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.call:
        return print_measured(args.call[0], int(args.call[1]))
    sizes = SIZES[:2] if args.quick else SIZES
    result = "speed-growth" + "-quick" * args.quick
    rows = {row["call"]: row for row in read_csv(result)}
    for name in CALLS:
        if any(word in name for word in args.only):
            rows[name] = row_of(name, sizes, args.limit)
            ordered = [rows[name] for name in CALLS if name in rows]
            write_csv(ordered, result)
    print(markdown(ordered))


if __name__ == "__main__":
    main()
