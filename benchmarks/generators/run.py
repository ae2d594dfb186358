"""Compare generators of synthetic rows on five real tables.

``python -m benchmarks.generators.run``
"""

import argparse
import signal
import sys
import warnings
from contextlib import redirect_stdout
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from time import perf_counter

import joblib
import numpy as np

from ..cache import library_code
from ..tables import markdown, write_csv
from . import report
from .methods import METHODS, PACKAGES
from .scores import scores
from .tables import TABLES, restored

FOLDER = Path(__file__).parent / "cache"
SIZES = (200, 1_000, 5_000)


def generated(table, size, method, limit):
    """Return new rows, the seconds, and the reason of a failure; cached.

    A method does not run if the limit is zero.
    """
    path = file_of(table, size, method)
    package = PACKAGES.get(method)
    key = library_code() if package is None else installed(package)
    if path.exists():
        known = joblib.load(path)
        if known["key"] == key:
            return known
    if not limit:
        return {"new": None, "failure": "not run: too slow", "seconds": ""}
    train, other, _ = splits(table)
    train, other = train[:size], other[:size]
    new, failure, start = None, "", perf_counter()
    if method in report.REFERENCES:
        new = train if method == report.REFERENCES[0] else other
    else:
        try:
            # Some packages sample with the global generator of NumPy.
            np.random.seed(0)  # noqa: NPY002
            with limited(limit), redirect_stdout(sys.stderr):
                found = METHODS[method](seen(train), TABLES[table].target, 0)
            new = restored(found, train)
            if new.isna().any(axis=None):
                new, failure = None, "new rows have missing cells"
        except Exception as error:
            text = " ".join(str(error).split())[:120]
            failure = f"{type(error).__name__}: {text}"
    result = {"key": key, "new": new, "failure": failure}
    result["seconds"] = round(perf_counter() - start, 2)
    FOLDER.mkdir(exist_ok=True)
    joblib.dump(result, path)
    return result


@cache
def splits(table):
    """Return the splits of a table; loaded once."""
    return TABLES[table].splits()


def installed(package):
    """Return the version of a package, or that there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def seen(train):
    """Return a copy of training rows without the categories that occur in no row."""
    train = train.copy()
    for name in train.select_dtypes("category"):
        train[name] = train[name].cat.remove_unused_categories()
    return train


class limited:
    """Raise TimeoutError if a block takes longer than a number of seconds."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __enter__(self):
        signal.signal(signal.SIGALRM, self.stop)
        signal.alarm(self.seconds)

    def stop(self, *_):
        raise TimeoutError(f"more than {self.seconds} seconds")

    def __exit__(self, *_):
        signal.alarm(0)


def row_of(table, size, method, limit):
    """Return the row of a table, a number of training rows and a method; cached."""
    found = generated(table, size, method, limit)
    head = {"table": table, "training rows": size, "method": method}
    tail = {"seconds": found["seconds"], "failure": found["failure"]}
    if found["failure"]:
        return {**head, **dict.fromkeys(report.SCORES, ""), **tail}
    path = file_of(table, size, f"{method}-scores")
    rows_key = joblib.hash(found["new"])
    known = joblib.load(path) if path.exists() else {}
    if known.get("key") != rows_key:
        train, _, held_out = splits(table)
        measured = scores(train[:size], found["new"], held_out, TABLES[table].target)
        known = {"key": rows_key, "scores": measured}
        joblib.dump(known, path)
    values = {
        name: value if isinstance(value, str) else round(value, 4)
        for name, value in known["scores"].items()
    }
    return {**head, **{name: values[name] for name in report.SCORES}, **tail}


def file_of(table, size, method):
    """Return the file of the new rows of a method."""
    return FOLDER / f"{table}-{size}-{method}.joblib"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--limit", type=int, default=3_600, help="seconds per method")
    parser.add_argument("--known", action="store_true", help="report the cache only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    methods = (*report.REFERENCES, *options.methods)
    rows = []
    # Small sizes come first, so that an unfinished run has complete sizes.
    for size, table in product(options.sizes, options.tables):
        for method in methods:
            known_only = options.known and not file_of(table, size, method).exists()
            limit = 0 if known_only else options.limit
            rows.append(row_of(table, size, method, limit))
            print(*rows[-1].values(), file=sys.stderr, flush=True)
    write_csv(rows, "generators")
    print(markdown(report.table(rows)))


if __name__ == "__main__":
    main()
