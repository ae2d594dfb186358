"""Images in rows, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from math import prod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import check_random_state
from sklearn.utils._optional_dependencies import check_matplotlib_support
from sklearn.utils.validation import check_is_fitted

from .._runtime.typing import Rows, Seed
from .._runtime.validation import check_count


@dataclass(eq=False, repr=False)
class ImageRowsDisplay:
    """Images in named rows, one below the other, in one scale of colours.

    Build it with :meth:`from_estimator`, which draws what a sampler does to images, or
    from images of your own.

    Parameters
    ----------
    images : dict of str to array-like of shape (n_images, height, width) or \
            (n_images, height, width, 1 or 3)
        The images of each row, by its name; lists may be of different lengths.
    column_names : list of str, default=None
        What stands above the columns.
    estimator_name : str, default=None
        For the title.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes of shape (n_rows, n_columns)
        After :meth:`plot`.
    figure_ : matplotlib Figure
        After :meth:`plot`.
    images_ : list of matplotlib AxesImage
        Row by row, after :meth:`plot`.

    See Also
    --------
    SampleComparisonDisplay : New rows against training rows, in numbers.
    PNLAugmenter : Draws new rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import ImageRowsDisplay, PNLAugmenter
    >>> X = np.random.default_rng(0).uniform(size=(20, 4, 6))
    >>> augmenter = PNLAugmenter(embedding=None).fit(X)
    >>> display = ImageRowsDisplay.from_estimator(augmenter, X, n_images=3)
    >>> list(display.images)
    ['training rows', 'new rows', 'closest training rows']
    >>> display.images["new rows"].shape
    (3, 4, 6)
    """

    images: Mapping[str, ArrayLike]
    _: KW_ONLY
    column_names: Sequence[str] | None = None
    estimator_name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Rows,
        y: ArrayLike | None = None,
        *,
        n_images: int = 10,
        image_shape: tuple[int, ...] | None = None,
        random_state: Seed = None,
        **plot_kwargs: Any,
    ) -> Self:
        """Draw new images, and plot them below the ones that they come from.

        Three rows: the first parent of each new image, the new image, and the training
        image closest to it.

        Parameters
        ----------
        estimator : augmenter or sampler
            Fitted. The augmenters of a sampler of several classes share the columns.
        X : array-like of shape (n, ...)
            The training images, as in the fit.
        y : array-like of shape (n,), default=None
            Their targets, for a sampler of several classes, or of which ``fit`` was
            called alone.
        n_images : int, default=10
            Columns.
        image_shape : tuple of int, default=None
            ``(height, width)``, with 1 or 3 channels behind, of rows that are flat;
            None takes the shape that the rows have.
        random_state : int, RandomState instance or None, default=None
            Seed of the new rows.
        **plot_kwargs : dict
            Passed to :meth:`plot`.

        Returns
        -------
        display : ImageRowsDisplay
        """
        check_matplotlib_support(f"{cls.__name__}.from_estimator")
        X, rng = np.asarray(X), check_random_state(random_state)
        n_images = check_count("n_images", n_images)
        shape = _shape_of(X, image_shape)
        drawn = _augmenters_of(estimator, X, y)
        shares = map(len, np.array_split(np.arange(n_images), len(drawn)))
        columns = [
            _with_relatives(*each, share, rng)
            for each, share in zip(drawn, shares, strict=True)
            if share
        ]
        images = {
            title: np.concatenate([c[title] for c in columns]).reshape(-1, *shape)
            for title in columns[0]
        }
        name = type(estimator).__name__
        return cls(images, estimator_name=name).plot(**plot_kwargs)

    def plot(
        self,
        axes: Any = None,
        *,
        title: str | None = None,
        cmap: Any = "gray_r",
        vmin: float | None = None,
        vmax: float | None = None,
    ) -> Self:
        """All images, with the names of the rows at the left.

        Parameters
        ----------
        axes : array-like of matplotlib Axes of shape (n_rows, n_columns), default=None
            Axes to plot on; None makes a figure.
        title : str, default=None
            Of a figure that is made; None is the name of the estimator.
        cmap : str or matplotlib Colormap, default="gray_r"
            Colours of images without channels.
        vmin, vmax : float, default=None
            Values at the ends of the scale, the same for all images; None are the
            smallest and the largest one of the first row. What lies beyond is clipped.

        Returns
        -------
        display : ImageRowsDisplay
        """
        check_matplotlib_support(f"{type(self).__name__}.plot")
        images = _check_images(self.images)
        shape = len(images), max(map(len, images.values()))
        if axes is None:
            axes = self._new_axes(images, shape, title)
        axes = np.asarray(axes, object)
        if axes.size != shape[0] * shape[1]:
            raise ValueError(
                f"axes must be of shape {shape}, one for each image; got {axes.size}, "
                f"of shape {axes.shape}."
            )
        self.axes_ = axes.reshape(shape)
        self.figure_ = self.axes_[0, 0].figure
        first = next(iter(images.values()))
        low = float(first.min()) if vmin is None else vmin
        high = float(first.max()) if vmax is None else vmax
        self.images_ = []
        for line, (name, row) in zip(self.axes_, images.items(), strict=True):
            for axis, image in zip(line, row, strict=False):
                self.images_.append(_show(axis, image, cmap, low, high))
            for axis in line[len(row) :]:
                axis.set_frame_on(False)
            line[0].set_ylabel(name, rotation=0, ha="right", va="center")
        for axis in self.axes_.ravel():
            axis.set(xticks=[], yticks=[])
        for axis, name in zip(self.axes_[0], self.column_names or [], strict=False):
            axis.set_title(name, fontsize="medium")
        return self

    def _new_axes(self, images, shape, title):
        from matplotlib.pyplot import subplots

        # Names of rows stand beside the images: room for the longest line of them.
        longest = max(len(part) for name in images for part in name.split("\n"))
        size = 0.85 * shape[1] + 0.085 * longest, 0.95 * shape[0] + 0.4
        figure, axes = subplots(
            *shape, figsize=size, squeeze=False, layout="constrained"
        )
        title = self.estimator_name if title is None else title
        if title:
            figure.suptitle(title)
        return axes


def _check_images(images):
    checked = {name: _without_one_channel(row) for name, row in images.items()}
    for name, row in checked.items():
        if row.ndim != 3 and not (row.ndim == 4 and row.shape[-1] == 3):
            raise ValueError(
                "Images are of shape (height, width), with 1 or 3 channels behind; "
                f"those of {name!r} have shape {row.shape[1:]}. Rows that are flat "
                "need image_shape."
            )
    return checked


def _without_one_channel(row):
    row = np.asarray(row)
    return row[..., 0] if row.ndim == 4 and row.shape[-1] == 1 else row


def _shape_of(X, given):
    """The shape of an image, in which rows have as many cells."""
    if given is None:
        return X.shape[1:]
    given, n_cells = tuple(np.atleast_1d(given).tolist()), prod(X.shape[1:])
    if prod(given) != n_cells:
        raise ValueError(
            f"image_shape={given} has {prod(given)} cells, but rows have {n_cells}."
        )
    return given


def _show(axis, image, cmap, low, high):
    if image.ndim == 2:
        return axis.imshow(image, cmap=cmap, vmin=low, vmax=high)
    # Channels have no scale of their own in matplotlib.
    length = high - low if high > low else 1.0
    return axis.imshow(np.clip((image - low) / length, 0, 1))


def _with_relatives(augmenter, X, n, rng):
    """New rows of an augmenter, by name with the rows that they belong to."""
    new, parents = augmenter.sample(n, rng, return_parents=True)
    new, known = np.asarray(new).reshape(n, -1), X.reshape(len(X), -1)
    if parents.max() >= len(X):
        raise ValueError(
            f"X has {len(X)} rows, and a new row comes from row {parents.max()}: give "
            f"all the rows that {type(augmenter).__name__} was fitted on."
        )
    return {
        "training rows": known[parents[:, 0]],
        "new rows": new,
        "closest training rows": known[pairwise_distances_argmin(new, known)],
    }


def _augmenters_of(estimator, X, y):
    """Fitted augmenters with the rows that each was fitted on, one a class.

    An estimator without classes has one. A sampler whose ``fit``
    was called has checked rows alone, as all of imbalanced-learn's do: a clone of it
    resamples ``X`` and ``y``.
    """
    check_is_fitted(estimator)
    name = type(estimator).__name__
    if hasattr(estimator, "iter_samples"):
        if y is not None:
            raise ValueError(f"y is for samplers; {name} has no classes.")
        return [(estimator, X)]
    if not {"augmenter_", "augmenters_"} & set(vars(estimator)):
        if not hasattr(estimator, "fit_resample"):
            raise TypeError(f"{name} draws no rows: give an augmenter or a sampler.")
        if y is None:
            raise ValueError(
                f"{name} drew no rows: call fit_resample first, or give y."
            )
        estimator = clone(estimator)
        estimator.fit_resample(X, y)
    if hasattr(estimator, "augmenter_"):
        return [(estimator.augmenter_, X)]
    known = estimator.augmenters_
    if not known:
        raise ValueError(f"{name} drew no rows: no class lacks any.")
    if y is None and len(known) > 1:
        raise ValueError(
            f"{name} has augmenters for the classes {list(known)}: give y, the classes "
            "of the rows."
        )
    rows = (X if y is None else X[np.asarray(y) == label] for label in known)
    return list(zip(known.values(), rows, strict=True))
