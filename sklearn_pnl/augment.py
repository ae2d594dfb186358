"""Draw new rows from one set of rows: embed, encode, draw codes, decode, and back."""

from collections.abc import Iterator, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ._blocks import cut, whole_steps
from ._callbacks import CallbackSupportMixin, fit_task, no_task, with_callbacks
from ._categories import one_of
from ._coding import (
    TrainingRows,
    encode_rows,
    free_mask,
    lay_out,
    make_codec,
    overlaps,
    own,
)
from ._formats import read_rows
from ._keeping import CONSTRAINTS, Keeper, resolve_invariants
from ._typing import Rows, Seed
from ._validation import (
    all_or_nothing,
    check_embedded,
    check_measures,
    check_shape_is,
    clip_neighbors,
    feature_names,
    warn_target_unused,
)
from ._zeros import keep_both, with_zeros, zero_in_all
from .backward import METRIC
from .constraints import Constraint
from .draws import (
    AUGMENT,
    DrawsLike,
    KernelDraws,
    MixupDraws,
    TrainingCodes,
    as_draws,
)
from .embedding import RangeEmbedding, ends_of, fold, limits, range_embedding
from .geometry import PosetProtocol
from .invariants import Invariants
from .manifolds import LOCAL_MANIFOLD, ORDER, LocalManifoldLike, as_local_manifold
from .many_body import CODEC_CONSTRAINTS
from .reshape import PrimeFactorReshaper

# Codes drawn and looked up at once: rounding, and with it the order of near-ties, must
# not depend on how new rows are asked for.
_DRAWN = 2**12
# Room that rows brought to constraints have where they are free otherwise.
_FREE_MARGIN = 10.0
# New cells that are drawn and decoded one after the other at least: a few times as many
# stay in cache, and are asked of the system only once.
_BATCH_CELLS = 2**17
# Rows were checked at the door; arrays are what is worked on.
_UNCHECKED = {"assume_finite": True, "transform_output": "default"}
_INVERTIBLE = HasMethods(["fit", "transform", "inverse_transform"])


