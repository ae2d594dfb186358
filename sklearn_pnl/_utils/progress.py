"""Show the progress of work in blocks.

Functions that process blocks iterate over ``tracked(blocks, ...)``. In the context of
:func:`progress_bar`, each iteration is shown as a bar. Elsewhere, ``tracked`` returns
the blocks unchanged.
"""

from contextlib import AbstractContextManager
from contextvars import ContextVar

# The display of the calling thread, or of the task of asyncio; None outside a context.
_display = ContextVar("display", default=None)
# Seconds after which a bar inside the block of another bar is shown.
_DELAY = 1.0


def progress_bar() -> AbstractContextManager:
    """Show the progress of all calls in the context.

    Each call that processes rows in blocks shows a bar with the number of finished
    blocks, the total and the time left: encoding and decoding, sampling, and
    imputation. Samplers show the bars of each class. If a block takes more than a
    second and consists of blocks itself, they have a second bar, which disappears when
    it is complete. Results do not depend on the display.

    The context applies to calls in the same thread; with ``n_jobs``, the calling thread
    shows the blocks of all workers. In calls that another library starts in other
    threads or processes, such as a grid search with ``n_jobs=2``, no bars are shown.
    The bars are drawn by tqdm, in a terminal or a notebook.

    Returns
    -------
    context : context manager
        Context in which bars are shown. In nested contexts, the bars are shown once.

    Raises
    ------
    ImportError
        If tqdm is not installed. The extra ``progress`` of this package installs it.

    See Also
    --------
    ManyBodyProjector : Encode rows in blocks.
    PNLAugmenter : Generate new rows in blocks.
    ManyBodyImputer : Fill missing cells in blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import ManyBodyProjector, progress_bar
    >>> X = np.random.default_rng(0).uniform(size=(500, 8, 8))
    >>> with progress_bar():
    ...     codes = ManyBodyProjector(order=1).fit_transform(X)
    >>> codes.shape
    (500, 14)
    """
    return _ProgressBar()


# The name under which the function is imported.
progress_bar.__module__ = "sklearn_pnl"


def tracked(items, total, task):
    """Iterate over ``items``, and show the number of items that are done.

    Parameters
    ----------
    items : iterable
        An item is done when the iterator returns the item.
    total : int
        Number of items.
    task : str
        Description of the bar.

    Returns
    -------
    items : iterable
    """
    display = _display.get()
    return items if display is None else display.show(items, total, task)


class _ProgressBar(AbstractContextManager):
    """The context of :func:`progress_bar`; contexts can be nested and used again."""

    def __init__(self):
        self._before = []

    def __enter__(self):
        display = _display.get()
        self._before.append(display)
        if display is None:
            _display.set(_Display(_import_tqdm()))
        return self

    def __exit__(self, *error):
        before = self._before.pop()
        if before is None:
            _display.get().close()
            _display.set(None)


def _import_tqdm():
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError(
            "progress_bar requires tqdm, which is not installed. Install the extra "
            "'progress': pip install 'sklearn-pnl[progress]'."
        ) from error
    return tqdm


class _Display:
    """The open bars of a context, outermost first."""

    def __init__(self, make_bar):
        self._make_bar, self._bars = make_bar, []

    def show(self, items, total, task):
        """Iterate over items with a bar."""
        is_nested = bool(self._bars)
        bar = self._make_bar(
            total=total,
            desc=task,
            unit="block",
            leave=not is_nested,
            delay=_DELAY * is_nested,
        )
        self._bars.append(bar)
        try:
            for item in items:
                bar.update()
                yield item
        finally:
            bar.close()
            if bar in self._bars:
                self._bars.remove(bar)

    def close(self):
        """Close the bars of iterations that were not completed."""
        for bar in reversed(self._bars):
            bar.close()
        self._bars.clear()
