"""One log-linear model of a table of counts, as an estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils._optional_dependencies import check_pandas_support
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from ._drawing.coding import free_mask, lay_out
from ._runtime.docs import with_params_of
from ._runtime.typing import Seed
from ._runtime.validation import (
    all_or_nothing,
    as_random_state,
    check_count,
    check_measures,
    check_rows,
    tells_where,
    warn_unconverged,
    warn_user,
)
from .geometry import (
    InteractionTests,
    PosetProtocol,
    deviance_tests,
    goodness_of_fit,
    kl_divergence,
    mixed_projection,
    score_tests,
    search_interactions,
    theta_with_errors,
)
from .geometry.counts import check_reference
from .geometry.fit import p_values
from .many_body import FIT_CONSTRAINTS, ORDER, ManyBodyProjector


@dataclass(frozen=True, kw_only=True)
class DevianceBootstrap:
    """What ``G^2`` is for tables drawn from the fitted model.

    Attributes
    ----------
    deviance : float
        ``G^2`` of the counts.
    replicates : ndarray of shape (n_replicates,)
        ``G^2`` of drawn tables, each with a fit of its own.

    See Also
    --------
    LogLinearModel : One log-linear model of a table of counts.

    Examples
    --------
    >>> from sklearn_pnl import LogLinearModel
    >>> model = LogLinearModel(order=1).fit([[[20, 10], [15, 30]]])
    >>> print(model.bootstrap(999, random_state=0))
    G^2 8.1614 of the counts; 999 drawn tables: mean 1.013, p 0.007
    """

    deviance: float
    replicates: np.ndarray

    @property
    def p_value(self) -> float:
        """Share of tables, the counts among them, with a ``G^2`` as large."""
        # What differs by rounding alone is as large.
        larger = np.sum(self.replicates >= self.deviance * (1 - 1e-9) - 1e-7)
        return float((1 + larger) / (1 + len(self.replicates)))

    def __str__(self):
        return (
            f"G^2 {self.deviance:.4f} of the counts; {len(self.replicates)} drawn "
            f"tables: mean {self.replicates.mean():.4g}, p {self.p_value:.4g}"
        )


@tells_where()
@with_params_of(ManyBodyProjector)
@dataclass(eq=False, repr=False)
class LogLinearModel(DensityMixin, BaseEstimator):
    r"""Fit one log-linear model to the sum of the rows, each a table of counts.

    With ``n`` the sum of the rows and ``N`` its total, finds

    .. math:: q = \arg\min_q KL(n / N, q) \quad\text{subject to}\quad
              \theta_{q/r}(x) = 0 \text{ for all } x \text{ of order} > \ell ,

    the maximum-likelihood estimate, as R's ``loglin`` does; the reference ``r`` is 1
    unless given. ``score`` is the mean
    log-likelihood of counts held out, so that
    :class:`~sklearn.model_selection.GridSearchCV` over ``order`` chooses a model.

    Parameters
    ----------
    order : int, list of tuple of int, "bic" or "aic", default=1
        Largest order ell that is kept; for a tensor also the interactions kept, as
        tuples of modes, closed downward. "bic" and "aic" search for them, from order 1.

    base : array-like, default=None
        The free coordinates given directly, instead of ``order``; as in
        :class:`ManyBodyProjector`.

    poset : TensorPoset or Poset, default=None
        The order between the cells. None is the tensor of the rows' own shape. Rows may
        stay flat: a feature a cell, in the order of ``ravel`` for a tensor.

    reference : array-like of shape ``poset_.shape``, default=None
        What cells are expected in proportion to, such as exposures; not negative. Those
        where it is 0 (or False) cannot occur: structural zeros, which degrees of
        freedom do not count. None is 1.

    offset : float, default=0
        Added to every cell of the sum that can occur. Without it, cells that the model
        cannot fill have probability 0, and held-out counts there a log-likelihood of
        -inf.

    tol : float, default=1e-10
        Wanted ``max |eta_q - eta_p|`` over the base.

    max_iter : int, default=200
        Most Newton steps.

    Attributes
    ----------
    poset_
        As in :class:`ManyBodyProjector`.

    base_mask_ : ndarray of bool of shape ``poset_.shape``
        Elements whose theta is free, without the bottom.

    order_ : int, list or None
        The interactions kept; None where ``base`` is no set of interactions.

    counts_ : ndarray of shape ``poset_.shape``
        The sum of the rows, with the offset.

    statistics_ : GoodnessOfFit
        ``G^2``, ``X^2``, degrees of freedom, AIC and BIC; ``print`` shows them.

    expected_ : ndarray of shape ``poset_.shape``
        Expected counts.

    theta_ : ndarray of shape (n_free,)
        Free coordinates in the order of the cells: of level i of a mode against level
        i - 1. nan where cells that cannot occur or be filled leave it open.

    standard_errors_ : ndarray of shape (n_free,)
        Of ``theta_``, by the inverse Fisher information.

    n_params_ : int
        Number of free coordinates, less those that cells that cannot occur leave open.

    n_iter_ : int
        Newton steps; a closed form counts as 1.

    input_shape_, n_features_in_, feature_names_in_
        As in :class:`ManyBodyProjector`.

    See Also
    --------
    ManyBodyProjector : A model of each row.
    sklearn_pnl.geometry.goodness_of_fit : The same of arrays, many tables at once.
    sklearn_pnl.geometry.search_interactions : The search behind "bic".

    References
    ----------
    A. Agresti, "Categorical Data Analysis", Wiley, 3rd edition 2013, chapters 9, 10.

    Examples
    --------
    Use of alcohol, cigarettes and marijuana (modes) by 2,276 pupils (Agresti, 2013):

    >>> from sklearn_pnl import LogLinearModel
    >>> counts = [[[911, 538], [44, 456]], [[3, 43], [2, 279]]]
    >>> model = LogLinearModel(order=2).fit([counts])
    >>> print(model.statistics_)
    6 parameters, 2276 counts, 8 cells
           statistic    df           p
    G^2       0.3740     1      0.5408
    X^2       0.4011     1      0.5265
    AIC 6626.53, BIC 6660.91
    >>> round(model.score([counts]), 4)
    -1.4531
    """

    order: int | Sequence | Literal["bic", "aic"] = 1
    _: KW_ONLY
    base: ArrayLike | None = None
    poset: PosetProtocol | None = None
    reference: ArrayLike | None = None
    offset: float = 0.0
    tol: float = 1e-10
    max_iter: int = 200

    _parameter_constraints: ClassVar[dict] = {
        "order": [*ORDER, StrOptions({"bic", "aic"})],
        "reference": ["array-like", None],
        **FIT_CONSTRAINTS,
    }

    @all_or_nothing
    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Fit the model to the sum of the rows.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Counts, not negative.
        y : None
            Ignored.

        Returns
        -------
        self : LogLinearModel
        """
        rows = self._rows(X, reset=True)
        shares = np.any(rows % 1) and np.allclose(rows.sum(axis=1), 1, rtol=1e-6)
        self.poset_ = lay_out(self.poset, self.input_shape_)
        if self.poset_.added_bottom:
            raise ValueError(
                f"{self.poset_!r} has a bottom that was added, where nothing is "
                "counted. Give a poset with an element for each cell."
            )
        self.counts_ = rows.sum(axis=0).reshape(self.poset_.shape)
        reference = check_reference(self.reference, self.counts_, self.poset_)
        self.counts_ += self.offset * (reference is None or reference > 0)
        self._reference, order = reference, self.order
        if self.base is None and isinstance(order, str):
            found = search_interactions(
                self.counts_, self.poset_, criterion=order, **self._settings
            )
            order = found.order or 1
        mask = free_mask(self.poset_, order, self.base)
        fit = goodness_of_fit(self.counts_, self.poset_, mask, **self._settings)
        warn_unconverged(type(self).__name__, fit.residual, self.tol, self.max_iter)
        if shares:
            warn_user(
                "Each row sums to 1: these are shares, no counts, and the statistics "
                "are of 1 case a row. Multiply them by the number of cases."
            )
        if len(rows) > 1 == len(self.input_shape_) and fit.dof == 0:
            warn_user(
                f"X has rows of one axis, {len(rows)} of them, which are summed, and "
                "the model has a parameter for each cell: it fits any counts. A table "
                "is one row: fit(X[None]), or fit([X])."
            )
        self.base_mask_, self.order_ = mask, self.poset_.family(mask)
        self.statistics_, self.expected_ = fit, fit.expected
        self.n_params_, self.n_iter_ = fit.n_params, max(1, int(fit.n_iter))
        self.theta_, self.standard_errors_ = theta_with_errors(
            fit.expected / fit.total, fit.total, self.poset_, mask, reference
        )
        return self

    def score_samples(self, X: ArrayLike) -> NDArray:
        """Log-likelihood of each row, ``sum n log q`` in nats.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Counts, not negative.

        Returns
        -------
        log_likelihood : ndarray of shape (n,)
            Without the multinomial coefficient. -inf where a row has counts in a cell
            of probability 0.
        """
        check_is_fitted(self)
        q = self.expected_.reshape(-1) / self.statistics_.total
        return xlogy(self._rows(X, reset=False), q).sum(axis=1)

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Mean log-likelihood of a count: that of all rows over the sum of all rows.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Counts, not negative.
        y : None
            Ignored.

        Returns
        -------
        score : float, in nats per count
        """
        total = self._rows(X, reset=False).sum()
        if total == 0:
            raise ValueError("X has no counts: there is nothing to score.")
        return float(self.score_samples(X).sum() / total)

    def bootstrap(
        self, n_replicates: int = 999, random_state: Seed = None
    ) -> DevianceBootstrap:
        """Parametric bootstrap of ``G^2``: no chi-square, whatever the counts.

        Tables of as many counts are drawn from the fitted model, and all of them fitted
        in one batch.

        Parameters
        ----------
        n_replicates : int, default=999
            Tables to draw.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the draws.

        Returns
        -------
        DevianceBootstrap
        """
        check_is_fitted(self)
        n_replicates = check_count("n_replicates", n_replicates)
        total = self.statistics_.total
        if total != round(total) or total >= 2**63:
            raise ValueError(
                f"The counts sum to {total:g}: tables are drawn for whole numbers of "
                "counts below 2**63. Fit counts that are not weighted, with an offset "
                "of 0."
            )
        p = self.expected_.reshape(-1) / total
        drawn = as_random_state(random_state).multinomial(
            int(total), p / p.sum(), n_replicates
        )
        drawn, poset = drawn.reshape(-1, *self.poset_.shape) / total, self.poset_
        fits = mixed_projection(
            drawn, matched=self.base_mask_, poset=poset, **self._settings
        )
        warn_unconverged(type(self).__name__, fits.residual, self.tol, self.max_iter)
        lost = kl_divergence(drawn, fits.prob, axis=tuple(range(1, drawn.ndim)))
        return DevianceBootstrap(
            deviance=float(self.statistics_.deviance), replicates=2 * total * lost
        )

    def score_tests(self, candidates: list | None = None) -> InteractionTests:
        """Rao's tests of terms that the model lacks.

        Parameters
        ----------
        candidates : list, default=None
            As in :func:`~sklearn_pnl.geometry.score_tests`.

        Returns
        -------
        InteractionTests
        """
        check_is_fitted(self)
        return score_tests(
            self.counts_, self.poset_, self.base_mask_, candidates, **self._settings
        )

    def deviance_tests(
        self, levels: Literal["interactions", "orders"] | list = "interactions"
    ) -> InteractionTests:
        """How ``G^2`` of the uniform distribution divides among terms.

        Parameters
        ----------
        levels : {"interactions", "orders"} or list, default="interactions"
            As in :func:`~sklearn_pnl.geometry.deviance_tests`.

        Returns
        -------
        InteractionTests
        """
        check_is_fitted(self)
        return deviance_tests(self.counts_, self.poset_, levels, **self._settings)

    def to_frame(self, by: Literal["parameter", "cell"] = "parameter") -> Any:
        """Parameters or cells as a data frame.

        Parameters
        ----------
        by : {"parameter", "cell"}, default="parameter"
            A row for each free coordinate, with its standard error, z and p by the
            normal distribution; or for each cell, with its count, expected count and
            Pearson residual ``(n - N q) / sqrt(N q)``.

        Returns
        -------
        frame : pandas.DataFrame
            By indices of cells.
        """
        if by not in ("parameter", "cell"):
            raise ValueError(f"by must be 'parameter' or 'cell'; got {by!r}.")
        check_is_fitted(self)
        pandas = check_pandas_support("LogLinearModel.to_frame")
        if by == "parameter":
            z = self.theta_ / self.standard_errors_
            columns = {"theta": self.theta_, "standard error": self.standard_errors_,
                       "z": z, "p": p_values(z**2, 1)}  # fmt: skip
            is_free = self.base_mask_.reshape(-1)
            return pandas.DataFrame(columns, self._cells(pandas)[is_free])
        counts, expected = self.counts_.reshape(-1), self.expected_.reshape(-1)
        residual = np.zeros_like(counts)
        np.divide(counts - expected, np.sqrt(expected), residual, where=expected > 0)
        columns = {"count": counts, "expected": expected, "residual": residual}
        return pandas.DataFrame(columns, self._cells(pandas))

    @property
    def _settings(self):
        return {
            "reference": self._reference,
            "tol": self.tol,
            "max_iter": self.max_iter,
        }

    def _cells(self, pandas):
        """An index of the cells: a level for each mode of a tensor."""
        shape = self.poset_.shape
        if len(shape) == 1:
            return pandas.RangeIndex(*shape, name="cell")
        names = [f"mode {k}" for k in range(len(shape))]
        return pandas.MultiIndex.from_product(map(range, shape), names=names)

    def _rows(self, X, reset):
        """Rows of counts, flat."""
        rows = check_rows(self, X, reset=reset)
        advice = "counts are 0 or more; mend or drop the row"
        check_measures(rows, self, None, advice=advice)
        if rows.max() > np.finfo(float).max / rows.size:
            raise ValueError("The sum of X overflows; divide it by a constant first.")
        return rows.reshape(len(rows), -1).astype(np.float64, copy=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.three_d_array = True
        return tags
