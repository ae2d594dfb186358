"""Displays in scikit-learn's style: compute in ``from_...``, then ``plot``."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from . import geometry
from ._validation import check_cells, check_tensors
from .comparison import compare_samples
from .geometry.codec import measures_of_rows
from .geometry.energies import project_on_level


class InteractionEnergyDisplay:
    """How the energy of rows divides among the orders of interaction.

    Build it with :meth:`from_estimator`.

    Parameters
    ----------
    energies : ndarray of shape (n_rows, n_levels)
        Parts of ``KL(p, uniform)`` of each row, in nats.
    level_names : list of str
        One name for each level.

    Attributes
    ----------
    ax_ : matplotlib Axes
        After :meth:`plot`.
    figure_ : matplotlib Figure
        After :meth:`plot`.
    bars_ : matplotlib BarContainer
        After :meth:`plot`.

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

    def __init__(self, energies, level_names):
        self.energies = energies
        self.level_names = level_names

    @classmethod
    def from_estimator(cls, estimator, X, *, levels=None, level_names=None, ax=None):
        """Divide the energy of each row of ``X``, and plot where an axis is given.

        Parameters
        ----------
        estimator : ManyBodyProjector or BackwardProjector
            Fitted; its poset and offset are used.
        X : array-like of shape (n, *input_shape_)
            Rows.
        levels : list, default=None
            Nested levels, as in :func:`~sklearn_pnl.geometry.energy_decomposition`;
            None is the orders 1, 2, ...
        level_names : list of str, default=None
            Names of the levels and of what lies beyond the last.
        ax : matplotlib Axes, default=None
            Axes to plot on; None computes only.

        Returns
        -------
        display : InteractionEnergyDisplay
        """
        check_is_fitted(estimator)
        p = _distributions(estimator, check_tensors(estimator, X, reset=False))
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
        display = cls(energies, list(level_names))
        return display if ax is None else display.plot(ax=ax)

    def plot(self, ax=None, **bar_kwargs):
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
        self.bars_ = self.ax_.bar(self.level_names, mean, yerr=spread, **bar_kwargs)
        self.ax_.set(ylabel="energy (nats), mean and quartiles")
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

    Attributes
    ----------
    ax_ : matplotlib Axes
        After :meth:`plot`.
    figure_ : matplotlib Figure
        After :meth:`plot`.
    lines_ : list of matplotlib Line2D
        After :meth:`plot`.

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

    def __init__(self, t, e_energy, m_energy):
        self.t = t
        self.e_energy = e_energy
        self.m_energy = m_energy

    @classmethod
    def from_estimator(
        cls, estimator, first, second, *, order=1, n_points=21, encoded=False, ax=None
    ):
        """Energy between two rows, or between their projections on the base.

        Parameters
        ----------
        estimator : ManyBodyProjector or BackwardProjector
            Fitted; its poset and offset are used.
        first, second : array-like of shape ``input_shape_``
            Rows.
        order : int, list of tuple of int, or ndarray of bool, default=1
            Level beyond which energy is counted.
        n_points : int, default=21
            Points of each geodesic.
        encoded : bool, default=False
            Whether to run between the projections of the rows on the base.
        ax : matplotlib Axes, default=None
            Axes to plot on; None computes only.

        Returns
        -------
        display : GeodesicEnergyDisplay
        """
        check_is_fitted(estimator)
        rows = np.stack([first, second]).astype(np.float64)
        ends = _distributions(estimator, check_cells(estimator, rows))
        if encoded:
            base = estimator.base_mask_
            ends = project_on_level(ends, estimator.poset_, base)
        t = np.linspace(0, 1, n_points)
        energies = geometry.geodesic_energy(*ends, t, estimator.poset_, order)
        display = cls(t, *energies)
        return display if ax is None else display.plot(ax=ax)

    def plot(self, ax=None, **line_kwargs):
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
        self.ax_.set(xlabel="t", ylabel="interaction energy (nats)")
        self.ax_.legend()
        return self


class SampleComparisonDisplay:
    """New rows against training rows: distances, features, correlations.

    Build it with :meth:`from_samples`, or from the result of
    :func:`~sklearn_pnl.compare_samples`.

    Parameters
    ----------
    comparison : SampleComparison
        What to draw.

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

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import SampleComparisonDisplay
    >>> X = np.random.default_rng(0).normal(size=(2, 30, 4))
    >>> display = SampleComparisonDisplay.from_samples(*X, random_state=0)
    >>> display.comparison.ks_statistic.shape
    (4,)
    """

    def __init__(self, comparison):
        self.comparison = comparison

    @classmethod
    def from_samples(cls, X, X_new, *, ax=None, **compare_kwargs):
        """Compare new rows with training rows, and plot where axes are given.

        Parameters
        ----------
        X : array-like of shape (n_train, ...)
            Training rows.
        X_new : array-like of shape (n_new, ...)
            New rows.
        ax : array-like of 3 matplotlib Axes, default=None
            Axes to plot on; None computes only.
        **compare_kwargs : dict
            Passed to :func:`~sklearn_pnl.compare_samples`.

        Returns
        -------
        display : SampleComparisonDisplay
        """
        display = cls(compare_samples(X, X_new, **compare_kwargs))
        return display if ax is None else display.plot(ax=ax)

    def plot(self, ax=None, *, max_features=15):
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
            ax = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")[1]
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
                found.copy_distance, color="gray", linestyle=":", label="near-copies"
            ),
        ]
        ax.set(
            xlabel="distance to the closest training row\n(standardised)",
            ylabel="share of rows below",
        )
        ax.legend()

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
        if len(shown) < n_features:
            ax.set_title(f"{len(shown)} of {n_features} features", fontsize="medium")
        # Below the panel: inside, it would hide points.
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.08), fontsize="small")

    def _plot_correlations(self, ax):
        change = self.comparison.correlation_difference
        largest = self.comparison.max_correlation_difference
        # Symmetric colours; without any pair, or any change, there is still a scale.
        limit = largest if largest > 0 else 1.0
        self.image_ = ax.imshow(change, cmap="RdBu_r", vmin=-limit, vmax=limit)
        ax.set(xlabel="feature", ylabel="feature")
        self.figure_.colorbar(self.image_, ax=ax, label="correlation, new - training")


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


def _distributions(estimator, rows):
    """Rows (n, D) as points of the manifold that a projector was fitted on."""
    m = measures_of_rows(rows, estimator.offset, estimator.poset_)
    m /= m.sum(axis=1, keepdims=True)
    return m.reshape(-1, *estimator.poset_.shape)
