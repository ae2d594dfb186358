"""Missing cells: of tensors by a log-linear model, of tables by near rows."""

from collections.abc import Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    OneToOneFeatureMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.impute import KNNImputer
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from ._drawing.coding import free_mask
from ._drawing.steps import LayOut
from ._runtime.blocks import map_blocks
from ._runtime.validation import (
    all_or_nothing,
    check_observed,
    check_shape,
    feature_names,
    unheard,
    warn_left_missing,
    warn_missed,
    warn_unconverged,
)
from .control import CONSTRAINTS, LinearSystem, collect_constraints
from .control.filling import fill_to
from .control.search import found_in
from .geometry import complete
from .geometry.observed import smooth_modes
from .many_body import CODEC_CONSTRAINTS, ORDER
from .tables import read_table
from .tables.names import column_of

# Cells of a block of rows, as many as stay in cache.
_BLOCK_CELLS = 2**17
# Near rows of a plain table, unless their number is given.
_NEIGHBORS = 5
# A reference of near rows gets this share of its mean, so that it rules out no cell.
_LEAST_REFERENCE = 1e-3
# What "auto" chooses from; the share of observed cells that are hidden for that, and
# the rows.
_ALPHAS = tuple(10.0 ** np.arange(-8, 0))
_HIDDEN, _ROWS_HIDDEN = 0.2, 50


def _is_flat(imputer):
    """Whether rows have one axis, so that columns have names."""
    return len(getattr(imputer, "input_shape_", (1,))) == 1


class ManyBodyImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Fill missing cells by a convex fit to the observed ones, which stay as they are.

    **With an order** each row is a tensor (or a measure on a poset), and its missing
    cells are those of the log-linear model ``q = r exp(zeta theta)`` with the greatest
    penalised likelihood of its observed cells O:

    .. math:: \min_\theta \sum_{x \in O} q(x) - m(x) \log q(x)
              + \frac{\alpha M}{2} \|\theta\|^2 ,

    theta on the elements up to that order, ``M`` the mass observed. A single tensor X
    is one row: pass ``X[None]``.

    **Without one** (a plain table) missing cells are the means of near rows, moved
    least so that equations hold: those that all complete rows satisfy, such as totals
    of their parts, and what is asked for.

    Parameters
    ----------
    order : "auto", int, list of tuple of int or None, default="auto"
        Largest order of interactions, or those kept, as in :class:`ManyBodyProjector`.
        None takes rows for those of a table. "auto" is None for rows of one axis,
        unless a base, poset or reshaper is given; 1 for matrices and where these are
        given, 2 for tensors of more modes.

    base : array-like, default=None
        The free coordinates given directly, as in :class:`ManyBodyProjector`.

    poset : TensorPoset or Poset, default=None
        The order between the cells, as in :class:`ManyBodyProjector`. A bottom that
        was added is one more missing cell.

    reshaper : transformer, default=None
        Makes tensors of rows, such as :class:`PrimeFactorReshaper`; cells that it pads
        with 0 are missing ones.

    n_neighbors : int, default=None
        Near training rows. None is 5 for a table. With an order their mean is the
        reference ``r``; None is a flat one, for which rows do not depend on others.
        Nearness is Euclidean over what both rows have, columns divided by their range.

    invariants : "auto", constraints or None, default="auto"
        Equations of a table; "auto" are those that all complete rows satisfy.

    constraints : constraint or list of them, default=None
        What is asked of all rows of a table, with what is observed left as it is.

    offset : float, default=0.0
        Added to every cell of a tensor, and taken off again.

    alpha : float, "auto" or array-like of float, default=1e-4
        Weight of the ridge on log effects, those of each interaction by how many
        functions it has (:func:`~sklearn_pnl.geometry.complete`). 0 is the exact fit:
        cells that the observed ones do not determine then stay missing, with a warning.
        A list is chosen from by the deviance of a fifth of the observed cells of the
        first 50 rows, hidden at random (always the same ones); "auto" is the powers of
        10 from 1e-8 to .1.

    smooth : sequence of int, default=()
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
        The order taken.

    poset_ : TensorPoset, Poset or None
        None for a table.

    base_mask_ : ndarray of bool of shape ``poset_.shape`` or None
        Elements whose theta is free.

    alpha_ : float
        The ridge taken.

    held_out_deviance_ : float
        Deviance of hidden cells with it, as a share of their mass; NaN if it was given.

    invariants_ : LinearSystem or None
        Equations of a table, then what was asked for.

    n_iter_ : int
        Most Newton steps that a row of ``fit`` took; 1 for a closed form.

    input_shape_ : tuple of int
        Shape of a row.

    n_features_in_ : int
        Length of the first axis of a row.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, if all are strings.

    See Also
    --------
    sklearn_pnl.geometry.complete : The fit, with its certificates.
    ManyBodyProjector : Codes of complete rows.
    find_invariants : The search for equations.

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

    _parameter_constraints: dict = {
        "order": [*ORDER, StrOptions({"auto"}), None],
        "reshaper": [HasMethods(["fit_transform", "inverse_transform"]), None],
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), None],
        "invariants": [StrOptions({"auto"}), *CONSTRAINTS, None],
        "constraints": [*CONSTRAINTS, None],
        "alpha": [
            Interval(Real, 0, None, closed="left"),
            StrOptions({"auto"}),
            "array-like",
        ],
        "smooth": ["array-like"],
        **{
            name: CODEC_CONSTRAINTS[name]
            for name in ("base", "poset", "offset", "tol", "max_iter", "n_jobs")
        },
    }

    def __init__(
        self,
        order: int | Sequence | Literal["auto"] | None = "auto",
        *,
        base: ArrayLike | None = None,
        poset: Any = None,
        reshaper: Any = None,
        n_neighbors: int | None = None,
        invariants: Any = "auto",
        constraints: Any = None,
        offset: float = 0.0,
        alpha: float | ArrayLike | Literal["auto"] = 1e-4,
        smooth: Sequence[int] = (),
        tol: float = 1e-6,
        max_iter: int = 100,
        n_jobs: int | None = None,
    ) -> None:
        self.order = order
        self.base = base
        self.poset = poset
        self.reshaper = reshaper
        self.n_neighbors = n_neighbors
        self.invariants = invariants
        self.constraints = constraints
        self.offset = offset
        self.alpha = alpha
        self.smooth = smooth
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Learn equations and near rows, and fill the rows.

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
        self.fit_transform(X)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
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
        rows = self._checked(X, reset=True)
        self.order_ = self._resolve_order()
        self.alpha_, self.held_out_deviance_ = np.nan, np.nan
        self.poset_ = self.base_mask_ = self.invariants_ = None
        if self._is_table:
            self._learn_table(rows)
        else:
            self._learn_tensors(rows)
        filled, n_iter = self._fill(rows)
        self.n_iter_ = max(1, n_iter)
        return filled

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
        check_is_fitted(self)
        return self._fill(self._checked(X, reset=False))[0]

    @available_if(_is_flat)
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

    # --- what comes in ------------------------------------------------------------

    def _checked(self, X, *, reset):
        """Rows (n, *shape) in double precision, checked."""
        X = validate_data(
            self,
            X,
            reset=reset,
            dtype=np.float64,
            allow_nd=True,
            ensure_all_finite="allow-nan",
        )
        if reset:
            self.input_shape_ = X.shape[1:]
        check_shape(self, X)
        return X

    @property
    def _is_stated(self):
        """Whether some structure of the rows is given."""
        given = self.base, self.poset, self.reshaper
        return any(one is not None for one in given)

    def _resolve_order(self):
        if not isinstance(self.order, str):
            return self.order
        d = len(self.input_shape_)
        if d == 1:
            return 1 if self._is_stated else None
        return 1 if self._is_stated else min(2, d - 1)

    @property
    def _is_table(self):
        return self.order_ is None and self.base is None

    def _fill(self, rows):
        """Filled rows, and the most Newton steps."""
        flat = rows.reshape(len(rows), -1)
        missing = np.isnan(flat)
        filled, n_iter = flat.copy(), 0
        todo = np.flatnonzero(missing.any(axis=1))
        if not self._is_table:
            self._check_tensors(flat, missing)
        if len(todo):
            fill = self._fill_table if self._is_table else self._fill_tensors
            found, n_iter = fill(flat[todo], missing[todo], todo)
            filled[todo] = np.where(missing[todo], found, flat[todo])
        return filled.reshape(rows.shape), n_iter

    # --- near rows ----------------------------------------------------------------

    def _learn_near_rows(self, flat):
        """Search for rows near in columns divided by their range."""
        # Columns without a value have no ends.
        with unheard():
            ends = np.nanmin(flat, axis=0), np.nanmax(flat, axis=0)
        self._ends = tuple(np.nan_to_num(end) for end in ends)
        k = min(self.n_neighbors or _NEIGHBORS, len(flat))
        self._near = KNNImputer(n_neighbors=k, keep_empty_features=True)
        # An array, also where data frames are the global output.
        self._near.set_output(transform="default")
        self._near.fit((flat - self._ends[0]) / self._unit)

    @property
    def _unit(self):
        ranges = self._ends[1] - self._ends[0]
        return np.where(ranges > 0, ranges, 1.0)

    def _guess(self, flat):
        """Rows (n, D) filled with means of near rows."""
        near = self._near.transform((flat - self._ends[0]) / self._unit)
        return near * self._unit + self._ends[0]

    # --- tables -------------------------------------------------------------------

    def _learn_table(self, rows):
        flat = rows.reshape(len(rows), -1)
        names = feature_names(self)
        names = [f"x{j}" for j in range(flat.shape[1])] if names is None else names
        empty = np.flatnonzero(np.isnan(flat).all(axis=0))
        if len(empty):
            raise ValueError(
                f"Column {names[empty[0]]!r} is missing in all rows: nothing is known "
                "of it. Leave it out."
            )
        self._learn_near_rows(flat)
        system = self._equations(flat, names)
        if self.constraints is not None:
            asked = self._collected(self.constraints, names)
            system = system.and_also(asked)
        self.invariants_ = system

    def _equations(self, flat, names):
        """Equations of the complete rows, or those given."""
        if self.invariants is None:
            return LinearSystem.none(tuple(names))
        if not isinstance(self.invariants, str):
            return self._collected(self.invariants, names)
        whole = flat[~np.isnan(flat).any(axis=1)]
        if not len(whole):
            note = "No row is complete: equations were not looked for. Give them as "
            return LinearSystem.none(tuple(names), f"{note}invariants.")
        found = found_in(read_table(_Plain(), whole)[0], tuple(names))
        # A column that is constant in complete rows need not be in others.
        return found.part(np.count_nonzero(found.coefficients, axis=1) > 1)

    def _collected(self, given, names):
        ranges = self._ends[1] - self._ends[0]
        places = partial(_place, names=list(names), shape=self.input_shape_)
        system = collect_constraints(given, tuple(names), ranges, places)
        if len(system.lower) > 1:
            raise ValueError(
                "Constraints of an imputer are the same for all rows; give numbers, "
                "not arrays of one a row."
            )
        return system

    def _fill_table(self, flat, missing, numbers):
        lost = np.flatnonzero(missing.all(axis=1))
        if len(lost):
            warn_left_missing(
                f"Row {numbers[lost[0]]} has no observed value ({len(lost)} such rows):"
                " means of the columns are all that is known of it."
            )
        guess = self._guess(flat)
        if not len(self.invariants_):
            return guess, 1
        found, missed = fill_to(
            self.invariants_, np.where(missing, guess, flat), missing, self._ends
        )
        if missed.any():
            k, n = int(missed.any(axis=0).argmax()), int(missed.any(axis=1).sum())
            warn_missed(
                f"{type(self).__name__}: {n} of {len(flat)} rows with missing values "
                f"cannot have {self.invariants_.descriptions[k]!r} with what is "
                f"observed; the first is row {numbers[missed.any(axis=1).argmax()]}."
            )
        return found, 1

    # --- tensors ------------------------------------------------------------------

    def _learn_tensors(self, rows):
        flat = rows.reshape(len(rows), -1)
        self._check_tensors(flat, np.isnan(flat))
        self._lay_out = LayOut.made(
            self.reshaper, self.poset, self.input_shape_, reduced=False
        )
        self._lay_out.fit(np.nan_to_num(flat))
        self.poset_ = self._lay_out.poset
        self.base_mask_ = free_mask(self.poset_, self.order_, self.base)
        smooth_modes(self.poset_, self.smooth)
        self._near = None
        if self.n_neighbors is not None:
            self._learn_near_rows(flat)
        self.alpha_ = self.alpha
        if isinstance(self.alpha, str) or np.ndim(self.alpha):
            self._choose_alpha(flat[:_ROWS_HIDDEN])

    def _check_tensors(self, flat, missing):
        """Refuse what is no measure, or holds nothing to fit."""
        negative = np.flatnonzero((flat < 0).any(axis=1))
        if len(negative):
            row = int(negative[0])
            raise ValueError(
                f"Negative values in data passed to {type(self).__name__}; the first "
                f"is {flat[row][flat[row] < 0][0]:g} in row {row}. Cells are read as "
                "unnormalised probabilities: order=None takes rows for those of a "
                "table."
            )
        check_observed(flat, self.offset)

    def _cells(self, flat):
        """Cells (n, D) on the poset, NaN where missing."""
        missing = np.isnan(flat)
        cells = self._lay_out.forward(np.where(missing, 0.0, flat))
        seen = self._lay_out.forward(1.0 - missing) == 1
        cells = np.where(seen, cells + self.offset, np.nan)
        if self.poset_.added_bottom:
            cells = np.column_stack([np.full(len(cells), np.nan), cells])
        return cells

    def _fill_tensors(self, flat, missing, numbers):
        cells = self._cells(flat)
        measure, residual, n_iter = self._models(cells, flat, self.alpha_)
        warn_unconverged(type(self).__name__, residual, self.tol, self.max_iter)
        measure = measure[:, int(self.poset_.added_bottom) :] - self.offset
        found = self._lay_out.back(np.maximum(measure, 0.0))
        left = missing & np.isnan(found)
        if left.any():
            row, cell = map(int, np.argwhere(left)[0])
            warn_left_missing(
                f"{type(self).__name__}: {left.sum()} of {missing.sum()} missing cells "
                "are not determined by the observed ones and stay missing; the first "
                f"is cell {cell} of row {numbers[row]}. A smaller order or alpha > 0 "
                "gives them a value."
            )
        return found, int(n_iter.max(initial=1))

    def _models(self, cells, flat, alpha):
        """Models (n, D) of cells with NaN, their residuals and steps."""
        reference = np.ones_like(cells)
        if self._near is not None:
            near = self._guess(flat)
            near += _LEAST_REFERENCE * near.mean(axis=1, keepdims=True)
            reference[:, int(self.poset_.added_bottom) :] = self._lay_out.forward(near)
        fit = partial(
            _model_block,
            poset=self.poset_,
            matched=self.base_mask_,
            ridge=alpha,
            smooth=self.smooth,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        step = max(1, _BLOCK_CELLS // cells.shape[1])
        return map_blocks(fit, cells, reference, step=step, n_jobs=self.n_jobs)

    def _choose_alpha(self, flat):
        """The ridge with the least deviance of hidden cells."""
        alphas = _ALPHAS if isinstance(self.alpha, str) else self.alpha
        alphas = sorted({float(alpha) for alpha in alphas}, reverse=True)
        hidden = np.random.default_rng(0).random(flat.shape) < _HIDDEN
        hidden &= ~np.isnan(flat)
        shown = np.where(hidden, np.nan, flat)
        some = np.nansum(shown, axis=1) > 0
        if not (hidden[some].any() and min(alphas) >= 0):
            raise ValueError(
                "alpha is chosen by hidden cells, beside observed ones in a row; with "
                f"n_features={flat.shape[1]} there are none, or alpha is negative. "
                "Give one alpha."
            )
        cells, shown = self._cells(shown[some]), shown[some]
        truth = np.where(np.isnan(cells), self._cells(flat[some]), np.nan)
        scores = []
        for alpha in alphas:
            model, _, _ = self._models(cells, shown, alpha)
            scores.append(_deviance(truth, model))
        best = int(np.argmin(scores))
        self.alpha_, self.held_out_deviance_ = alphas[best], scores[best]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        stated = self._is_stated or self.order not in (None, "auto")
        tags.input_tags.positive_only = stated
        return tags


class _Plain(BaseEstimator):
    """What a table of numbers is read for."""

    categorical_features = None


def _place(key, whom, names, shape):
    return column_of(key, whom, names, shape)


def _model_block(cells, reference, **settings):
    found = complete(
        cells.reshape(-1, *settings["poset"].shape),
        reference=reference.reshape(-1, *settings["poset"].shape),
        **settings,
    )
    return found.measure.reshape(cells.shape), found.residual, found.n_iter


def _deviance(truth, model):
    """Poisson deviance of the cells of ``truth`` that are not NaN, for a mass of 1."""
    some = ~np.isnan(truth)
    m, q = truth[some], model[some]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = q - m + np.where(m > 0, m * np.log(m / q), 0.0)
    terms = np.where(np.isnan(terms), np.inf, terms)
    return float(2 * terms.sum() / m.sum()) if m.sum() else np.inf
