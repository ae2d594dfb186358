"""The imbalanced-learn over-sampler: one augmenter a class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from imblearn.over_sampling.base import BaseOverSampler
from imblearn.utils import check_sampling_strategy, check_target_type
from imblearn.utils._validation import ArraysTransformer
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from ._runtime.docs import with_params_of
from ._runtime.typing import Rows, Seed
from ._runtime.validation import (
    ELSEWHERE,
    all_or_nothing,
    as_random_state,
    check_one_a_row,
    tells_where,
    warn_user,
)
from ._runtime.workspace import workspace
from .augment import PNLAugmenter, Recipe, is_cellwise
from .control import CONSTRAINTS, Constraint
from .tables import plain_target, read_table

_HOW_MANY = (
    "sampling_strategy={class: rows} says how many rows a class is to have in all, "
    "those there are included."
)


@with_params_of(PNLAugmenter)
@tells_where(**ELSEWHERE)
@dataclass(eq=False, repr=False, kw_only=True)
class PNLSampler(Recipe, BaseOverSampler):
    """Over-sample by pseudo-nonlinear data augmentation.

    A :class:`PNLAugmenter` a class. Works on any real-valued table, negative values
    included, and on arrays of more dimensions, such as stacks of images. New rows come
    after the originals, which are returned unchanged.

    Parameters
    ----------
    sampling_strategy : float, str, dict or callable, default="auto"
        Which classes get how many rows, in all the forms of imbalanced-learn. A dict
        gives the number of rows wanted for each class, which may be above that of the
        majority: so all classes can be augmented. Classes that are as frequent as is
        asked get no new rows; if none gets any, as with "auto" where all are equally
        frequent, ``X`` and ``y`` are returned as they are, and a warning says so
        unless a dict or callable named the numbers.

    order, base, local_manifold, k_neighbors, draws, metric, poset, reshaper
        As in :class:`PNLAugmenter`.

    embedding, categorical_features, marks, offset, with_mass, range_slack
        As in :class:`PNLAugmenter`.

    invariants
        As in :class:`PNLAugmenter`.
        They are looked for in the rows of all classes.

    constraints : constraint, list of them, dict or None, default=None
        What is asked of all new rows, as for :meth:`PNLAugmenter.sample`; a dict has
        those of each class, by its label.

    totals : dict or None, default=None
        What is asked of all new rows of a class together, by its label, as for
        :meth:`PNLAugmenter.sample`: ``{1: {"income": 2.9e6}}``. Totals are of the new
        rows alone, not of these and the originals.

    tol, max_iter
        As in :class:`PNLAugmenter`.

    random_state : int, RandomState, Generator or None, default=None
        Seed. The same seed gives the same bytes for every ``n_jobs``.

    n_jobs
        As in :class:`PNLAugmenter`.

    Attributes
    ----------
    sampling_strategy_ : dict
        Number of rows to add for each class.

    augmenters_ : dict
        The fitted :class:`PNLAugmenter` of each class that got new rows: for instance
        ``augmenters_[label].sample(10)`` gives ten more, as ``X`` came.

    invariants_ : LinearSystem
        The equations kept; printed, they are told in words.

    marks_ : Marks
        What columns keep beside, and what gave way; printed, it is told in words.

    reports_ : dict
        A :class:`SampleReport` for each class with totals.

    order_ : int, list of tuple of int or None
        The order taken, if any class got new rows.

    parent_indices_ : ndarray of int of shape (n_new, n_parents)
        Rows of ``X`` that each new row was decoded from: the two that "mixup" mixed, or
        else the nearest first, with -1 where a class has fewer rows than another.

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
    The defaults were chosen on some families of KEEL tables and measured on others;
    ``benchmarks`` has all figures. The recipe of the paper is
    ``PNLSampler(order=1, draws="kde", local_manifold="mixture", offset=1e-5,
    with_mass=False, range_slack=0, reshaper=PrimeFactorReshaper())``.

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

    sampling_strategy: float | str | dict | Callable = "auto"
    constraints: Constraint | Sequence | dict | None = None
    totals: dict | None = None
    random_state: Seed = None

    _parameter_constraints: ClassVar[dict] = {
        **BaseOverSampler._parameter_constraints,
        **PNLAugmenter._parameter_constraints,
        "constraints": [*CONSTRAINTS, dict, None],
        "totals": [dict, None],
        "random_state": ["random_state", np.random.Generator],
    }

    @all_or_nothing
    def fit_resample(self, X: Rows, y: Any) -> tuple[Any, Any]:
        """Add new rows to the data.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, *shape)
            Rows.
        y : array-like of shape (n,)
            Their classes.

        Returns
        -------
        X_resampled : array-like of shape (n + n_new, *shape)
            The rows as they are, then the new ones, in the container of ``X``.
        y_resampled : array-like of shape (n + n_new,)
            Classes.
        """
        target = _Classes(y)
        table = read_table(self, X, is_cellwise(self))
        check_one_a_row(table, target.labels)
        wanted = self._wanted(target.labels)
        # Who names numbers of rows knows.
        if not wanted and isinstance(self.sampling_strategy, str):
            warn_user(
                f"sampling_strategy={self.sampling_strategy!r} asks for no new row "
                f"({_told(target.labels)}): X and y are returned as they are. "
                f"{_HOW_MANY}"
            )
        self.augmenters_, self.reports_ = {}, {}
        self.invariants_, self.marks_ = self._resolved(table)
        new, labels, parents = [], [target.labels], []
        rng = as_random_state(self.random_state)
        # One class alone has the seed of the sampler.
        seeds = [rng]
        if len(wanted) != 1:
            seeds = rng.randint(np.iinfo(np.int32).max, size=len(wanted))
        for (label, n_new), seed in zip(wanted.items(), seeds, strict=True):
            members = np.flatnonzero(target.labels == label)
            rows, near = self._augment(label, table.take, members, n_new, seed)
            new.append(rows)
            labels.append(np.full(n_new, label, dtype=target.labels.dtype))
            parents.append(members[near])
        self.parent_indices_ = self._stack_parents(parents, len(table))
        return table.stack(new), target.like(np.concatenate(labels))

    @all_or_nothing
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
        labels = _Classes(y).labels
        check_one_a_row(read_table(self, X, is_cellwise(self)), labels)
        self._wanted(labels)
        return self

    def _wanted(self, labels):
        """How many new rows classes get, those that get any."""
        strategy = self.sampling_strategy
        if callable(strategy):
            strategy = strategy(labels)
            if not isinstance(strategy, Mapping):
                raise TypeError(
                    f"sampling_strategy gave {type(strategy).__name__}: a function of "
                    "y gives a dict, {class: rows in all}."
                )
            strategy = dict(strategy)
        try:
            self.sampling_strategy_ = check_sampling_strategy(
                strategy, labels, self._sampling_type
            )
        except ValueError as error:
            alone = "PNLAugmenter draws rows without classes."
            advice = alone if len(np.unique(labels)) == 1 else _HOW_MANY
            raise ValueError(f"{error} ({_told(labels)}). {advice}") from None
        for label, n in self.sampling_strategy_.items():
            if not float(n).is_integer():
                raise ValueError(
                    f"sampling_strategy asks for {n} new rows of class {label!r}: give "
                    "whole numbers of rows, for instance with round()."
                )
            self.sampling_strategy_[label] = int(n)
        wanted = {label: n for label, n in self.sampling_strategy_.items() if n > 0}
        by_class = self.constraints if isinstance(self.constraints, dict) else {}
        for name, asked in (("constraints", by_class), ("totals", self.totals or {})):
            known = np.unique(labels).tolist() if asked else []
            for label in asked:
                if label not in known:
                    raise ValueError(
                        f"{name} has the class {label!r}, but y has the classes "
                        f"{known}: give a dict by class, {{{known[0]!r}: ...}}."
                    )
                if name == "totals" and label not in wanted:
                    raise ValueError(
                        f"totals has the class {label!r}, which gets no new rows: see "
                        "sampling_strategy."
                    )
        return wanted

    def _augment(self, label, take, members, n_new, seed):
        """New rows of one class and their parents among its members."""
        whose = f"class {np.asarray(label).item()!r}"
        asked = self.constraints
        asked = asked.get(label) if isinstance(asked, dict) else asked
        augmenter = self._augmenter()
        with workspace():
            whom = f"{type(self).__name__}, {whose}"
            resolved = self.invariants_, self.marks_
            augmenter._fit(take(members, whose), whom, resolved)
            totals = (self.totals or {}).get(label)
            rows, near, _, report = augmenter._sample(n_new, seed, asked, totals)
        if report is not None:
            self.reports_[label] = report
        augmenter._source.training.forget_search()
        self.augmenters_[label], self.order_ = augmenter, augmenter.order_
        return rows, near

    def _fit_resample(self, X, y):
        """All is done in :meth:`fit_resample`."""
        raise NotImplementedError

    def _stack_parents(self, parents, n):
        """Parents of all classes among ``n``; where a class had fewer of them, -1."""
        k = max((some.shape[1] for some in parents), default=2)
        # Half of what a pickle holds beside the codes.
        dtype = np.promote_types(np.int32, np.min_scalar_type(-n))
        stacked, done = np.full((sum(map(len, parents)), k), -1, dtype), 0
        for some in parents:
            stacked[done : done + len(some), : some.shape[1]] = some
            done += len(some)
        return stacked