class PNLAugmenter(CallbackSupportMixin, BaseEstimator):
    """Pseudo-nonlinear data augmentation of one set of rows.

    ``fit`` maps the rows to non-negative values (``embedding``), lays them out as
    tensors where their structure is known, and encodes them on a flat base.
    ``sample`` draws codes near those of the training rows, decodes each through the
    local sub-manifold of training rows near it (:class:`BackwardProjector` says how),
    and undoes the layout and the embedding: new rows have the units, types and
    container of the training rows. No labels are needed: use it for one class, for
    unlabelled data, or for rows with the target as one more feature.

    Parameters
    ----------
    order : "auto", int, list of tuple of int or None, default="auto"
        Order ell of the base: the interactions between modes that a code keeps, or
        those listed. None keeps all: the code is the whole row, in log coordinates, and
        neither the order of the columns nor their number matters. "auto" is 1 for rows
        whose structure is stated, by more than one axis or by ``reshaper``, ``poset``
        or ``base``; else, for plain tables, None: no structure is invented.

    base : array-like, default=None
        The free coordinates given directly, instead of ``order``; as in
        :class:`ManyBodyProjector`. Elements are those of ``poset``, or of the tensor
        that the reshaper makes.

    local_manifold : {"fiber", "theta", "eta", "mixture"} or LocalManifold, \
            default="fiber"
        How codes are decoded; see :class:`BackwardProjector`.

    k_neighbors : int, default=5
        Rows among which "mixup" looks for a partner, or else that a new row is decoded
        from. Fewer rows are all used, with a warning.

    augment : {"mixup", "kde"}, Draws or estimator, default="mixup"
        How codes are drawn: between near rows (:class:`MixupDraws`), from a kernel
        density estimate as in the paper (:class:`KernelDraws`), or from an estimator
        with ``fit`` and ``sample``, which is cloned (:class:`DensityDraws`).

    metric : {"kl", "euclidean"}, default="kl"
        Nearness of codes.

    poset : TensorPoset or Poset, default=None
        Order between the features of a row, an element each. None is the tensor that
        the reshaper makes.

    reshaper : {"auto", "prime"}, transformer or None, default="auto"
        From rows to tensors and back. "prime" is :class:`PrimeFactorReshaper`, padding
        with the mean of the row; None keeps the shape of the rows. "auto" is "prime"
        where codes are reduced without a poset, else None.

    embedding : {"minmax"}, transformer or None, default="minmax"
        From values to non-negative values and back. "minmax" maps each feature to
        [0, 1]; None leaves non-negative data, such as pixels or spectra, as they are. A
        transformer gets rows flattened to 2-D.

    categorical_features : "auto", array-like or None, default=None
        Columns that hold categories: their numbers, their names or a mask. "auto" is
        all columns of a data frame that hold neither numbers nor times: strings,
        objects, and the categorical types of pandas, polars and pyarrow; Booleans are
        the numbers 0 and 1. A new row takes all its categories from one of its
        parents, so that they go together as somewhere in the data: where all columns
        are categories, new rows are copies. What is missing is a category too. For
        nearness a difference in one of them counts as much as the typical deviation of
        a number, as in SMOTE-NC. The geometry, equations and constraints are about the
        other columns.

    keep_zeros : bool, default=False
        Whether cells that are zero in all parents of a new row are zero in it, exactly.
        Without an embedding the others take over what they had, and what falls below
        zero is taken from them, so that the row keeps its sum. For compositions, rows
        of one sum, ``PNLAugmenter(embedding=None, with_mass=False, margin=None,
        keep_zeros=True)`` is closed whether ``invariants`` find the sum or not; for
        counts it is ``PNLAugmenter(embedding=None, keep_zeros=True)``.

    offset : float, default=1.0
        Added to every cell after the embedding, in its units. The larger, the more an
        e-geodesic between two rows is like the straight line between them.

    with_mass : bool, default=True
        Whether codes carry the mass of a row (its sum after embedding and offset);
        else new rows get the mean mass of the rows that they are decoded from.

    margin : float or None, default=0.1
        How far new values may lie beyond the range of a feature, as a share of its
        length; what is farther is reflected. An end that several rows share is taken
        for a bound and not passed, and no feature changes its sign. 0 keeps every
        range, None sets no limit.

    invariants : "auto", constraints or None, default="auto"
        Linear equations that new rows keep, to 1e-9 of the features' ranges: totals,
        shares, copies, one-hot groups. "auto" is those that all training rows satisfy
        and that chance would not make (:func:`find_invariants`), for rows of at most
        200 features; also given as what that function found, or as equations in the
        forms that ``constraints`` of :meth:`sample` has.

    tol : float, default=1e-6
        Wanted residual of the projections.

    max_iter : int, default=100
        Most Newton steps of a projection.

    n_jobs : int, default=None
        Blocks of rows at work at once.

    Attributes
    ----------
    order_ : int, list of tuple of int or None
        The order taken; ``base`` goes before it.

    poset_ : TensorPoset or Poset
        The order between the cells that rows were laid out on.

    base_mask_ : ndarray of bool of shape ``poset_.shape``
        Elements whose theta makes up the code, without the bottom; all of them where
        nothing is reduced.

    embedding_, reshaper_ : transformer or None
        Fitted, where there are any.

    draws_ : Draws
        Fitted.

    codes_ : ndarray of shape (n, n_params_)
        Codes of the training rows.

    n_params_ : int
        Length of a code.

    n_iter_ : int
        Most Newton steps that encoding a row took; at least 1.

    n_neighbors_ : int
        ``k_neighbors``, at most the number of training rows, for "mixup" of others.

    invariants_ : Invariants
        The equations kept; printed, they are told in words.

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
    PNLSampler : An augmenter a class, for imbalanced problems.
    PNLRegressionSampler : Rows with numbers as targets.
    BackwardProjector : Encoding and decoding.
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

    _parameter_constraints: dict = {
        **CODEC_CONSTRAINTS,
        "order": [StrOptions({"auto"}), *ORDER, None],
        "local_manifold": LOCAL_MANIFOLD,
        "k_neighbors": [Interval(Integral, 1, None, closed="left")],
        "augment": AUGMENT,
        "metric": METRIC,
        "reshaper": [StrOptions({"auto", "prime"}), _INVERTIBLE, None],
        "embedding": [StrOptions({"minmax"}), _INVERTIBLE, None],
        "margin": [Interval(Real, 0, None, closed="left"), None],
        "categorical_features": ["array-like", StrOptions({"auto"}), None],
        "keep_zeros": ["boolean"],
        "invariants": [StrOptions({"auto"}), Invariants, *CONSTRAINTS, None],
    }

    def __init__(
        self,
        order: Literal["auto"] | int | Sequence | None = "auto",
        *,
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
        tol: float = 1e-6,
        max_iter: int = 100,
        n_jobs: int | None = None,
    ) -> None:
        self.order = order
        self.base = base
        self.local_manifold = local_manifold
        self.k_neighbors = k_neighbors
        self.augment = augment
        self.metric = metric
        self.poset = poset
        self.reshaper = reshaper
        self.embedding = embedding
        self.categorical_features = categorical_features
        self.keep_zeros = keep_zeros
        self.offset = offset
        self.with_mass = with_mass
        self.margin = margin
        self.invariants = invariants
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=False)
    @all_or_nothing
    @with_callbacks
    def fit(self, X: Rows, y: Any = None) -> Self:
        """Encode the rows, and fit the density of their codes if there is one.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, *shape)
            Rows.
        y : None
            Not used; a warning names the samplers whose new rows have targets.

        Returns
        -------
        self : PNLAugmenter
        """
        warn_target_unused(y)
        with fit_task(self):
            rows = self._take(X)
            ends = ends_of(rows)
            draws = as_draws(self.augment)
            of_rows = not draws.looks_up
            self.n_neighbors_ = clip_neighbors(self.k_neighbors, len(rows), of_rows)
            self._set_keeper(rows, ends)
            with config_context(**_UNCHECKED), no_task():
                cells = self._lay_out(self._embed(rows, ends))
            mine = self._format.cut_out
            cells = cells if mine else own(cells, X)
            self._encode(cells, overwrite=mine or not overlaps(cells, X))
            self.draws_ = draws.fit(self.codes_)
            self._check_draws()
        return self

    def _encode(self, cells, overwrite):
        """Codes of cells (n, D), which are kept if decoding needs them."""
        codec, whom = self._codec, type(self).__name__
        overwrite &= not codec.needs_rows
        encoded = encode_rows(codec, cells, whom, self.n_jobs, overwrite=overwrite)
        kept = cells if codec.needs_rows else np.empty_like(cells[:0])
        labels = self._format.labels
        self._training = TrainingRows(codec, kept, encoded, self.metric, labels)
        self.codes_ = self._training.codes
        self.n_params_ = codec.n_params
        self.n_iter_ = max(1, int(encoded.n_iter.max()))

    def _check_draws(self):
        """Refuse to draw codes around rows that have categories alone."""
        alone = self._format.labels is not None and not len(self._format.names)
        if alone and self.draws_.looks_up:
            raise ValueError(
                "All columns are categories, so that there are no numbers to draw with "
                f"augment={self.augment!r}. Use augment='mixup'."
            )

    def _set_keeper(self, rows, ends):
        """What new rows keep: limits and equations of the training rows (n, D)."""
        names = self._format.feature_names
        self.invariants_ = resolve_invariants(
            self.invariants, rows, names, self._format.whole
        )
        margin = _FREE_MARGIN if self.margin is None else self.margin
        self._keeper = Keeper.of(
            self.invariants_,
            ends,
            limits(rows, ends, margin),
            self.embedding is not None,
            self.offset,
            self._format.whole,
        )

    def _take(self, X):
        """Rows (n, D) of floats; what they came as, and their ranges, are kept."""
        _, numbers, self._format, _ = read_rows(self, X)
        self.integer_features_ = self._format.integer_features
        rows = _dense(numbers)
        self._zeros = rows == 0 if self.keep_zeros else None
        times = self._format.times
        self._times = None if times is None else rows[:, times].astype(float)
        return _as_floats(rows)

    def _embed(self, rows, ends):
        """Rows (n, D) in the units of the embedding, which they must not be lost in.

        Rows are passed over as rarely as can be: their ends tell most.
        """
        names = self._names
        if self.embedding is None:
            self.embedding_, embedded = None, rows
        elif isinstance(self.embedding, str):
            out = rows if self._format.cut_out and rows.dtype == np.float64 else None
            self.embedding_, embedded = range_embedding(rows, ends, out)
            ends = np.zeros(rows.shape[1]), 1.0 * (ends[1] > ends[0])
        else:
            self.embedding_ = clone(self.embedding)
            embedded = np.asarray(self.embedding_.fit_transform(rows))
            names = names if embedded.shape == rows.shape else None
            check_embedded(embedded, names)
            ends = ends_of(embedded)
        if self.offset == 0 or ends[0].min(initial=0) < 0:
            self._check_cells(embedded, names)
        _check_kept(ends, self.offset, names)
        return embedded

    def _check_cells(self, embedded, names):
        cells = embedded.reshape(-1, *self._shape_of(embedded))
        where = f"in data passed to {type(self).__name__}"
        if self.embedding is not None:
            where = "after the embedding"
        check_measures(cells, f"Negative values {where}", self.offset, names=names)

    @property
    def _names(self):
        """Names of the numbers of a row, if there are any."""
        return feature_names(self) if self._format.names is None else self._format.names

    def _shape_of(self, embedded):
        """Shape of embedded rows: as they came, unless their length has changed."""
        shape = self._format.shape
        return shape if embedded.shape[1] == np.prod(shape) else embedded.shape[1:]

    def _lay_out(self, embedded):
        """Cells (n, D) on the poset, and the codec for them."""
        shape = self._shape_of(embedded)
        manifold = as_local_manifold(self.local_manifold)
        self.order_ = self._resolve_order(shape)
        whole = self.order_ is None and self.base is None
        self.reshaper_ = self._make_reshaper(not whole or manifold.reduces)
        tensors = embedded.reshape(-1, *shape)
        if self.reshaper_ is not None:
            tensors = np.asarray(self.reshaper_.fit_transform(tensors))
        elif self.poset is not None:
            tensors = embedded
        self._cell_shape = tensors.shape[1:]
        self.poset_ = lay_out(self.poset, self._cell_shape, self.reshaper_)
        base = None if whole else free_mask(self.poset_, self.order_, self.base)
        self.base_mask_ = np.ones(self.poset_.shape, bool) if whole else base
        self._codec = make_codec(self, self.poset_, base, manifold)
        return tensors.reshape(len(tensors), -1)

    def _resolve_order(self, shape):
        """The order taken: structure that is stated is used, none is invented."""
        if not isinstance(self.order, str):
            return self.order
        given = self.poset is not None or self.base is not None
        given |= self.reshaper not in (None, "auto")
        return 1 if given or len(shape) > 1 else None

    def _solves_alone(self, shape):
        """Whether to encode rows is work, and none of it is done by others."""
        order = self._resolve_order(shape)
        known = str, MixupDraws, KernelDraws, PrimeFactorReshaper
        parts = self.augment, self.embedding, self.reshaper
        ours = all(part is None or isinstance(part, known) for part in parts)
        return ours and (order not in (None, 1) or self.base is not None)

    def _make_reshaper(self, reduced):
        """The reshaper, not fitted; None where rows are laid out as they are."""
        if not isinstance(self.reshaper, str):
            return None if self.reshaper is None else clone(self.reshaper)
        wanted = self.poset is None and (reduced or self.reshaper == "prime")
        return PrimeFactorReshaper(pad_value="mean") if wanted else None

    def to_measures(self, X: Rows) -> NDArray:
        """The measures that rows are read as, after embedding, layout and offset.

        Parameters
        ----------
        X : array-like of shape (n, *input_shape_)
            Rows.

        Returns
        -------
        measures : ndarray of shape (n, *poset_.shape)
        """
        check_is_fitted(self)
        numbers = self._format.read(X)
        check_shape_is(self, numbers.shape[1:], self._format.shape)
        tensors = self._embedded(_dense(numbers))
        check_measures(tensors, "Negative values after the embedding", self.offset)
        cells = self._codec.cells(self._laid_out(tensors))
        return cells.reshape(-1, *self.poset_.shape)

    def _embedded(self, rows):
        """Rows (n, D), in the units and the shape of those embedded by ``fit``."""
        if self.embedding_ is not None:
            rows = np.asarray(self.embedding_.transform(rows))
        return rows.reshape(-1, *self._shape_of(rows))

    def _laid_out(self, tensors):
        """Their cells (n, D)."""
        if self.reshaper_ is not None:
            tensors = np.asarray(self.reshaper_.transform(tensors))
        return tensors.reshape(len(tensors), -1)

    def sample(
        self,
        n_samples: int = 1,
        random_state: Seed = None,
        *,
        constraints: Constraint | Sequence | None = None,
    ) -> Any:
        """New rows.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState instance or None, default=None
            Seed. The same seed gives the same bytes for every ``n_jobs``.
        constraints : constraint or list of them, default=None
            What is asked of the new rows, in the units of ``X``:
            :class:`scipy.optimize.LinearConstraint`, or :func:`column_constraint` for
            columns by name and for a value a row. "mixup" draws pairs of rows between
            which it is met, and the projection nearest in KL meets it to 1e-9 of the
            range.

        Returns
        -------
        rows : array-like of shape (n_samples, *input_shape_)
            In the units, types and container of the training rows.

        Raises
        ------
        ValueError
            If a constraint cannot be met within the limits of the features: which one,
            and the range that can be reached.
        """
        return self.sample_with_parents(
            n_samples, random_state, constraints=constraints
        )[0]

    def sample_with_parents(
        self,
        n_samples: int,
        random_state: Seed = None,
        *,
        constraints: Constraint | Sequence | None = None,
    ) -> tuple[Any, NDArray]:
        """New rows, and the training rows that each was decoded from.

        Parameters
        ----------
        n_samples : int
            How many.
        random_state : int, RandomState instance or None, default=None
            Seed.
        constraints : constraint or list of them, default=None
            As for :meth:`sample`.

        Returns
        -------
        rows : array-like of shape (n_samples, *input_shape_)
        parents : ndarray of int of shape (n_samples, 2) or (n_samples, k_neighbors)
            Rows of the training data: the two that "mixup" mixed, or else the nearest
            ones, the nearest first.
        """
        return self._sample(n_samples, random_state, constraints)[:2]

    def _sample(self, n_samples, random_state, constraints=None, shares=None, out=None):
        """New rows, their parents, and the weights of these.

        ``shares`` says how often each training row is drawn from, relative to others;
        ``out`` is room for rows that come as arrays in double precision.
        """
        draw, keep = self._start(n_samples, random_state, constraints, shares)
        length = int(np.prod(self._format.shape))
        rows = np.empty((n_samples, length)) if out is None else out.reshape(-1, length)
        beside, done = [], 0
        # Temporaries of a batch are used again, where those of all would not fit.
        size = min(n_samples, 1 + _BATCH_CELLS // rows.shape[1])
        for new, *drawn in self._batches(draw, keep, n_samples, size):
            rows[done : done + len(new)] = new
            beside.append(drawn)
            done += len(new)
        parents, weights, donors = map(np.concatenate, zip(*beside, strict=True))
        return self._format.restore(rows, donors), parents, weights

    def _forget_search(self):
        """Give back what looking for near rows holds, until rows are drawn again."""
        self._training.forget_search()

    def _forget_rows(self):
        """Leave out the training rows, which those have that this goes to."""
        self._training.rows = self._training.rows[:0]

    def _recall_rows(self, numbers):
        """The training rows again, from what they were read as."""
        if self._codec.needs_rows:
            with config_context(**_UNCHECKED):
                cells = self._laid_out(self._embedded(_as_floats(_dense(numbers))))
            self._training.rows = cells

    def iter_samples(
        self,
        n_samples: int,
        batch_size: int | None = None,
        random_state: Seed = None,
        *,
        constraints: Constraint | Sequence | None = None,
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
        random_state : int, RandomState instance or None, default=None
            Seed. An instance must not be used for anything else before the last batch:
            noise is drawn from it batch by batch.
        constraints : constraint or list of them, default=None
            As for :meth:`sample`.

        Returns
        -------
        batches : generator of array-like of shape (batch_size, *input_shape_)

        Notes
        -----
        Beyond one batch, what is held grows by 24 bytes a row for "mixup" and by 8 for
        "kde". An estimator draws all codes at once.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_pnl import PNLAugmenter
        >>> X = np.random.default_rng(0).uniform(size=(30, 4, 5))
        >>> augmenter = PNLAugmenter().fit(X)
        >>> [len(rows) for rows in augmenter.iter_samples(250, 100, random_state=0)]
        [100, 100, 50]
        """
        batches = self.iter_samples_with_parents(
            n_samples, batch_size, random_state, constraints=constraints
        )
        return (rows for rows, _ in batches)

    def iter_samples_with_parents(
        self,
        n_samples: int,
        batch_size: int | None = None,
        random_state: Seed = None,
        *,
        constraints: Constraint | Sequence | None = None,
    ) -> Iterator[tuple[Any, NDArray]]:
        """New rows in batches, and the training rows that each was decoded from.

        Parameters
        ----------
        n_samples, batch_size, random_state, constraints
            As for :meth:`iter_samples`.

        Returns
        -------
        batches : generator of tuple (rows, parents)
            As :meth:`sample_with_parents` returns them.
        """
        if batch_size is not None and not (
            isinstance(batch_size, Integral) and batch_size >= 1
        ):
            raise ValueError(
                f"batch_size must be an integer >= 1 or None; got {batch_size!r}."
            )
        draw, keep = self._start(n_samples, random_state, constraints)
        size = self._rows_in_memory() if batch_size is None else batch_size
        batches = self._batches(draw, keep, n_samples, min(size, n_samples))
        return (
            (self._format.restore(rows, donors), parents)
            for rows, parents, _, donors in batches
        )

    def _start(self, n_samples, random_state, constraints, shares=None):
        """How slices of the new rows are drawn, and what is done to them in the end.

        Draws are codes, parents, weights, the parent that categories come from, and the
        ends of the constraints of each.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be an integer >= 1; got {n_samples!r}.")
        rng, keeper = check_random_state(random_state), self._keeper
        system, asked = keeper.system(constraints, n_samples)
        self._format.refuse_times(system.coefficients[asked])
        condition = None
        if asked.start < asked.stop:
            rows = self._undo(self._training.decoded())
            condition = keeper.condition(system, asked, rows)
        nearest = partial(self._training.nearest, n_jobs=self.n_jobs)
        training = TrainingCodes(
            self.codes_, self.n_neighbors_, nearest, self._training.copies, shares
        )
        chosen = None
        if self._format.labels is not None:
            chosen = rng.uniform(size=n_samples)
        with no_task():
            draw = self.draws_.start(training, n_samples, rng, condition)
        ends = [
            np.broadcast_to(end, (n_samples, len(system)))
            for end in (system.lower, system.upper)
        ]
        keep = partial(
            keeper.keep,
            system=system,
            asked=asked,
            step=self._codec.decoded_at_once,
            n_jobs=self.n_jobs,
            whom=type(self).__name__,
        )

        def drawn(rows):
            codes, parents, weights = draw(rows)
            donors = parents[:, 0]
            if chosen is not None:
                donors = one_of(parents, weights, chosen[rows])
            return codes, parents, weights, donors, *(end[rows] for end in ends)

        return drawn, keep

    def _decode(self, keep, codes, parents, weights, donors, lower, upper):
        """New rows (n, D) in double precision and the units of ``X``, and the rest."""
        whom = type(self).__name__
        cells = self._training.decode(codes, parents, weights, whom, self.n_jobs)
        zeros = None if self._zeros is None else zero_in_all(self._zeros, parents)
        if zeros is not None and self.embedding_ is None:
            rows = with_zeros(self._undo(cells), zeros)
        else:
            if not isinstance(self.embedding_, RangeEmbedding):
                # The offset leaves cells below 0, which not every embedding goes on to.
                # A range does, and how far is for the margin to say.
                np.maximum(cells, 0, out=cells)
            rows = self._undo(cells)
        if self.margin is not None:
            rows = fold(rows, self._keeper.low, self._keeper.high)
        if self._times is not None:
            times = self._times[parents]
            between = times.min(axis=1), times.max(axis=1)
            rows[:, self._format.times] = fold(rows[:, self._format.times], *between)
        ends = {"lower": lower, "upper": upper}
        if zeros is None:
            rows = keep(rows, **ends)
        else:
            system, whole = keep.keywords["system"], self._format.whole
            rows = keep_both(keep, rows, zeros, system, **ends, whole=whole)
        return rows, parents, weights, donors

    def _undo(self, cells):
        """Rows (n, D) in double precision and the units of ``X`` from cells."""
        rows = cells
        if self.reshaper_ is not None:
            tensors = cells.reshape(-1, *self._cell_shape)
            rows = np.asarray(self.reshaper_.inverse_transform(tensors))
            rows = rows.reshape(len(cells), -1)
        if self.embedding_ is not None:
            rows = np.asarray(self.embedding_.inverse_transform(rows))
        return rows.astype(np.float64, copy=False).reshape(len(cells), -1)

    def _rows_in_memory(self):
        """Rows of which two batches fit: one at work, one in the caller's hands."""
        numbers = np.prod(self._format.shape) + self.n_params_ + self.n_neighbors_
        free = get_config()["working_memory"] * 2**20
        step = self._codec.decoded_at_once
        return max(1, int(free // (2 * 8 * numbers)) // step) * step

    def _batches(self, draw, keep, n_samples, size):
        """Batches whose bytes are those of all rows at once.

        Rounding depends on which rows a matrix product is over. So codes are drawn with
        their neighbours, and decoded, in whole blocks of either, and cut anew between.
        """
        step = self._codec.decoded_at_once
        # Small batches would leave all but one of the workers idle.
        decoded = max(size, step * effective_n_jobs(self.n_jobs))
        drawn = whole_steps(decoded, _DRAWN if self.draws_.looks_up else step)
        drawing = (draw(rows) for rows in gen_batches(n_samples, drawn))
        whole = cut(drawing, whole_steps(decoded, step))
        decoding = (self._decode(keep, *each) for each in whole)
        return cut(decoding, size)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.embedding is None
        return tags


def _dense(numbers):
    """Rows (n, D) of an array of any shape, or of a sparse one."""
    dense = numbers.toarray() if issparse(numbers) else numbers
    return dense.reshape(len(dense), -1)


def _as_floats(rows):
    return rows if rows.dtype in (np.float32, np.float64) else rows.astype(float)


def _check_kept(ends, offset, names=None):
    """Refuse features that the offset would round to a constant."""
    low, high = ends
    lost = (high > low) & (high + offset == low + offset)
    if lost.any():
        column = int(np.argmax(lost))
        name = column if names is None else names[column]
        raise ValueError(
            f"Column {name!r} spans {high[column] - low[column]:.3g} after the "
            f"embedding, which offset={offset:g} rounds away. Use embedding='minmax', "
            "or a smaller offset."
        )
