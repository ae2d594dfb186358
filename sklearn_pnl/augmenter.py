"""The augmenter: new rows like one set of rows, by lines or by codes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.utils.validation import check_is_fitted

from ._device_rows import DeviceTable, fit_on_device
from ._runtime.threads import limited, one_blas_thread
from ._runtime.typing import Rows, Seed
from ._runtime.validation import (
    all_or_nothing,
    as_random_state,
    check_count,
    stays_on_device,
)
from .codes import OrderLike
from .constraints.linear import Constraint
from .constraints.structure import find_structure
from .engine import Augmentation, EqualitiesLike, MethodLike, fit_rows

_DROP = "infeasible='drop' leaves such rows out."


class PNLAugmenter(Augmentation):
    """Pseudo-nonlinear data augmentation of one set of rows.

    New rows of a table lie on straight lines between near rows, with local noise
    (:class:`Lines`): they keep the linear equalities of the training rows
    (``equalities``), the orders of their columns, ranges and types. Rows of more axes,
    and rows whose interactions are to be reduced to a base, become positive tensors,
    that is points of a log-linear model (:class:`Codes`): ``fit`` encodes them by KL
    projection on the base, ``sample`` draws codes near theirs and decodes each by
    projection on a local sub-manifold of near rows. No labels are needed: use it for
    one class, for unlabelled data, or for rows with the target as one more feature.

    With ``sklearn.set_config(array_api_dispatch=True)`` codes are computed where the
    rows are, such as tensors of PyTorch on a GPU, and new rows are there too. Nothing
    is looked for in columns then, "auto" or not, and no constraint is met.

    Parameters
    ----------
    method : {"auto", "lines", "codes", "paper"}, Lines or Codes, default="auto"
        How new rows are made. "lines" is ``Lines()``, "codes" is ``Codes()`` and
        "paper" is ``Codes.paper()``, the settings of the authors' program; an object,
        which is cloned, has settings of its own. "auto" is "lines" for tables, also for
        rows with missing cells, and "codes" for rows of more axes.

    order : int, list of tuple of int, ManyBodyProjector or None, default=None
        The interactions that codes keep, as in :class:`Codes`. An order implies codes:
        ``method="auto"`` and ``method="codes"`` are then ``Codes(order)``, and "paper"
        is ``Codes.paper(order)``. None is the order of the method by itself: the whole
        row, or 1 for "paper". For "lines" and for an object, an order is refused.

    k_neighbors : int or "auto", default="auto"
        Rows among which a partner is looked for, or that a new row is decoded from
        where its code is drawn from a density; fewer rows are all used, with a warning.
        "auto" is a third of the rows as partners, at most 10, and 7 of fewer than 18
        rows; or 5 rows to decode from, or as many as there are: new rows of one row are
        copies, with a warning.

    categorical_features : "auto", array-like or None, default="auto"
        Columns that hold categories: their numbers, their names or a mask. "auto" is
        all columns of a data frame that hold neither numbers nor times. A new row takes
        all its categories from one of its parents. What is missing is a category too,
        one for all marks of missing cells in a column.
        In the distance between rows, a category or a binary column that differs counts
        as much as the typical deviation of a numeric column.

    value_support : "auto" or None, default="auto"
        Restriction of new values to those of a column: "auto" rounds to whole numbers
        or to up to four decimals where all training values are so, keeps a coarser
        resolution (multiples of 1,000, or of 7 days from a Monday), and copies atoms,
        values that many rows share (such as 0), from a parent. None rounds by types
        alone, the default of the samplers: it ranks better, and looks less natural.

    extrapolation : float or None, default=0.0
        How far new values may lie beyond the range of a feature, as a share of its
        length. In a sampler the range is that of all classes, so that a row of adults
        may be 17 if children are another class. Values beyond are reflected. None sets
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

    n_jobs : int, default=None
        Number of blocks of rows in parallel.

    Attributes
    ----------
    method_ : Lines or Codes
        The method that ran; of :class:`Codes` with the poset, base and codes of the
        training rows.

    n_neighbors_ : int
        ``k_neighbors``, at most the number of training rows, for partners of others.

    equalities_ : LinearConstraints
        Exact linear equalities of the training rows; ``print`` lists them.

    orders_ : list of pairs
        Columns of which the first is never greater than the second.

    value_support_ : ValueSupport or None
        Steps, resolution and atoms of the columns; ``print`` lists them.

    integer_features_ : ndarray of int
        Columns that hold integers or booleans, where new values are rounded.

    input_shape_ : tuple of int
        Shape of a row.

    n_features_in_ : int
        Length of the first axis of a row.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, if all are strings.

    See Also
    --------
    Lines, Codes : The two methods.
    PNLSampler : An augmenter a class, for imbalanced problems.
    PNLRegressionSampler : Rows with numbers as targets.
    compare_samples : New rows against real ones.

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

    # Whether rows may stay on the device that they are on.
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
        """Find what the columns keep, and fit the method to the rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, *shape)
            Rows. Dates of a zone are read in UTC, decimals and objects as float64.
        y : None
            Ignored: the samplers give new rows targets.

        Returns
        -------
        self : PNLAugmenter
        """
        if stays_on_device(X):
            method = self._checked_method(DeviceTable(X))
            return self._keep(method, *fit_on_device(self, X, method), np.empty(0, int))
        table = self._read(X)
        structure = find_structure(
            table, self.value_support, self.extrapolation, self.equalities
        )
        return self._fit_table(table, structure, type(self).__name__)

    def _fit_table(self, table, structure, caller, groups=None):
        """Fit the method to a table whose structure is given, for all estimators.

        The rows of the table are all rows, or the rows of a class; the structure is
        that of all rows. Messages name the caller. Only rows of one group are mixed.
        """
        table.describe(self)
        method = self._checked_method(table)
        rows = fit_rows(
            method, table, structure, self.k_neighbors, groups, self.n_jobs, caller
        )
        return self._keep(method, structure, rows, table.integer_features)

    def _keep(self, method, structure, rows, integer_features):
        """Set the fitted attributes of the method."""
        self.method_, self.n_neighbors_ = method, rows.source.n_neighbors
        self.integer_features_ = integer_features
        self._structure, self._rows = structure, rows
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
    ) -> Any:
        """New rows.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState, Generator or None, default=None
            Seed. The same seed gives the same bytes for every ``n_jobs``.
        constraints : constraint or list of them, default=None
            Constraints on each new row, in the units of ``X``:
            :class:`scipy.optimize.LinearConstraint`, or :class:`ColumnConstraint` for
            columns by name and for a value a row. "mixup" draws seeds near them, and a
            projection satisfies them to 1e-9 of the range. A row that no projection
            leaves with the relations of its columns is a copy of the nearest training
            row that satisfies them, which is then its parent. Float columns that a
            projection moves need not keep their decimals.
        totals : dict, ColumnTotal, list of them or array-like, default=None
            Totals of all new rows, in the forms of :func:`~sklearn_pnl.calibrate`: sums
            by column, counts by level of a column or of several, and by
            :func:`~sklearn_pnl.column_total` means, tolerances, sums of several
            columns. Parents are drawn with calibrated weights (minimum KL); the sample
            is then projected onto the totals and the constraints of each row
            (chi-square). Sums hold to 1e-9 of their absolute terms, or to the rounding
            of one value of a column in single precision; counts, which "mixup" alone
            takes, and sums of whole numbers are exact. Cents may go where they do not
            have the sums.
        infeasible : {"raise", "drop"}, default="raise"
            Action for infeasible rows: raise an error that names the constraint, or
            leave them out, which totals do not allow.
        return_parents : bool, default=False
            Whether to return the training rows too that each was decoded from.
        return_report : bool, default=False
            Whether to return a :class:`SampleReport` too: constraints, achieved values,
            and how far rows moved.

        Returns
        -------
        rows : array-like of shape (n_samples, *input_shape_)
            In the units, types and container of the training rows.
        parents : ndarray of int of shape (n_samples, 2) or (n_samples, k_neighbors)
            With ``return_parents``. Rows of the training data: the two that "mixup"
            mixed, or else the nearest ones, the nearest first.
        report : SampleReport
            With ``return_report``.

        Raises
        ------
        ValueError
            If a constraint is infeasible, or totals contradict each other or the rows.
            The message names it, and its range within the limits of the features.
        """
        n_samples = self._check_call(n_samples, infeasible)
        batch, report = self._rows.draw(
            n_samples, as_random_state(random_state), constraints, totals,
            drops=infeasible == "drop", advice=_DROP, reports=return_report,
        )  # fmt: skip
        rows = self._rows.restored(batch)
        results = (rows, *[batch.parents] * return_parents, *[report] * return_report)
        return results if len(results) > 1 else rows

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
        """New rows in batches: more of them than fit in memory.

        One after the other, the batches are the same bytes as :meth:`sample` of all
        rows, for every ``batch_size`` and ``n_jobs``.

        Parameters
        ----------
        n_samples : int
            How many in all.
        batch_size : int, default=None
            Rows in a batch; the last may have fewer. None is as many as fit
            ``working_memory`` of :func:`sklearn.set_config`.
        random_state : int, RandomState, Generator or None, default=None
            Seed. An instance must not be used for anything else before the last batch:
            noise is drawn from it batch by batch.
        constraints, infeasible, return_parents
            As for :meth:`sample`.

        Returns
        -------
        batches : generator of array-like of shape (batch_size, *input_shape_)
            Or of tuples of them and their parents.

        Notes
        -----
        Beyond one batch, memory grows by 24 bytes a row for "mixup" and by 8 for
        "kde". An estimator draws all codes at once. Totals are of all rows, which must
        be there at once: :meth:`sample` has them. Several calls of it may each have
        their share of them.

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
        drawing = self._rows.drawing(
            n_samples, constraints, infeasible == "drop", _DROP
        )
        if batch_size is None:
            # Two batches fit in memory: the caller keeps one.
            free = get_config()["working_memory"] * 2**20
            batch_size = max(1, int(free // (2 * 8 * drawing.n_numbers)))
        rng = as_random_state(random_state)
        batches = drawing.batches(rng, min(batch_size, n_samples))
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
