"""What was asked of new rows and what they reached, drawn."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

from ..control import SampleReport

# Totals, and columns, that are drawn at most.
_MOST = 30


def panels(whom, ax, n, figsize):
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
        self.axes_ = panels(type(self).__name__, ax, 2, (10, 4))
        self.figure_ = self.axes_[0].figure
        report = self.report
        some = np.flatnonzero(~np.isnan(report.drawn))[:_MOST]
        low, high, drawn = report.lower[some], report.upper[some], report.drawn[some]
        aim = np.clip(report.reached[some], low, high)
        size = np.where(aim != 0, np.abs(aim), 1.0)
        away = 100 * (drawn - np.clip(drawn, low, high)) / size
        names = [report.names[k] for k in some]
        self.bars_ = [self._bars(self.axes_[0], names, away)]
        self.axes_[0].set(xlabel="from what was asked, as drawn (%)", title="totals")
        farthest = np.argsort(-report.moved, kind="stable")[:_MOST]
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
