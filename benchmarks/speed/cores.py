"""Measure the gain of more cores: samplers, threads and processes.

``python -m benchmarks.speed.cores``

Rows are digits of MNIST if the folder in SKLEARN_PNL_DATA contains them, and otherwise
the digits of scikit-learn, enlarged. The script counts, in addition to seconds, minor
page faults (memory mapped anew), voluntary switches (waiting for a lock), and products
with the Hessians of few rows at once.
"""

import argparse
import os
import resource
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import joblib
import numpy as np
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from sklearn_pnl import BackwardProjector, ManyBodyProjector
from sklearn_pnl.geometry.many_body.tilts import ExponentialTilt

from ..data import load
from ..tables import markdown, write_csv
from .guard import SHAPES, reals
from .timing import interleaved

SHAPE = (7, 2, 2, 7, 2, 2)
ORDERS = (2, 3)
FEW = 32
# Workers of dask set the first threshold, which also fixes the second. The last setting
# is the one that the documentation recommends for workers of dask.
THRESHOLDS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
ALLOCATORS = {"default": (), "dask": (2**16,), "dask, recommended": (2**26, 2**25)}


def n_cores():
    """Return the number of cores that this process may use."""
    return joblib.cpu_count()


def digits(n):
    """Return images (n, 28, 28) with pixels of 0 to 255, and their source."""
    folder = os.environ.get("SKLEARN_PNL_DATA")
    if folder and Path(folder, "mnist.npz").exists():
        return load("mnist")["X_train"][:n].astype(float), "MNIST"
    small = load_digits().images * 16
    large = np.pad(np.kron(small, np.ones((1, 3, 3))), ((0, 0), (2, 2), (2, 2)))
    rng = np.random.default_rng(0)
    rows, shifts = rng.integers(len(large), size=n), rng.integers(-2, 3, (n, 2))
    moved = [
        np.roll(large[row], shift, axis=(0, 1))
        for row, shift in zip(rows, shifts, strict=True)
    ]
    return np.array(moved), "digits of scikit-learn, enlarged"


def tensors(n):
    """Reshape digits to tensors of six modes."""
    return digits(n)[0].reshape(n, *SHAPE)


# --- samplers beside SMOTE ---------------------------------------------------------


def samplers(quick):
    """Return seconds of PNLSampler and SMOTE, by default and with one BLAS thread."""
    for redundant in (0, 2):
        for n, n_columns in SHAPES[:1] if quick else SHAPES:
            job = f"{n:,} x {n_columns}, {redundant} redundant"
            ours, smote = reals(n, n_columns, redundant)
            functions = {"SMOTE": smote, "ours": ours}
            functions["ours, one BLAS thread"] = partial(_limited, ours)
            taken = interleaved(functions)
            for name, seconds in taken.items():
                yield row("samplers", job, f"{name} (ms)", "", 1000 * seconds)
            limited = "ours, one BLAS thread"
            for name, title in (("ours", "ratio"), (limited, "ratio, one BLAS thread")):
                yield row("samplers", job, title, "", taken[name] / taken["SMOTE"])


def _limited(function):
    with threadpool_limits(1, "blas"):
        function()


# --- one projector, by threads and processes ---------------------------------------


def encoding(quick):
    """Return encoded rows of digits per second, and the counts of the process."""
    X = tensors(600 if quick else 6_000)
    cores = n_cores()
    numbers = [2**i for i in range(cores.bit_length()) if 2**i < cores] + [cores]
    for order in ORDERS:
        projector = ManyBodyProjector(order, offset=1.0).fit(X[:100])
        for number in numbers:
            projector.set_params(n_jobs=number)
            projector.transform(X[:300])
            with _counted() as sizes:
                found = measured(partial(projector.transform, X), len(X))
            # They are the same for any number of threads.
            if number == 1 and sizes:
                share = 100 * np.mean(np.array(sizes) < FEW)
                found[f"products of fewer than {FEW} rows, %"] = share
            yield from _of_order(order, _threads(number), found)
        projector.set_params(n_jobs=cores)
        with joblib.parallel_config("loky"):
            projector.transform(X[:300])
            rate = measured(partial(projector.transform, X), len(X))["rows per second"]
        yield from _of_order(order, f"{cores} processes", {"rows per second": rate})


