"""The imbalanced-learn over-sampler: one augmenter a class."""

from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
from imblearn.over_sampling.base import BaseOverSampler
from imblearn.utils import check_target_type
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from ._callbacks import CallbackSupportMixin, fit_task, with_callbacks
from ._classes import ClassTask, augment_classes
from ._formats import Hidden, plain_target, read_rows, stack, with_room
from ._frames import is_frame, is_pandas
from ._keeping import CONSTRAINTS, resolve_invariants
from ._typing import Rows, Seed
from ._validation import all_or_nothing, shared_params
from .augment import PNLAugmenter
from .constraints import Constraint
from .draws import DrawsLike, as_draws
from .geometry import PosetProtocol
from .invariants import Invariants
from .manifolds import LocalManifoldLike


class PNLSampler(CallbackSupportMixin, BaseOverSampler):
    """Over-sample by pseudo-nonlinear data augmentation.

    A :class:`PNLAugmenter` a class. Works on any real-valued table, negative values
    included, and on arrays of more dimensions, such as stacks of images. New rows come
    after the originals, which are returned unchanged.

    Parameters
    ----------
    sampling_strategy : float, str, dict or callable, default="auto"
        Which classes get how many rows, in all the forms of imbalanced-learn. A dict
        gives the number of rows wanted for each class, which may be above that of the
        majority: so all classes can be augmented.

    order : "auto", int, list of tuple of int or None, default="auto"
        Order ell of the base: the interactions between modes that a code keeps. None
        keeps all, without a structure of the rows; "auto" is 1 where their structure
        is stated, by more than one axis or by ``reshaper``, ``poset`` or ``base``,
        else None.

    base, local_manifold, k_neighbors, augment, metric, poset, reshaper, embedding
        As in :class:`PNLAugmenter`, with the same defaults; "all rows" are those of a
        class.

    categorical_features, keep_zeros, offset, with_mass, margin
        Likewise.

    invariants : "auto", constraints or None, default="auto"
        Linear equations that new rows keep; as in :class:`PNLAugmenter`, looked for in
        the rows of all classes.

    constraints : constraint, list of them, dict or None, default=None
        What is asked of all new rows, as for :meth:`PNLAugmenter.sample`; a dict has
        those of each class, by its label.

    tol, max_iter
        As in :class:`PNLAugmenter`.

    random_state : int, RandomState instance or None, default=None
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

    invariants_ : Invariants
        The equations kept; printed, they are told in words.

    order_ : int, list of tuple of int or None
        The order taken, if any class got new rows.

    parent_indices_ : ndarray of int of shape (n_new, 2) or (n_new, k_neighbors)
        Rows of ``X`` that each new row was decoded from: the two that "mixup" mixed, or
        else the nearest first, with -1 where a class had fewer.

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
    ``PNLSampler(order=1, augment="kde", local_manifold="mixture", offset=1e-5,
    with_mass=False, margin=0, reshaper=PrimeFactorReshaper())``.

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

    _parameter_constraints: dict = {
        **BaseOverSampler._parameter_constraints,
        **PNLAugmenter._parameter_constraints,
        "constraints": [*CONSTRAINTS, dict, None],
    }

    def __init__(
        self,
        *,
        sampling_strategy: float | str | dict | Callable = "auto",
        order: Literal["auto"] | int | Sequence | None = "auto",
        base: ArrayLike | None = None,
        local_manifold: LocalManifoldLike = "fiber",
        k_neighbors: int = 5,
        augment: DrawsLike = "mixup",
        metric: Literal["kl", "euclidean"] = "kl",
        poset: PosetProtocol | None = None,
        reshaper: Literal["auto", "prime"] | Any = "auto",
        embedding: Literal["minmax"] | Any = "minmax",
        categorical_features: Literal["auto"] | ArrayLike | None = None,
        keep_zeros: bool = False,
        offset: float = 1.0,
        with_mass: bool = True,
        margin: float | None = 0.1,
        invariants: Literal["auto"]
        | Invariants
        | Constraint
        | Sequence
        | None = "auto",
        constraints: Constraint | Sequence | dict | None = None,
        tol: float = 1e-6,
        max_iter: int = 100,
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(sampling_strategy=sampling_strategy)
        self.order, self.base = order, base
        self.local_manifold = local_manifold
        self.k_neighbors, self.augment, self.metric = k_neighbors, augment, metric
        self.poset, self.reshaper, self.embedding = poset, reshaper, embedding
        self.categorical_features, self.keep_zeros = categorical_features, keep_zeros
        self.offset, self.with_mass, self.margin = offset, with_mass, margin
        self.invariants, self.constraints = invariants, constraints
        self.tol, self.max_iter = tol, max_iter
        self.random_state, self.n_jobs = random_state, n_jobs

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
        labels, as_they_came = plain_target(y)
        X_resampled, y_resampled = super().fit_resample(_known(X), labels)
        return X_resampled, as_they_came(y_resampled)

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
        super().fit(_known(X), plain_target(y)[0])
        del self._read
        return self

    def _check_X_y(self, X, y):
        """Check numbers and labels; frames stay frames, to come back unchanged."""
        X = X.rows if isinstance(X, Hidden) else X
        y, binarize_y = check_target_type(y, indicate_one_vs_all=True)
        X, numbers, form, y = read_rows(self, X, y)
        self._read = numbers, form
        return X, y, binarize_y

    @with_callbacks
    def _fit_resample(self, X, y):
        read = self.__dict__.pop("_read")
        self.augmenters_, self.invariants_ = {}, self._find_invariants(*read)
        tasks = self._class_tasks(y)
        ends = len(y) + np.cumsum([0, *(task.n_new for task in tasks)])
        whole = with_room(X, read[1], ends[-1] - len(y))
        rooms = [None] * len(tasks)
        if whole is not None:
            rooms = [whole[start:end] for start, end in pairwise(ends)]
        params = shared_params(self, PNLAugmenter) | {"invariants": self.invariants_}
        new, labels, parents = [], [], []
        with (
            fit_task(self, "fit_resample", len(tasks)) as progress,
            closing(
                augment_classes(tasks, params, X, read, rooms, progress)
            ) as augmented,
        ):
            for task, augmenter, rows, near in augmented:
                new.append(rows)
                labels.append(np.full(task.n_new, task.label, dtype=y.dtype))
                parents.append(task.members[near])
                self.augmenters_[task.label] = augmenter
                self.order_ = augmenter.order_
        self.parent_indices_ = self._stack_parents(parents)
        whole = stack(X, new) if whole is None else whole
        return whole, np.concatenate([y, *labels])

    def _class_tasks(self, y):
        """What is wanted of each class that gets new rows."""
        wanted = {label: n for label, n in self.sampling_strategy_.items() if n > 0}
        rng, largest = check_random_state(self.random_state), np.iinfo(np.int32).max
        # One class alone is an augmenter with the seed of the sampler.
        seeds = [rng] if len(wanted) == 1 else rng.randint(largest, size=len(wanted))
        asked, whom = self.constraints, type(self).__name__
        return [
            ClassTask(
                label,
                members=np.flatnonzero(y == label),
                n_new=n_new,
                seed=seed,
                asked=asked.get(label) if isinstance(asked, dict) else asked,
                whom=whom,
            )
            for (label, n_new), seed in zip(wanted.items(), seeds, strict=True)
        ]

    def _find_invariants(self, numbers, form):
        """Equations in the rows of all classes, of which there are more."""
        dense = numbers.toarray() if issparse(numbers) else numbers
        rows = dense.reshape(len(dense), -1)
        return resolve_invariants(self.invariants, rows, form.feature_names, form.whole)

    def _stack_parents(self, parents):
        """Parents of all classes; where a class had fewer of them, -1."""
        k = as_draws(self.augment).n_parents(self.k_neighbors)
        stacked = np.full((sum(map(len, parents)), k), -1)
        done = 0
        for some in parents:
            stacked[done : done + len(some), : some.shape[1]] = some
            done += len(some)
        return stacked

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.positive_only = self.embedding is None
        return tags


def _known(X):
    """Rows for imbalanced-learn, which gives back frames of pandas only."""
    return Hidden(X) if is_frame(X) and not is_pandas(X) else X