class _Classes:
    """Classes as numbers or words (n,), and more of them in the container of ``y``."""

    def __init__(self, y):
        plain, self._as_they_came = plain_target(y)
        # Types with nulls would be read as floats, in which far numbers are the same.
        values = np.asarray(plain)
        shape, kind = np.shape(plain), values.dtype.kind
        several = len(shape) == 2 and shape[1] > 1
        self._indicators = None
        if several and type_of_target(plain) == "multilabel-indicator":
            plain = plain.toarray() if issparse(plain) else plain
            self._indicators = np.asarray(plain)
        elif several and kind == "f":
            raise ValueError(
                f"y has the shape {shape}: it must have one class for each row. "
                "Are X and y swapped? PNLRegressionSampler adds rows with several "
                "numbers as targets."
            )
        self._container = ArraysTransformer(np.empty(0), plain)
        # Whole numbers and words are classes, whatever they are.
        if len(shape) == 1 and kind in "biuU":
            self.labels = values
            return
        try:
            check_classification_targets(plain)
        except (TypeError, ValueError) as error:
            told = str(error).rstrip(".")
            advice = "PNLRegressionSampler adds rows with numbers as targets."
            if kind in "OS" and not issparse(plain):
                kinds = {type(label).__name__ for label in np.ravel(plain)}
                told = f"Unknown label type: objects ({', '.join(sorted(kinds)[:3])})"
                advice = "Give classes a type: y.astype(int), or y.astype(str)."
            raise ValueError(f"{told}. {advice}") from None
        labels = values if kind in "biu" else plain
        if self._indicators is not None:
            labels = self._indicators
            _check_in_a_class(labels)
        self.labels = check_target_type(labels)

    def like(self, labels):
        """All labels as ``y`` came: with a column for each class if it had these."""
        if self._indicators is not None:
            n_classes, dtype = self._indicators.shape[1], self._indicators.dtype
            labels = np.eye(n_classes, dtype=dtype)[labels]
        return self._as_they_came(self._container.transform(np.empty(0), labels)[1])


def _check_in_a_class(indicators):
    for row in np.flatnonzero(~indicators.any(axis=1)):
        raise ValueError(
            f"Row {row} of y is 0 in all {indicators.shape[1]} columns: it is in none "
            "of the classes. Drop such rows, or give them a class of their own."
        )


def _told(labels):
    """How many rows classes have, in words."""
    known, counts = np.unique(labels, return_counts=True)
    return f"rows by class: {dict(zip(known.tolist(), counts.tolist(), strict=True))}"
