"""Impute missing cells of tables and tensors.

:class:`ManyBodyImputer` validates the rows and parameters. The fillers of
:mod:`.filling` compute the values: a log-linear model for tensors, and the nearest rows
with a projection onto equalities for tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from ._utils.threads import one_blas_thread
from ._utils.validation import (
    COUNT,
    NOT_NEGATIVE,
    InstanceWith,
    all_or_nothing,
    check_measures,
    check_observed,
    check_rows,
    on_host,
)
from .columns.constraints import CONSTRAINTS
from .filling import TableFiller, TensorFiller
from .projectors import FIT_CONSTRAINTS, N_JOBS, ORDER

# Each parameter applies either to tensors or to tables.
_OF_TENSORS = (
    "poset",
    "offset",
    "alpha",
    "ordered_modes",
    "tol",
    "max_iter",
)
_OF_TABLES = "constraints", "equalities", "imputer"


class ManyBodyImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Impute missing cells; observed cells are returned unchanged.

    **Tensors** (``order`` is not None): each row ``m`` is a tensor or a measure on a
    poset. Missing cells are filled from the log-linear model ``q = r exp(zeta theta)``,
    where ``r`` is a reference (see ``n_neighbors``). The fit minimises the penalised
    negative log-likelihood of the observed cells O:

    .. math:: \min_\theta \sum_{x \in O} (q(x) - m(x) \log q(x))
              + \frac{\alpha M}{2} \|\theta\|^2 ,

    with one parameter theta for each element of at most the given order, and the
    observed mass ``M``. The norm is a weighted sum over the interactions, see
    ``alpha``. A single tensor X is one row: pass ``X[None]``, because the first axis of
    ``X`` counts rows. A warning is issued if the order includes all interactions of a
    row, as order 2 does for matrices. If a vector contains the cells of a tensor,
    reshape it before the call: ``X.reshape(-1, 5, 3, 2, 2)``.

    **Tables** (``order=None``): the missing cells are imputed by ``imputer``, then
    projected onto linear equalities: the equalities that all complete rows of ``fit``
    satisfy, such as sums of columns, and ``constraints``. Imputed cells stay within the
    range that ``fit`` observed in each column if this is feasible. Otherwise they can
    leave the range, but they do not become negative in a column without negative
    values. Each row is projected independently of the other rows. If constraints
    exclude each other in a row, the equalities that ``fit`` found precede
    ``constraints``, and the first constraint precedes the next one: each is satisfied
    as far as the constraints before it and the observed cells allow. A warning names
    each violated constraint, the number of rows, the first rows and the largest
    violation.

    Parameters
    ----------
    order : "auto", int, list of tuple of int or None, default="auto"
        Largest order of the interactions in the model, or a list of interactions, as in
        :class:`ManyBodyProjector`. A larger order fits the observed cells more closely.
        None reads the rows as rows of a table. "auto" is None for rows with one axis
        unless ``base`` or ``poset`` is given; it is 1 for matrices and with ``base`` or
        ``poset``, and 2 for tensors with more modes.

    base : array-like, default=None
        Free coordinates of the model, instead of ``order``; see
        :class:`ManyBodyProjector`.

    poset : TensorPoset or Poset, default=None
        Order between the cells; see :class:`ManyBodyProjector`. If a bottom was added
        to the poset, the bottom counts as a missing cell.

    n_neighbors : int, default=None
        Number of nearest training rows. None means 5 for tables, and the reference 1
        for tensors. Distances are Euclidean over the cells that both rows have, with
        each column divided by its range. For tensors, the mean of the nearest rows is
        the reference ``r``. With the reference 1 in all cells, the result of a row does
        not depend on other rows.

    n_candidates : int or None, default=16384
        Number of training rows to which the search for the nearest rows is limited. A
        larger training set is replaced by a random subset of its rows, chosen with a
        fixed seed. With None, all rows are used, and the run time is quadratic in the
        number of rows.

    imputer : transformer, default=None
        Imputer that fills the cells of a table before the projection: any imputer of
        scikit-learn that keeps all columns. None uses the mean of the ``n_neighbors``
        nearest rows, as in :class:`~sklearn.impute.KNNImputer`.

    equalities : "auto", constraints or None, default="auto"
        Linear equalities that the rows of a table satisfy. "auto" searches for
        equalities between several columns that all complete rows of ``fit`` satisfy.
        None uses no equalities.

    constraints : constraint or list of them, default=None
        Constraints on each row of a table. Observed cells are not changed.

    offset : float, default=0.0
        Value that is added to every cell of a tensor before the fit and subtracted
        afterwards.

    alpha : float, default=1e-4
        Weight of the ridge penalty on the interactions. The penalty of an interaction
        is its number of parameters times the mean square of its contribution to ``log
        q`` (:func:`~sklearn_pnl.geometry.complete`). Larger values shrink the
        interactions more. With 0, the fit is exact, and cells that the observed cells
        do not determine stay missing, with a warning. To choose a value, hide some
        observed cells and compare the errors.

    ordered_modes : sequence of int, default=()
        Modes with ordered levels, such as time. For these modes, the ridge penalises
        differences between neighbouring levels.

    tol : float, default=1e-6
        Tolerance of the residual of a fit, as a share of the observed mass.

    max_iter : int, default=100
        Maximum number of Newton steps.

    n_jobs : int, default=None
        Number of blocks of rows that are fitted in parallel. None means 1 unless in a
        :obj:`joblib.parallel_config` context.

    Attributes
    ----------
    order_ : int, list or None
        The order of the fit; None for a table.

    poset_ : TensorPoset, Poset or None
        The poset of the fit; None for a table.

    base_mask_ : ndarray of bool of shape ``poset_.shape`` or None
        Mask of the elements whose theta is free; None for a table.

    equalities_ : LinearConstraints or None
        The equalities of a table; None for tensors.

    n_iter_ : int
        Largest number of Newton steps of a row in ``fit_transform``. It is 1 for a
        closed form, and after ``fit``, which fills no cells.

    input_shape_ : tuple of int
        Shape of a row.

    n_features_in_ : int
        Length of the first axis of a row.

    feature_names_in_ : ndarray of str
        Names of the columns seen during ``fit``, if all names are strings.

    See Also
    --------
    sklearn_pnl.geometry.complete : Fit the model to observed cells, with certificates.
    ManyBodyProjector : Encode rows, optionally with missing cells.
    find_equalities : Search for linear equalities.

    References
    ----------
    Bishop, Fienberg and Holland, "Discrete Multivariate Analysis", 1975, chapter 5.

    K. Ghalamkari, M. Sugiyama, Y. Kawahara, "Many-body approximation for
    non-negative tensors", NeurIPS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import ManyBodyImputer
    >>> X = np.array([[[4.0, 2.0], [6.0, np.nan]]])
    >>> ManyBodyImputer(order=1, alpha=0).fit_transform(X)
    array([[[4., 2.],
            [6., 3.]]])

    Imputed rows satisfy the totals of a table:

    >>> parts = np.random.default_rng(0).gamma(3.0, size=(50, 2))
    >>> X = np.column_stack([parts, parts.sum(axis=1)])
    >>> X[0, 2] = np.nan
    >>> filled = ManyBodyImputer().fit_transform(X)
    >>> print(X[0, :2].sum().round(3), filled[0, 2].round(3))
    6.732 6.732
    """

    _parameter_constraints: ClassVar[dict] = {
        "order": [*ORDER, StrOptions({"auto"}), None],
        "n_neighbors": [COUNT, None],
        "n_candidates": [COUNT, None],
        "imputer": [InstanceWith(["fit", "transform"]), None],
        "equalities": [StrOptions({"auto"}), *CONSTRAINTS, None],
        "constraints": [*CONSTRAINTS, None],
        "alpha": [NOT_NEGATIVE],
        "ordered_modes": ["array-like"],
        **FIT_CONSTRAINTS,
        "n_jobs": N_JOBS,
    }

    def __init__(
        self,
        order: int | Sequence | Literal["auto"] | None = "auto",
        *,
        base: ArrayLike | None = None,
        poset: Any = None,
        n_neighbors: int | None = None,
        n_candidates: int | None = 2**14,
        imputer: Any = None,
        equalities: Any = "auto",
        constraints: Any = None,
        offset: float = 0.0,
        alpha: float = 1e-4,
        ordered_modes: Sequence[int] = (),
        tol: float = 1e-6,
        max_iter: int = 100,
        n_jobs: int | None = None,
    ) -> None:
        self.order = order
        self.base = base
        self.poset = poset
        self.n_neighbors = n_neighbors
        self.n_candidates = n_candidates
        self.imputer = imputer
        self.equalities = equalities
        self.constraints = constraints
        self.offset = offset
        self.alpha = alpha
        self.ordered_modes = ordered_modes
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    @all_or_nothing
    @one_blas_thread()
    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Find the equalities, and store the training rows for the neighbour search.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Rows with NaN in missing cells.
        y : None
            Ignored.

        Returns
        -------
        self : ManyBodyImputer
        """
        rows = self._checked(X, reset=True).astype(np.float64)
        self._check_unused()
        filler: TableFiller | TensorFiller
        if self._is_table:
            filler = TableFiller(self, rows, X)
        else:
            filler = TensorFiller(self, rows)
        self._filler, self.poset_, self.base_mask_ = filler, filler.poset, filler.mask
        self.equalities_, self.n_iter_ = filler.equalities, 1
        return self

    @all_or_nothing
    @one_blas_thread()
    def fit_transform(self, X: ArrayLike, y: Any = None) -> NDArray:
        """Fit the imputer and fill the missing cells of the same rows.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Rows with NaN in missing cells.
        y : None
            Ignored.

        Returns
        -------
        rows : ndarray of shape (n, *shape)
            The filled rows.
        """
        X = on_host(X)
        filled, self.n_iter_ = self.fit(X)._filled(X)
        return filled

    @one_blas_thread()
    def transform(self, X: ArrayLike) -> NDArray:
        """Fill the missing cells of rows.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Rows with NaN in missing cells. Cells can be missing in columns that were
            complete in ``fit``.

        Returns
        -------
        rows : ndarray of shape (n, *shape)
            The filled rows. Observed cells are bit-identical to those in ``X``.
        """
        return self._filled(X)[0]

    # Only rows with one axis have column names.
    @available_if(lambda imputer: len(getattr(imputer, "input_shape_", (1,))) == 1)
    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Return the column names of rows with one axis.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Feature names. If given, they must equal the names seen in ``fit``.

        Returns
        -------
        names : ndarray of str objects
        """
        return super().get_feature_names_out(input_features)

    def _check_unused(self):
        """Reject tensor parameters for tables and table parameters for tensors."""
        unused = _OF_TENSORS if self._is_table else _OF_TABLES
        if self.imputer is not None:
            unused = (*unused, "n_neighbors", "n_candidates")
        if not self._is_table and self.n_neighbors is None:
            unused = (*unused, "n_candidates")
        remedy = "" if self._is_table else ", or set order=None to read rows of a table"
        defaults = type(self)().get_params(deep=False)
        for name in unused:
            if not np.array_equal(getattr(self, name), defaults[name]):
                raise ValueError(
                    f"{name}={getattr(self, name)!r} has no effect with order="
                    f"{self.order!r}, n_neighbors={self.n_neighbors!r} and imputer="
                    f"{self.imputer!r} on rows of shape {self.input_shape_}. Remove "
                    f"{name}{remedy}."
                )

    def _checked(self, X, *, reset):
        """Return validated rows (n, D); float32 rows keep their type."""
        rows = check_rows(self, X, reset=reset, missing=True)
        # Distances are rounded differently for different memory layouts.
        rows = np.ascontiguousarray(rows)
        if reset:
            self.order_ = self.order
            if isinstance(self.order, str):
                by_axes = {1: None, 2: 1}.get(len(self.input_shape_), 2)
                self.order_ = 1 if self._is_stated else by_axes
        flat = rows.reshape(len(rows), -1)
        if not self._is_table:
            advice = "set order=None to impute the rows of a table"
            check_measures(rows, self, None, advice=advice)
            check_observed(flat, self.offset)
        return flat

    @property
    def _is_stated(self):
        """Whether the user gave a base or a poset."""
        return self.base is not None or self.poset is not None

    @property
    def _is_table(self):
        return self.order_ is None and self.base is None

    def _filled(self, X):
        """Return the filled rows (n, *shape) and the largest number of Newton steps."""
        filled, n_iter = self._checked(X, reset=False).copy(), 1
        rows, missing = filled.astype(np.float64), np.isnan(filled)
        todo = np.flatnonzero(missing.any(axis=1))
        if len(todo):
            cells, n_iter = self._filler.fill(rows[todo], missing[todo], todo)
            filled[todo] = np.where(missing[todo], cells, filled[todo])
        return filled.reshape(-1, *self.input_shape_), n_iter

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        is_tensor = self._is_stated or self.order not in (None, "auto")
        tags.input_tags.positive_only = is_tensor
        return tags
