"""Impute missing cells: tensors by a log-linear model, tables by near rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from ._runtime.threads import one_blas_thread
from ._runtime.validation import (
    COUNT,
    NOT_NEGATIVE,
    InstanceWith,
    all_or_nothing,
    check_measures,
    check_observed,
    check_rows,
)
from .constraints import CONSTRAINTS
from .filling import TableFiller, TensorFiller
from .projectors import FIT_CONSTRAINTS, N_JOBS, ORDER

# Parameters that fill no table, and those that fill no tensor.
_OF_TENSORS = (
    "poset", "offset", "alpha", "ordered_modes", "tol", "max_iter",
)  # fmt: skip
_OF_TABLES = "constraints", "equalities", "imputer"


class ManyBodyImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Fill missing cells by a convex fit to the observed ones, which stay as they are.

    **With an order** each row is a tensor (or a measure on a poset), and its missing
    cells are those of the log-linear model ``q = r exp(zeta theta)`` with the greatest
    penalised likelihood of its observed cells O:

    .. math:: \min_\theta \sum_{x \in O} q(x) - m(x) \log q(x)
              + \frac{\alpha M}{2} \|\theta\|^2 ,

    theta on the elements up to that order, ``M`` the mass observed. A single tensor X
    is one row: pass ``X[None]``, because the first axis of ``X`` always counts rows. A
    warning states when an order keeps all interactions of a row, as an order of 2 does
    for matrices. Vectors whose cells have modes are reshaped before:
    ``X.reshape(-1, 5, 3, 2, 2)``.

    **Without one** (a plain table) missing cells are those of ``imputer``, projected
    onto equalities: those that all rows satisfy, such as totals of their parts, and
    ``constraints``. Cells stay within the values that ``fit`` observed in each column
    if that is feasible; else they go beyond, but never below 0 in a column without
    negative values. A warning names constraints that the observed cells of rows with
    missing ones contradict; all others are satisfied.

    Parameters
    ----------
    order : "auto", int, list of tuple of int or None, default="auto"
        Largest order of interactions, or those kept, as in :class:`ManyBodyProjector`.
        None takes rows for those of a table. "auto" is None for rows of one axis,
        unless a base or poset is given; 1 for matrices and where these are given, 2 for
        tensors of more modes.

    base : array-like, default=None
        The free coordinates given directly, as in :class:`ManyBodyProjector`.

    poset : TensorPoset or Poset, default=None
        The order between the cells, as in :class:`ManyBodyProjector`. A bottom that
        was added is one more missing cell.

    n_neighbors : int, default=None
        Near training rows. None is 5 for a table. With an order their mean is the
        reference ``r``; None is a flat one, for which rows do not depend on others.
        Distances are Euclidean over cells of both rows, columns divided by their range.

    n_candidates : int or None, default=16384
        Number of training rows among which near rows are searched. A larger training
        set is replaced by a random subset of its rows, chosen with a fixed seed. None
        searches all rows; the run time is then quadratic in the number of rows.

    imputer : transformer, default=None
        What fills the cells of a table first: any imputer of scikit-learn that keeps
        all columns. None is the mean of ``n_neighbors`` near rows, as in
        :class:`~sklearn.impute.KNNImputer`.

    equalities : "auto", constraints or None, default="auto"
        Equalities that the rows of ``fit`` satisfy, of a table; "auto" are those of
        several columns that all of them satisfy.

    constraints : constraint or list of them, default=None
        Constraints on each row of a table; observed cells stay as they are.

    offset : float, default=0.0
        Added to every cell of a tensor, and subtracted again.

    alpha : float, default=1e-4
        Weight of the ridge on log effects, those of each interaction by how many
        functions it has (:func:`~sklearn_pnl.geometry.complete`). 0 is the exact fit:
        cells that the observed ones do not determine then stay missing, with a warning.
        It is not chosen here: compare some on observed cells that you hide.

    ordered_modes : sequence of int, default=()
        Modes with levels in order, such as time: the ridge weighs differences between
        neighbouring levels there.

    tol : float, default=1e-6
        Wanted residual of a fit, as a share of the mass observed.

    max_iter : int, default=100
        Most Newton steps.

    n_jobs : int, default=None
        Blocks of rows fitted at once. None means 1 unless in a
        :obj:`joblib.parallel_config` context.

    Attributes
    ----------
    order_ : int, list or None
        The order used.

    poset_ : TensorPoset, Poset or None
        None for a table.

    base_mask_ : ndarray of bool of shape ``poset_.shape`` or None
        Elements whose theta is free.

    equalities_ : LinearConstraints or None
        Equalities of a table.

    n_iter_ : int
        Most Newton steps that a row of ``fit_transform`` took; 1 for a closed form, and
        after ``fit``, which fills none.

    input_shape_ : tuple of int
        Shape of a row.

    n_features_in_ : int
        First axis of a row.

    feature_names_in_ : ndarray of str
        Names of columns, where all are strings.

    See Also
    --------
    sklearn_pnl.geometry.complete : The fit, with its certificates.
    ManyBodyProjector : Codes of rows, with missing cells if asked to.
    find_equalities : The search for equalities.

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

    Totals of a table hold:

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
        """Learn equations and near rows.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Rows with NaN where a cell is missing.
        y : None
            Ignored.

        Returns
        -------
        self : ManyBodyImputer
        """
        rows = self._checked(X, reset=True).astype(np.float64)
        self._check_asked()
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
        """Fit, and return the same rows with their missing cells filled.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Rows with NaN where a cell is missing.
        y : None
            Ignored.

        Returns
        -------
        rows : ndarray of shape (n, *shape)
        """
        filled, self.n_iter_ = self.fit(X)._filled(X)
        return filled

    @one_blas_thread()
    def transform(self, X: ArrayLike) -> NDArray:
        """Rows with their missing cells filled.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Rows with NaN where a cell is missing, whether or not rows of ``fit`` had
            any there.

        Returns
        -------
        rows : ndarray of shape (n, *shape)
            Observed cells are those of X, bit by bit.
        """
        return self._filled(X)[0]

    # Columns of rows with one axis have names.
    @available_if(lambda imputer: len(getattr(imputer, "input_shape_", (1,))) == 1)
    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Names of the columns, for rows of one axis.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            As seen in ``fit``.

        Returns
        -------
        names : ndarray of str objects
        """
        return super().get_feature_names_out(input_features)

    def _check_asked(self):
        """Refuse parameters of tensors for tables, and of tables for tensors."""
        unused = _OF_TENSORS if self._is_table else _OF_TABLES
        if self.imputer is not None:
            unused = (*unused, "n_neighbors", "n_candidates")
        if not self._is_table and self.n_neighbors is None:
            unused = (*unused, "n_candidates")
        defaults = type(self)().get_params(deep=False)
        for name in unused:
            if not np.array_equal(getattr(self, name), defaults[name]):
                raise ValueError(
                    f"{name}={getattr(self, name)!r} has no effect with order="
                    f"{self.order!r}, n_neighbors={self.n_neighbors!r} and imputer="
                    f"{self.imputer!r} on rows of shape {self.input_shape_}. Remove "
                    f"{name}, or set order=None if the rows are those of a table."
                )

    def _checked(self, X, *, reset):
        """Rows (n, D), in single precision if they came so."""
        rows = check_rows(self, X, reset=reset, missing=True)
        # Rounding of distances depends on the memory layout of rows.
        rows = np.ascontiguousarray(rows)
        if reset:
            self.order_ = self.order
            if isinstance(self.order, str):
                by_axes = {1: None, 2: 1}.get(len(self.input_shape_), 2)
                self.order_ = 1 if self._is_stated else by_axes
        flat = rows.reshape(len(rows), -1)
        if not self._is_table:
            advice = "order=None takes rows for those of a table"
            check_measures(rows, self, None, advice=advice)
            check_observed(flat, self.offset)
        return flat

    @property
    def _is_stated(self):
        """Whether a base or a poset is given."""
        return self.base is not None or self.poset is not None

    @property
    def _is_table(self):
        return self.order_ is None and self.base is None

    def _filled(self, X):
        """Filled rows (n, *shape), and the most Newton steps."""
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
