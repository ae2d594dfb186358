"""Generate new rows that resemble a set of rows, by lines or by codes.

:class:`PNLAugmenter` reads the rows as a table, finds the relations between its
columns, and fits a method (:class:`Lines` or :class:`Codes`). The samplers fit an
augmenter for each class, or for all rows of a regression problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from numbers import Integral
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from ._utils.threads import limited, one_blas_thread
from ._utils.typing import Rows, Seed
from ._utils.validation import (
    COUNT,
    NOT_NEGATIVE,
    ObjectsByName,
    all_or_nothing,
    as_random_state,
    check_count,
    stays_on_device,
)
from .columns.constraints import CONSTRAINTS, Constraint, LinearConstraints
from .columns.relations import ColumnRelations, find_relations
from .columns.value_support import ValueSupport
from .frames import read_table
from .methods.codes import Codes, OrderLike, SampledCodes
from .methods.device_rows import fit_on_device
from .methods.lines import Lines
from .methods.sampling import FittedRows, fit_rows

_METHODS = {"lines": Lines, "codes": Codes, "paper": Codes.paper}


MethodLike: TypeAlias = Literal["auto", "lines", "codes", "paper"] | Lines | Codes


EqualitiesLike: TypeAlias = Literal["auto"] | Constraint | Sequence | None


class Augmentation(ObjectsByName, BaseEstimator):
    """Base class of the augmenter and the samplers: parameters and fitted relations."""

    _parameter_constraints: ClassVar[dict] = {
        "method": [StrOptions({"auto", *_METHODS}), Lines, Codes],
        "order": Codes._parameter_constraints["order"],
        "k_neighbors": [COUNT, StrOptions({"auto"})],
        "categorical_features": ["array-like", StrOptions({"auto"}), None],
        "value_support": [StrOptions({"auto"}), None],
        "extrapolation": [NOT_NEGATIVE, None],
        "equalities": [StrOptions({"auto"}), *CONSTRAINTS, None],
        "n_jobs": [Integral, None],
    }
    _objects: ClassVar[dict] = {
        "method": {
            "auto": "Codes() or method=Lines()",
            "lines": "Lines()",
            "codes": "Codes()",
            "paper": "Codes.paper()",
        }
    }
    # The methods that "auto" uses for tables and for rows with more than one axis.
    _auto: ClassVar[tuple] = Lines, Codes
    _relations: ColumnRelations
    _rows: FittedRows

    def _validate_params(self):
        """Validate the parameters, and reject an order that has no effect."""
        super()._validate_params()
        if self.order is not None and self.method not in ("auto", "codes", "paper"):
            raise ValueError(
                f"order={self.order!r} has no effect with method={self.method!r}. Set "
                "method=Codes(order=...), or method='codes'."
            )

    def _read(self, X):
        """Read rows of any container as a table of numbers and categories."""
        advice = "method='lines' supports missing cells."
        method = self._method()
        is_sparse = isinstance(method, Lines)
        return read_table(self, X, method.allows_missing or advice, is_sparse)

    def _method(self, is_table=True):
        """Return the unfitted method for tables, or for rows with more than one axis.

        ``fit`` rejects a method of the wrong kind.
        """
        if isinstance(self.method, BaseEstimator):
            return self.method
        lines, codes = self._auto
        by_name = {"auto": lines if is_table and self.order is None else codes}
        method = (by_name | _METHODS).get(str(self.method), Lines)()
        if self.order is not None and isinstance(method, Codes):
            method.order = self.order
        return method

    def _checked_method(self, is_table):
        """Return the unfitted method for rows, with validated parameters."""
        method = clone(self._method(is_table))
        method._validate_params()
        return method

    def _shared(self, method):
        """Return the parameters of an augmenter with the given method."""
        shared = {
            name: getattr(self, name) for name in Augmentation._parameter_constraints
        }
        # The method already contains the order.
        return shared | {"method": method, "order": None}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        method = self._method()
        tags.input_tags.positive_only = method.positive_only
        tags.input_tags.allow_nan = method.allows_missing
        return tags

    @property
    def equalities_(self) -> LinearConstraints:
        """Exact linear equalities of the training rows; ``print`` lists them."""
        check_is_fitted(self)
        if self._relations is None:
            n_columns = prod(self.input_shape_)
            return LinearConstraints.empty([f"x{j}" for j in range(n_columns)])
        return self._relations.public_equalities

    @property
    def inequalities_(self) -> list[tuple[Any, Any]]:
        """Pairs of columns whose first column is never greater than the second.

        Columns that are equal in all rows form no pair. If no cell is missing, pairs
        that follow from other pairs are left out.
        """
        check_is_fitted(self)
        return [] if self._relations is None else self._relations.named_inequalities

    @property
    def value_support_(self) -> ValueSupport | None:
        """Resolution and atoms of the columns; ``print`` lists them."""
        check_is_fitted(self)
        return None if self._relations is None else self._relations.columns.support


def is_for_lines(table):
    """Return whether ``method="auto"`` uses lines for the rows of a table."""
    # Codes do not support missing cells.
    return len(table.shape) == 1 or table.has_missing


_DROP = "Set infeasible='drop' to omit infeasible rows."


class PNLAugmenter(Augmentation):
    """Pseudo-nonlinear data augmentation of one set of rows.

    New rows of a table lie near straight lines between neighbouring rows
    (:class:`Lines`). They satisfy the detected linear equalities of the training rows
    (``equalities``), inequalities between two columns (``inequalities_``), ranges and
    types.
    Rows with more than one axis, such as images, are encoded with a log-linear model
    (:class:`Codes`). Set ``order`` to encode the rows of a table as well. For codes,
    ``fit`` encodes the rows by KL projection onto the base. ``sample`` draws new codes
    and decodes each of them by projection onto a local sub-manifold of neighbouring
    rows. The augmenter needs no labels. Use it for one class, for unlabelled data, or
    for rows that contain the target as a feature.

    With ``sklearn.set_config(array_api_dispatch=True)``, codes are computed on the
    device of the rows, such as a GPU with tensors of PyTorch, and new rows stay on that
    device. In this case, the augmenter does not search for relations between columns,
    even with "auto", and does not support constraints.

    Parameters
    ----------
    method : {"auto", "lines", "codes", "paper"}, Lines or Codes, default="auto"
        Method that makes new rows. "auto" is "lines" for tables, and for all rows if
        some cells are missing; otherwise "codes". See :class:`PNLSampler`.

    order : int, list of tuple of int, ForwardProjection, ManyBodyProjector or None, \
            default=None
        If set, new rows are decoded from codes of this order; see :class:`PNLSampler`.

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

    n_jobs : int, default=None
        Number of parallel jobs over blocks of rows; see :class:`PNLSampler`.

    Attributes
    ----------
    method_ : Lines or Codes
        The fitted method. A fitted :class:`Codes` has the poset, the base and the codes
        of the training rows.

    n_neighbors_ : int
        Number of neighbours used: ``k_neighbors``, limited by the number of training
        rows.

    equalities_ : LinearConstraints
        Exact linear equalities that the training rows satisfy; ``print`` lists them.

    inequalities_ : list of pairs
        Pairs of columns whose first column is never greater than the second; see
        :class:`PNLSampler`.

    value_support_ : ValueSupport or None
        Resolution and atoms of the columns; ``print`` lists them.

    integer_features_ : ndarray of int
        Indices of the columns that hold integers or booleans. New values are rounded.

    input_shape_ : tuple of int
        Shape of one row.

    n_features_in_ : int
        Length of the first axis of a row.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, if all are strings.

    See Also
    --------
    Lines, Codes : The two methods.
    PNLSampler : Over-sample minority classes with one augmenter for each class.
    PNLRegressionSampler : Add rows with numeric targets.
    compare_samples : Compare new rows with real rows.

    References
    ----------
    P. Hu, M. Sugiyama, "Pseudo-nonlinear data augmentation: a constrained energy
    minimization viewpoint", ICLR 2026, Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import PNLAugmenter
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> PNLAugmenter().fit(X).sample(3, random_state=0).shape
    (3, 4)
    """

    # check_rows accepts rows on a device for this class.
    _on_devices = True

    def __init__(
        self,
        method: MethodLike = "auto",
        *,
        order: OrderLike = None,
        k_neighbors: int | Literal["auto"] = "auto",
        categorical_features: Literal["auto"] | ArrayLike | None = "auto",
        value_support: Literal["auto"] | None = "auto",
        extrapolation: float | None = 0.0,
        equalities: EqualitiesLike = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.method = method
        self.order = order
        self.k_neighbors = k_neighbors
        self.categorical_features = categorical_features
        self.value_support = value_support
        self.extrapolation = extrapolation
        self.equalities = equalities
        self.n_jobs = n_jobs

    @all_or_nothing
    @one_blas_thread()
    def fit(self, X: Rows, y: Any = None) -> Self:
        """Find the relations between columns, and fit the method to the rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, *shape)
            Rows. Dates with a time zone are read in UTC. Object columns of numbers are
            computed in float64; object columns of a data frame that contain strings are
            categories.
        y : None
            Ignored.

        Returns
        -------
        self : PNLAugmenter
        """
        if stays_on_device(X):
            method = self._checked_method(is_table=X.ndim == 2)
            if isinstance(method, Codes):
                rows = fit_on_device(self, X, method)
                return self._keep(method, None, rows, np.empty(0, int))
        table = self._read(X)
        relations = find_relations(
            table, self.value_support, self.extrapolation, self.equalities
        )
        return self._fit_table(table, relations, type(self).__name__)

    def _fit_table(self, table, relations, caller, groups=None, method=None):
        """Fit the method to a table with known relations between columns.

        The samplers call this method with the rows of one class, the relations of all
        rows and the checked method. Messages name the caller. Rows of different groups
        are never mixed.
        """
        table.describe(self)
        if method is None:
            method = self._checked_method(is_for_lines(table))
        rows = fit_rows(
            method, table, relations, self.k_neighbors, groups, self.n_jobs, caller
        )
        return self._keep(method, relations, rows, table.integer_features)

    def _keep(self, method, relations, rows, integer_features):
        """Set the fitted attributes of the method."""
        self.method_, self.n_neighbors_ = method, rows.source.n_neighbors
        self.integer_features_ = integer_features
        self._relations, self._rows = relations, rows
        return self

    @one_blas_thread()
    def sample(
        self,
        n_samples: int = 1,
        random_state: Seed = None,
        *,
        constraints: Constraint | Sequence | None = None,
        totals: object = None,
        infeasible: Literal["raise", "drop"] = "raise",
        return_parents: bool = False,
        return_report: bool = False,
        return_codes: bool = False,
    ) -> Any:
        """Generate new rows.

        Parameters
        ----------
        n_samples : int, default=1
            Number of new rows.
        random_state : int, RandomState, Generator or None, default=None
            Random seed. The same seed gives the same bytes for every ``n_jobs``.
        constraints : constraint or list of them, default=None
            Constraints on each new row, in the units of ``X``:
            :class:`scipy.optimize.LinearConstraint`, or
            :class:`~sklearn_pnl.control.ColumnConstraint` to name columns or to give
            one value per row. If rows are mixed from two rows, base rows are drawn near
            the constraints. Then the rows are projected. Constraints that are
            equalities are satisfied to 1e-9 of the range of their columns, and
            inequalities are satisfied exactly if possible. If no projection of a row
            preserves the relations between its columns, the nearest training row that
            satisfies the constraints is copied and becomes the parent. Float columns
            that a projection changes can have more decimals than the training values.
        totals : dict, ColumnTotal, list of them or array-like, default=None
            Totals over all new rows, in the forms of
            :func:`~sklearn_pnl.control.calibrate`: sums of columns, and counts of the
            categories of one or several columns. Use
            :func:`~sklearn_pnl.control.column_total` for means, tolerances and sums
            over several columns. Base rows (the training rows from which new rows
            start) are drawn with weights calibrated by minimum KL divergence. The
            sample is then projected, in chi-square distance, onto the totals and the
            constraints of each row. Sums are satisfied to 1e-9 of the sum of their
            absolute terms, or to the rounding of one value of a single-precision
            column. Counts and sums of integers are exact. Counts are supported by
            :class:`Lines` and by codes that are mixed from two rows, not by densities
            such as "kde". Values can lose their rounding to cents if rounded values
            cannot have the requested sums.
        infeasible : {"raise", "drop"}, default="raise"
            Action for infeasible rows: "raise" raises an error that names the
            constraint, and "drop" omits the rows. With totals, "drop" is not allowed.
        return_parents : bool, default=False
            Whether to return the parents of each new row.
        return_report : bool, default=False
            Whether to return a :class:`~sklearn_pnl.control.SampleReport` with the
            constraints, the achieved values and the distances by which rows moved.
        return_codes : bool, default=False
            Whether to return the codes from which the new rows were decoded.
            :class:`Lines` has no codes.

        Returns
        -------
        rows : array-like of shape (n_samples, *input_shape_)
            New rows in the units, types and container of the training rows.
        parents : ndarray of int of shape (n_samples, 2) or (n_samples, n_neighbors_)
            Indices of training rows: the two rows that were mixed, the base row first,
            or the rows from which a code was decoded, the nearest row first. Returned
            if ``return_parents`` is True.
        report : SampleReport
            The report. Returned if ``return_report`` is True.
        codes : SampledCodes
            The new codes, the indices of their neighbours, and the divergence of each
            decoded row from its code; see :class:`~sklearn_pnl.methods.SampledCodes`.
            Returned if ``return_codes`` is True.

        Raises
        ------
        ValueError
            If a constraint is infeasible, or if no new rows can have all totals. The
            message names the constraint or total, and the values that are possible.
        """
        n_samples = self._check_call(n_samples, infeasible)
        if return_codes and not isinstance(self.method_, Codes):
            raise ValueError(
                f"return_codes=True requires a method with codes, but {self.method_!r} "
                "mixes rows on straight lines. Use method='codes', or set order."
            )
        batch, report = self._rows.sample(
            n_samples,
            as_random_state(random_state),
            constraints,
            totals,
            drops=infeasible == "drop",
            advice=_DROP,
            reports=return_report,
            codes=return_codes,
        )
        rows = self._rows.restored(batch)
        results = [rows]
        if return_parents:
            results.append(batch.parents)
        if return_report:
            results.append(report)
        if return_codes:
            codes = SampledCodes(batch.codes, batch.parents, batch.divergences)
            results.append(codes)
        return tuple(results) if len(results) > 1 else rows

    def iter_samples(
        self,
        n_samples: int,
        batch_size: int | None = None,
        random_state: Seed = None,
        *,
        constraints: Constraint | Sequence | None = None,
        infeasible: Literal["raise", "drop"] = "raise",
        return_parents: bool = False,
    ) -> Iterator[Any]:
        """Generate new rows in batches, for samples that do not fit in memory.

        The concatenated batches have the same bytes as the result of :meth:`sample`,
        for every ``batch_size`` and ``n_jobs``.

        Parameters
        ----------
        n_samples : int
            Number of new rows in all batches.
        batch_size : int, default=None
            Number of rows per batch; the last batch can be smaller. None uses as many
            rows as fit in the ``working_memory`` of :func:`sklearn.set_config`.
        random_state : int, RandomState, Generator or None, default=None
            Random seed. If you pass a generator, do not use it elsewhere until the last
            batch has been drawn, because noise is drawn from it batch by batch.
        constraints, infeasible, return_parents
            See :meth:`sample`.

        Returns
        -------
        batches : generator of array-like of shape (batch_size, *input_shape_)
            Batches of rows, or pairs of rows and parents.

        Notes
        -----
        In addition to one batch, memory grows by 32 bytes per row if new rows are mixed
        from two rows, and by 8 bytes with ``Codes(draws="kde")``. If ``draws`` is an
        estimator, all codes are drawn at once. Totals need all rows at once: use
        :meth:`sample`, or several calls of it with a share of the totals each.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_pnl import PNLAugmenter
        >>> X = np.random.default_rng(0).uniform(size=(30, 4, 5))
        >>> augmenter = PNLAugmenter().fit(X)
        >>> [len(rows) for rows in augmenter.iter_samples(250, 100, random_state=0)]
        [100, 100, 50]
        """
        n_samples = self._check_call(n_samples, infeasible)
        batch_size = check_count("batch_size", batch_size, or_none=True)
        row_sampler = self._rows.row_sampler(
            n_samples, constraints, infeasible == "drop", _DROP
        )
        if batch_size is None:
            # The caller keeps one batch while the next one is computed.
            free = get_config()["working_memory"] * 2**20
            batch_size = max(1, int(free // (2 * 8 * row_sampler.n_numbers)))
        rng = as_random_state(random_state)
        batches = row_sampler.batches(rng, min(batch_size, n_samples))
        return limited(self._returned(batch, return_parents) for batch in batches)

    def _returned(self, batch, with_parents):
        rows = self._rows.restored(batch)
        return (rows, batch.parents) if with_parents else rows

    def _check_call(self, n_samples, infeasible):
        check_is_fitted(self)
        if infeasible not in ("raise", "drop"):
            raise ValueError(
                f"infeasible must be 'raise' or 'drop'; got {infeasible!r}."
            )
        return check_count("n_samples", n_samples)
