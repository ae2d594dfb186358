"""Encode, decode and sample where the rows are: on the host, and on each device.

``SCIPY_ARRAY_API=1 python -m benchmarks.speed.devices``

The table contains rows per second of NumPy with threads on all cores, and of PyTorch
and CuPy on each available device. Results of a device are compared with those of NumPy.
Images are those of MNIST and CIFAR-10, with the defaults of the estimators except for
the offset, which is 1.
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

# Numbers of rows, and of rows that are compared with NumPy.
N = {"MNIST": 60_000, "CIFAR-10": 10_000}
LOADERS = {"MNIST": mnist, "CIFAR-10": cifar10}
COMPARED = 200


def places():
    """Return names of devices, and functions that move an array to the device."""
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
    """Return names of jobs and data, and functions of rows that return a result."""
    for data in N:
        for order in (2, 3):
            yield f"{data}, encode order {order}", data, partial(encode, order)
    yield "MNIST, decode order 2, k = 5", "MNIST", decode
    yield "MNIST, new rows by codes of order 2", "MNIST", draw


def encode(order, X):
    """Fit on few rows, and encode all rows."""
    projector = ManyBodyProjector(order, offset=1.0, n_jobs=-1).fit(X[:100])
    return partial(projector.transform, X)


def decode(X):
    """Decode codes near the codes of the rows, from the nearest rows."""
    base = ManyBodyProjector(2, offset=1.0)
    projector = BackwardProjector(base, k_neighbors=5, n_jobs=-1).fit(X)
    return partial(projector.inverse_transform, projector.codes_ + 0.01)


def draw(X):
    """Sample as many new rows as there are training rows."""
    method = Codes(order=2, local_manifold="fiber", reshaper=None)
    augmenter = PNLAugmenter(
        method, value_support=None, equalities=None, n_jobs=-1
    ).fit(X)
    return partial(augmenter.sample, X.shape[0], random_state=0)


def measured(quick):
    """Return rows of the table."""
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
                    # On the host, new pixels with two values are copied from a parent.
                    "off NumPy's by": "" if make is draw else f"{off:.0e}",
                }
            )
            print(markdown(rows[-1:]).splitlines()[-1], flush=True)
    return rows


def timed(run):
    """Return the seconds and result of a second call, after the device has finished."""
    float(run()[-1].sum())
    start = perf_counter()
    result = run()
    float(result[-1].sum())
    return perf_counter() - start, result


def to_numpy(x):
    """Copy an array of a device to the host."""
    x = x.cpu() if hasattr(x, "cpu") else x
    return np.asarray(x.get() if hasattr(x, "get") else x)


if __name__ == "__main__":
    main(__doc__.splitlines()[0], measured, "speed-devices")
