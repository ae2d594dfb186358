"""Sampler of new rows with numeric targets: the counterpart of the over-sampler."""

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

from ._runtime.threads import one_blas_thread
from ._runtime.typing import Rows, Seed
from ._runtime.validation import COUNT, all_or_nothing, as_random_state, check_one_a_row
from .augmenter import PNLAugmenter
from .codes import Codes, OrderLike
from .constraints.linear import CONSTRAINTS, Constraint
from .constraints.structure import find_structure
from .constraints.totals import ColumnTotal
from .engine import Augmentation, EqualitiesLike, MethodLike
from .frames import read_groups, read_target
from .lines import Lines

# Relative accuracy of densities, and grid cells of a bandwidth that attain it.
_DENSITY_RTOL, _CELLS = 1e-3, 40


class PNLRegressionSampler(Augmentation, BaseSampler):
    """Add rows to a regression problem by pseudo-nonlinear data augmentation.

    A :class:`PNLAugmenter` of all rows. The target of a new row is the mean of those of
    its parents, weighted as these were for the row: between the two that were mixed, at
    the same position. New rows come after the originals, which are returned unchanged.

    Parameters
    ----------
    n_samples : int or float, default=1.0
        How many new rows: a number, or as a float a share of those there are, up to
        10.

    row_weights : {"uniform", "rarity"}, default="uniform"
        Relative frequencies of the training rows as seeds. "uniform" uses equal ones.
        "rarity" uses the inverse of a Gaussian kernel density of the targets (in units
        of their standard deviations, Scott's bandwidth), so that new targets spread
        over their range.

    method : {"auto", "lines", "codes", "paper"}, Lines or Codes, default="auto"
        How new rows are made, as by :class:`PNLAugmenter`. "auto" is without noise,
        since targets get none: ``Lines(noise=0)`` for tables, also for rows with
        missing cells, and ``Codes(draws="interpolation")`` for rows of more axes.

    order : int, list of tuple of int, ManyBodyProjector or None, default=None
        The interactions that codes keep, as in :class:`Codes`. An order implies codes:
        ``method="auto"`` is then ``Codes(order, draws="interpolation")``, "codes" is
        ``Codes(order)`` and "paper" is ``Codes.paper(order)``. None is the order of the
        method by itself: the whole row, or 1 for "paper". For "lines" and for an
        object, an order is refused.

    k_neighbors : int or "auto", default="auto"
        Rows among which a partner is looked for, or that a new row is decoded from
        where its code is drawn from a density; fewer rows are all used, with a warning.
        "auto" is a third of the rows as partners, at most 10, and 7 of fewer than 18
        rows; or 5 rows to decode from, or as many as there are.

    categorical_features : "auto", array-like or None, default="auto"
        Columns that hold categories: their numbers, their names or a mask. "auto" is
        all columns of a data frame that hold neither numbers nor times. A new row takes
        all its categories from one of its parents. What is missing is a category too,
        one for all marks of missing cells in a column.
        In the distance between rows, a category or a binary column that differs counts
        as much as the typical deviation of a numeric column.

    value_support : "auto" or None, default=None
        Restriction of new values to those of a column: "auto" rounds to whole numbers
        or to up to four decimals where all training values are so, keeps a coarser
        resolution (multiples of 1,000, or of 7 days from a Monday), and copies atoms,
        values that many rows share (such as 0), from a parent. None rounds by types
        alone; behind it classifiers rank rows better (``average_precision``,
        ``roc_auc``).

    extrapolation : float or None, default=0.0
        How far new values may lie beyond the range of a feature, as a share of its
        length.  Values beyond are reflected. None sets
        no limit. Whole numbers and two-valued columns stay within the training range.
        0 keeps latitudes, shares and pixels within their bounds.

    equalities : "auto", constraints or None, default="auto"
        Linear equalities between columns that new rows keep. "auto" finds columns that
        are linear functions of others, exactly or nearly, and draws them together, so
        that exact equalities hold to rounding and others as nearly as in the data.
        Equalities may also be given, as :func:`find_equalities` returns them or in the
        forms of ``constraints``; all training rows must satisfy them. None keeps none.
        With fewer rows than columns plus two, or more than 1,000 columns, only sums of
        neighbouring columns that are constant or equal to another column are found; in
        sparse rows of more than 2 ** 24 cells, empty columns not counted, no search is
        made.

    constraints : constraint, list of them or None, default=None
        Constraints on each new row, as for :meth:`PNLAugmenter.sample`.

    totals : dict, ColumnTotal, list of them or None, default=None
        Totals of the new rows, without the originals, likewise.

    random_state : int, RandomState, Generator or None, default=None
        Seed. The same seed gives the same bytes for every ``n_jobs``.

    n_jobs : int, default=None
        Number of blocks of rows in parallel.

    Attributes
    ----------
    augmenter_ : PNLAugmenter
        Fitted on the rows.

    method_ : Lines or Codes
        The method that ran; fitted.

    parent_indices_ : ndarray of int of shape (n_new, 2) or (n_new, k_neighbors)
        Rows of ``X`` that each new row was decoded from.

    parent_weights_ : ndarray of shape (n_new, 2) or (n_new, k_neighbors)
        Their weights, which sum to 1.

    report_ : SampleReport or None
        On ``totals``, if there are any.

    groups_ : ndarray of shape (n + n_new,)
        Groups of all returned rows, if ``fit_resample`` was given groups.

    input_shape_ : tuple of int
        Shape of a row.

    n_features_in_ : int
        Length of the first axis of a row.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, if all are strings.

    See Also
    --------
    PNLSampler : For classes.

    Notes
    -----
    Noise has no part in the target: it costs accuracy on most tables. With it, put the
    target among the features of a :class:`PNLAugmenter`. Each round of a
    cross-validation must draw from its own training rows: use it in a pipeline of
    imbalanced-learn.

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
        # Words are refused where they are read, with the form to write.
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
        value_support: Literal["auto"] | None = None,
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
        """Check rows and targets alone.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, *shape)
            Rows.
        y : array-like of shape (n,) or (n, n_targets)
            Their targets.

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
            Rows. Dates of a zone are read in UTC, decimals and objects as float64.
        y : array-like of shape (n,) or (n, n_targets)
            Their targets.
        groups : array-like of shape (n,), default=None
            Groups of rows, such as patients or shops: only rows of one group are mixed.
            ``groups_`` has the groups of all returned rows.

        Returns
        -------
        X_resampled : array-like of shape (n + n_new, *shape)
            The rows as they are, then the new ones, in the container of ``X``.
        y_resampled : array-like of shape (n + n_new,) or (n + n_new, n_targets)
            Targets, in the container of ``y``.
        """
        table, values, more_targets = self._check(X, y)
        groups, group_codes = read_groups(groups, len(table))
        n_new = self.n_samples
        if not isinstance(n_new, Integral):
            n_new = max(1, round(n_new * len(table)))
        self._structure = find_structure(
            table, self.value_support, self.extrapolation, self.equalities
        )
        self.augmenter_ = PNLAugmenter(**self._shared(self._checked_method(table)))
        caller = type(self).__name__
        self.augmenter_._fit_table(table, self._structure, caller, group_codes)
        rows = self.augmenter_._rows
        batch, self.report_ = rows.draw(
            int(n_new), as_random_state(self.random_state), self.constraints,
            self.totals, shares=self._shares(values),
        )  # fmt: skip
        self.method_ = self.augmenter_.method_
        self.parent_indices_, self.parent_weights_ = batch.parents, batch.weights
        if groups is not None:
            # A new row has the group of its first parent.
            self.groups_ = np.concatenate([groups, groups[batch.parents[:, 0]]])
        targets = np.einsum("nk,nkt->nt", batch.weights, values[batch.parents])
        return table.stack([rows.restored(batch)]), more_targets(targets)

    # The method that imbalanced-learn asks for.
    _fit_resample = fit_resample

    def _check(self, X, y):
        """Rows, targets (n, t), and a function to add some."""
        values, more_targets = read_target(y)
        table = self._read(X)
        check_one_a_row(table, values)
        return table, values, more_targets

    def _shares(self, values):
        """Relative frequency of each row as a seed; None for equal ones."""
        if self.row_weights == "uniform":
            return None
        if self.constraints is not None or self.totals is not None:
            raise ValueError(
                "constraints and totals choose rows. Set row_weights='uniform'."
            )
        return 1 / density(values)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def density(values):
    """Gaussian kernel density at each of some targets (n, t), up to a constant.

    In units of their standard deviations, with Scott's bandwidth.
    """
    # Squares of values of order one neither overflow nor vanish.
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
    """Of one target in standard deviations, which is sqrt(n) from the mean at most.

    Each is shared by the two cells beside it, and the density is read between them (M.
    C. Jones, H. W. Lotwick, Applied Statistics 33, 1984): both round the kernel by a
    fourth of a squared cell.
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
