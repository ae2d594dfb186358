"""Over-sample the minority classes of a classification problem.

:class:`PNLSampler` finds the relations between the columns of all rows, fits a
:class:`PNLAugmenter` to the rows of each class that needs new rows, and appends the new
rows of each class to the original rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from imblearn.over_sampling.base import BaseOverSampler
from imblearn.utils import check_sampling_strategy
from numpy.typing import ArrayLike
from sklearn.base import clone

from ._utils.threads import one_blas_thread
from ._utils.typing import Rows, Seed
from ._utils.validation import (
    all_or_nothing,
    as_random_state,
    check_one_a_row,
    errors_naming,
)
from .augmenter import (
    Augmentation,
    EqualitiesLike,
    MethodLike,
    PNLAugmenter,
    is_for_lines,
)
from .columns.constraints import CONSTRAINTS, Constraint
from .columns.relations import find_relations
from .frames import read_classes, read_groups, read_weights
from .methods.codes import OrderLike


class PNLSampler(Augmentation, BaseOverSampler):
    """Over-sample by pseudo-nonlinear data augmentation.

    A :class:`PNLAugmenter` is fitted to the rows of each class that needs new rows. New
    rows of a table lie near straight lines between neighbouring rows of a class. They
    stay within the range of each column, and satisfy the detected linear equalities
    between columns. Rows can contain negative values, categories and missing cells, and
    can be arrays with more than one axis, such as images. New rows come after the
    original rows, which are returned unchanged.

    Parameters
    ----------
    sampling_strategy : float, str, dict or callable, default="auto"
        Target class sizes, as in imbalanced-learn. "auto" raises each class to the
        number of rows of the largest class. The other strings ("minority", "not
        minority", "not majority", "all") have the meaning of imbalanced-learn. A float
        is the requested ratio of the minority class to the majority class of a binary
        problem, above 0 and at most 1; a ratio that needs no new row raises an
        error. A dict gives the requested number of rows of each class, including the
        original rows; the number can exceed that of the majority class, and must not be
        smaller than the number of rows of the class. A callable returns a dict for
        ``y``. With a dict or a string, classes that already have the requested number
        of rows get no new rows.

    method : {"auto", "lines", "codes", "paper"}, Lines or Codes, default="auto"
        Method that makes new rows. "lines" is ``Lines()``, "codes" is ``Codes()`` and
        "paper" is ``Codes.paper()``, the settings of the authors' program. Pass an
        object to change the settings of a method; the object is cloned. "auto" is
        "lines" for tables, and for all rows if some cells are missing. Otherwise, it is
        "codes" for rows with more than one axis.

    order : int, list of tuple of int, ForwardProjection, ManyBodyProjector or None, \
            default=None
        If set, each row is summarised by a short vector, its code. New codes are
        sampled, and decoded with the help of neighbouring rows. A larger order keeps
        more detail of a row, see :class:`Codes`. Codes do not support rows with missing
        cells. With an order, ``method="auto"`` and ``method="codes"`` are
        ``Codes(order)``, and "paper" is ``Codes.paper(order)``. None uses the default
        of the method: order 1 for "paper", otherwise the complete row. Setting
        ``order`` with ``method="lines"`` or with a method object raises an error.

    k_neighbors : int or "auto", default="auto"
        Number of nearest neighbours within the class from which the second parent of a
        new row is drawn. Larger values give more varied rows. "auto" uses a third of
        the class, at least 7 and at most 10. With ``Codes(draws="kde")`` or
        ``method="paper"``, this is the number of training rows from which a code is
        decoded, and "auto" uses 5. If a class has too few rows, all of them are used,
        and an explicit value raises a warning. A class with one row yields copies of
        it, with a warning.

    categorical_features : "auto", array-like or None, default="auto"
        Columns that hold categories, as indices, names or a boolean mask. "auto"
        selects all columns of a data frame that are neither numeric nor times, and no
        column of an array. A new row takes all its categories from one of its parents.
        All missing values of a categorical column form one additional category. In
        distances, two different categories are as far apart as the median standard
        deviation of the scaled numeric columns, in the manner of SMOTE-NC.

    value_support : "auto" or None, default="auto"
        Whether new values keep the rounding and the frequent values of a column. "auto"
        rounds to integers or to up to four decimals if all training values are rounded
        in this way. It also preserves a coarser resolution, which is the step between
        values (1,000, or 7 days from a Monday). :class:`Lines` copies values that many
        rows share (atoms, for example 0) from a parent, except in sparse rows. If a
        numeric column has disjoint ranges for the categories of another column, new
        rows satisfy the threshold: for example, "adult" requires an age of 18 or more.
        Here, binary columns count as categories. None rounds only according to the
        dtypes, and dates to their time unit. Rows with more than one axis, and sparse
        rows with more than 2 ** 24 cells (without empty columns), are treated as with
        None.

    extrapolation : float or None, default=0.0
        Distance by which new values may exceed the training range of a feature, as a
        share of the length of the range. The default, 0, keeps for example latitudes,
        shares and pixels within the training range. None sets no bounds. Integer,
        binary and date columns always stay within the training range. The range is that
        of all classes, so a new row of one class can have a value that occurs only in
        another class.

    equalities : "auto", constraints or None, default="auto"
        Linear equalities between columns that new rows satisfy, such as a total of its
        parts. "auto" searches the rows of all classes, under the conditions that
        :func:`~sklearn_pnl.control.find_equalities` states. New rows satisfy exact
        equalities up to rounding, and near equalities as closely as the training rows
        do. You can also pass equalities as returned by ``find_equalities``, or in the
        forms of ``constraints``; all training rows must satisfy them. None preserves no
        equalities.

    constraints : constraint, list of them, dict or None, default=None
        Constraints on each new row; see :meth:`PNLAugmenter.sample`. A dict maps class
        labels to the constraints of the class.

    totals : dict or None, default=None
        Totals over the new rows of a class, without the original rows; see
        :meth:`PNLAugmenter.sample`. The dict maps class labels to totals, for example
        ``{1: {"income": 2.9e6}}``.

    random_state : int, RandomState, Generator or None, default=None
        Random seed. The same seed gives the same bytes for every ``n_jobs``.

    n_jobs : int, default=None
        Number of parallel jobs over blocks of rows. None means 1 unless in a
        :obj:`joblib.parallel_config` context. The new rows do not depend on ``n_jobs``.

    Attributes
    ----------
    sampling_strategy_ : dict
        Number of rows to add for each class.

    method_ : Lines or Codes
        The method, not fitted. ``augmenters_[label].method_`` is fitted to the rows of
        a class.

    augmenters_ : dict
        The fitted :class:`PNLAugmenter` of each class with new rows. For example,
        ``augmenters_[label].sample(10)`` returns ten more rows in the container of
        ``X``.

    reports_ : dict
        A :class:`~sklearn_pnl.control.SampleReport` for each class with totals.

    parent_indices_ : ndarray of int of shape (n_new, n_parents)
        Indices of the parents of each new row in ``X``: the two rows that were mixed,
        the base row first, or the rows from which a code was decoded, the nearest row
        first. Rows with fewer parents than other rows are padded with -1.

    equalities_ : LinearConstraints
        Exact linear equalities that the training rows of all classes satisfy;
        ``print`` lists them.

    inequalities_ : list of pairs
        Pairs of columns whose first column is never greater than the second. If no cell
        is missing, pairs that follow from other pairs are left out. New rows keep the
        least difference of the two columns.

    value_support_ : ValueSupport or None
        Resolution and atoms of the columns; ``print`` lists them.

    groups_, sample_weight_ : ndarray of shape (n + n_new,)
        Groups and weights of all returned rows. Only available if ``fit_resample`` was
        given groups or weights.

    input_shape_ : tuple of int
        Shape of one row.

    n_features_in_ : int
        Length of the first axis of a row.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, if all are strings.

    See Also
    --------
    PNLAugmenter : Generate rows that resemble one set of rows, without classes.
    PNLRegressionSampler : Add rows with numeric targets.
    compare_samples : Compare new rows with real rows.

    Notes
    -----
    To choose between lines and codes of several orders, search the grid
    ``{"pnlsampler__order": [None, 1, 2], "pnlsampler__k_neighbors": [3, 10]}`` over a
    pipeline of imbalanced-learn. For tables, the order None selects lines.

    In the terms of the paper, the default computes neither projection: the code is the
    whole row, the base is the whole manifold, and both projections are the identity.
    Rows of tables are mixed on the m-geodesic, and rows with more than one axis on the
    e-geodesic. ``order=1`` has a reduced base, ``method="paper"`` has the settings of
    the authors' program, and ``method=Codes.paper(local_manifold="theta")`` is
    equation 2 of the paper.

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
        # Strings are rejected by the constraint parser, which shows the expected form.
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
        value_support: Literal["auto"] | None = "auto",
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
            Rows. Dates with a time zone are read in UTC. Object columns of numbers are
            computed in float64; object columns of a data frame that contain strings are
            categories.
        y : array-like of shape (n,)
            Class labels of the rows.
        groups : array-like of shape (n,), default=None
            Groups of rows, such as patients or shops. Rows of different groups are
            never mixed. ``groups_`` contains the groups of all returned rows. Codes
            drawn from a density ("kde", "paper") do not support groups.
        sample_weight : array-like of shape (n,), default=None
            Relative frequencies with which the rows of a class are drawn as base rows.
            A base row is the training row from which a new row starts. A new row has
            the weight of its base row. ``sample_weight_`` contains the weights of all
            returned rows.

        Returns
        -------
        X_resampled : array-like of shape (n + n_new, *shape)
            The original rows, followed by the new rows, in the container of ``X``.
            Sparse formats other than CSR and CSC are converted to CSR.
        y_resampled : array-like of shape (n + n_new,)
            The class labels of all rows, in the container of ``y``.
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
        self.method_ = self._checked_method(is_for_lines(table))
        self.augmenters_, self.reports_ = {}, {}
        new, parents = [], []
        for label, rng in zip(wanted, self._generators(len(wanted)), strict=True):
            members = np.flatnonzero(labels == label)
            part = table.take(members, f"class {np.asarray(label).item()!r}")
            here = [v if v is None else v[members] for v in (group_codes, weights)]
            if weights is not None and not here[1].any():
                raise ValueError(
                    f"sample_weight is 0 in all rows of {part.data_name}. Give a "
                    "row of the class a positive weight, or leave the class out of "
                    "sampling_strategy."
                )
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

    # imbalanced-learn requires this abstract method.
    _fit_resample = fit_resample

    def _generators(self, n_classes):
        """Return a random generator for each class.

        A single class uses the generator of ``random_state``, as a PNLAugmenter does.
        """
        rng = as_random_state(self.random_state)
        if n_classes == 1:
            return [rng]
        seeds = rng.randint(np.iinfo(np.int32).max, size=n_classes)
        return map(as_random_state, seeds)

    def _new_rows(self, label, part, n_new, rng, groups, weights):
        """Return the new rows of one class in the container of X, and as a batch."""
        augmenter = PNLAugmenter(**self._shared(self.method_))
        caller = f"{type(self).__name__}, {part.data_name}"
        rows = augmenter._fit_table(
            part, self._relations, caller, groups, clone(self.method_)
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
        """Validate `X` and `y` without resampling.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, *shape)
            Rows.
        y : array-like of shape (n,)
            Class labels of the rows.

        Returns
        -------
        self : PNLSampler
        """
        labels, _ = read_classes(y)
        check_one_a_row(self._read(X), labels)
        self._wanted(labels)
        return self

    def _wanted(self, labels):
        """Return the number of new rows of each class with new rows.

        Check the class labels in ``sampling_strategy``, ``constraints`` and ``totals``.
        """
        with errors_naming("sampling_strategy"):
            numbers = check_sampling_strategy(
                self.sampling_strategy, labels, self._sampling_type
            )
        self.sampling_strategy_ = {label: int(n) for label, n in numbers.items()}
        wanted = {label: n for label, n in self.sampling_strategy_.items() if n > 0}
        by_class = self.constraints if isinstance(self.constraints, dict) else {}
        # Constraints apply to any class, because a class may need no new rows. Totals
        # without new rows are an error.
        for name, by_label, classes in (
            ("constraints", by_class, np.unique(labels).tolist()),
            ("totals", self.totals or {}, np.array([*wanted]).tolist()),
        ):
            for label in by_label:
                if label not in classes:
                    raise ValueError(
                        f"{name} contains the class {label!r}, but can only contain "
                        f"{classes}. Remove the class or correct the label."
                    )
        return wanted


def _stack_parents(parents, n):
    """Stack the parent indices below ``n`` of all classes; pad with -1."""
    k = max((rows.shape[1] for rows in parents), default=2)
    # Parents are a large part of a pickled sampler, so that int32 is used if possible.
    dtype = np.promote_types(np.int32, np.min_scalar_type(-n))
    stacked, done = np.full((sum(map(len, parents)), k), -1, dtype), 0
    for rows in parents:
        stacked[done : done + len(rows), : rows.shape[1]] = rows
        done += len(rows)
    return stacked
