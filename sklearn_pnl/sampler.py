"""The over-sampler for imbalanced-learn: new rows of each class, class by class.

Relations of columns, the fit of a class and its new rows: `methods/sampling.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from imblearn.over_sampling.base import BaseOverSampler
from imblearn.utils import check_sampling_strategy
from numpy.typing import ArrayLike

from ._utils.threads import one_blas_thread
from ._utils.typing import Rows, Seed
from ._utils.validation import (
    all_or_nothing,
    as_random_state,
    check_one_a_row,
    errors_naming,
)
from .augmenter import Augmentation, EqualitiesLike, MethodLike, PNLAugmenter
from .control.constraints import CONSTRAINTS, Constraint
from .control.relations import find_relations
from .frames import read_classes, read_groups, read_weights
from .methods.codes import OrderLike


class PNLSampler(Augmentation, BaseOverSampler):
    """Over-sample by pseudo-nonlinear data augmentation.

    Fits a :class:`PNLAugmenter` for each class. Works on any real-valued table,
    negative values included, and on arrays of more dimensions, such as stacks of
    images. New rows come after the originals, which are returned unchanged.

    Parameters
    ----------
    sampling_strategy : float, str, dict or callable, default="auto"
        Which classes get how many rows, in all the forms of imbalanced-learn. A dict
        gives the number of rows wanted for each class (rounded down), which may be
        above that of the majority: so all classes can be augmented. Classes that are as
        frequent as is asked get no new rows; if none gets any, as with "auto" where all
        are equally frequent, ``X`` and ``y`` are returned as they are.

    method : {"auto", "lines", "codes", "paper"}, Lines or Codes, default="auto"
        How new rows are made. "lines" is ``Lines()``: on straight lines between near
        rows of a class, with local noise. "codes" is ``Codes()``: rows are encoded by
        KL projection, codes are drawn and decoded; "paper" is ``Codes.paper()``, the
        settings of the authors' program. An object, which is cloned, has settings of
        its own. "auto" is "lines" for tables, also for rows with missing cells, and
        "codes" for rows of more axes.

    order : int, list of tuple of int, ManyBodyProjector or None, default=None
        The interactions that codes keep, as in :class:`Codes`. An order implies codes:
        ``method="auto"`` and ``method="codes"`` are then ``Codes(order)``, and "paper"
        is ``Codes.paper(order)``. None is the order of the method by itself: the whole
        row, or 1 for "paper". For "lines" and for an object, an order is refused.

    k_neighbors : int or "auto", default="auto"
        Rows of the class among which a partner is looked for, or that a new row is
        decoded from where its code is drawn from a density; all of a smaller class,
        with a warning. "auto" is a third of the rows of the class as partners, at most
        10, and 7 of fewer than 18 rows; or 5 rows to decode from, or as many as there
        are: new rows of a class of one row are copies, with a warning.

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
        How far new values may lie beyond the range of a feature in the rows of all
        classes, as a share of its length, so that a row of adults may be 17 if children
        are another class. Values beyond are reflected. None sets no limit. Whole
        numbers and two-valued columns stay within the training range. 0 keeps
        latitudes, shares and pixels within their bounds.

    equalities : "auto", constraints or None, default="auto"
        Linear equalities between columns that new rows keep. "auto" finds columns that
        are linear functions of others, exactly or nearly, and draws them together, so
        that exact equalities hold to rounding and others as nearly as in the data.
        Equalities may also be given, as :func:`find_equalities` returns them or in the
        forms of ``constraints``; all training rows must satisfy them. None keeps none.
        With fewer rows than columns plus two, or more than 1,000 columns, only sums of
        neighbouring columns that are constant or equal to another column are found; in
        sparse rows of more than 2 ** 24 cells, empty columns not counted, no search is
        made. They are those of the rows of all classes.

    constraints : constraint, list of them, dict or None, default=None
        Constraints on each new row, as for :meth:`PNLAugmenter.sample`; a dict has
        those of each class, by its label.

    totals : dict or None, default=None
        Totals of all new rows of a class, by its label, as for
        :meth:`PNLAugmenter.sample`: ``{1: {"income": 2.9e6}}``. Totals are of the new
        rows alone, not of these and the originals.

    random_state : int, RandomState, Generator or None, default=None
        Seed. The same seed gives the same bytes for every ``n_jobs``.

    n_jobs : int, default=None
        Number of blocks of rows in parallel.

    Attributes
    ----------
    sampling_strategy_ : dict
        Number of rows to add for each class.

    method_ : Lines or Codes
        The method that ran, not fitted; ``augmenters_[label].method_`` is fitted to
        the rows of a class.

    augmenters_ : dict
        The fitted :class:`PNLAugmenter` of each class that got new rows: for instance
        ``augmenters_[label].sample(10)`` gives ten more, in the container of ``X``.

    reports_ : dict
        A :class:`SampleReport` for each class with totals.

    parent_indices_ : ndarray of int of shape (n_new, n_parents)
        Rows of ``X`` that each new row was made from: the two that "mixup" mixed, or
        else the nearest first, with -1 where a class has fewer neighbors than another.

    groups_, sample_weight_ : ndarray of shape (n + n_new,)
        Those of all rows returned, if ``fit_resample`` was given any.

    input_shape_ : tuple of int
        Shape of a row.

    n_features_in_ : int
        Length of the first axis of a row.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, if all are strings.

    See Also
    --------
    PNLAugmenter : One set of rows, without classes.
    PNLRegressionSampler : Rows with numbers as targets.
    compare_samples : New rows against real ones.

    Notes
    -----
    The method in steps: rows are read once, as numbers and categories; limits,
    equalities and orders of all rows are found; class by class neighbours are
    searched, and pairs of near rows are mixed with local noise; new rows are projected
    onto ``constraints`` and ``totals``, checked, and appended to the originals.
    ``benchmarks`` compares it with other samplers.
    The grid ``{"pnlsampler__order": [None, 1, 2], "pnlsampler__k_neighbors": [3, 10]}``
    compares orders of the codes, and lines for None.

    In the paper's terms, the default computes neither projection: the code is the
    whole row, so that the base is the whole manifold and both projections are the
    identity. Rows of tables are mixed on the m-geodesic, rows with more axes on the
    e-geodesic. ``order=1`` has a reduced base, ``method="paper"`` is the
    authors' program, and ``method=Codes.paper(local_manifold="theta")`` is equation 2.

    References
    ----------
    P. Hu, M. Sugiyama, "Pseudo-nonlinear data augmentation: a constrained energy
    minimization viewpoint", ICLR 2026.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_pnl import PNLSampler
    >>> X, y = make_classification(weights=[0.9], random_state=0)
    >>> np.bincount(y)
    array([91,  9])
    >>> X_res, y_res = PNLSampler(random_state=0).fit_resample(X, y)
    >>> np.bincount(y_res)
    array([91, 91])
    """

    _parameter_constraints: ClassVar[dict] = {
        **BaseOverSampler._parameter_constraints,
        **Augmentation._parameter_constraints,
        # Words are refused where they are read, with the form to write.
        "constraints": [*CONSTRAINTS, dict, str, None],
        "totals": [dict, None],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        *,
        sampling_strategy: float | str | dict | Callable = "auto",
        method: MethodLike = "auto",
        order: OrderLike = None,
        k_neighbors: int | Literal["auto"] = "auto",
        categorical_features: Literal["auto"] | ArrayLike | None = "auto",
        value_support: Literal["auto"] | None = None,
        extrapolation: float | None = 0.0,
        equalities: EqualitiesLike = "auto",
        constraints: Constraint | Sequence | dict | None = None,
        totals: dict | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(sampling_strategy=sampling_strategy)
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
    def fit_resample(
        self,
        X: Rows,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> tuple[Any, Any]:
        """Add new rows to the data.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, *shape)
            Rows. Dates of a zone are read in UTC, decimals and objects as float64.
        y : array-like of shape (n,)
            Their classes.
        groups : array-like of shape (n,), default=None
            Groups of rows, such as patients or shops: only rows of one group are mixed.
            ``groups_`` has those of all rows returned.
        sample_weight : array-like of shape (n,), default=None
            How often rows are seeds of new ones, relative to others of their class. New
            rows have the weight of their seed: ``sample_weight_`` has those of all rows
            returned.

        Returns
        -------
        X_resampled : array-like of shape (n + n_new, *shape)
            The rows as they are, then the new ones, in the container of ``X``.
        y_resampled : array-like of shape (n + n_new,)
            Classes.
        """
        labels, like_y = read_classes(y)
        table = self._read(X)
        check_one_a_row(table, labels)
        groups, group_codes = read_groups(groups, len(table))
        weights = read_weights(sample_weight, len(table))
        wanted = self._wanted(labels)
        self._relations = find_relations(
            table, self.value_support, self.extrapolation, self.equalities
        )
        self.method_ = self._checked_method(table)
        self.augmenters_, self.reports_ = {}, {}
        new, parents = [], []
        for label, rng in zip(wanted, self._generators(len(wanted)), strict=True):
            members = np.flatnonzero(labels == label)
            part = table.take(members, f"class {np.asarray(label).item()!r}")
            here = [v if v is None else v[members] for v in (group_codes, weights)]
            if weights is not None and not here[1].any():
                raise ValueError(f"sample_weight is 0 in all rows of {part.data_name}.")
            rows, batch = self._new_rows(label, part, wanted[label], rng, *here)
            new.append(rows)
            parents.append(members[batch.parents])
        self.parent_indices_ = _stack_parents(parents, len(table))
        # A new row has the group and weight of its first parent.
        first = self.parent_indices_[:, 0]
        if groups is not None:
            self.groups_ = np.concatenate([groups, groups[first]])
        if weights is not None:
            self.sample_weight_ = np.concatenate([weights, weights[first]])
        new_labels = np.repeat(np.array([*wanted], labels.dtype), [*wanted.values()])
        return table.stack(new), like_y(np.concatenate([labels, new_labels]))

    # The method that imbalanced-learn asks for.
    _fit_resample = fit_resample

    def _generators(self, n_classes):
        """A generator a class; of one class that itself, as for a PNLAugmenter."""
        rng = as_random_state(self.random_state)
        if n_classes == 1:
            return [rng]
        seeds = rng.randint(np.iinfo(np.int32).max, size=n_classes)
        return map(as_random_state, seeds)

    def _new_rows(self, label, part, n_new, rng, groups, weights):
        """New rows of one class in their container, and as a batch."""
        augmenter = PNLAugmenter(**self._shared(self.method_))
        caller = f"{type(self).__name__}, {part.data_name}"
        rows = augmenter._fit_table(
            part, self._relations, caller, groups, self.method_
        )._rows
        by_class = isinstance(self.constraints, dict)
        constraints = self.constraints.get(label) if by_class else self.constraints
        totals = (self.totals or {}).get(label)
        batch, report = rows.sample(n_new, rng, constraints, totals, shares=weights)
        if report is not None:
            self.reports_[label] = report
        self.augmenters_[label] = augmenter
        return rows.restored(batch), batch

    @all_or_nothing
    @one_blas_thread()
    def fit(self, X: Rows, y: Any) -> Self:
        """Check rows and labels alone.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, *shape)
            Rows.
        y : array-like of shape (n,)
            Their classes.

        Returns
        -------
        self : PNLSampler
        """
        labels, _ = read_classes(y)
        check_one_a_row(self._read(X), labels)
        self._wanted(labels)
        return self

    def _wanted(self, labels):
        """Number of new rows of each class that gets any, checked.

        And the classes that ``constraints`` and ``totals`` name.
        """
        with errors_naming("sampling_strategy"):
            asked = check_sampling_strategy(
                self.sampling_strategy, labels, self._sampling_type
            )
        self.sampling_strategy_ = {label: int(n) for label, n in asked.items()}
        wanted = {label: n for label, n in self.sampling_strategy_.items() if n > 0}
        by_class = self.constraints if isinstance(self.constraints, dict) else {}
        # Constraints of a class without new rows change nothing.
        for name, asked, classes in (
            ("constraints", by_class, np.unique(labels).tolist()),
            ("totals", self.totals or {}, np.array([*wanted]).tolist()),
        ):
            for label in asked:
                if label not in classes:
                    raise ValueError(
                        f"{name} names the class {label!r}; it may name {classes}."
                    )
        return wanted


def _stack_parents(parents, n):
    """Parents of all classes among ``n``; where a class had fewer of them, -1."""
    k = max((rows.shape[1] for rows in parents), default=2)
    # They are a large part of a pickled sampler: int32 where it suffices.
    dtype = np.promote_types(np.int32, np.min_scalar_type(-n))
    stacked, done = np.full((sum(map(len, parents)), k), -1, dtype), 0
    for rows in parents:
        stacked[done : done + len(rows), : rows.shape[1]] = rows
        done += len(rows)
    return stacked
