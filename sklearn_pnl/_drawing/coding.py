"""Training rows with their codes: what the estimators do with a codec of `geometry`."""

from functools import cached_property, partial
from numbers import Integral

import numpy as np
from joblib import cpu_count
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from .._runtime.blocks import even_step, map_blocks, shares_memory
from .._runtime.threads import one_blas_thread
from .._runtime.validation import check_masses, warn_not_identified, warn_unconverged
from .._runtime.workspace import slices
from ..geometry import TensorPoset, element_mask, order_mask
from ..geometry.codec import Codec, Encoded
from ..geometry.nearness import KLEmbedding, gaps_of_neighbors, kl_of_neighbors
from ..tables.categories import Indicators, typical_variance

# What need not be checked of numbers made here.
_CHECKED = {"assume_finite": True, "skip_parameter_validation": True}
# scikit-learn goes through queries in chunks, and gives each thread some of them if
# there are more than so many for each; else each gets some of the points.
_CHUNK, _CHUNKS = 256, 4
# Queries for a worker at once; and products, a second of work, from which it pays.
_SEARCHED, _WORTH_SENDING = 8 * _CHUNK, 2**34


def free_mask(poset, order, elements):
    """Elements whose theta is free: those listed, or else all up to ``order``."""
    if elements is None:
        modes = len(poset.shape) if isinstance(poset, TensorPoset) else 2
        if modes == 1 and isinstance(order, Integral) and order > 1:
            raise ValueError(
                f"order={order} is outside 1 to 1: rows of one mode have no "
                "interactions yet. PrimeFactorReshaper makes tensors of them; in "
                "PNLAugmenter leave reshaper='auto'."
            )
        return order_mask(poset, order)
    return element_mask(poset, elements)


def make_codec(estimator, poset, base, local_manifold=None):
    """The codec of an estimator's own numerics."""
    return Codec(
        poset,
        base,
        offset=estimator.offset,
        with_mass=estimator.with_mass,
        tol=estimator.tol,
        max_iter=estimator.max_iter,
        local_manifold=local_manifold,
    )


def lay_out(poset, shape, reshaper=None):
    """The poset that rows of a shape are laid out on; None is the tensor of them."""
    if poset is None:
        return TensorPoset(shape)
    n_features = poset.n_elements - poset.added_bottom
    laid_out = shape == poset.shape and not poset.added_bottom
    if laid_out or shape == (n_features,):
        return poset
    if reshaper is not None:
        raise ValueError(
            f"{poset!r} stands for {n_features} features, but {reshaper!r} makes "
            f"tensors of shape {shape}. A poset orders the features themselves: leave "
            "out one of reshaper and poset."
        )
    raise ValueError(
        f"{poset!r} stands for {n_features} features, but a row has shape {shape}: "
        "there must be one feature for each element"
        + (" but the added bottom." if poset.added_bottom else ".")
    )


def own(rows, X):
    """Rows that a later change of ``X`` leaves alone; those on disk stay there."""
    shared = isinstance(X, np.ndarray) and np.may_share_memory(rows, X)
    return rows.copy() if shared and X.flags.writeable else rows


def encode_rows(
    codec,
    rows,
    whom,
    n_jobs=None,
    divergence=False,
    overwrite=False,
    numbers=None,
    missing=False,
):
    """:class:`Encoded` of rows (n, D), with a warning if some did not converge.

    Coordinates may ``overwrite`` rows of their shape; ``numbers`` (n,) are those that
    the user knows the rows by. NaN is a ``missing`` cell if asked for; a warning says
    where the others do not determine a code.
    """
    # One pass a block is as fast as memory: threads would only wait for it.
    worth_sharing = codec.solves or divergence or missing
    n_jobs, step = n_jobs if worth_sharing else None, codec.encoded_at_once
    encode = codec.encode_observed if missing else codec.encode
    encode = partial(encode, divergence=divergence)
    encoded = Encoded(
        *map_blocks(
            encode,
            rows,
            step=even_step(len(rows), step) if worth_sharing else step,
            n_jobs=n_jobs,
            into=rows if overwrite else None,
        )
    )
    check_masses(encoded.mass, numbers)
    warn_unconverged(whom, encoded.residual, codec.tol, codec.max_iter)
    warn_not_identified(whom, encoded.identified)
    return encoded


