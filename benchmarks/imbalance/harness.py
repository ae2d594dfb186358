"""Repeated cross-validation of rivals and learners on tables, cached and in parallel.

A script that searches for better parameters needs this module alone::

    tables = load_tables("development")
    mine = {"order 2": lambda seed: PNLSampler(order=2, random_state=seed)}
    rows = summarise(evaluate(tables, RIVALS | mine, LEARNERS, n_jobs=2))
"""

import warnings
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from time import perf_counter

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from . import cache as store
from .problems import Table
from .samplers import as_rival
from .scores import DIRECTIONS, score


@dataclass(frozen=True)
class Fold:
    """One split of a table, standardised by its training part; the seed counts folds.

    Scaling once, sampling once, then fitting every learner gives what an imblearn
    Pipeline (scaler, sampler, learner) gives, without drawing the same rows for each
    learner again; ``check.py`` compares the two.
    """

    seed: int
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def evaluate(tables, rivals, learners, *, repeats=5, folds=2, n_jobs=1, log=print):
    """Rows of scores, one for each table, rival, learner and fold.

    ``rivals`` maps names to a ``Rival``, or to a function from a seed to a sampler;
    ``learners`` maps names to functions from a seed to a learner.
    """
    rivals = {name: as_rival(rival) for name, rival in rivals.items()}
    works = [_Work(table, rivals, learners, repeats, folds) for table in tables]
    open_works = [work for work in works if work.plan]
    code = store.library_code()
    tasks = (
        delayed(_task)(
            number, seed, code, work.table, train_test, work.plan, rivals, learners
        )
        for number, work in enumerate(open_works)
        for seed, train_test in enumerate(work.splits())
    )
    log(f"{len(works)} tables, {len(works) - len(open_works)} of them done before")
    start, done = perf_counter(), 0
    parallel = Parallel(n_jobs, return_as="generator_unordered")
    for number, rows in parallel(tasks):
        work = open_works[number]
        if work.add(rows):
            done += 1
            minutes = (perf_counter() - start) / 60
            log(f"[{done}/{len(open_works)}] {minutes:5.1f} min  {work.report()}")
    return [row for work in works for row in work.rows()]


def summarise(rows):
    """Means over the folds: one row for each table, rival and learner."""
    groups = defaultdict(list)
    for row in rows:
        groups[row["table"], row["sampler"], row["learner"]].append(row)
    return [_summary(group) for group in groups.values()]


def _summary(rows):
    first = rows[0]
    means = (*DIRECTIONS, "seconds", "sampler seconds")
    return {
        **{key: first[key] for key in ("table", "family", "sampler", "learner")},
        **{key: float(np.mean([row[key] for row in rows])) for key in means},
        "folds": len(rows),
        "failures": sum(bool(row["failure"]) for row in rows),
        "warnings": sum(bool(row["warning"]) for row in rows),
    }


class _Work:
    """What is known of one table, and what is left to compute."""

    def __init__(self, table, rivals, learners, repeats, folds):
        self.table = table
        self.splitter = RepeatedStratifiedKFold(
            n_splits=folds, n_repeats=repeats, random_state=0
        )
        self.keys = {
            name: [
                (learner, store.describe(learner, make(0)))
                for learner, make in learners.items()
                if rival.applies(make(0))
            ]
            for name, rival in rivals.items()
        }
        protocol = f"{repeats} x {folds} folds"
        self.paths = {
            name: store.path_of(table, name, rival, protocol)
            for name, rival in rivals.items()
        }
        self.known = {name: store.load(path) for name, path in self.paths.items()}
        self.plan = self._missing()
        self.new, self.left = [], repeats * folds

    def _missing(self):
        """Learners still to fit, by rival."""
        missing = {
            name: [learner for learner, key in keys if key not in self.known[name]]
            for name, keys in self.keys.items()
        }
        return {name: learners for name, learners in missing.items() if learners}

    def splits(self):
        return self.splitter.split(self.table.X, self.table.y)

    def add(self, rows):
        """Take the rows of a fold; write and return True after the last one."""
        self.new += rows
        self.left -= 1
        if self.left:
            return False
        self.new.sort(key=lambda row: row["fold"])
        for name, learners in self.plan.items():
            for learner, key in self.keys[name]:
                if learner in learners:
                    self.known[name][key] = self._of(name, learner)
            store.save(self.paths[name], self.known[name])
        return True

    def _of(self, name, learner):
        return [r for r in self.new if (r["sampler"], r["learner"]) == (name, learner)]

    def rows(self):
        for name, keys in self.keys.items():
            for _, key in keys:
                yield from self.known[name][key]

    def report(self):
        """Name of the table, and each way in which a rival failed on it."""
        troubles = {
            f"{row['sampler']}: {row[kind]}"
            for kind in ("failure", "warning")
            for row in self.new
            if row[kind]
        }
        return "\n      ".join([self.table.name, *sorted(troubles)])


def _task(number, seed, code, table, train_test, plan, rivals, learners):
    """Rows of one fold. One thread: the workers of ``evaluate`` fill the cores."""
    # A worker imports the library later than the process that named the files.
    if store.library_code() != code:
        raise RuntimeError("The code of sklearn_pnl changed during the run.")
    with threadpool_limits(1):
        fold = split_fold(table, train_test, seed)
        return number, run_fold(table, fold, plan, rivals, learners)


def split_fold(table: Table, train_test, seed):
    train, test = train_test
    scaler = StandardScaler().fit(table.X[train])
    return Fold(
        seed,
        scaler.transform(table.X[train]),
        table.y[train],
        scaler.transform(table.X[test]),
        table.y[test],
    )


def run_fold(table, fold, plan, rivals, learners):
    """Rows for the learners that ``plan`` names for each rival."""

    @cache
    def plain(learner):
        return _attempt(learners[learner](fold.seed).fit, fold.X, fold.y)

    rows = []
    for name, chosen in plan.items():
        rival = rivals[name]
        sample = _attempt(_resample, rival, fold)
        for learner in chosen:
            fit = sample
            if not (rival.fits_plainly or sample.failure):
                adapted = rival.adapted(learners[learner](fold.seed), fold.seed)
                fit = _attempt(adapted.fit, *sample.result)
            # A sampler may also fail within the learner that it is part of.
            troubles = [sample, fit] if rival.calibrated else [sample]
            failure = _joined(trouble.failure for trouble in troubles)
            if rival.fits_plainly or failure:
                fit = plain(learner)
            if fit.failure:
                raise RuntimeError(f"{learner} on {table.name}: {fit.failure}")
            rows.append(
                {
                    "table": table.name,
                    "family": table.family,
                    "sampler": name,
                    "learner": learner,
                    "fold": fold.seed,
                    **_score(fit.result, fold, rival.threshold),
                    "seconds": sample.seconds + fit.seconds,
                    "sampler seconds": sample.seconds,
                    "failure": failure,
                    "warning": _joined(trouble.warning for trouble in troubles),
                }
            )
    return rows


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


def _resample(rival, fold):
    """Rows to fit on: those of the fold, and what comes before the learner adds."""
    if not rival.samples_first:
        return fold.X, fold.y
    X, y = rival.sampler(fold.seed).fit_resample(fold.X, fold.y)
    if not np.isfinite(X).all():
        raise ValueError("new rows are not finite")
    return X, y


def _joined(texts):
    return "; ".join(sorted({text for text in texts if text}))


def _text(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"


def _score(model, fold, threshold):
    probability = model.predict_proba(fold.X_test)[:, 1]
    decided = probability >= fold.y.mean() if threshold else model.predict(fold.X_test)
    return score(fold.y_test, probability, decided)
