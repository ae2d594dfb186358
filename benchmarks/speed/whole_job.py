"""Compare PNLSampler with the samplers of imbalanced-learn on complete jobs."""

from collections import Counter
from functools import partial

import numpy as np
from imblearn.over_sampling import SMOTE, RandomOverSampler
from sklearn import get_config

from sklearn_pnl import Codes, PNLSampler

from ..tables import main
from . import problems
from .scores import score
from .timing import interleaved, peak

SEED = 0
MIB = 2**20


def plus_a_fifth(y):
    """Return a ``sampling_strategy`` that adds 20% to each class."""
    return {label: n + n // 5 for label, n in Counter(y.tolist()).items()}


def compare(job, samplers, X, y, repeats):
    """Return seconds of each sampler, run in turn, and the ratio to SMOTE.

    ``samplers`` maps names to a sampler, the shape of its rows, and the largest
    accepted ratio.
    """
    functions = {
        name: partial(sampler.fit_resample, X.reshape(len(X), *shape), y)
        for name, (sampler, shape, _) in samplers.items()
    }
    taken = interleaved(functions, repeats)
    rows = [score(job, f"{name}, s", taken[name]) for name in samplers]
    ours = {name: v for name, v in samplers.items() if name.startswith("PNL")}
    rows += [
        score(job, f"{name} / SMOTE", taken[name] / taken["SMOTE"], at_most=at_most)
        for name, (_, _, at_most) in ours.items()
    ]
    return rows


def others(strategy, shape):
    settings = {"sampling_strategy": strategy, "random_state": SEED}
    return {
        "SMOTE": (SMOTE(**settings), shape, None),
        "RandomOverSampler": (
            RandomOverSampler(shrinkage=0.3, **settings), shape, None
        ),
    }  # fmt: skip


def mnist(n, repeats):
    """Compare samplers of images, in their shape and as flat rows."""
    X, y = problems.mnist_images(n)
    strategy = plus_a_fifth(y)
    images, flat = (28, 28), (784,)
    pnl = partial(PNLSampler, sampling_strategy=strategy, random_state=SEED)
    # All pixels have the same unit and need no scaling of single columns.
    unscaled = partial(pnl, method=Codes(embedding=None))
    mixture = Codes(local_manifold="mixture", embedding=None)
    samplers = {
        "PNLSampler, images": (pnl(), images, 0.25),
        "PNLSampler, images, embedding=None": (unscaled(), images, 0.25),
        "PNLSampler, images, embedding=None, n_jobs=-1": (
            unscaled(n_jobs=-1), images, None
        ),
        "PNLSampler, images, embedding=None, mixture": (
            pnl(method=mixture), images, None
        ),
        "PNLSampler, flat": (pnl(), flat, 0.4),
        "PNLSampler, flat, n_jobs=-1": (pnl(n_jobs=-1), flat, None),
        **others(strategy, flat),
    }  # fmt: skip
    return compare(f"MNIST {n} x 784 + 20%", samplers, X, y, repeats)


def table(n, n_features, repeats, at_most):
    X, y = problems.imbalanced_table(n, n_features)
    shape = (n_features,)
    samplers = {
        "PNLSampler": (PNLSampler(random_state=SEED), shape, at_most),
        # The neighbour search of SMOTE uses all cores by default.
        "PNLSampler, n_jobs=-1": (
            PNLSampler(random_state=SEED, n_jobs=-1), shape, None
        ),
        **others("auto", shape),
    }  # fmt: skip
    job = f"{n} x {n_features} table, 10% to balance"
    return compare(job, samplers, X, y, repeats)


def resample_clips(data):
    """Resample clips in a new process, to measure its peak of memory."""
    X, y = data
    strategy = plus_a_fifth(y)
    sampler = PNLSampler(method=Codes(2), sampling_strategy=strategy, random_state=SEED)
    return sampler.fit_resample(X, y), sampler


def speech(n):
    measured = peak(partial(problems.speech_commands, n), resample_clips)
    job = f"Speech Commands {n} x 16000 + 20%, order 2"
    as_float64 = n * 16_000 * np.dtype(np.float64).itemsize / MIB
    allowed = 2 * as_float64 + get_config()["working_memory"]
    note = f"input {as_float64:.4g} MiB as float64; {measured.kept:.4g} MiB are kept"
    return [
        score(job, "PNLSampler, s", measured.seconds, at_most=30),
        score(
            job, "peak beyond the input, MiB", measured.beyond_input,
            at_most=round(allowed), note=note,
        ),
        score(job, "peak / input as float64", measured.beyond_input / as_float64),
    ]  # fmt: skip


def run(quick):
    n_mnist, n_rows, n_clips, repeats = (
        (6_000, 20_000, 270, 1) if quick else (60_000, 1_000_000, 2_700, 3)
    )
    # Smaller tables are jobs of ``guard``.
    table_ = table(n_rows, 20, repeats, at_most=0.5)
    return mnist(n_mnist, repeats) + table_ + speech(n_clips)


if __name__ == "__main__":
    main(__doc__, run, "speed-whole_job")