class TrainingRows:
    """Rows to find near ones among, and to decode codes through.

    Parameters
    ----------
    codec : Codec
    rows : ndarray of shape (n, D)
        None of them, but their type, if the codec does not decode through them.
    encoded : Encoded
        What the codec made of the rows.
    metric : {"kl", "euclidean"}
        Nearness of codes.
    labels : ndarray of int of shape (n, n_categorical), default=None
        Categories of the rows, which count in their nearness.
    """

    def __init__(self, codec, rows, encoded, metric, labels=None):
        self.codec = codec
        self.rows = rows
        self.coordinates = encoded.coordinates
        self.masses = encoded.mass
        self.metric = metric
        self.labels = labels

    @property
    def codes(self):
        """Codes of the rows, in double precision."""
        return self.codec.codes(self.coordinates)

    @cached_property
    def _embedding(self):
        masses = self.masses
        if not self.codec.with_mass:
            masses = np.ones_like(masses)
        return KLEmbedding(self.codec, self.coordinates, masses)

    @cached_property
    def _search(self):
        return self._search_among(slice(None))

    @property
    def _points(self):
        return self._embedding.points if self.metric == "kl" else self.codes

    @cached_property
    def _indicators(self):
        return Indicators(self.labels, typical_variance(self._points))

    def _search_among(self, rows):
        return NearestNeighbors().fit(self._places()[rows])

    def _places(self):
        """Where rows are for the search."""
        points = self._points
        if self.labels is not None:
            points = np.hstack([points, self._indicators.points])
        return _some_column(points)

    def _queries(self, codes, like):
        """Where codes are, with the categories of rows ``like``."""
        queries = codes
        if self.metric == "kl":
            queries = self._embedding.queries(codes)
        if self.labels is not None:
            own = self._indicators.queries(len(codes), like)
            queries = np.hstack([queries, own])
        return _some_column(queries)

    @one_blas_thread()
    def nearest(self, codes, k, among=None, like=None, n_jobs=None):
        """The k rows (n, k) nearest to each code, ascending; of some rows or all.

        Codes have the categories of the rows ``like``; None is none, which are as far
        from all others.
        """
        with config_context(**_CHECKED):
            search = self._search if among is None else self._search_among(among)
            near = _kneighbors(search, self._queries(codes, like), k, n_jobs)
        return near if among is None else among[near]

    @one_blas_thread()
    def gaps(self, rows, *others):
        """How far (m,) the search has others from rows, each, for comparison alone."""
        codes, places = self.codes, self._places()
        found = np.empty((len(others), len(rows)))
        for some in slices(len(rows), _SEARCHED):
            queries = self._queries(codes[rows[some]], rows[some])
            for gaps, each in zip(found, others, strict=True):
                apart = places[each[some]]
                apart -= queries
                gaps[some] = np.square(apart, out=apart).sum(axis=1)
        return found

    def copies(self):
        """Numbers (n,) that rows of the same code and categories share."""
        parts = [self.codes] if self.labels is None else [self.codes, self.labels]
        return np.unique(np.hstack(parts), axis=0, return_inverse=True)[1].reshape(-1)

    def distances(self, codes, neighbors, n_jobs=None):
        """KL(w, w_i) in nats, or Euclidean distances, of codes to rows (n, k)."""
        measure = partial(gaps_of_neighbors, points=self.codes)
        if self.metric == "kl":
            measure = partial(
                kl_of_neighbors, codec=self.codec, coordinates=self.coordinates
            )
        step = max(1, self.codec.encoded_at_once // neighbors.shape[1])
        return map_blocks(measure, codes, neighbors, step=step, n_jobs=n_jobs)[0]

    def decoded(self):
        """The rows (n, D), as they are decoded from their own codes."""
        if self.codec.needs_rows:
            return self.rows.copy()
        own = np.arange(len(self.codes))[:, None]
        return self.decode(self.codes, own, np.ones(own.shape), "")

    def forget_search(self):
        """Give back what the search holds; the next one makes it again."""
        for made in ("_embedding", "_search", "_indicators"):
            self.__dict__.pop(made, None)

    def mean(self, neighbors):
        """Mean distributions (n, D) of rows (n, k)."""
        weights = np.full(neighbors.shape, 1 / neighbors.shape[1])
        return self.codec.mean(self.rows, self.masses, neighbors, weights)

    def decode(self, codes, neighbors, weights, whom, n_jobs=None, settle=False):
        """Rows (n, D) of codes, with a warning if some did not converge.

        To the last digits of theta only if asked to ``settle`` it.
        """
        codec = self.codec
        rows = self.rows
        if not codec.needs_rows:
            # One pass a block again: threads would only wait for memory.
            rows, n_jobs = rows[:0], None
        rows, residual = map_blocks(
            partial(codec.decode, rows=rows, masses=self.masses, settle=settle),
            codes,
            neighbors,
            weights,
            step=codec.decoded_at_once,
            n_jobs=n_jobs,
        )
        warn_unconverged(whom, residual, codec.tol, codec.max_iter)
        return rows


def _kneighbors(search, queries, k, n_jobs):
    """Numbers (n, k) of the points nearest to queries, by workers where it pays."""
    shared, work = shares_memory(), queries.size * search.n_samples_fit_
    # How many cores there are takes long to find out.
    if (
        shared
        or work < _WORTH_SENDING
        or len(queries) <= _CHUNKS * _CHUNK * cpu_count()
    ):
        search.n_jobs = n_jobs if shared else 1
        return _in_order(search, queries, k)
    find = partial(_kneighbors_there, search=search, k=k)
    return map_blocks(find, queries, step=_SEARCHED, n_jobs=n_jobs)[0]


def _kneighbors_there(queries, search, k):
    """Numbers of the points nearest to some of the queries, on one thread."""
    with threadpool_limits(1, user_api="openmp"):
        return (_in_order(search, queries, k),)


def _in_order(search, queries, k):
    """Numbers of the nearest points, ascending; where they tie, by number.

    A search leaves ties in an order that hangs on how many queries it has.
    """
    distances, near = search.kneighbors(queries, k)
    tied = np.flatnonzero((distances[:, 1:] == distances[:, :-1]).any(axis=1))
    if len(tied):
        order = np.lexsort((near[tied], distances[tied]), axis=1)
        near[tied] = np.take_along_axis(near[tied], order, axis=1)
    return near


def _some_column(points):
    """Points; a constant where they have no coordinates, as codes of one cell."""
    return points if points.shape[1] else np.zeros((len(points), 1))
