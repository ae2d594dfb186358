"""Encoding, decoding and drawing where the rows are: the host, and each device here.

``SCIPY_ARRAY_API=1 python -m benchmarks.speed.devices``

Rows per second of NumPy with threads on all cores, and of PyTorch and CuPy on what they
find; a device that is not there is left out. Results of a device are compared with
those of NumPy. Images are those of MNIST and CIFAR-10, at the defaults of the
estimators but for the offset, 1.
"""

from functools import partial
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter

import joblib
import numpy as np
from sklearn import config_context

from sklearn_pnl import BackwardProjector, Codes, ManyBodyProjector, PNLAugmenter

from ..tables import main, markdown
from .problems import cifar10, mnist

# Numbers of rows, and of those that are compared with NumPy.
N = {"MNIST": 60_000, "CIFAR-10": 10_000}
LOADERS = {"MNIST": mnist, "CIFAR-10": cifar10}
COMPARED = 200


def places():
    """Names of what computes, and functions that move an array of NumPy there."""
    yield f"NumPy, {joblib.cpu_count()} cores", np.asarray
    if find_spec("torch") is not None:
        torch = import_module("torch")
        yield "PyTorch, cpu", torch.asarray
        if torch.cuda.is_available():
            move = partial(torch.asarray, device="cuda")
            yield f"PyTorch, {torch.cuda.get_device_name()}", move
    if find_spec("cupy") is not None:
        yield "CuPy", import_module("cupy").asarray


def jobs():
    """Names of jobs, of their data, and functions of rows that return a last result."""
    for data in N:
        for order in (2, 3):
            yield f"{data}, encode order {order}", data, partial(encode, order)
    yield "MNIST, decode order 2, k = 5", "MNIST", decode
    yield "MNIST, new rows by codes of order 2", "MNIST", draw


def encode(order, X):
    """Fitted on few rows, all are encoded."""
    projector = ManyBodyProjector(order, offset=1.0, n_jobs=-1).fit(X[:100])
    return partial(projector.transform, X)


def decode(X):
    """Codes a little off those of the rows, decoded through the nearest of them."""
    base = ManyBodyProjector(2, offset=1.0)
    projector = BackwardProjector(base, k_neighbors=5, n_jobs=-1).fit(X)
    return partial(projector.inverse_transform, projector.codes_ + 0.01)


def draw(X):
    """As many new rows as there are training rows."""
    method = Codes(order=2, local_manifold="fiber", reshaper=None)
    augmenter = PNLAugmenter(
        method, value_support=None, equalities=None, n_jobs=-1
    ).fit(X)
    return partial(augmenter.sample, X.shape[0], random_state=0)


def measured(quick):
    """Rows of the table."""
    rows, expected = [], {}
    for place, move in places():
        for job, data, make in jobs():
            X = LOADERS[data](300 if quick else N[data])
            with config_context(array_api_dispatch=True):
                run = make(move(X))
                seconds, result = timed(run)
            few = to_numpy(result[:COMPARED])
            off = np.abs(few - expected.setdefault(job, few)).max() / np.abs(few).max()
            rows.append(
                {
                    "job": job,
                    "computed by": place,
                    "rows": len(X),
                    "rows per second": round(len(X) / seconds),
                    # On the host new pixels with two values are those of a parent.
                    "off NumPy's by": "" if make is draw else f"{off:.0e}",
                }
            )
            print(markdown(rows[-1:]).splitlines()[-1], flush=True)
    return rows


def timed(run):
    """Seconds of a second call, and what it gave; a device is waited for."""
    float(run()[-1].sum())
    start = perf_counter()
    result = run()
    float(result[-1].sum())
    return perf_counter() - start, result


def to_numpy(x):
    """An array of a device on the host."""
    x = x.cpu() if hasattr(x, "cpu") else x
    return np.asarray(x.get() if hasattr(x, "get") else x)


if __name__ == "__main__":
    main(__doc__.splitlines()[0], measured, "speed-devices")
