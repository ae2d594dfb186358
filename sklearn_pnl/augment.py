"""Draw new rows from one set of rows: encode, draw codes, decode."""

import copy
from inspect import signature
from numbers import Integral, Real

import numpy as np
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ._callbacks import CallbackSupportMixin, fit_task, with_callbacks
from ._neighbors import _QUERIES
from ._validation import one_blas_thread
from .backward import BackwardProjector


class PNLAugmenter(CallbackSupportMixin, BaseEstimator):
    """Pseudo-nonlinear data augmentation of one set of positive rows.

    ``fit`` encodes the rows on the base; ``sample`` draws codes near those of the
    training rows and decodes each through the local sub-manifold of training rows near
    it (:class:`BackwardProjector`). No labels are needed: use it for one class, for
    unlabelled data, or for rows with the target as one more feature.

    Parameters
    ----------
    order : int or list of tuple of int, default=1
        Order ell of the base, or the interactions kept.

    base : array-like, default=None
        The free coordinates given directly, instead of ``order``; as in
        :class:`ManyBodyProjector`.

    local_order : int or list of tuple of int, default=None
        Order of the local sub-manifold. None means that of the base.

    local_base : array-like, default=None
        The elements of the local sub-manifold given directly, instead of
        ``local_order``.

    local_manifold : {"fiber", "theta", "eta", "mixture"}, default="fiber"
        How codes are decoded; see :class:`BackwardProjector`.

    n_neighbors : int, default=5
        Training rows among which "mixup" looks for a partner, or else that make a
        local sub-manifold.

    augment : {"mixup", "kde"} or estimator, default="mixup"
        How codes are drawn.

        - "mixup": at a random position on the e-geodesic between the code of a random
          row and that of one of its ``n_neighbors`` nearest, a straight line in theta,
          plus ``noise``. Decoded through the same position on the m-geodesic between
          the two rows, so that without noise the ends are the rows themselves;
        - "kde": from a Gaussian kernel density estimate in theta, as in the paper.
          Decoded through the ``n_neighbors`` nearest rows, as is the next;
        - an estimator with ``fit`` and ``sample``, such as
          :class:`~sklearn.mixture.GaussianMixture` or
          :class:`~sklearn.neighbors.KernelDensity`, is cloned and fitted on the codes.

    noise : float, default=0.25
        Standard deviation of the Gaussian noise of "mixup" as a share of that of the
        codes: its covariance is ``noise ** 2`` times theirs, whatever the basis.

    bandwidth : float, default=0.05
        Standard deviation of the noise in every coordinate of theta, for "kde".

    metric : {"kl", "euclidean"}, default="kl"
        Nearness of codes.

    step : float, default=0.98
        Position between code and neighbours for ``local_manifold="mixture"``.

    poset : TensorPoset or Poset, default=None
        Order between the cells; None is the tensor of the rows' own shape.

    offset : float, default=1e-5
        Added to every cell on entry, taken off on return.

    with_mass : bool, default=False
        Whether codes carry the mass of a row.

    tol : float, default=1e-6
        Wanted residual of the projections.

    max_iter : int, default=100
        Most Newton steps of a projection.

    n_jobs : int, default=None
        Blocks of rows at work at once.

    Attributes
    ----------
    projector_ : BackwardProjector
        Encoder and decoder.

    density_ : estimator
        The fitted estimator, if ``augment`` is one.

    input_shape_ : tuple of int
        Shape of a row.

    n_features_in_ : int
        Length of the first axis of a row.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, if all are strings.

    References
    ----------
    P. Hu, M. Sugiyama, "Pseudo-nonlinear data augmentation: a constrained energy
    minimization viewpoint", ICLR 2026, Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import PNLAugmenter
    >>> X = np.random.default_rng(0).uniform(size=(30, 4, 5))
    >>> augmenter = PNLAugmenter(order=1).fit(X)
    >>> augmenter.sample(3, random_state=0).shape
    (3, 4, 5)
    """

    _parameter_constraints: dict = {
        **BackwardProjector._parameter_constraints,
        "augment": [StrOptions({"mixup", "kde"}), HasMethods(["fit", "sample"])],
        "noise": [Interval(Real, 0, None, closed="left")],
        "bandwidth": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        order=1,
        *,
        base=None,
        local_order=None,
        local_base=None,
        local_manifold="fiber",
        n_neighbors=5,
        augment="mixup",
        noise=0.25,
        bandwidth=0.05,
        metric="kl",
        step=0.98,
        poset=None,
        offset=1e-5,
        with_mass=False,
        tol=1e-6,
        max_iter=100,
        n_jobs=None,
    ):
        self.order = order
        self.base = base
        self.local_order = local_order
        self.local_base = local_base
        self.local_manifold = local_manifold
        self.n_neighbors = n_neighbors
        self.augment = augment
        self.noise = noise
        self.bandwidth = bandwidth
        self.metric = metric
        self.step = step
        self.poset = poset
        self.offset = offset
        self.with_mass = with_mass
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=False)
    @with_callbacks
    def fit(self, X, y=None):
        """Encode the rows, and fit the density of their codes if there is one.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative rows.
        y : None
            Ignored.

        Returns
        -------
        self : PNLAugmenter
        """
        shared = set(BackwardProjector._parameter_constraints)
        parameters = self.get_params(deep=False)
        self.projector_ = BackwardProjector(
            **{name: parameters[name] for name in parameters if name in shared}
        )
        with fit_task(self):
            self.projector_.fit(X)
        self.input_shape_ = self.projector_.input_shape_
        self.n_features_in_ = self.projector_.n_features_in_
        if hasattr(self.projector_, "feature_names_in_"):
            self.feature_names_in_ = self.projector_.feature_names_in_
        vars(self).pop("density_", None)
        if not isinstance(self.augment, str):
            # In double precision: mixtures keep covariances in that of the codes, and
            # drawing from single ones can fail.
            codes = self.projector_.codes_.astype(np.float64, copy=False)
            self.density_ = clone(self.augment).fit(codes)
        return self

    def sample(self, n_samples=1, random_state=None):
        """New rows.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState instance or None, default=None
            Seed. The same seed gives the same bytes for every ``n_jobs``.

        Returns
        -------
        rows : ndarray of shape (n_samples, *input_shape_)
            Non-negative, in the units of the training rows.
        """
        return self.sample_with_parents(n_samples, random_state)[0]

    def sample_with_parents(self, n_samples, random_state=None):
        """New rows, and the training rows that each was decoded from.

        Parameters
        ----------
        n_samples : int
            How many.
        random_state : int, RandomState instance or None, default=None
            Seed.

        Returns
        -------
        rows : ndarray of shape (n_samples, *input_shape_)
        parents : ndarray of int of shape (n_samples, 2) or (n_samples, n_neighbors)
            Rows of the training data: the two that "mixup" mixed, or else the nearest
            ones, the nearest first.
        """
        draw = self._start(n_samples, random_state)
        codes, parents, weights = draw(slice(0, n_samples))
        return _decode(self.projector_, codes, parents, weights), parents

    def iter_samples(self, n_samples, batch_size=None, random_state=None):
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

        Returns
        -------
        batches : generator of ndarray of shape (batch_size, *input_shape_)

        Notes
        -----
        Beyond one batch, what is held grows by 24 bytes a row for "mixup" and by 8 for
        "kde". An estimator draws all codes at once; for it and for "kde", neighbours by
        ``metric="euclidean"`` are looked up at once. These hold all codes.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_pnl import PNLAugmenter
        >>> X = np.random.default_rng(0).uniform(size=(30, 4, 5))
        >>> augmenter = PNLAugmenter().fit(X)
        >>> [len(rows) for rows in augmenter.iter_samples(250, 100, random_state=0)]
        [100, 100, 50]
        """
        batches = self.iter_samples_with_parents(n_samples, batch_size, random_state)
        return (rows for rows, _ in batches)

    def iter_samples_with_parents(self, n_samples, batch_size=None, random_state=None):
        """New rows in batches, and the training rows that each was decoded from.

        Parameters
        ----------
        n_samples, batch_size, random_state
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
        draw = self._start(n_samples, random_state)
        size = self._rows_in_memory() if batch_size is None else batch_size
        return self._batches(draw, n_samples, min(size, n_samples))

    def _start(self, n_samples, random_state):
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be an integer >= 1; got {n_samples!r}.")
        return self._draw(n_samples, check_random_state(random_state))

    def _rows_in_memory(self):
        """Rows of which two batches fit: one at work, one in the caller's hands."""
        projector = self.projector_
        numbers = projector.rows_[0].size + projector.n_params_ + self.n_neighbors
        free = get_config()["working_memory"] * 2**20
        step = projector._decoded_at_once
        return max(1, int(free // (2 * 8 * numbers)) // step) * step

    def _batches(self, draw, n_samples, size):
        """Batches whose bytes are those of all rows at once.

        Rounding depends on which rows a matrix product is over. So codes are drawn with
        their neighbours, and decoded, in whole blocks of either, and cut anew between.
        """
        projector = self.projector_
        step = projector._decoded_at_once
        # Small batches would leave all but one of the workers idle.
        decoded = max(size, step * effective_n_jobs(projector.n_jobs))
        # How scikit-learn cuts a search is not known here, so it is not cut at all.
        mixed = isinstance(self.augment, str) and self.augment == "mixup"
        searched = projector.metric == "euclidean" and not mixed
        drawn = n_samples if searched else _whole(decoded, _QUERIES)
        drawing = (draw(rows) for rows in gen_batches(n_samples, drawn))
        decoding = (
            (_decode(projector, codes, parents, weights), parents)
            for codes, parents, weights in _cut(drawing, _whole(decoded, step))
        )
        return _cut(decoding, size)

    def _draw(self, n_samples, rng):
        """A function from slices of the new rows, in ascending order, to their codes.

        With the training rows that each is decoded from, and their weights. It may draw
        noise, in the order of the rows; all else is drawn here, so that the codes are
        the same for all ways to slice.
        """
        if isinstance(self.augment, str) and self.augment == "mixup":
            return self._draw_between(n_samples, rng)
        if isinstance(self.augment, str):
            draw = self._draw_around(n_samples, rng)
        else:
            draw = self._draw_from_density(n_samples, rng).__getitem__

        def with_nearest(rows):
            codes = draw(rows)
            return codes, *self.projector_._nearest(codes)

        return with_nearest

    def _draw_around(self, n_samples, rng):
        codes, bandwidth = self.projector_.codes_, self.bandwidth
        centre = rng.randint(len(codes), size=n_samples)

        def around(rows):
            centres = codes[centre[rows]]
            noise = rng.standard_normal(centres.shape)
            return (centres + bandwidth * noise).astype(codes.dtype)

        return around

    def _draw_between(self, n_samples, rng):
        codes, noise = self.projector_.codes_, self.noise
        first = rng.randint(len(codes), size=n_samples)
        second = self._partners(first, rng)
        position = rng.uniform(size=n_samples)
        with one_blas_thread():
            factor = noise * _covariance_factor(codes) if noise > 0 else None

        def between(rows):
            weights = np.column_stack([1 - position[rows], position[rows]])
            parents = np.column_stack([first[rows], second[rows]])
            mixed = weights[:, :1] * codes[parents[:, 0]]
            mixed += weights[:, 1:] * codes[parents[:, 1]]
            if factor is not None:
                mixed += _correlated(rng, len(mixed), factor)
            return mixed.astype(codes.dtype), parents, weights

        return between

    def _partners(self, first, rng):
        """For each row a random one of its nearest others; itself if it is alone."""
        codes = self.projector_.codes_
        k = min(self.n_neighbors, len(codes) - 1)
        if k == 0:
            return first
        sources, inverse = np.unique(first, return_inverse=True)
        near = self.projector_._neighbors(codes[sources], k + 1)[1]
        # Copies of a row may rank before it: drop the row where it stands, else the
        # farthest.
        itself = near == sources[:, None]
        itself[~itself.any(axis=1), -1] = True
        others = near[~itself].reshape(len(sources), k)
        return others[inverse, rng.randint(k, size=len(first))]

    def _draw_from_density(self, n_samples, rng):
        """Some estimators take a seed in ``sample``, some as a parameter."""
        density = self.density_
        if "random_state" in signature(density.sample).parameters:
            drawn = density.sample(n_samples, random_state=rng)
        else:
            if "random_state" in density.get_params(deep=False):
                seed = rng.randint(np.iinfo(np.int32).max)
                density = copy.copy(density).set_params(random_state=seed)
            drawn = density.sample(n_samples)
        codes = np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn)
        expected = (n_samples, self.projector_.n_params_)
        if codes.shape != expected or not np.all(np.isfinite(codes)):
            raise ValueError(
                f"{density!r}.sample must return {expected[0]} finite codes of length "
                f"{expected[1]}; got an array of shape {codes.shape}."
            )
        # GaussianMixture returns its draws component by component.
        codes = codes[rng.permutation(n_samples)]
        return codes.astype(self.projector_.codes_.dtype, copy=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.three_d_array = True
        return tags


def _covariance_factor(codes):
    """``F`` with ``F' F`` the covariance of the codes; as many rows as it needs."""
    codes = codes.astype(np.float64)
    codes -= codes.mean(axis=0)
    codes /= np.sqrt(max(1, len(codes) - 1))
    return codes if len(codes) <= codes.shape[1] else np.linalg.qr(codes, mode="r")


def _correlated(rng, n, factor):
    """Gaussian noise of covariance ``F' F``, in blocks: rounding depends on them."""
    with one_blas_thread():
        blocks = [
            rng.standard_normal((rows.stop - rows.start, len(factor))) @ factor
            for rows in gen_batches(n, _QUERIES)
        ]
    return np.concatenate(blocks)


def _decode(projector, codes, parents, weights):
    """Rows without the cells below 0 that rounding and the offset make."""
    rows = projector._decode(codes, parents, weights)
    return np.maximum(rows, 0, out=rows)


def _whole(size, step):
    """``size`` rounded up to whole steps."""
    return -(-size // step) * step


def _cut(batches, size):
    """Tuples of arrays, cut anew to ``size`` rows; the last may have fewer.

    Holds no more than what is left of the last tuple while it waits for the next.
    """
    left = None
    for arrays in batches:
        start = 0
        if left is not None:
            start = size - len(left[0])
            heads = (a[:start] for a in arrays)
            left = tuple(map(np.concatenate, zip(left, heads, strict=True)))
            if len(left[0]) < size:
                continue
            yield left
        n = len(arrays[0])
        end = n - (n - start) % size
        for row in range(start, end, size):
            yield tuple(a[row : row + size] for a in arrays)
        left = tuple(a[end:].copy() for a in arrays) if end < n else None
        del arrays
    if left is not None:
        yield left
