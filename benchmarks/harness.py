"""Evaluate samplers with learners on problems: cached, in parallel, with equal splits.

A *problem* has ``head``, the columns that its rows begin with; ``seeds``; ``split``, a
function from a seed to a ``Split``; and ``key``, which identifies the data of its
splits. *Samplers* are a dict from names to a ``Baseline``, or to functions from a seed
to a sampler. *Learners* are a dict from names to functions from a seed to a classifier.
If samplers or learners depend on the problem, a function from a problem to a dict
replaces the dict. A *score* is a function from a fitted classifier, a split and a
baseline to a dict of numbers. The report contains everything else.
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
from .baselines import as_baseline


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
    """Report the progress on standard error; standard output contains tables."""
    print(text, file=sys.stderr, flush=True)


def evaluate(
    problems, samplers, learners, score, *, folder, n_jobs=1, log=told, known=False
):
    """Return rows of scores, one for each problem, seed, sampler and learner.

    Results in ``folder`` are not computed again. Rows are stored as soon as a sampler
    is finished, so that an interrupted run can continue. With ``known``, only stored
    results are returned.
    """
    code, start = store.library_code(), perf_counter()
    tasks = (
        delayed(_task)(problem, seed, *plan, score, folder, code, known)
        for problem in problems
        for plan in [(baselines_of(samplers, problem), _of(learners, problem))]
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


def baselines_of(samplers, problem):
    """Return the baselines of a problem by name."""
    return {name: as_baseline(each) for name, each in _of(samplers, problem).items()}


def _of(given, problem):
    return given(problem) if callable(given) else given


def _troubles(rows):
    """Return a line for each failure and warning of a baseline."""
    found = {
        f"{row['sampler']}: {row[kind]}"
        for kind in ("failure", "warning")
        for row in rows
        if row[kind]
    }
    return sorted(found)


def _task(problem, seed, baselines, learners, score, folder, code, known_only):
    """Return rows of one split on one thread, because the workers use all cores."""
    # A worker imports the library later than the process that named the files.
    if store.library_code() != code:
        raise RuntimeError("The code of sklearn_pnl changed during the run.")
    path = store.path_of(folder, problem, seed)
    known = store.load(path)
    keys = {
        (name, learner): store.key_of(name, baseline, learner, make)
        for name, baseline in baselines.items()
        for learner, make in learners.items()
        if baseline.applies(make(seed))
    }
    missing = [pair for pair, key in keys.items() if key not in known]
    if missing and not known_only:
        with threadpool_limits(1):
            split = problem.split(seed)
            for row in run_split(split, baselines, learners, score, missing):
                known[keys[row["sampler"], row["learner"]]] = row
                store.save(path, known)
    found = [known[key] for key in keys.values() if key in known]
    return [{**problem.head, **row} for row in found]


def run_split(split, baselines, learners, score, pairs):
    """Return a row for each pair of a baseline and a learner, grouped by baseline.

    Each learner is fitted on the same sampled rows. An imblearn Pipeline of the sampler
    and the learner would return the same scores, but would sample for each learner
    again.
    """

    @cache
    def plain(learner):
        return _attempt(learners[learner](split.seed).fit, split.X, split.y)

    for name in dict.fromkeys(name for name, _ in pairs):
        baseline = baselines[name]
        sample = _attempt(_resample, baseline, split)
        for learner in (learner for other, learner in pairs if other == name):
            fit = sample
            if not (baseline.fits_plainly or sample.failure):
                adapted = baseline.adapted(learners[learner](split.seed), split.seed)
                fit = _attempt(adapted.fit, *sample.result)
            # A sampler may also fail within the learner that it is part of.
            inside = baseline.calibrated or baseline.adapt is not None
            troubles = [sample, fit] if inside else [sample]
            failure = _joined(trouble.failure for trouble in troubles)
            y_fitted = split.y if sample.failure else sample.result[1]
            if baseline.fits_plainly or failure:
                fit = plain(learner)
            if fit.failure:
                raise RuntimeError(f"{learner}, seed {split.seed}: {fit.failure}")
            yield {
                "sampler": name,
                "learner": learner,
                "seed": split.seed,
                **score(fit.result, replace(split, y_fitted=y_fitted), baseline),
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


def _resample(baseline, split):
    """Return the rows of the split, or the rows that a sampler returns."""
    if not baseline.samples_first:
        return split.X, split.y
    X, y = baseline.sampler(split.seed).fit_resample(split.X, split.y)
    if isinstance(X, np.ndarray) and not np.isfinite(X).all():
        raise ValueError("new rows are not finite")
    return X, y


def _joined(texts):
    return "; ".join(sorted({text for text in texts if text}))


def _text(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
