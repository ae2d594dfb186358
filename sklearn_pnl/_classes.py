"""The classes of a sampler: each one's new rows, made here or by workers."""

from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs, parallel_config
from threadpoolctl import threadpool_limits

from ._blocks import gives_back_singly, run_tasks, shares_memory
from ._callbacks import stage, subtask
from ._formats import part_of, read_as, some_rows
from ._threads import omp_threads, one_blas_thread
from ._validation import hearing, rows_known_as, warn_again
from ._workspace import workspace
from .augment import PNLAugmenter


@dataclass(frozen=True)
class ClassTask:
    """What is wanted of one class.

    Attributes
    ----------
    label : object
    members : ndarray of int
        Rows of the class.
    n_new : int
        New rows.
    seed : int or RandomState instance
        Each of several classes has one of its own: they need not wait for each other.
    asked : constraints or None
    whom : str
        Name of the sampler, for messages.
    """

    label: Any
    members: np.ndarray
    n_new: int
    seed: Any
    asked: Any
    whom: str

    @property
    def name(self):
        """What a class is called in messages."""
        return f"class {np.asarray(self.label).item()!r}"

    @property
    def size(self):
        """Rows to encode and to decode."""
        return len(self.members) + self.n_new


def augment_classes(tasks, params, X, read, rooms, progress=None):
    """Fitted augmenters, new rows and parents of classes, one after the other.

    Parameters
    ----------
    tasks : list of ClassTask
    params : dict
        Of :class:`~.augment.PNLAugmenter`.
    X : array, sparse matrix or data frame
        Rows of all classes.
    read : tuple of (numbers, form)
        What they were read as.
    rooms : list of ndarray or None
        Where the new rows of a class are written, if there is a place for them.
    progress : Task, default=None
        Of callbacks, which are told of blocks: all work is handed out from here.

    Yields
    ------
    found : tuple of (task, augmenter, rows, parents)
    """
    with_parts = (
        (t, some_rows(X, t.members), part_of(*read, t.members)) for t in tasks
    )
    if progress is None and _sent_whole(tasks, params, read[1].shape):
        yield from _augment_there(tasks, params, with_parts, rooms)
        return
    for (task, rows, part), out in zip(with_parts, rooms, strict=True):
        yield task, *_augment(task, params, rows, part, out, progress)


def _augment(task, params, rows, part, out=None, progress=None):
    augmenter = PNLAugmenter(**params)
    with (
        subtask(progress, task.name, 2) as own,
        rows_known_as(task.members, task.name, task.whom),
        read_as(*part),
        workspace(),
    ):
        with stage(own, "encode"):
            augmenter.fit(rows)
        with stage(own, "decode"):
            new, parents, _ = augmenter._sample(
                task.n_new, task.seed, task.asked, out=out
            )
    augmenter._forget_search()
    return augmenter, new, parents


# --- by workers that share no memory --------------------------------------------------


def _sent_whole(tasks, params, shape):
    """Whether workers get whole classes, instead of blocks of one after the other.

    Rows are sent once and nobody waits for the end of a class: where there are enough
    classes for all workers, and to encode takes longer than to send. Estimators of
    others stay here, since their rounding may depend on the threads there are. And
    "multiprocessing" forks: threads of a search would wait there for ever.
    """
    if shares_memory() or not gives_back_singly():
        return False
    workers, sizes = effective_n_jobs(params["n_jobs"]), [task.size for task in tasks]
    enough = 1 < workers <= sum(sizes) / max(sizes, default=1)
    return enough and PNLAugmenter(**params)._worth_sending(shape)


def _augment_there(tasks, params, with_parts, rooms):
    sent = []

    def sending():
        for task, rows, part in with_parts:
            sent.append((task, rows if part[0] is None else part[0]))
            yield task, rows, part

    there = partial(_alone, params=params | {"n_jobs": 1}, n_threads=omp_threads())
    with closing(run_tasks(there, sending(), params["n_jobs"])) as found:
        for room, (augmenter, new, parents, told) in zip(rooms, found, strict=True):
            task, numbers = sent.pop(0)
            warn_again(told)
            augmenter.n_jobs = params["n_jobs"]
            augmenter._recall_rows(numbers)
            if room is not None:
                room[...] = new
                new = room
            yield task, augmenter, new, parents


def _alone(task, rows, part, params, n_threads):
    """As here, to the last byte: a worker has its own settings, and no other worker.

    A search finds other ones of rows that are as near, if it has other threads. The
    training rows are not sent back.
    """
    with (
        parallel_config("threading", n_jobs=1),
        threadpool_limits(n_threads, "openmp"),
        one_blas_thread(),
        hearing() as told,
    ):
        augmenter, new, parents = _augment(
            task, params, _writable(rows), map(_writable, part)
        )
    augmenter._forget_rows()
    return augmenter, new, parents, told


def _writable(rows):
    """Arrays may come in memory that is shared with other workers."""
    read_only = isinstance(rows, np.ndarray) and not rows.flags.writeable
    return rows.copy() if read_only else rows
