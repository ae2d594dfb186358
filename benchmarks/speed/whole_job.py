"""Whole jobs of over-sampling: PNLSampler beside imbalanced-learn's samplers."""

from collections import Counter
from functools import partial

import numpy as np
from imblearn.over_sampling import SMOTE, RandomOverSampler
from sklearn import get_config

from sklearn_pnl import PNLSampler, PrimeFactorReshaper

from . import problems
from .scores import score
from .script import main
from .timing import interleaved, peak

SEED = 0
MIB = 2**20


def plus_a_fifth(y):
    """20% more of every class, as a ``sampling_strategy``."""
    return {label: n + n // 5 for label, n in Counter(y.tolist()).items()}


def compare(job, X, y, samplers, repeats, at_most):
    """Seconds of each sampler, run in turn, and the ratio to SMOTE."""
    functions = {
        name: partial(sampler.fit_resample, X, y) for name, sampler in samplers.items()
    }
    taken = interleaved(functions, repeats)
    rows = [score(job, f"{name}, s", taken[name]) for name in samplers]
    ours = [name for name in samplers if name.startswith("PNL")]
    rows += [
        score(
            job, f"{name} / SMOTE", taken[name] / taken["SMOTE"],
            at_most=None if "mixture" in name else at_most,
        )
        for name in ours
    ]  # fmt: skip
    return rows


def mnist(n, repeats):
    X, y = problems.mnist_images(n)
    strategy = plus_a_fifth(y)
    images = partial(
        PNLSampler,
        sampling_strategy=strategy,
        embedding=None,
        reshaper=PrimeFactorReshaper(input_shape=(28, 28)),
        random_state=SEED,
    )
    samplers = {
        "PNLSampler": images(),
        "PNLSampler, n_jobs=-1": images(n_jobs=-1),
        "PNLSampler, mixture": images(local_manifold="mixture"),
        **others(strategy),
    }
    return compare(f"MNIST {n} x 784 + 20%", X, y, samplers, repeats, 1 / 5)


def table(n, repeats):
    X, y = problems.imbalanced_table(n)
    samplers = {
        "PNLSampler": PNLSampler(random_state=SEED),
        # SMOTE's search uses every core without being asked.
        "PNLSampler, n_jobs=-1": PNLSampler(random_state=SEED, n_jobs=-1),
        **others("auto"),
    }
    job = f"{n} x 20 table, 10% to balance"
    return compare(job, X, y, samplers, repeats, 1 / 2)


def others(strategy):
    settings = {"sampling_strategy": strategy, "random_state": SEED}
    return {
        "SMOTE": SMOTE(**settings),
        "RandomOverSampler": RandomOverSampler(shrinkage=0.3, **settings),
    }


def resample_clips(data):
    """In a process of its own, for its peak of memory."""
    X, y = data
    sampler = PNLSampler(order=2, sampling_strategy=plus_a_fifth(y), random_state=SEED)
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
    n_mnist, n_table, n_clips, repeats = (
        (6_000, 50_000, 270, 1) if quick else (60_000, 1_000_000, 2_700, 3)
    )
    return [*mnist(n_mnist, repeats), *table(n_table, repeats), *speech(n_clips)]


if __name__ == "__main__":
    main(__doc__, run, "whole_job")
