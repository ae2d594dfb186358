"""The over-sampler for imbalanced-learn: it fits an augmenter for each class.

How an augmenter draws rows is in `augmenter.py` and `sampling.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from imblearn.over_sampling.base import BaseOverSampler
from imblearn.utils import check_sampling_strategy
from numpy.typing import ArrayLike

from ._runtime.threads import one_blas_thread
from ._runtime.typing import Rows, Seed
from ._runtime.validation import (
    all_or_nothing,
    as_random_state,
    check_one_a_row,
    warn_user,
)
from .augmenter import (
    CONSTRAINTS,
    Augmentation,
    Constraint,
    EqualitiesLike,
    OrderLike,
    StructureAttributes,
)
from .draws import DrawsLike
from .frames import ClassTarget, read_groups, read_weights
from .manifolds import LocalManifoldLike

_HOW_MANY = "Give the rows wanted in all, sampling_strategy={class: rows}."


class PNLSampler(Augmentation, StructureAttributes, BaseOverSampler):
    """Over-sample by pseudo-nonlinear data augmentation.

    Fits a :class:`PNLAugmenter` for each class. Works on any real-valued table,
    negative values included, and on arrays of more dimensions, such as stacks of
    images. New rows come after the originals, which are returned unchanged.

    Parameters
    ----------
    sampling_strategy : float, str, dict or callable, default="auto"
        Which classes get how many rows, in all the forms of imbalanced-learn. A dict
        gives the number of rows wanted for each class, which may be above that of the
        majority: so all classes can be augmented. Classes that are as frequent as is
        asked get no new rows; if none gets any, as with "auto" where all are equally
        frequent, ``X`` and ``y`` are returned as they are, and a warning says so
        unless a dict or callable named the numbers.

    order, local_manifold, k_neighbors, draws, reshaper, embedding
        As in :class:`PNLAugmenter`.

    categorical_features, extrapolation, equalities, n_jobs
        As in :class:`PNLAugmenter`. Limits and equalities, and which columns are never
        above others, are those of the rows of all classes.

    value_support : "auto" or None, default=None
        As in :class:`PNLAugmenter`. None rounds by types alone; behind it classifiers
        rank rows better (``average_precision``, ``roc_auc``).

    constraints : constraint, list of them, dict or None, default=None
        Constraints on each new row, as for :meth:`PNLAugmenter.sample`; a dict has
        those of each class, by its label.

    totals : dict or None, default=None
        Totals of all new rows of a class, by its label, as for
        :meth:`PNLAugmenter.sample`: ``{1: {"income": 2.9e6}}``. Totals are of the new
        rows alone, not of these and the originals.

    random_state : int, RandomState, Generator or None, default=None
        Seed. The same seed gives the same bytes for every ``n_jobs``.

    Attributes
    ----------
    sampling_strategy_ : dict
        Number of rows to add for each class.

    augmenters_ : dict
        The fitted :class:`PNLAugmenter` of each class that got new rows: for instance
        ``augmenters_[label].sample(10)`` gives ten more, in the container of ``X``.

    reports_ : dict
        A :class:`SampleReport` for each class with totals.

    order_ : int, list of tuple of int or None
        The order used, if any class got new rows.

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
    The recipe of the paper is ``PNLSampler(**PAPER_RECIPE)``.

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
        "constraints": [*CONSTRAINTS, dict, None],
        "totals": [dict, None],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        *,
        sampling_strategy: float | str | dict | Callable = "auto",
        order: OrderLike = None,
        local_manifold: LocalManifoldLike = "fiber",
        k_neighbors: int | Literal["auto"] = "auto",
        draws: DrawsLike = "mixup",
        reshaper: Literal["auto", "prime"] | Any = "auto",
        embedding: Literal["minmax"] | Any = "minmax",
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
        self.order = order
        self.local_manifold = local_manifold
        self.k_neighbors = k_neighbors
        self.draws = draws
        self.reshaper = reshaper
        self.embedding = embedding
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
            Rows.
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
        target = ClassTarget(y)
        table = self._read(X)
        check_one_a_row(table, target.labels)
        groups, codes = read_groups(groups, len(table))
        weights = read_weights(sample_weight, len(table))
        new, labels = self._fit_resample(table, target.labels, codes, weights)
        self._set_groups_and_weights(groups, weights)
        return table.stack(new), target.like(np.concatenate([target.labels, *labels]))

    def _fit_resample(self, table, labels, groups=None, weights=None):
        """New rows of each class, and their labels.

        Of a table, and without the old rows, where imbalanced-learn's own gets arrays
        and returns all: it knows no frames but those of pandas, and no dates.
        """
        wanted = self._wanted(labels)
        # A dict or a function may ask for no rows.
        if not wanted and isinstance(self.sampling_strategy, str):
            warn_user(
                f"sampling_strategy={self.sampling_strategy!r} asks for no new row: X "
                f"and y are returned as they are. {_HOW_MANY}"
            )
        self.augmenters_, self.reports_ = {}, {}
        augmenter = self._augmenter()
        self._structure = augmenter._find_structure(table)
        rng = as_random_state(self.random_state)
        # One class draws with the generator itself, as a PNLAugmenter does.
        states = [rng]
        if len(wanted) != 1:
            states = rng.randint(np.iinfo(np.int32).max, size=len(wanted))
        new, new_labels, parents = [], [], []
        for (label, n_new), state in zip(wanted.items(), states, strict=True):
            members = np.flatnonzero(labels == label)
            part = table.take(members, f"class {np.asarray(label).item()!r}")
            groups_here, weights_here = (
                None if values is None else values[members]
                for values in (groups, weights)
            )
            rows, parents_here = self._augment(
                label, part, n_new, state, groups_here, weights_here
            )
            new.append(rows)
            new_labels.append(np.full(n_new, label, dtype=labels.dtype))
            parents.append(members[parents_here])
        self.parent_indices_ = self._stack_parents(parents, len(table))
        return new, new_labels

    def _augment(self, label, part, n_new, random_state, groups, weights):
        """New rows of one class, and their parents among its rows."""
        augmenter = self._augmenter()
        caller = f"{type(self).__name__}, {part.data_name}"
        augmenter._fit(part, caller, self._structure, groups)
        by_class = isinstance(self.constraints, dict)
        constraints = self.constraints.get(label) if by_class else self.constraints
        totals = (self.totals or {}).get(label)
        rows, parents, _, report = augmenter._sample(
            n_new, random_state, constraints, totals, shares=weights
        )
        if report is not None:
            self.reports_[label] = report
        self.augmenters_[label], self.order_ = augmenter, augmenter.order_
        return rows, parents

    def _set_groups_and_weights(self, groups, weights):
        """Of all rows returned: a new row has those of its first parent."""
        first = self.parent_indices_[:, 0]
        for name, values in (("groups_", groups), ("sample_weight_", weights)):
            if values is not None:
                setattr(self, name, np.concatenate([values, values[first]]))

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
        labels = ClassTarget(y).labels
        check_one_a_row(self._read(X), labels)
        self._wanted(labels)
        return self

    def _wanted(self, labels):
        """Number of new rows of each class that gets any, checked.

        And the classes that ``constraints`` and ``totals`` name.
        """
        strategy = self.sampling_strategy
        if callable(strategy):
            strategy = strategy(labels)
            if not isinstance(strategy, Mapping):
                raise TypeError("sampling_strategy(y) gives a dict, {class: rows}.")
            strategy = dict(strategy)
        try:
            self.sampling_strategy_ = check_sampling_strategy(
                strategy, labels, self._sampling_type
            )
        except (TypeError, ValueError) as error:
            known_labels, counts = np.unique(labels, return_counts=True)
            advice = (
                f"y has {counts.tolist()} rows of {known_labels.tolist()}. {_HOW_MANY}"
            )
            if len(known_labels) == 1:
                advice = "PNLAugmenter draws rows without classes."
            raise ValueError(f"{str(error).rstrip('.')}. {advice}") from None
        for label, n in self.sampling_strategy_.items():
            if not float(n).is_integer():
                raise ValueError(
                    f"sampling_strategy asks for {n} new rows of class {label!r}: give "
                    "whole numbers of rows."
                )
            self.sampling_strategy_[label] = int(n)
        wanted = {label: n for label, n in self.sampling_strategy_.items() if n > 0}
        by_class = self.constraints if isinstance(self.constraints, dict) else {}
        known_labels = np.unique(labels).tolist()
        for name, asked, which, classes in (
            ("constraints", by_class, "in y", known_labels),
            ("totals", self.totals or {}, "with new rows", list(wanted)),
        ):
            for label in asked:
                if label not in classes:
                    raise ValueError(
                        f"{name} names the class {label!r}; the classes {which} are "
                        f"{np.array(classes).tolist()}."
                    )
        return wanted

    def _stack_parents(self, parents, n):
        """Parents of all classes among ``n``; where a class had fewer of them, -1."""
        k = max((rows.shape[1] for rows in parents), default=2)
        # They are a large part of a pickled sampler: int32 where it suffices.
        dtype = np.promote_types(np.int32, np.min_scalar_type(-n))
        stacked, done = np.full((sum(map(len, parents)), k), -1, dtype), 0
        for rows in parents:
            stacked[done : done + len(rows), : rows.shape[1]] = rows
            done += len(rows)
        return stacked