def _of_order(order, setting, found):
    for measure, value in found.items():
        yield row("encoding", f"order {order}", measure, setting, value)


def _threads(number):
    return f"{number} thread{'s' * (number > 1)}"


def measured(function, n):
    """Return rows per second of a call, and faults and switches per row."""
    before, start = resource.getrusage(resource.RUSAGE_SELF), perf_counter()
    function()
    taken, after = perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    return {
        "rows per second": n / taken,
        "page faults per row": (after.ru_minflt - before.ru_minflt) / n,
        "switches per row": (after.ru_nvcsw - before.ru_nvcsw) / n,
    }


@contextmanager
def _counted():
    """Record the numbers of rows of the products in the context."""
    sizes, product = [], ExponentialTilt.hessian_product

    def noted(self, q, v):
        sizes.append(len(v))
        return product(self, q, v)

    ExponentialTilt.hessian_product = noted
    try:
        yield sizes
    finally:
        ExponentialTilt.hessian_product = product


# --- memory: page faults of a process, also with the settings of workers of dask ----


def memory(quick):
    """Return page faults per row of one thread, in a new process."""
    n = 300 if quick else 1_000
    for setting, thresholds in ALLOCATORS.items():
        with _environment(dict(zip(THRESHOLDS, thresholds, strict=False))):
            context = get_context("spawn")
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                found = pool.submit(_faults, n).result()
        for job, count in found.items():
            yield row("memory", job, "page faults per row", setting, count)


def _faults(n):
    X, found = tensors(n), {}
    for order in ORDERS:
        projector = BackwardProjector(ManyBodyProjector(order, offset=1.0)).fit(X)
        steps = {
            "encode": partial(projector.transform, X),
            "decode": partial(projector.inverse_transform, projector.transform(X)),
        }
        for name, step in steps.items():
            step()
            found[f"order {order}, {name}"] = measured(step, n)["page faults per row"]
    return found


@contextmanager
def _environment(variables):
    """Set thresholds of malloc for processes that are started in the context."""
    before = {name: os.environ.pop(name, None) for name in THRESHOLDS}
    os.environ.update({name: str(value) for name, value in variables.items()})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


# --- the tables --------------------------------------------------------------------


def row(table, job, measure, setting, value):
    """Return one figure of a table."""
    return {
        "table": table,
        "job": job,
        "measure": measure,
        "setting": setting,
        "value": float(value),
    }


def lines(rows, table):
    """Return a table with a line per job, and a column per setting or measure."""
    found = {}
    for each in (each for each in rows if each["table"] == table):
        key = each["job"], each["measure"] if each["setting"] else ""
        column = each["setting"] or each["measure"]
        found.setdefault(key, {})[column] = float(each["value"])
    columns = dict.fromkeys(name for values in found.values() for name in values)
    return [
        {"": ", ".join(filter(None, key))}
        | {name: _shown(values.get(name)) for name in columns}
        for key, values in found.items()
    ]


def _shown(value):
    """Format three digits, or nothing for a missing figure."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def tables(rows):
    """Return titles and tables of one machine."""
    for table, title in TITLES.items():
        if found := lines(rows, table):
            yield title.format(digits=rows[0]["digits"], cores=rows[0]["cores"]), found


TITLES = {
    "samplers": "`PNLSampler()` and `SMOTE()`, {cores} cores",
    "encoding": f"`ManyBodyProjector(offset=1.0).transform` of {{digits}} as {SHAPE}, "
    "{cores} cores",
    "memory": "Minor page faults per row, one thread",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rows")
    quick = parser.parse_args().quick
    about, rows = {"cores": n_cores(), "digits": digits(1)[1]}, []
    for make in (samplers, encoding, memory):
        new = [about | each for each in make(quick)]
        for title, table in tables(new):
            print(f"{title}:\n\n{markdown(table)}\n", flush=True)
        rows += new
    # Rough figures must not take the place of full ones.
    path = write_csv(rows, f"speed-cores-{about['cores']}" + quick * "-quick")
    print(f"written to {path}")


if __name__ == "__main__":
    main()
