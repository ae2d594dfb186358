"""Displays in scikit-learn's style: ``from_...`` computes and plots."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from . import geometry
from ._typing import Rows, Seed
from ._verdicts import summarise
from .comparison import SampleComparison, compare_samples
from .geometry.energies import project_on_level

# Changes of correlations below this are drawn pale, whatever the largest one is.
_PALE = 0.1
# Names that fit along an axis of a panel.
_MOST_NAMES = 20


class InteractionEnergyDisplay:
    """How the energy of rows divides among the orders of interaction.

    Build it with :meth:`from_estimator`.

    Parameters
    ----------
    energies : ndarray of shape (n_rows, n_levels)
        Parts of ``KL(p, uniform)`` of each row, in nats.
    level_names : list of str
        One name for each level.
    estimator_name : str, default=None
        For the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
        After :meth:`plot`.
    figure_ : matplotlib Figure
        After :meth:`plot`.
    bars_ : matplotlib BarContainer
        After :meth:`plot`.

    See Also
    --------
    GeodesicEnergyDisplay : The energy on the way between two rows.
    sklearn_pnl.geometry.energy_decomposition : What lies in each level.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import InteractionEnergyDisplay, ManyBodyProjector
    >>> X = np.random.default_rng(0).uniform(size=(5, 2, 3))
    >>> projector = ManyBodyProjector().fit(X)
    >>> display = InteractionEnergyDisplay.from_estimator(projector, X)
    >>> display.energies.shape
    (5, 2)
    """

    def __init__(
        self,
        energies: NDArray,
        level_names: list[str],
        *,
        estimator_name: str | None = None,
    ) -> None:
        self.energies = energies
        self.level_names = level_names
        self.estimator_name = estimator_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Rows,
        *,
        label: Any = None,
        levels: Sequence | None = None,
        level_names: Sequence[str] | None = None,
        ax: Any = None,
        **bar_kwargs: Any,
    ) -> Self:
        """Divide the energy of each row of ``X``, and plot it.

        Parameters
        ----------
        estimator : projector, augmenter or sampler
            Fitted; its poset and offset are used, and its embedding if it has one.
        X : array-like of shape (n, *input_shape_)
            Rows.
        label : object, default=None
            Class whose augmenter is used, for a sampler of several.
        levels : list, default=None
            Nested levels, as in :func:`~sklearn_pnl.geometry.energy_decomposition`;
            None is the orders 1, 2, ...
        level_names : list of str, default=None
            Names of the levels and of what lies beyond the last.
        ax : matplotlib Axes, default=None
            Axes to plot on; None makes a figure.
        **bar_kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.bar`.

        Returns
        -------
        display : InteractionEnergyDisplay
        """
        _pyplot(f"{cls.__name__}.from_estimator")
        estimator, name = _one_of_classes(estimator, label)
        p = _distributions(estimator, X)
        energies = geometry.energy_decomposition(p, estimator.poset_, levels)
        n_levels = energies.shape[1]
        if level_names is None:
            level_names = (
                [f"order {k + 1}" for k in range(n_levels)]
                if levels is None
                else [*(f"level {k + 1}" for k in range(n_levels - 1)), "beyond"]
            )
        if len(level_names) != n_levels:
            raise ValueError(
                f"level_names must name {n_levels} levels, the last for what lies "
                f"beyond; got {len(level_names)} names."
            )
        display = cls(energies, list(level_names), estimator_name=name)
        return display.plot(ax=ax, **bar_kwargs)

    def plot(self, ax: Any = None, **bar_kwargs: Any) -> Self:
        """Mean energy of each level, with the quartiles over the rows.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on; None makes a figure.
        **bar_kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.bar`.

        Returns
        -------
        display : InteractionEnergyDisplay
        """
        self.ax_, self.figure_ = _axes(ax, "InteractionEnergyDisplay.plot")
        mean = self.energies.mean(axis=0)
        quartiles = np.quantile(self.energies, [0.25, 0.75], axis=0)
        spread = np.clip([mean - quartiles[0], quartiles[1] - mean], 0, None)
        # Before 3.11 matplotlib takes arrays of one number for the number.
        spread = spread.tolist()
        self.bars_ = self.ax_.bar(self.level_names, mean, yerr=spread, **bar_kwargs)
        self.ax_.set(
            xlabel="interactions",
            ylabel="energy (nats): mean, quartiles",
            title=_title(self.estimator_name, "energy by interactions"),
        )
        return self


class GeodesicEnergyDisplay:
    """Interaction energy along the e- and the m-geodesic between two rows.

    Build it with :meth:`from_estimator`.

    Parameters
    ----------
    t : ndarray of shape (n_points,)
        Position: 0 is the first row, 1 the second.
    e_energy, m_energy : ndarray of shape (n_points,)
        Energies in nats.
    estimator_name : str, default=None
        For the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
        After :meth:`plot`.
    figure_ : matplotlib Figure
        After :meth:`plot`.
    lines_ : list of matplotlib Line2D
        After :meth:`plot`.

    See Also
    --------
    InteractionEnergyDisplay : How the energy of rows divides among orders.
    sklearn_pnl.geometry.geodesic_energy : The energy along a geodesic.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import GeodesicEnergyDisplay, ManyBodyProjector
    >>> X = np.random.default_rng(0).uniform(size=(5, 2, 3))
    >>> projector = ManyBodyProjector().fit(X)
    >>> display = GeodesicEnergyDisplay.from_estimator(projector, X[0], X[1])
    >>> display.e_energy.shape
    (21,)
    """

    def __init__(
        self,
        t: NDArray,
        e_energy: NDArray,
        m_energy: NDArray,
        *,
        estimator_name: str | None = None,
    ) -> None:
        self.t = t
        self.e_energy = e_energy
        self.m_energy = m_energy
        self.estimator_name = estimator_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        first: ArrayLike,
        second: ArrayLike,
        *,
        label: Any = None,
        order: Any = 1,
        n_points: int = 21,
        encoded: bool = False,
        ax: Any = None,
        **line_kwargs: Any,
    ) -> Self:
        """Plot the energy between two rows, or their projections on the base.

        Parameters
        ----------
        estimator : projector, augmenter or sampler
            Fitted; its poset and offset are used, and its embedding if it has one.
        first, second : array-like of shape ``input_shape_``
            Rows.
        label : object, default=None
            Class whose augmenter is used, for a sampler of several.
        order : int, list of tuple of int, or ndarray of bool, default=1
            Level beyond which energy is counted.
        n_points : int, default=21
            Points of each geodesic.
        encoded : bool, default=False
            Whether to run between the projections of the rows on the base.
        ax : matplotlib Axes, default=None
            Axes to plot on; None makes a figure.
        **line_kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : GeodesicEnergyDisplay
        """
        _pyplot(f"{cls.__name__}.from_estimator")
        estimator, name = _one_of_classes(estimator, label)
        rows = np.stack([first, second]).astype(np.float64)
        ends = _distributions(estimator, rows)
        if encoded:
            ends = project_on_level(ends, estimator.poset_, estimator.base_mask_)
        t = np.linspace(0, 1, n_points)
        energies = geometry.geodesic_energy(*ends, t, estimator.poset_, order)
        return cls(t, *energies, estimator_name=name).plot(ax=ax, **line_kwargs)

    def plot(self, ax: Any = None, **line_kwargs: Any) -> Self:
        """Both energies against the position between the rows.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on; None makes a figure.
        **line_kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot`.

        Returns
        -------
        display : GeodesicEnergyDisplay
        """
        self.ax_, self.figure_ = _axes(ax, "GeodesicEnergyDisplay.plot")
        self.lines_ = [
            *self.ax_.plot(self.t, self.e_energy, label="e-geodesic", **line_kwargs),
            *self.ax_.plot(self.t, self.m_energy, label="m-geodesic", **line_kwargs),
        ]
        self.ax_.set(
            xlabel="position between the rows (first: 0, second: 1)",
            ylabel="interaction energy (nats)",
            title=_title(self.estimator_name, "energy between two rows"),
        )
        self.ax_.legend()
        return self


class SampleComparisonDisplay:
    """New rows against training rows: distances, features, correlations.

    Build it with :meth:`from_samples` or :meth:`from_estimator`, or from the result of
    :func:`~sklearn_pnl.compare_samples`.

    Parameters
    ----------
    comparison : SampleComparison
        What to draw.
    estimator_name : str, default=None
        The sampler, for the title.

    Attributes
    ----------
    axes_ : ndarray of 3 matplotlib Axes
        After :meth:`plot`.
    figure_ : matplotlib Figure
        After :meth:`plot`.
    lines_ : list of matplotlib Line2D
        The distribution functions of the distances of new rows and of the usual
        distances, and the one that bounds near-copies; after :meth:`plot`.
    points_ : list of matplotlib Line2D
        Kolmogorov-Smirnov statistics, shares outside the training range and ratios
        of standard deviations of the features shown; after :meth:`plot`.
    image_ : matplotlib AxesImage
        Differences of correlations; after :meth:`plot`.

    See Also
    --------
    compare_samples : New rows against real ones.
    InteractionEnergyDisplay : How the energy of rows divides among orders.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import SampleComparisonDisplay
    >>> X = np.random.default_rng(0).normal(size=(2, 30, 4))
    >>> display = SampleComparisonDisplay.from_samples(*X, random_state=0)
    >>> display.comparison.ks_statistic.shape
    (4,)
    """

    def __init__(
        self, comparison: SampleComparison, *, estimator_name: str | None = None
    ) -> None:
        self.comparison = comparison
        self.estimator_name = estimator_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Rows,
        *,
        label: Any = None,
        n_samples: int | None = None,
        random_state: Seed = None,
        ax: Any = None,
        **compare_kwargs: Any,
    ) -> Self:
        """Draw new rows from a fitted estimator, compare them and plot.

        Parameters
        ----------
        estimator : augmenter or sampler
            Fitted: with ``sample``, or with ``augmenters_`` that have it.
        X : array-like of shape (n_train, ...)
            Training rows, in the units that ``sample`` returns; of one class for a
            sampler.
        label : object, default=None
            Class whose augmenter draws, for a sampler of several.
        n_samples : int, default=None
            New rows; None is as many as ``X`` has.
        random_state : int, RandomState instance or None, default=None
            Seed of the new rows and of the comparison.
        ax : array-like of 3 matplotlib Axes, default=None
            Axes to plot on; None makes a figure.
        **compare_kwargs : dict
            Passed to :func:`~sklearn_pnl.compare_samples`.

        Returns
        -------
        display : SampleComparisonDisplay
        """
        _pyplot(f"{cls.__name__}.from_estimator")
        augmenter, name = _one_of_classes(estimator, label)
        if not hasattr(augmenter, "sample"):
            raise TypeError(
                f"{type(augmenter).__name__} has no method sample: give an augmenter "
                "or a sampler, or draw rows and use from_samples."
            )
        rng = check_random_state(random_state)
        n_samples = len(X) if n_samples is None else n_samples
        X_new = augmenter.sample(n_samples, random_state=rng)
        compare_kwargs["random_state"] = rng
        return cls.from_samples(X, X_new, estimator_name=name, ax=ax, **compare_kwargs)

    @classmethod
    def from_samples(
        cls,
        X: Rows,
        X_new: Rows,
        *,
        estimator_name: str | None = None,
        ax: Any = None,
        **compare_kwargs: Any,
    ) -> Self:
        """Compare new rows with training rows, and plot.

        Parameters
        ----------
        X : array-like of shape (n_train, ...)
            Training rows.
        X_new : array-like of shape (n_new, ...)
            New rows.
        estimator_name : str, default=None
            The sampler that drew them, for the title.
        ax : array-like of 3 matplotlib Axes, default=None
            Axes to plot on; None makes a figure.
        **compare_kwargs : dict
            Passed to :func:`~sklearn_pnl.compare_samples`.

        Returns
        -------
        display : SampleComparisonDisplay
        """
        _pyplot(f"{cls.__name__}.from_samples")
        comparison = compare_samples(X, X_new, **compare_kwargs)
        return cls(comparison, estimator_name=estimator_name).plot(ax=ax)

    def plot(self, ax: Any = None, *, max_features: int = 15) -> Self:
        """Three panels: distances, the features that differ most, correlations.

        Parameters
        ----------
        ax : array-like of 3 matplotlib Axes, default=None
            Axes to plot on; None makes a figure.
        max_features : int, default=15
            Most features in the second panel: those of the largest
            Kolmogorov-Smirnov statistics, the largest on top.

        Returns
        -------
        display : SampleComparisonDisplay
        """
        if max_features < 1:
            raise ValueError(f"max_features must be >= 1; got {max_features!r}.")
        if ax is None:
            plt = _pyplot("SampleComparisonDisplay.plot")
            figure, ax = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
            figure.suptitle(_title(self.estimator_name, self.comparison.verdict))
        self.axes_ = np.ravel(ax)
        if len(self.axes_) != 3:
            raise ValueError(f"ax must be 3 axes; got {len(self.axes_)}.")
        self.figure_ = self.axes_[0].figure
        self._plot_distances(self.axes_[0])
        self._plot_features(self.axes_[1], max_features)
        self._plot_correlations(self.axes_[2])
        return self

    def _plot_distances(self, ax):
        found = self.comparison
        usual = "test rows" if found.n_test else "other training rows"
        self.lines_ = [
            ax.ecdf(found.distance, label="new rows"),
            ax.ecdf(found.usual_distance, label=usual),
            ax.axvline(
                found.copy_distance,
                color="gray",
                linestyle=":",
                label="near-copies: left of this",
            ),
        ]
        ax.set(
            xlabel="distance to the closest training row\n(training std)",
            ylabel="share of rows below",
            title=self._panel_title("distances", "repeated rows", "close rows"),
        )
        _legend_below(ax, 0.34)

    def _plot_features(self, ax, max_features):
        found = self.comparison
        # Stable, so that ties keep the order of the features.
        shown = np.argsort(-found.ks_statistic, kind="stable")[:max_features]
        height = np.arange(len(shown))
        drawn = {
            "Kolmogorov-Smirnov (same: 0)": (found.ks_statistic, "o"),
            "share out of range (same: 0)": (found.outside_range, "x"),
            "ratio of std (same: 1)": (found.std_ratio, "d"),
        }
        self.points_ = [
            ax.plot(values[shown], height, marker, label=label)[0]
            for label, (values, marker) in drawn.items()
        ]
        for same in (0, 1):
            ax.axvline(same, color="gray", linewidth=0.8, zorder=0)
        ax.set_yticks(height, [found.feature_names[feature] for feature in shown])
        ax.invert_yaxis()
        n_features = len(found.feature_names)
        title = self._panel_title("features", "spread")
        if len(shown) < n_features:
            title += f"\n{len(shown)} of {n_features} features"
        ax.set(ylabel="feature", title=title)
        _legend_below(ax, 0.08, title="new against training values")

    def _plot_correlations(self, ax):
        found = self.comparison
        # Symmetric colours, with a floor: rounding errors are no differences. Without
        # any pair there is still a scale.
        limit = np.fmax(found.max_correlation_difference, _PALE)
        ax.set_facecolor("lightgray")
        self.image_ = ax.imshow(
            found.correlation_difference, cmap="RdBu_r", vmin=-limit, vmax=limit
        )
        names = [found.feature_names[i] for i in found.correlation_features]
        shown = np.arange(0, len(names), -(-len(names) // _MOST_NAMES))
        names = [names[i] for i in shown]
        ax.set_xticks(shown, names, rotation=90)
        ax.set_yticks(shown, names)
        ax.tick_params(labelsize="small")
        ax.set(
            xlabel="feature (gray: constant)" if self._has_constant() else "feature",
            ylabel="feature",
            title=self._panel_title("correlations", "correlations"),
        )
        self.figure_.colorbar(self.image_, ax=ax, label="correlation, new - training")

    def _has_constant(self):
        return np.any(np.isnan(self.comparison.correlation_difference))

    def _panel_title(self, panel, *criteria):
        """The panel, and what the criteria that it shows say."""
        shown = [f for f in self.comparison.findings if f.criterion in criteria]
        return f"{panel}: {summarise(shown)}"


class ImageRowsDisplay:
    """Images in named rows, one below the other, in one scale of colours.

    Build it with :meth:`from_estimator`, which draws what a sampler does to images, or
    from images of your own.

    Parameters
    ----------
    images : dict of str to array-like of shape (n_images, height, width) or \
            (n_images, height, width, 3)
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
    ['training rows', 'projections', 'new rows', 'closest training rows']
    >>> display.images["new rows"].shape
    (3, 4, 6)
    """

    def __init__(
        self,
        images: Mapping[str, ArrayLike],
        *,
        column_names: Sequence[str] | None = None,
        estimator_name: str | None = None,
    ) -> None:
        self.images = images
        self.column_names = column_names
        self.estimator_name = estimator_name

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

        Four rows: the first parent of each new image, its projection on the base, which
        is what its code keeps, the new image, and the training image closest to it.

        Parameters
        ----------
        estimator : augmenter or sampler
            Fitted. The augmenters of a sampler of several classes take turns.
        X : array-like of shape (n, ...)
            The training images, as in the fit.
        y : array-like of shape (n,), default=None
            Their classes, for a sampler of several.
        n_images : int, default=10
            Columns.
        image_shape : tuple of int, default=None
            ``(height, width)`` or ``(height, width, 3)`` of rows that are flat; None
            takes the shape that the rows have.
        random_state : int, RandomState instance or None, default=None
            Seed of the new rows.
        **plot_kwargs : dict
            Passed to :meth:`plot`.

        Returns
        -------
        display : ImageRowsDisplay
        """
        _pyplot(f"{cls.__name__}.from_estimator")
        X, shares = np.asarray(X), _shares_of_classes(estimator, y, n_images)
        rng = check_random_state(random_state)
        columns = []
        for label, n in shares.items():
            augmenter, name = _one_of_classes(estimator, label)
            rows = X if y is None else X[np.asarray(y) == label]
            columns.append(_with_relatives(augmenter, rows, n, rng))
        shape = X.shape[1:] if image_shape is None else tuple(image_shape)
        images = {
            title: np.concatenate([c[title] for c in columns]).reshape(-1, *shape)
            for title in columns[0]
        }
        if len(shares) > 1:
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
        images = _check_images(self.images)
        shape = len(images), max(map(len, images.values()))
        if axes is None:
            axes = self._new_axes(images, shape, title)
        self.axes_ = np.reshape(np.asarray(axes, object), shape)
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
        plt = _pyplot("ImageRowsDisplay.plot")
        # Names of rows stand beside the images: room for the longest line of them.
        longest = max(len(part) for name in images for part in name.split("\n"))
        size = 0.85 * shape[1] + 0.085 * longest, 0.95 * shape[0] + 0.4
        figure, axes = plt.subplots(
            *shape, figsize=size, squeeze=False, layout="constrained"
        )
        title = self.estimator_name if title is None else title
        if title:
            figure.suptitle(title)
        return axes


def _check_images(images):
    checked = {name: np.asarray(row) for name, row in images.items()}
    for name, row in checked.items():
        if row.ndim != 3 and not (row.ndim == 4 and row.shape[-1] == 3):
            raise ValueError(
                f"Images are of shape (height, width) or (height, width, 3); those of "
                f"{name!r} have shape {row.shape[1:]}. Rows that are flat need "
                "image_shape."
            )
    return checked


def _show(axis, image, cmap, low, high):
    if image.ndim == 2:
        return axis.imshow(image, cmap=cmap, vmin=low, vmax=high)
    # Channels have no scale of their own in matplotlib.
    length = high - low if high > low else 1.0
    return axis.imshow(np.clip((image - low) / length, 0, 1))


def _shares_of_classes(estimator, y, n_images):
    """How many images of each class, in the order of the classes; None is no class."""
    check_is_fitted(estimator)
    labels, name = list(getattr(estimator, "augmenters_", [])), type(estimator).__name__
    if y is None and len(labels) > 1:
        raise ValueError(
            f"{name} has augmenters for the classes {labels}: give y, the classes of "
            "the rows."
        )
    if y is not None and not labels:
        raise ValueError(f"y is for samplers; {name} has no classes.")
    if y is None:
        return {None: n_images}
    shares = {
        label: n_images // len(labels) + (k < n_images % len(labels))
        for k, label in enumerate(labels)
    }
    return {label: n for label, n in shares.items() if n > 0}


def _with_relatives(augmenter, X, n, rng):
    """New rows of an augmenter, by name with the rows that they belong to."""
    if not hasattr(augmenter, "sample_with_parents"):
        raise TypeError(
            f"{type(augmenter).__name__} draws no rows: give an augmenter or a sampler."
        )
    new, parents = augmenter.sample_with_parents(n, rng)
    new, rows = np.asarray(new), X[parents[:, 0]]
    search = NearestNeighbors(n_neighbors=1).fit(X.reshape(len(X), -1))
    closest = search.kneighbors(new.reshape(n, -1), return_distance=False)[:, 0]
    return {
        "training rows": rows,
        "projections": _projections(augmenter, rows),
        "new rows": new,
        "closest training rows": X[closest],
    }


def _projections(augmenter, X):
    """Rows projected on the base, in their own units."""
    measures, poset = augmenter.to_measures(X), augmenter.poset_
    mass = measures.sum(axis=tuple(range(1, measures.ndim)), keepdims=True)
    numerics = augmenter.tol, augmenter.max_iter
    q = project_on_level(measures / mass, poset, augmenter.base_mask_, *numerics)
    cells = (q * mass).reshape(len(X), -1)[:, poset.added_bottom :] - augmenter.offset
    if augmenter.reshaper_ is not None:
        tensors = cells.reshape(np.shape(augmenter.reshaper_.transform(X)))
        cells = augmenter.reshaper_.inverse_transform(tensors).reshape(len(X), -1)
    if augmenter.embedding_ is not None:
        cells = augmenter.embedding_.inverse_transform(cells)
    return cells.reshape(X.shape)


def _legend_below(ax, room, **settings):
    """A legend below a panel: inside, it would hide what is drawn."""
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -room),
        fontsize="small",
        title_fontsize="small",
        **settings,
    )


def _one_of_classes(estimator, label):
    """The fitted augmenter of a class, or the estimator itself; a name for titles."""
    check_is_fitted(estimator)
    name = type(estimator).__name__
    if not hasattr(estimator, "augmenters_"):
        if label is not None:
            raise ValueError(f"label is for samplers; {name} has no classes.")
        return estimator, name
    known = list(estimator.augmenters_)
    if label is None and len(known) == 1:
        label = known[0]
    if label not in estimator.augmenters_:
        raise ValueError(
            f"{name} has augmenters for the classes {known}; choose one by label, got "
            f"{label!r}."
        )
    return estimator.augmenters_[label], f"{name}, class {label}"


def _title(*parts):
    return ": ".join(part for part in parts if part)


def _axes(ax, caller):
    if ax is not None:
        return ax, ax.figure
    figure, ax = _pyplot(caller).subplots()
    return ax, figure


def _pyplot(caller):
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{caller} needs matplotlib: pip install matplotlib."
        ) from error
    return plt


def _distributions(estimator, X):
    """Rows as points of the manifold that an estimator was fitted on."""
    m = estimator.to_measures(X)
    return m / m.sum(axis=tuple(range(1, m.ndim)), keepdims=True)
