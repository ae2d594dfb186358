"""The imbalanced-learn over-sampler: one augmenter a class."""

from numbers import Integral

import numpy as np
from imblearn.over_sampling.base import BaseOverSampler
from imblearn.utils import check_target_type
from scipy.sparse import csr_array, issparse
from scipy.sparse import vstack as sparse_vstack
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import validate_data

from ._callbacks import CallbackSupportMixin, fit_task, subtask, with_callbacks
from ._validation import (
    check_finite,
    check_row_shape,
    clip_neighbors,
    count_blocks,
    rows_per_block,
)
from .augment import PNLAugmenter
from .backward import local_mask
from .geometry import TensorPoset
from .reshape import PrimeFactorReshaper

_INVERTIBLE = HasMethods(["fit", "transform", "inverse_transform"])


class PNLSampler(CallbackSupportMixin, BaseOverSampler):
    """Over-sample by pseudo-nonlinear data augmentation.

    The rows of a class are mapped to non-negative values (``embedding``), reshaped to
    tensors (``reshaper``), encoded on the base of order ell, and new rows are drawn
    and decoded by :class:`PNLAugmenter`; embedding and reshaping are then undone.

    Works on any real-valued table, negative values included, and on arrays of more
    dimensions, such as stacks of images. New rows come after the originals, which are
    returned unchanged.

    Parameters
    ----------
    sampling_strategy : float, str, dict or callable, default="auto"
        Which classes get how many rows, in all the forms of imbalanced-learn. A dict
        gives the number of rows wanted for each class, which may be above that of the
        majority: so all classes can be augmented.

    order : int or list of tuple of int, default=1
        Order ell of the base: the interactions between modes that a code keeps.

    base : array-like, default=None
        The free coordinates given directly, instead of ``order``; as in
        :class:`ManyBodyProjector`. Elements are those of the tensor that the reshaper
        makes, or of ``poset``.

    local_order : int or list of tuple of int, default=None
        Order of the local sub-manifold. None means that of the base.

    local_base : array-like, default=None
        The elements of the local sub-manifold given directly, instead of
        ``local_order``.

    local_manifold : {"fiber", "theta", "eta", "mixture"}, default="fiber"
        How codes are decoded; see :class:`BackwardProjector`.

    k_neighbors : int, default=5
        Rows of the class among which "mixup" looks for a partner, or else that a new
        row is decoded from. A class with fewer rows uses all of them, with a warning.

    augment : {"mixup", "kde"} or estimator, default="mixup"
        How codes are drawn; see :class:`PNLAugmenter`.

    noise : float, default=0.25
        Standard deviation of the noise of "mixup", as a share of that of the codes of
        the class.

    bandwidth : float, default=0.05
        Standard deviation of the noise in theta for ``augment="kde"``.

    step : float, default=0.98
        Position between code and neighbours for ``local_manifold="mixture"``.

    poset : TensorPoset or Poset, default=None
        Order between the features of a row, an element each; it takes the place of
        ``reshaper="prime"``. None is the tensor that the reshaper makes.

    reshaper : {"prime"}, transformer or None, default="prime"
        From rows to tensors and back. "prime" is :class:`PrimeFactorReshaper`, which
        pads with the mean of the row; None keeps the shape of the rows.

    embedding : {"minmax"}, transformer or None, default="minmax"
        From values to non-negative values and back. "minmax" maps each feature to
        [0, 1] over the class, and keeps new rows in its range; None leaves
        non-negative data, such as pixels or spectra, as they are. A transformer gets
        rows flattened to 2-D.

    offset : float, default=0.3
        Added to every cell after the embedding, in its units. The larger, the more an
        e-geodesic between two rows is like the straight line between them.

    with_mass : bool, default=True
        Whether codes carry the mass of a row (its sum after embedding and offset);
        else new rows get the mean mass of the rows that they are decoded from.

    tol : float, default=1e-6
        Wanted residual of the projections.

    max_iter : int, default=100
        Most Newton steps of a projection.

    random_state : int, RandomState instance or None, default=None
        Seed. The same seed gives the same bytes for every ``n_jobs``.

    n_jobs : int, default=None
        Blocks of rows at work at once.

    Attributes
    ----------
    sampling_strategy_ : dict
        Number of rows to add for each class.

    augmenters_ : dict
        The fitted :class:`PNLAugmenter` of each class that got new rows.

    parent_indices_ : ndarray of int of shape (n_new, 2) or (n_new, k_neighbors)
        Rows of ``X`` that each new row was decoded from: the two that "mixup" mixed, or
        else the nearest first, with -1 where a class had fewer.

    integer_features_ : ndarray of int
        Columns of a data frame that hold integers, where new values are rounded.

    integer_limits_ : ndarray of shape (2, n_integer_features)
        Smallest and largest value of the types of these columns.

    input_shape_ : tuple of int
        Shape of a row.

    n_features_in_ : int
        Length of the first axis of a row.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, if all are strings.

    Notes
    -----
    The defaults were chosen on half of the families of the KEEL tables and measured on
    the others; ``benchmarks`` has all figures. The recipe of the paper is
    ``PNLSampler(augment="kde", bandwidth=0.05, local_manifold="mixture", offset=1e-5,
    with_mass=False)``.

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
        **{
            name: PNLAugmenter._parameter_constraints[name]
            for name in (
                "order", "base", "local_order", "local_base", "local_manifold",
                "augment", "noise", "bandwidth", "step", "poset", "offset",
                "with_mass", "tol", "max_iter", "n_jobs",
            )
        },
        "k_neighbors": [Interval(Integral, 1, None, closed="left")],
        "reshaper": [StrOptions({"prime"}), _INVERTIBLE, None],
        "embedding": [StrOptions({"minmax"}), _INVERTIBLE, None],
    }  # fmt: skip

    def __init__(
        self,
        *,
        sampling_strategy="auto",
        order=1,
        base=None,
        local_order=None,
        local_base=None,
        local_manifold="fiber",
        k_neighbors=5,
        augment="mixup",
        noise=0.25,
        bandwidth=0.05,
        step=0.98,
        poset=None,
        reshaper="prime",
        embedding="minmax",
        offset=0.3,
        with_mass=True,
        tol=1e-6,
        max_iter=100,
        random_state=None,
        n_jobs=None,
    ):
        super().__init__(sampling_strategy=sampling_strategy)
        self.order = order
        self.base = base
        self.local_order = local_order
        self.local_base = local_base
        self.local_manifold = local_manifold
        self.k_neighbors = k_neighbors
        self.augment = augment
        self.noise = noise
        self.bandwidth = bandwidth
        self.step = step
        self.poset = poset
        self.reshaper = reshaper
        self.embedding = embedding
        self.offset = offset
        self.with_mass = with_mass
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_X_y(self, X, y):
        """Accept n-D arrays and sparse matrices; remember columns of integers."""
        self.integer_features_, self.integer_limits_ = _integer_columns(X)
        y, binarize_y = check_target_type(y, indicate_one_vs_all=True)
        X, y = validate_data(
            self,
            X=X,
            y=y,
            reset=True,
            accept_sparse=["csr", "csc"],
            allow_nd=True,
            ensure_all_finite=False,
        )
        check_row_shape(self, X, reset=True)
        check_finite(X)
        return X, y, binarize_y

    @with_callbacks
    def _fit_resample(self, X, y):
        rng = check_random_state(self.random_state)
        dense = X.toarray() if issparse(X) else X
        self.augmenters_ = {}
        new, labels, parents = [], [], []
        wanted = {label: n for label, n in self.sampling_strategy_.items() if n > 0}
        with fit_task(self, "fit_resample", len(wanted)) as task:
            for label, n_new in wanted.items():
                members = np.flatnonzero(y == label)
                rows, near = self._augment(
                    label, dense[members], members, n_new, rng, task
                )
                new.append(self._as_input(rows, dense.dtype))
                labels.append(np.full(n_new, label, dtype=y.dtype))
                parents.append(self._pad(members[near]))
        self.parent_indices_ = np.vstack(
            [np.empty((0, self._n_parents), np.intp), *parents]
        )
        return _stack(X, new), np.concatenate([y, *labels])

    def _augment(self, label, X, members, n_new, rng, task):
        """New rows of one class, and the rows of the class that they come from."""
        name = f"class {np.asarray(label).item()!r}"
        k = clip_neighbors(self.k_neighbors, len(X), whose=name)
        flat = X.reshape(len(X), -1)
        embedding, reshaper = self._make_embedding(), self._make_reshaper()
        embedded = np.asarray(embedding.fit_transform(flat))
        _check_embedded(embedded, self.offset, name, members)
        if embedded.shape == flat.shape:
            embedded = embedded.reshape(X.shape)
        tensors = reshaper.fit_transform(embedded)
        augmenter = PNLAugmenter(
            self.order,
            base=self.base,
            local_order=self.local_order,
            local_base=self.local_base,
            local_manifold=self.local_manifold,
            n_neighbors=k,
            augment=self.augment,
            noise=self.noise,
            bandwidth=self.bandwidth,
            step=self.step,
            poset=self.poset,
            offset=self.offset,
            with_mass=self.with_mass,
            tol=self.tol,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
        )
        n_blocks = 0 if task is None else self._count_blocks(tensors, n_new)
        with subtask(task, name, n_blocks):
            self.augmenters_[label] = augmenter.fit(tensors)
            tensors, parents = augmenter.sample_with_parents(n_new, rng)
        rows = reshaper.inverse_transform(tensors).reshape(n_new, -1)
        rows = np.asarray(embedding.inverse_transform(rows))
        if isinstance(self.embedding, str):
            rows = np.clip(rows, flat.min(axis=0), flat.max(axis=0))
        return rows.reshape(n_new, *X.shape[1:]), parents

    def _count_blocks(self, tensors, n_new):
        """Blocks of rows to encode and to decode."""
        poset = TensorPoset(np.shape(tensors)[1:]) if self.poset is None else self.poset
        decoded_at_once = rows_per_block(poset, local_mask(self, poset))
        encoded = count_blocks(len(tensors), rows_per_block(poset))
        return encoded + count_blocks(n_new, decoded_at_once)

    def _make_embedding(self):
        if self.embedding is None:
            return FunctionTransformer()
        return MinMaxScaler() if self.embedding == "minmax" else clone(self.embedding)

    def _make_reshaper(self):
        if self.reshaper is None:
            return FunctionTransformer()
        if self.reshaper == "prime" and self.poset is not None:
            # The projector lays flat rows out on the poset.
            return FunctionTransformer(lambda X: X.reshape(len(X), -1))
        if self.reshaper == "prime":
            return PrimeFactorReshaper(pad_value="mean")
        return clone(self.reshaper)

    def _as_input(self, rows, dtype):
        """Round where the input has integers, and keep within the range of its type."""
        columns = self.integer_features_
        if len(columns):
            rows[:, columns] = np.clip(np.rint(rows[:, columns]), *self.integer_limits_)
        if dtype.kind in "iub":
            rows = np.clip(np.rint(rows), *_limits(dtype))
        return rows.astype(dtype, copy=False)

    @property
    def _n_parents(self):
        mixed = isinstance(self.augment, str) and self.augment == "mixup"
        return 2 if mixed else self.k_neighbors

    def _pad(self, parents):
        missing = self._n_parents - parents.shape[1]
        return np.pad(parents, ((0, 0), (0, missing)), constant_values=-1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


def _integer_columns(X):
    """Columns of a data frame that hold integers or booleans, and their limits."""
    dtypes = list(X.dtypes) if hasattr(X, "columns") else []
    dtypes = [getattr(dtype, "numpy_dtype", dtype) for dtype in dtypes]
    columns = [c for c, t in enumerate(dtypes) if getattr(t, "kind", "") in "iub"]
    limits = [_limits(dtypes[c]) for c in columns]
    return np.array(columns, dtype=np.intp), np.reshape(limits, (-1, 2)).T


def _limits(dtype):
    """Smallest and largest float that fit a type of integers or booleans."""
    if dtype.kind == "b":
        return 0.0, 1.0
    limits = np.iinfo(dtype)
    highest = float(limits.max)
    if int(highest) > limits.max:
        highest = np.nextafter(highest, 0)
    return float(limits.min), highest


def _check_embedded(embedded, offset, name, members):
    """Refuse values without a log, and name the first by its row in the data."""
    lowest = embedded.min()
    if lowest == 0 and offset == 0:
        empty = np.flatnonzero(embedded.max(axis=1) == 0)
        if len(empty):
            raise ValueError(
                f"Row {members[empty[0]]} of X is all zero and offset=0: it has no "
                "distribution. Drop the row or set offset > 0."
            )
        row, column = np.argwhere(embedded == 0)[0]
        raise ValueError(
            f"Column {column} of row {members[row]} of X is zero after the embedding "
            "and offset=0: its log is infinite. Set offset > 0."
        )
    if lowest >= 0:
        return
    row, column = np.argwhere(embedded < 0)[0]
    raise ValueError(
        f"Negative values after the embedding of {name}; the first is "
        f"{embedded[row, column]:g} in row {members[row]} of X, column {column}. Use "
        "embedding='minmax', or a transformer with non-negative output, such as "
        "MinMaxScaler."
    )


def _stack(X, new):
    """Originals first, in the container that came."""
    if not issparse(X):
        return np.concatenate([X, *new])
    new = [csr_array(rows) for rows in new]
    return type(X)(sparse_vstack([X, *new], format=X.format))
