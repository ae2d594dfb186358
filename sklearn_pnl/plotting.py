"""Samples, drawn: compared with real rows, and what was asked of them.

Displays in scikit-learn's style: ``from_...`` computes and plots.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

from ._runtime.typing import Rows
from ._runtime.validation import check_count
from .compare import SampleComparison, compare_samples
from .compare.findings import summarise
from .compare.nearness import CLOSE
from .control import SampleReport

# Changes of correlations below this are drawn pale, whatever the largest one is.
_PALE = 0.1
# Names that fit along an axis of a panel, and bars one above the other.
_MOST_NAMES, _MOST_BARS = 20, 30


def _panels(whom, ax, n, figsize):
    """So many axes: those given, or of a new figure."""
    check_matplotlib_support(f"{whom}.plot")
    from matplotlib.pyplot import subplots

    if ax is None:
        _, ax = subplots(1, n, figsize=figsize, layout="constrained")
    axes = np.ravel(ax)
    if len(axes) != n:
        raise ValueError(f"ax must be {n} axes; got {len(axes)}.")
    return axes


@dataclass(eq=False, repr=False)
class SampleComparisonDisplay:
    """New rows against training rows: distances, features, correlations.

    Build it with :meth:`from_samples`, or from the result of
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
        distances, and the one that bounds close rows; after :meth:`plot`.
    points_ : list of matplotlib Line2D
        Kolmogorov-Smirnov statistics, shares outside the training range and ratios
        of standard deviations of the features shown; after :meth:`plot`.
    image_ : matplotlib AxesImage
        Differences of correlations; after :meth:`plot`.

    See Also
    --------
    compare_samples : New rows against real ones.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import SampleComparisonDisplay
    >>> X = np.random.default_rng(0).normal(size=(2, 30, 4))
    >>> display = SampleComparisonDisplay.from_samples(*X, random_state=0)
    >>> display.comparison.features.ks_statistic.shape
    (4,)
    """

    comparison: SampleComparison
    _: KW_ONLY
    estimator_name: str | None = None

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
        check_matplotlib_support(f"{cls.__name__}.from_samples")
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
        check_count("max_features", max_features)
        self.axes_ = _panels(type(self).__name__, ax, 3, (13, 5))
        self.figure_ = self.axes_[0].figure
        if ax is None:
            title = [self.estimator_name, self.comparison.verdict]
            self.figure_.suptitle(": ".join(filter(None, title)))
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
                CLOSE * np.median(found.usual_distance),
                color="gray",
                linestyle=":",
                label="close rows: left of this",
            ),
        ]
        told = "exact copies", "repeated rows", "close rows", "membership", "distance"
        ax.set(
            xlabel="distance to the closest training row\n(training std)",
            ylabel="share of rows below",
            title=self._panel_title("distances", *told),
        )
        _legend_below(ax, 0.2)

    def _plot_features(self, ax, max_features):
        found = self.comparison.features
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
        ax.set_yticks(height, [found.names[feature] for feature in shown])
        ax.invert_yaxis()
        criteria = "ranges", "categories", "location", "spread", "zeros", "missing"
        title = self._panel_title("features", *criteria)
        if len(shown) < len(found.names):
            title += f"\n{len(shown)} of {len(found.names)} features"
        ax.set(ylabel="feature", title=title)
        _legend_below(ax, 0.08, title="new against training values")

    def _plot_correlations(self, ax):
        found, changes = self.comparison, self.comparison.correlation_difference
        # Symmetric colours, with a floor: rounding errors are no differences.
        limit = np.nanmax(np.abs(changes), initial=_PALE)
        ax.set_facecolor("lightgray")
        self.image_ = ax.imshow(changes, cmap="RdBu_r", vmin=-limit, vmax=limit)
        features = found.correlation_features
        shown = np.arange(0, len(features), -(-len(features) // _MOST_NAMES))
        names = [found.features.names[i] for i in features[shown]]
        ax.set_xticks(shown, names, rotation=90)
        ax.set_yticks(shown, names)
        ax.tick_params(labelsize="small")
        ax.set(
            xlabel="feature (gray: constant)" if np.isnan(changes).any() else "feature",
            ylabel="feature",
            title=self._panel_title("correlations", "correlations"),
        )
        self.figure_.colorbar(self.image_, ax=ax, label="correlation, new - training")

    def _panel_title(self, panel, *criteria):
        """The panel, and what the criteria that it shows say."""
        shown = [f for f in self.comparison.findings if f.criterion in criteria]
        return f"{panel}: {summarise(shown)}"


def _legend_below(ax, room, **settings):
    """A legend below a panel: inside, it would hide what is drawn."""
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -room),
        fontsize="small",
        title_fontsize="small",
        **settings,
    )


@dataclass(eq=False, repr=False)
class SampleReportDisplay:
    """Totals of new rows before and after they were moved, and how far columns moved.

    Build it with :meth:`from_report`.

    Parameters
    ----------
    report : SampleReport
        What to draw.

    Attributes
    ----------
    axes_ : ndarray of 2 matplotlib Axes
        After :meth:`plot`.
    figure_ : matplotlib Figure
        After :meth:`plot`.
    bars_ : list of matplotlib BarContainer
        How far rows were from each total when drawn, in percent of what was asked, and
        how far columns moved; after :meth:`plot`.

    See Also
    --------
    SampleReport : What was asked, met and moved.
    SampleComparisonDisplay : New rows against training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import PNLAugmenter, SampleReportDisplay
    >>> X = np.random.default_rng(0).uniform(size=(30, 2))
    >>> _, report = PNLAugmenter().fit(X).sample(
    ...     20, random_state=0, totals={0: 12.0}, return_report=True
    ... )
    >>> display = SampleReportDisplay(report)
    >>> display.report.n_rows
    20
    """

    report: SampleReport

    @classmethod
    def from_report(cls, report: SampleReport, *, ax: Any = None) -> Self:
        """Plot a report.

        Parameters
        ----------
        report : SampleReport
            As :meth:`~sklearn_pnl.PNLAugmenter.sample` returns it.
        ax : array-like of 2 matplotlib Axes, default=None
            Axes to plot on; None makes a figure.

        Returns
        -------
        display : SampleReportDisplay
        """
        return cls(report).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Two panels: totals as they were drawn, and how far columns moved.

        Parameters
        ----------
        ax : array-like of 2 matplotlib Axes, default=None
            Axes to plot on; None makes a figure.

        Returns
        -------
        display : SampleReportDisplay
        """
        self.axes_ = _panels(type(self).__name__, ax, 2, (10, 4))
        self.figure_ = self.axes_[0].figure
        report = self.report
        some = np.flatnonzero(~np.isnan(report.drawn))[:_MOST_BARS]
        low, high, drawn = report.lower[some], report.upper[some], report.drawn[some]
        aim = np.clip(report.reached[some], low, high)
        size = np.where(aim != 0, np.abs(aim), 1.0)
        away = 100 * (drawn - np.clip(drawn, low, high)) / size
        names = [report.names[k] for k in some]
        self.bars_ = [self._bars(self.axes_[0], names, away)]
        self.axes_[0].set(xlabel="from what was asked, as drawn (%)", title="totals")
        farthest = np.argsort(-report.moved, kind="stable")[:_MOST_BARS]
        names = [report.features[j] for j in farthest]
        self.bars_.append(self._bars(self.axes_[1], names, report.moved[farthest]))
        self.axes_[1].set(xlabel="moved (share of the range)", title="columns")
        return self

    @staticmethod
    def _bars(ax, names, values):
        bars = ax.barh(np.arange(len(names)), values)
        ax.set_yticks(np.arange(len(names)), names)
        ax.invert_yaxis()
        ax.axvline(0, color="gray", linewidth=0.8)
        return bars
