"""What a second worker brings: threads, processes, and a cluster of dask."""

import contextlib
import os
from functools import partial
from importlib import import_module
from time import perf_counter

import joblib

from sklearn_pnl import ManyBodyProjector, PNLSampler

from . import problems
from .script import main
from .whole_job import SEED, plus_a_fifth

ENCODED = "MNIST {} images encoded at order 3"
RESAMPLED = "MNIST {} images + 20%, order 2"
# What dask sets for its workers makes their allocator give all memory back at once.
KEEPING = {
    "MALLOC_TRIM_THRESHOLD_": str(2**28),
    "MALLOC_MMAP_THRESHOLD_": str(2**28),
}


@contextlib.contextmanager
def dask(n_workers, environment=None):
    """The workers of a cluster on this machine, with the settings of dask or others."""
    import dask
    from distributed import Client, LocalCluster

    name = "distributed.nanny.pre-spawn-environ"
    settings = dask.config.get(name) | (environment or {})
    with (
        dask.config.set({name: settings}),
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
        joblib.parallel_config("dask"),
    ):
        client.run(import_module, "sklearn_pnl.over_sampling")
        yield


@contextlib.contextmanager
def loky():
    with joblib.parallel_config("loky", n_jobs=2):
        names = ["sklearn_pnl.over_sampling"] * 8
        joblib.Parallel()(joblib.delayed(import_module)(name) for name in names)
        yield


BACKENDS = {
    "serial": contextlib.nullcontext,
    "2 threads": partial(joblib.parallel_config, "threading", n_jobs=2),
    "2 processes": loky,
    "1 dask worker": partial(dask, 1),
    "2 dask workers": partial(dask, 2),
    "2 dask workers that keep memory": partial(dask, 2, KEEPING),
}


def encode(n):
    X = problems.mnist(n)
    return lambda: ManyBodyProjector(3).fit_transform(X)


def resample(n):
    X, y = problems.mnist_images(n)
    X, strategy = X.reshape(-1, 28, 28), plus_a_fifth(y)
    sampler = PNLSampler(order=2, sampling_strategy=strategy, random_state=SEED)
    return lambda: sampler.fit_resample(X, y)[0]


def compare(job, function, backends, rounds):
    """Seconds of each backend, the least of some rounds, and how often it is serial."""
    taken, found = {name: [] for name in backends}, {}
    for _ in range(rounds):
        for name in backends:
            with BACKENDS[name]():
                start = perf_counter()
                found[name] = joblib.hash(function())
                taken[name].append(perf_counter() - start)
    home = min(taken["serial"])
    return [
        {
            "job": job,
            "workers": name,
            "s": min(seconds),
            "times as fast": home / min(seconds),
            "same bytes": found[name] == found["serial"],
            "cores": os.cpu_count(),
        }
        for name, seconds in taken.items()
    ]


def run(quick):
    n, n_resampled, rounds = (500, 2_000, 1) if quick else (3_000, 60_000, 2)
    rows = compare(ENCODED.format(n), encode(n), BACKENDS, rounds)
    some = [name for name in BACKENDS if name not in ("2 threads", "1 dask worker")]
    return rows + compare(RESAMPLED.format(n_resampled), resample(n_resampled), some, 1)


if __name__ == "__main__":
    main(__doc__, run, "workers")
