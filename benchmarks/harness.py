"""Problems x samplers x learners x seeds: cached, in parallel, and alike for all.

A *problem* has ``head``, the columns that its rows begin with; ``seeds``; ``split``,
from a seed to a ``Split``; and ``key``, what its splits depend on. *Samplers* are a
dict from names to a ``Rival``, or to functions from a seed to a sampler; *learners* a
dict from names to functions from a seed to a classifier; where either depends on the
problem, a function from a problem to such a dict. A *score* is a function of a fitted
classifier, a split and a rival to a dict of numbers. All else is in the report.
"""

import sys
import warnings
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from time import perf_counter

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from . import cache as store
from .rivals import as_rival


@dataclass(frozen=True)
class Split:
    """A draw or a fold of a problem: rows to fit on, and rows to score on.

    ``y_fitted`` are the labels that a learner was fitted on, after sampling.
    """

    seed: int
    X: object
    y: np.ndarray
    X_test: object
    y_test: np.ndarray
    y_fitted: np.ndarray | None = None


def told(text):
    """Say how far a run is; tables alone are on standard output."""
    print(text, file=sys.stderr, flush=True)


def evaluate(
    problems, samplers, learners, score, *, folder, n_jobs=1, log=told, known=False
):
    """Rows of scores, one for each problem, seed, sampler and learner.

    What is in ``folder`` is not computed again; each row is there once its sampler is
    done, so that a run can be broken off. ``known`` leaves it at that.
    """
    code, start = store.library_code(), perf_counter()
    tasks = (
        delayed(_task)(problem, seed, *plan, score, folder, code, known)
        for problem in problems
        for plan in [(rivals_of(samplers, problem), _of(learners, problem))]
        for seed in problem.seeds
    )
    found = Parallel(n_jobs, return_as="generator")(tasks)
    rows = []
    for number, problem in enumerate(problems, 1):
        new = [row for part in islice(found, len(problem.seeds)) for row in part]
        minutes = (perf_counter() - start) / 60
        name = " ".join(str(value) for value in problem.head.values())
        lines = "\n      ".join([name, *_troubles(new)])
        log(f"[{number}/{len(problems)}] {minutes:5.1f} min  {lines}")
        rows += new
    return rows


def rivals_of(samplers, problem):
    """The rivals by name on a problem."""
    return {name: as_rival(each) for name, each in _of(samplers, problem).items()}


def _of(given, problem):
    return given(problem) if callable(given) else given


def _troubles(rows):
    """Each way in which a rival failed or warned."""
    found = {
        f"{row['sampler']}: {row[kind]}"
        for kind in ("failure", "warning")
        for row in rows
        if row[kind]
    }
    return sorted(found)


def _task(problem, seed, rivals, learners, score, folder, code, known_only):
    """Rows of one split. One thread: the workers of ``evaluate`` fill the cores."""
    # A worker imports the library later than the process that named the files.
    if store.library_code() != code:
        raise RuntimeError("The code of sklearn_pnl changed during the run.")
    path = store.path_of(folder, problem, seed)
    known = store.load(path)
    keys = {
        (name, learner): store.key_of(name, rival, learner, make)
        for name, rival in rivals.items()
        for learner, make in learners.items()
        if rival.applies(make(seed))
    }
    missing = [pair for pair, key in keys.items() if key not in known]
    if missing and not known_only:
        with threadpool_limits(1):
            split = problem.split(seed)
            for row in run_split(split, rivals, learners, score, missing):
                known[keys[row["sampler"], row["learner"]]] = row
                store.save(path, known)
    found = [known[key] for key in keys.values() if key in known]
    return [{**problem.head, **row} for row in found]


def run_split(split, rivals, learners, score, pairs):
    """A row for each pair of a rival's and a learner's name, those of a rival together.

    Sampling once, then fitting every learner, gives what an imblearn Pipeline of
    sampler and learner gives, without drawing the same rows for each learner again.
    """

    @cache
    def plain(learner):
        return _attempt(learners[learner](split.seed).fit, split.X, split.y)

    for name in dict.fromkeys(name for name, _ in pairs):
        rival = rivals[name]
        sample = _attempt(_resample, rival, split)
        for learner in (learner for other, learner in pairs if other == name):
            fit = sample
            if not (rival.fits_plainly or sample.failure):
                adapted = rival.adapted(learners[learner](split.seed), split.seed)
                fit = _attempt(adapted.fit, *sample.result)
            # A sampler may also fail within the learner that it is part of.
            inside = rival.calibrated or rival.adapt is not None
            troubles = [sample, fit] if inside else [sample]
            failure = _joined(trouble.failure for trouble in troubles)
            y_fitted = split.y if sample.failure else sample.result[1]
            if rival.fits_plainly or failure:
                fit = plain(learner)
            if fit.failure:
                raise RuntimeError(f"{learner}, seed {split.seed}: {fit.failure}")
            yield {
                "sampler": name,
                "learner": learner,
                "seed": split.seed,
                **score(fit.result, replace(split, y_fitted=y_fitted), rival),
                "seconds": sample.seconds + fit.seconds,
                "sampler seconds": sample.seconds,
                "failure": failure,
                "warning": _joined(trouble.warning for trouble in troubles),
            }


@dataclass(frozen=True)
class _Attempt:
    """What came of a call: its result, or the text of its error."""

    result: object
    seconds: float
    failure: str
    warning: str


def _attempt(function, *args):
    result, failure, start = None, "", perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(*args)
        except Exception as error:
            failure = _text(error)
    seconds = perf_counter() - start
    return _Attempt(
        result, seconds, failure, _joined(_text(record.message) for record in caught)
    )


def _resample(rival, split):
    """Rows to fit on: those of the split, and what comes before the learner adds."""
    if not rival.samples_first:
        return split.X, split.y
    X, y = rival.sampler(split.seed).fit_resample(split.X, split.y)
    if isinstance(X, np.ndarray) and not np.isfinite(X).all():
        raise ValueError("new rows are not finite")
    return X, y


def _joined(texts):
    return "; ".join(sorted({text for text in texts if text}))


def _text(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
