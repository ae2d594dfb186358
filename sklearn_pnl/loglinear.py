"""Fit one log-linear model to a table of counts.

:class:`LogLinearModel` is the estimator for the functions of
:mod:`sklearn_pnl.geometry` that fit, test and describe log-linear models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils._optional_dependencies import check_pandas_support
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from ._utils.threads import one_blas_thread
from ._utils.validation import all_or_nothing, check_measures, check_rows
from ._utils.warnings import warn_unconverged, warn_user
from .encoding.codec import free_mask, lay_out
from .encoding.manifolds import ORDER
from .geometry import (
    InteractionTests,
    PosetProtocol,
    TensorPoset,
    deviance_tests,
    goodness_of_fit,
    select_interactions,
    theta_with_errors,
)
from .geometry.contingency.fit import check_reference, p_values
from .projectors import FIT_CONSTRAINTS


class LogLinearModel(DensityMixin, BaseEstimator):
    r"""Fit one log-linear model to the sum of the rows, each a table of counts.

    Let ``n`` be the sum of the rows and ``N`` its total. The model solves

    .. math:: q = \arg\min_q KL(n / N, q) \quad\text{subject to}\quad
              \theta_{q/r}(x) = 0 \text{ for all } x \text{ of order} > \ell .

    This is the maximum-likelihood estimate, as in R's ``loglin``. The reference ``r``
    is 1 unless it is given. ``score`` returns the mean log-likelihood of held-out
    counts. You can therefore choose ``order`` with
    :class:`~sklearn.model_selection.GridSearchCV`.

    Parameters
    ----------
    order : int, list of tuple of int or "bic", default=1
        Largest order ell of the interactions in the model. A larger order fits the
        counts more closely. For tensors, also a list of interactions as tuples of
        modes; all subsets of an interaction are included. The default, 1, is the model
        of independence. "bic" chooses interactions of two modes of a tensor by a
        stepwise search for the smallest BIC, see
        :func:`~sklearn_pnl.geometry.select_interactions`.

    base : array-like, default=None
        Free coordinates of the model, instead of ``order``; see
        :class:`ManyBodyProjector`.

    poset : TensorPoset or Poset, default=None
        Order between the cells. None uses the tensor with the shape of a row. Rows can
        be flat, with one feature per cell; for a tensor, the features have the order of
        ``ravel``.

    reference : array-like of shape ``poset_.shape``, default=None
        Non-negative measure to which expected counts are proportional, such as
        exposures. A cell with reference 0 (or False) is a structural zero: it cannot
        have counts, and the degrees of freedom do not include it. None uses 1 for all
        cells.

    offset : float, default=0
        Value that is added to the sum of the rows in every cell that is not a
        structural zero. Without an offset, a cell can have probability 0, and a
        held-out count in the cell then has log-likelihood -inf.

    tol : float, default=1e-10
        Tolerance of ``max |eta_q - eta_p|`` over the base.

    max_iter : int, default=200
        Maximum number of Newton steps.

    Attributes
    ----------
    poset_ : TensorPoset or Poset
        The poset of the fit.

    base_mask_ : ndarray of bool of shape ``poset_.shape``
        Mask of the elements whose theta is free, without the bottom.

    order_ : int, list or None
        The interactions in the model; None if ``base`` is not a set of interactions.

    counts_ : ndarray of shape ``poset_.shape``
        The sum of the rows, with the offset.

    statistics_ : GoodnessOfFit
        ``G^2``, ``X^2``, degrees of freedom, AIC and BIC; ``print`` shows them.

    expected_ : ndarray of shape ``poset_.shape``
        Expected counts.

    theta_ : ndarray of shape (n_free,)
        Free coordinates in the order of the cells. A coordinate compares level i of a
        mode with level i - 1. It is nan if structural zeros or cells with expected
        count 0 leave it undetermined.

    standard_errors_ : ndarray of shape (n_free,)
        Standard errors of ``theta_`` from the inverse Fisher information.

    n_params_ : int
        Number of free coordinates, without the coordinates that structural zeros leave
        undetermined.

    n_iter_ : int
        Number of Newton steps; 1 for a closed form.

    input_shape_ : tuple of int
        Shape of a row.

    n_features_in_ : int
        Length of the first axis of a row.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, if all are strings.

    See Also
    --------
    ManyBodyProjector : Fit a model to each row.
    sklearn_pnl.geometry.goodness_of_fit : Fit a model to an array of counts.

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

    _parameter_constraints: ClassVar[dict] = {
        "order": [*ORDER, StrOptions({"bic"})],
        "reference": ["array-like", None],
        **FIT_CONSTRAINTS,
    }

    def __init__(
        self,
        order: int | Sequence | Literal["bic"] = 1,
        *,
        base: ArrayLike | None = None,
        poset: PosetProtocol | None = None,
        reference: ArrayLike | None = None,
        offset: float = 0.0,
        tol: float = 1e-10,
        max_iter: int = 200,
    ) -> None:
        self.order = order
        self.base = base
        self.poset = poset
        self.reference = reference
        self.offset = offset
        self.tol = tol
        self.max_iter = max_iter

    @all_or_nothing
    @one_blas_thread()
    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Fit the model to the sum of the rows.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative counts.
        y : None
            Ignored.

        Returns
        -------
        self : LogLinearModel
        """
        rows = self._rows(X, reset=True)
        shares = np.any(rows % 1) and np.allclose(rows.sum(axis=1), 1, rtol=1e-6)
        self.poset_ = lay_out(self.poset, self.input_shape_)
        self.counts_ = rows.sum(axis=0).reshape(self.poset_.shape)
        reference = check_reference(self.reference, self.counts_, self.poset_)
        self.counts_ += self.offset * (reference is None or reference > 0)
        self._reference = reference
        mask = free_mask(self.poset_, self._chosen_order(), self.base)
        fit = goodness_of_fit(self.counts_, self.poset_, mask, **self._settings)
        warn_unconverged(type(self).__name__, fit.residual, self.tol, self.max_iter)
        if shares:
            warn_user(
                "Each row of X sums to 1, so that X contains shares and not counts. "
                "The statistics assume one case per row. Multiply X by the number of "
                "cases."
            )
        if len(rows) > 1 == len(self.input_shape_) and fit.dof == 0:
            warn_user(
                f"X has {len(rows)} rows with one axis. The rows are summed, and the "
                "model with one parameter per cell fits any counts. If X is a single "
                "table, call fit(X[None]) or fit([X])."
            )
        self.base_mask_, self.order_ = mask, self.poset_.family(mask)
        self.statistics_, self.expected_ = fit, fit.expected
        self.n_params_, self.n_iter_ = fit.n_params, max(1, int(fit.n_iter))
        self.theta_, self.standard_errors_ = theta_with_errors(
            fit.expected / fit.total, fit.total, self.poset_, mask, reference
        )
        return self

    @one_blas_thread()
    def score_samples(self, X: ArrayLike) -> NDArray:
        """Compute the log-likelihood of each row, ``sum n log q`` in nats.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative counts.

        Returns
        -------
        log_likelihood : ndarray of shape (n,)
            Log-likelihoods without the multinomial coefficient. The value is -inf if a
            row has counts in a cell with probability 0.
        """
        rows = self._rows(X, reset=False)
        q = self.expected_.reshape(-1) / self.statistics_.total
        return xlogy(rows, q).sum(axis=1)

    @one_blas_thread()
    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Compute the mean log-likelihood per count over all rows.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative counts.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Mean log-likelihood in nats per count.
        """
        return float(self.score_samples(X).sum() / self._rows(X, reset=False).sum())

    @one_blas_thread()
    def deviance_tests(
        self, levels: Literal["interactions", "orders"] | list = "interactions"
    ) -> InteractionTests:
        """Decompose ``G^2`` of the uniform distribution by terms.

        Parameters
        ----------
        levels : {"interactions", "orders"} or list, default="interactions"
            Terms of the decomposition; see
            :func:`~sklearn_pnl.geometry.deviance_tests`.

        Returns
        -------
        InteractionTests
        """
        check_is_fitted(self)
        return deviance_tests(self.counts_, self.poset_, levels, **self._settings)

    def to_frame(self, by: Literal["parameter", "cell"] = "parameter") -> Any:
        """Return the parameters or the cells as a data frame.

        Parameters
        ----------
        by : {"parameter", "cell"}, default="parameter"
            "parameter" returns one row per free coordinate, with its standard error, z
            and p from the normal distribution. "cell" returns one row per cell, with
            its count, expected count and Pearson residual ``(n - N q) / sqrt(N q)``.

        Returns
        -------
        frame : pandas.DataFrame
            The table, indexed by cells.
        """
        if by not in ("parameter", "cell"):
            raise ValueError(f"by must be 'parameter' or 'cell'; got {by!r}.")
        check_is_fitted(self)
        pandas = check_pandas_support("LogLinearModel.to_frame")
        if by == "parameter":
            theta, errors = self.theta_, self.standard_errors_
            z = theta / errors
            p = p_values(z**2, 1)
            columns = {"theta": theta, "standard error": errors, "z": z, "p": p}
            is_free = self.base_mask_.reshape(-1)
            return pandas.DataFrame(columns, self._cells(pandas)[is_free])
        counts, expected = self.counts_.reshape(-1), self.expected_.reshape(-1)
        residual = np.zeros_like(counts)
        np.divide(counts - expected, np.sqrt(expected), residual, where=expected > 0)
        columns = {"count": counts, "expected": expected, "residual": residual}
        return pandas.DataFrame(columns, self._cells(pandas))

    def _chosen_order(self):
        """Return ``order``, or the interactions with the smallest BIC."""
        if not isinstance(self.order, str) or self.base is not None:
            return self.order
        if not isinstance(self.poset_, TensorPoset):
            raise ValueError(
                f"order='bic' selects sets of modes of a tensor, but the poset is "
                f"{self.poset_!r}. Set an integer order, or base."
            )
        counts, reference = self.counts_[None], self._reference
        return select_interactions(counts, reference=reference).interactions

    @property
    def _settings(self):
        numerics = {"tol": self.tol, "max_iter": self.max_iter}
        return {"reference": self._reference, **numerics}

    def _cells(self, pandas):
        """Return an index of the cells, with one level for each mode of a tensor."""
        shape = self.poset_.shape
        if len(shape) == 1:
            return pandas.RangeIndex(*shape, name="cell")
        names = [f"mode {k}" for k in range(len(shape))]
        return pandas.MultiIndex.from_product(map(range, shape), names=names)

    def _rows(self, X, reset):
        """Return validated rows of counts (n, D)."""
        unknown = (
            "Give each cell a count. For cells that cannot occur, use 0 in X and in "
            "reference=. For counts that were not observed, fit ManyBodyImputer."
        )
        rows = check_rows(self, X, reset=reset, advice=unknown)
        advice = "counts must not be negative. Correct or drop the row"
        check_measures(rows, self, None, advice=advice)
        return rows.reshape(len(rows), -1).astype(np.float64, copy=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.three_d_array = True
        return tags
