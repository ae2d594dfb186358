"""Add rows with numeric targets to a regression problem.

:class:`PNLRegressionSampler` fits a :class:`PNLAugmenter` to all rows, and computes the
target of a new row from the targets of its parents. :func:`density` gives the weights
that spread new targets over their range.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from imblearn.base import BaseSampler
from numpy.typing import ArrayLike
from scipy.ndimage import gaussian_filter1d
from sklearn.neighbors import KernelDensity
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from ._utils.threads import one_blas_thread
from ._utils.typing import Rows, Seed
from ._utils.validation import COUNT, all_or_nothing, as_random_state, check_one_a_row
from .augmenter import (
    Augmentation,
    EqualitiesLike,
    MethodLike,
    PNLAugmenter,
    is_for_lines,
)
from .columns.constraints import CONSTRAINTS, Constraint
from .columns.relations import find_relations
from .control.totals import ColumnTotal
from .frames import read_groups, read_target
from .methods.codes import Codes, OrderLike
from .methods.lines import Lines

# The density has a relative accuracy of 1e-3, which 40 grid cells per bandwidth attain.
_DENSITY_RTOL, _CELLS = 1e-3, 40


class PNLRegressionSampler(Augmentation, BaseSampler):
    """Add rows to a regression problem by pseudo-nonlinear data augmentation.

    A :class:`PNLAugmenter` is fitted to all rows. The target of a new row is the
    weighted mean of the targets of its parents, with the weights with which the parents
    are mixed. New rows come after the original rows, which are returned unchanged.

    Parameters
    ----------
    n_samples : int or float, default=1.0
        Number of new rows. A float is a multiple of the number of training rows, at
        most 10.0. The default, 1.0, doubles the data.

    row_weights : {"uniform", "rarity"}, default="uniform"
        Relative frequencies of the training rows as base rows. A base row is the
        training row from which a new row starts. "uniform" uses all rows equally often.
        "rarity" uses the inverse of a Gaussian kernel density of the targets, so that
        new targets spread over their range. The density has Scott's bandwidth, in units
        of the standard deviations of the targets.

    method : {"auto", "lines", "codes", "paper"}, Lines or Codes, default="auto"
        Method that makes new rows, as in :class:`PNLSampler`, but "auto" adds no noise,
        because targets get none. "auto" is ``Lines(noise=0)`` for tables, and for all
        rows if some cells are missing; otherwise ``Codes(draws="interpolation")``.

    order : int, list of tuple of int, ForwardProjection, ManyBodyProjector or None, \
            default=None
        If set, new rows are decoded from codes of this order; see :class:`PNLSampler`.
        With an order, "auto" is ``Codes(order, draws="interpolation")``.

    k_neighbors : int or "auto", default="auto"
        Number of nearest neighbours from which the second parent of a new row is
        drawn, or number of rows from which a code is decoded. "auto" depends on the
        number of training rows; see :class:`PNLSampler`.

    categorical_features : "auto", array-like or None, default="auto"
        Columns that hold categories, as indices, names or a boolean mask. "auto"
        selects the columns of a data frame that are neither numeric nor times. See
        :class:`PNLSampler`.

    value_support : "auto" or None, default="auto"
        Whether new values keep the rounding and the frequent values of a column; see
        :class:`PNLSampler`.

    extrapolation : float or None, default=0.0
        Distance by which new values may exceed the training range of a feature, as a
        share of the length of the range; None sets no bounds. See :class:`PNLSampler`.

    equalities : "auto", constraints or None, default="auto"
        Linear equalities between columns that new rows satisfy. "auto" searches the
        training rows, and None preserves no equalities; see :class:`PNLSampler`.

    constraints : constraint, list of them or None, default=None
        Constraints on each new row; see :meth:`PNLAugmenter.sample`.

    totals : dict, ColumnTotal, list of them or None, default=None
        Totals over the new rows, without the original rows; see
        :meth:`PNLAugmenter.sample`.

    random_state : int, RandomState, Generator or None, default=None
        Random seed. The same seed gives the same bytes for every ``n_jobs``.

    n_jobs : int, default=None
        Number of parallel jobs over blocks of rows; see :class:`PNLSampler`.

    Attributes
    ----------
    augmenter_ : PNLAugmenter
        The augmenter, fitted to all rows.

    method_ : Lines or Codes
        The fitted method.

    parent_indices_ : ndarray of int of shape (n_new, 2) or (n_new, k_neighbors)
        Indices of the parents of each new row in ``X``.

    parent_weights_ : ndarray of shape (n_new, 2) or (n_new, k_neighbors)
        Weights with which the parents of each new row are mixed. The weights of a row
        sum to 1.

    report_ : SampleReport or None
        Report on the constraints and totals; None without ``totals``.

    equalities_ : LinearConstraints
        Exact linear equalities that the training rows satisfy; ``print`` lists them.

    inequalities_ : list of pairs
        Pairs of columns whose first column is never greater than the second; see
        :class:`PNLSampler`.

    value_support_ : ValueSupport or None
        Resolution and atoms of the columns; ``print`` lists them.

    groups_ : ndarray of shape (n + n_new,)
        Groups of all returned rows. Only available if ``fit_resample`` was given
        groups.

    input_shape_ : tuple of int
        Shape of one row.

    n_features_in_ : int
        Length of the first axis of a row.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, if all are strings.

    See Also
    --------
    PNLSampler : Over-sample the minority classes of a classification problem.

    Notes
    -----
    Targets get no noise. Noise in the features therefore increases the prediction error
    on most tables. To draw rows with noise, add the target as a column of the table and
    fit a :class:`PNLAugmenter`. In cross-validation, use the sampler in a pipeline of
    imbalanced-learn, so that each fold generates new rows from its own training rows.

    References
    ----------
    Rare targets: L. Torgo, R. P. Ribeiro, B. Pfahringer, P. Branco, "SMOTE for
    regression", EPIA 2013; P. Branco, L. Torgo, R. P. Ribeiro, "SMOGN: a pre-processing
    approach for imbalanced regression", LIDTA 2017. Weights by inverse density: M.
    Steininger et al., "Density-based weighting for imbalanced regression", Machine
    Learning 110, 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn_pnl import PNLRegressionSampler
    >>> X, y = load_diabetes(return_X_y=True)
    >>> sampler = PNLRegressionSampler(n_samples=0.5, random_state=0)
    >>> X_more, y_more = sampler.fit_resample(X, y)
    >>> X.shape, X_more.shape, y_more.shape
    ((442, 10), (663, 10), (663,))
    """

    _sampling_type = "bypass"
    # Targets get no noise.
    _auto = partial(Lines, noise=0), partial(Codes, draws="interpolation")
    _parameter_constraints: ClassVar[dict] = {
        **Augmentation._parameter_constraints,
        "n_samples": [COUNT, Interval(RealNotInt, 0, 10, closed="right")],
        "row_weights": [StrOptions({"uniform", "rarity"})],
        # Strings are rejected by the constraint parser, which shows the expected form.
        "constraints": [*CONSTRAINTS, str, None],
        "totals": [dict, list, tuple, ColumnTotal, None],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        *,
        n_samples: float = 1.0,
        row_weights: Literal["uniform", "rarity"] = "uniform",
        method: MethodLike = "auto",
        order: OrderLike = None,
        k_neighbors: int | Literal["auto"] = "auto",
        categorical_features: Literal["auto"] | ArrayLike | None = "auto",
        value_support: Literal["auto"] | None = "auto",
        extrapolation: float | None = 0.0,
        equalities: EqualitiesLike = "auto",
        constraints: Constraint | Sequence | None = None,
        totals: Any = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_samples = n_samples
        self.row_weights = row_weights
        self.method = method
        self.order = order
        self.k_neighbors = k_neighbors
        self.categorical_features = categorical_features
        self.value_support = value_support
        self.extrapolation = extrapolation
        self.equalities = equalities
        self.constraints = constraints
        self.totals = totals
        self.random_state = random_state
        self.n_jobs = n_jobs

    @all_or_nothing
    @one_blas_thread()
    def fit(self, X: Rows, y: Any) -> Self:
        """Validate `X` and `y` without resampling.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, *shape)
            Rows.
        y : array-like of shape (n,) or (n, n_targets)
            Targets of the rows.

        Returns
        -------
        self : PNLRegressionSampler
        """
        self._check(X, y)
        return self

    @all_or_nothing
    @one_blas_thread()
    def fit_resample(
        self, X: Rows, y: Any, groups: ArrayLike | None = None
    ) -> tuple[Any, Any]:
        """Add new rows and their targets to the data.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, *shape)
            Rows. Dates with a time zone are read in UTC. Object columns of numbers are
            computed in float64; object columns of a data frame that contain strings are
            categories.
        y : array-like of shape (n,) or (n, n_targets)
            Targets of the rows.
        groups : array-like of shape (n,), default=None
            Groups of rows, such as patients or shops. Rows of different groups are
            never mixed. ``groups_`` contains the groups of all returned rows. Codes
            drawn from a density ("kde", "paper") do not support groups.

        Returns
        -------
        X_resampled : array-like of shape (n + n_new, *shape)
            The original rows, followed by the new rows, in the container of ``X``.
            Sparse formats other than CSR and CSC are converted to CSR.
        y_resampled : array-like of shape (n + n_new,) or (n + n_new, n_targets)
            The targets of all rows, in the container of ``y``.
        """
        table, values, more_targets = self._check(X, y)
        groups, group_codes = read_groups(groups, len(table))
        n_new = self.n_samples
        if not isinstance(n_new, Integral):
            n_new = max(1, round(n_new * len(table)))
        self._relations = find_relations(
            table, self.value_support, self.extrapolation, self.equalities
        )
        method = self._checked_method(is_for_lines(table))
        self.augmenter_ = PNLAugmenter(**self._shared(method))
        caller = type(self).__name__
        self.augmenter_._fit_table(table, self._relations, caller, group_codes)
        rows = self.augmenter_._rows
        batch, self.report_ = rows.sample(
            int(n_new),
            as_random_state(self.random_state),
            self.constraints,
            self.totals,
            shares=self._shares(values),
        )
        self.method_ = self.augmenter_.method_
        self.parent_indices_, self.parent_weights_ = batch.parents, batch.weights
        if groups is not None:
            # A new row has the group of its first parent.
            self.groups_ = np.concatenate([groups, groups[batch.parents[:, 0]]])
        # Equal targets of all parents have no rounding errors in this form.
        first, others = values[batch.parents[:, 0]], values[batch.parents[:, 1:]]
        targets = first + np.einsum(
            "nk,nkt->nt", batch.weights[:, 1:], others - first[:, None]
        )
        return table.stack([rows.restored(batch)]), more_targets(targets)

    # imbalanced-learn requires this abstract method.
    _fit_resample = fit_resample

    def _check(self, X, y):
        """Return the table, the targets (n, t), and a function that appends targets."""
        values, more_targets = read_target(y)
        table = self._read(X)
        check_one_a_row(table, values)
        return table, values, more_targets

    def _shares(self, values):
        """Return relative frequencies of the base rows; None if they are equal."""
        if self.row_weights == "uniform":
            return None
        if self.constraints is not None or self.totals is not None:
            raise ValueError(
                "row_weights='rarity' cannot be combined with constraints or totals, "
                "which determine the weights of rows. Set row_weights='uniform'."
            )
        return 1 / density(values)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def density(values):
    """Compute the Gaussian kernel density at each target (n, t), up to a constant.

    Distances are in standard deviations of the targets, with Scott's bandwidth.
    """
    # Scaled values are of order 1, so that their squares neither overflow nor vanish.
    values = values / np.maximum(np.abs(values).max(axis=0), np.finfo(float).tiny)
    spread = values.std(axis=0)
    scaled = (values - values.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    if not scaled.size:
        return np.ones(len(values))
    if scaled.shape[1] == 1:
        return _density_on_grid(scaled[:, 0])
    kernel = KernelDensity(bandwidth="scott", rtol=_DENSITY_RTOL).fit(scaled)
    logs = kernel.score_samples(scaled)
    return np.exp(logs - logs.max())


def _density_on_grid(z):
    """Compute the density of one target, in standard deviations, on a grid.

    A target is at most sqrt(n) standard deviations from the mean. Each target is shared
    between its two neighbouring grid cells, and the density is interpolated between the
    cells (M. C. Jones, H. W. Lotwick, Applied Statistics 33, 1984). Each of the two
    steps widens the kernel by a fourth of a squared cell.
    """
    places = (z - z.min()) * _CELLS * len(z) ** 0.2
    left = places.astype(np.intp)
    right = places - left
    counts = np.bincount(left, 1 - right, left.max() + 2)
    counts += np.bincount(left + 1, right, len(counts))
    # The kernel at 6 bandwidths is 1e-8 of its maximum.
    heights = gaussian_filter1d(counts, _CELLS, mode="constant", truncate=6)
    density = heights[left] * (1 - right) + heights[left + 1] * right
    return density / density.max()
