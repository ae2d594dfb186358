"""Progress: blocks of rows as tasks of scikit-learn's callbacks, where it has them.

``sklearn.callback`` is experimental and came with scikit-learn 1.9; this module is the
only one that knows of it. Before, and without callbacks, all of it does nothing.
"""

from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:
        """Stands for that of scikit-learn 1.9."""

    def with_callbacks(method):
        """Leave the method as it is."""
        return method


# The task that blocks of rows belong to. An augmenter encodes through a projector, and
# a sampler through an augmenter: the outermost one with callbacks is the one that
# reports, so that the bars of ProgressBar are not hidden by its depth.
_current = ContextVar("current", default=None)


class Task:
    """A task of an estimator, and how many of its subtasks are left."""

    def __init__(self, estimator, open_context):
        self._estimator = estimator
        self._open_context = open_context
        self._context, self._left = None, 0

    def begin(self, n_subtasks):
        """Say how many subtasks there are, unless that was said."""
        if self._context is None:
            self._context = self._open_context(max_subtasks=n_subtasks)
            self._left = n_subtasks
            with no_task():
                self._context.call_on_fit_task_begin(estimator=self._estimator)

    def subtask(self, name):
        """The next subtask, to be begun."""
        self._left -= 1
        return Task(self._estimator, partial(self._context.subcontext, name))

    def block_done(self):
        """One more block is done; those of estimators within do not count."""
        if self._left > 0:
            block = self.subtask("block")
            block.begin(0)
            block.end()

    def end(self):
        """The task is done, if it ever began."""
        if self._context is not None:
            # A hook that calls one of our estimators must not report to this task.
            with no_task():
                self._context.call_on_fit_task_end(estimator=self._estimator)


def fit_task(estimator, name="fit", n_subtasks=None):
    """Report what is done inside, if the estimator has callbacks; else None.

    The method around it is decorated with ``with_callbacks``, which tears down what the
    root context sets up.
    """
    # Asked first, so that without callbacks no context is made.
    if not getattr(estimator, "_skl_callbacks", None):
        return _within(None, None)
    context = partial(estimator._init_callback_context, name)
    return _within(Task(estimator, context), n_subtasks)


def subtask(task, name, n_subtasks=None):
    """A part of a task; None if there is no task."""
    return _within(task and task.subtask(name), n_subtasks)


@contextmanager
def _within(task, n_subtasks):
    """A task; its subtasks are so many of the caller's, or else blocks of rows."""
    if task is None:
        yield None
        return
    if n_subtasks is not None:
        task.begin(n_subtasks)
    with _reporting_to(task if n_subtasks is None else None):
        yield task
    task.end()


def current_task():
    """The task that blocks of rows belong to, or None."""
    return _current.get()


def no_task():
    """What estimators of others do inside is no part of the task at hand."""
    return _reporting_to(None)


@contextmanager
def _reporting_to(task):
    token = _current.set(task)
    try:
        yield
    finally:
        _current.reset(token)
