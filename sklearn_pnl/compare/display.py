"""Plot a comparison of samples, with the interface of scikit-learn's displays."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

from .._utils.typing import Rows
from .._utils.validation import check_count
from .comparison import SampleComparison, compare_samples
from .findings import summarise
from .nearness import CLOSE


class SampleComparisonDisplay:
    """Plot a comparison of new rows with training rows in three panels.

    The panels show distances, statistics of features, and correlations. Create the
    display with :meth:`from_samples`, or from the result of
    :func:`~sklearn_pnl.compare_samples`.

    Parameters
    ----------
    comparison : SampleComparison
        The comparison to plot.

    Attributes
    ----------
    axes_ : ndarray of 3 matplotlib Axes
        The axes of the three panels; set by :meth:`plot`.
    figure_ : matplotlib Figure
        The figure; set by :meth:`plot`.
    lines_ : list of matplotlib Line2D
        The distribution functions of the distances of new rows and of the baseline,
        and a vertical line at the largest distance of close rows; set by :meth:`plot`.
    points_ : list of matplotlib Line2D
        Kolmogorov-Smirnov statistics, shares outside the training range and ratios of
        standard deviations of the plotted features; set by :meth:`plot`.
    image_ : matplotlib AxesImage
        The image of the differences of correlations; set by :meth:`plot`.

    See Also
    --------
    compare_samples : Compare new rows with training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.compare import SampleComparisonDisplay
    >>> X = np.random.default_rng(0).normal(size=(2, 30, 4))
    >>> display = SampleComparisonDisplay.from_samples(*X, random_state=0)
    >>> display.comparison.features.ks_statistic.shape
    (4,)
    """

    def __init__(self, comparison: SampleComparison) -> None:
        self.comparison = comparison

    @classmethod
    def from_samples(
        cls, X: Rows, X_new: Rows, *, ax: Any = None, **compare_kwargs: Any
    ) -> Self:
        """Compare new rows with training rows, and plot the comparison.

        Parameters
        ----------
        X : array-like of shape (n_train, ...)
            Training rows.
        X_new : array-like of shape (n_new, ...)
            New rows.
        ax : array-like of 3 matplotlib Axes, default=None
            Axes to draw on; None creates a figure.
        **compare_kwargs : dict
            Parameters of :func:`~sklearn_pnl.compare_samples`.

        Returns
        -------
        display : SampleComparisonDisplay
            The display of the comparison.
        """
        check_matplotlib_support(f"{cls.__name__}.from_samples")
        return cls(compare_samples(X, X_new, **compare_kwargs)).plot(ax=ax)

    def plot(self, ax: Any = None, *, max_features: int = 15) -> Self:
        """Plot distances, the features that differ most, and correlations.

        Parameters
        ----------
        ax : array-like of 3 matplotlib Axes, default=None
            Axes to draw on; None creates a figure.
        max_features : int, default=15
            Maximum number of features in the second panel. The features with the
            largest Kolmogorov-Smirnov statistics are shown, the largest on top.

        Returns
        -------
        display : SampleComparisonDisplay
            The display itself.
        """
        check_count("max_features", max_features)
        check_matplotlib_support(f"{type(self).__name__}.plot")
        from matplotlib.pyplot import subplots

        if ax is None:
            figure, ax = subplots(1, 3, figsize=(13, 5), layout="constrained")
            figure.suptitle(self.comparison.verdict)
        self.axes_ = np.ravel(ax)
        distances, features, correlations = self.axes_
        self.figure_ = distances.figure
        self._plot_distances(distances)
        self._plot_features(features, max_features)
        self._plot_correlations(correlations)
        return self

    def _plot_distances(self, ax):
        comparison, baseline = self.comparison, self.comparison.baseline_distance
        kind = "test rows" if comparison.n_test else "other training rows"
        close = CLOSE * np.median(baseline)
        self.lines_ = [
            ax.ecdf(comparison.distance, label="new rows"),
            ax.ecdf(baseline, label=kind),
            ax.axvline(close, color="gray", ls=":", label="bound of close rows"),
        ]
        criteria = "exact copies", "close rows", "membership"
        self._label(ax, "distances", criteria, "cumulative share of rows")
        ax.set_xlabel("distance to the closest training row\n(training std)")
        _legend_below(ax, 0.2)

    def _plot_features(self, ax, max_features):
        features = self.comparison.features
        # A stable sort keeps the order of features with equal statistics.
        order = np.argsort(-features.ks_statistic, kind="stable")[:max_features]
        height = np.arange(len(order))
        series = {
            "Kolmogorov-Smirnov (same: 0)": (features.ks_statistic, "o"),
            "share out of range (same: 0)": (features.outside_range, "x"),
            "ratio of std (same: 1)": (features.std_ratio, "d"),
        }
        self.points_ = [
            ax.plot(values[order], height, marker, label=label)[0]
            for label, (values, marker) in series.items()
        ]
        for same in (0, 1):
            ax.axvline(same, color="gray", linewidth=0.8, zorder=0)
        ax.set_yticks(height, [features.names[feature] for feature in order])
        ax.invert_yaxis()
        criteria = "ranges", "location", "spread"
        self._label(ax, "features", criteria, "feature")
        ax.set_xlabel(f"{len(order)} of {len(features.names)} features")
        _legend_below(ax, 0.08, title="new against training values")

    def _plot_correlations(self, ax):
        changes = self.comparison.correlation_difference
        # The minimum range of the colour scale keeps small changes pale.
        limit = np.nanmax(np.abs(changes), initial=0.1)
        ax.set_facecolor("lightgray")
        self.image_ = ax.imshow(changes, cmap="RdBu_r", vmin=-limit, vmax=limit)
        features = self.comparison.correlation_features
        # An axis has room for 20 names.
        ticks = np.arange(0, len(features), -(-len(features) // 20))
        names = [self.comparison.features.names[i] for i in features[ticks]]
        ax.set_xticks(ticks, names, rotation=90, size="small")
        ax.set_yticks(ticks, names, size="small")
        self._label(ax, "correlations", ["correlations"], "feature")
        ax.set_xlabel("feature (gray: constant)")
        self.figure_.colorbar(self.image_, ax=ax, label="correlation, new - training")

    def _label(self, ax, panel, criteria, ylabel):
        """Set the labels of a panel, with the faults of its criteria in the title."""
        shown = [f for f in self.comparison.findings if f.criterion in criteria]
        ax.set(title=f"{panel}: {summarise(shown)}", ylabel=ylabel)


def _legend_below(ax, distance, **settings):
    """Place the legend below a panel, where it does not hide the data."""
    small = {"fontsize": "small", "title_fontsize": "small"}
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -distance)}
    ax.legend(**place, **small, **settings)
