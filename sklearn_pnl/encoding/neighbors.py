"""Search for the training rows nearest to codes, and decoding with near rows.

``KL(w, w_i) = psi_i - psi_w - <eta_w, theta_i - theta_w>`` depends on the training row
only by an inner product. The neighbours in KL divergence are therefore Euclidean
neighbours in one more dimension: :class:`KLSearch` computes points, and
:class:`EuclideanSearch` finds their neighbours by
:class:`~sklearn.neighbors.NearestNeighbors`. :class:`TrainingRows` combines a search
and a codec.
"""

from functools import cached_property, partial

import numpy as np
from joblib import effective_n_jobs
from scipy.linalg import solve_triangular
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors
from sklearn.utils._param_validation import StrOptions

from .._utils.arrays import (
    BLOCK_CELLS,
    DEVICE_BLOCKS,
    at_least,
    at_most,
    cast,
    concat,
    filled,
    floats_like,
    is_foreign,
    like,
    namespace,
    replaced,
    row_dots,
    slices,
    take,
    to_host,
)
from .._utils.blocks import map_blocks, shares_memory
from .._utils.threads import one_blas_thread, search_threads
from .._utils.warnings import warn_unconverged
from ..frames.categories import Indicators, typical_deviation

# Largest number of columns that are searched by trees.
MOST_IN_TREES = 15


class KLSearch:
    r"""Search for the training rows with the smallest ``KL(w, w_i)`` from a code w.

    One additional coordinate turns a search for the largest inner product into a search
    for nearest neighbours (Bachrach et al., RecSys 2014). Points are centred at the
    mean code and scaled by the Fisher metric at the mean code.

    Let 0 denote the mean code, and let ``a = eta_w - eta_0``,
    ``b_i = theta_i - theta_0`` and ``c_i = KL(w_0, w_i)``. The divergence
    ``KL(w, w_i)`` is ``c_i - <a, b_i>`` plus a term that depends only on the query w.
    If ``F F'`` is the Fisher metric at the mean, and K is just large enough for a real
    root,

    .. math:: | (F^{-1} a, 0) - (F' b_i, \sqrt{2 c_i - |F' b_i|^2 + K}) |^2
              = 2 (c_i - \langle a, b_i \rangle) + |F^{-1} a|^2 + K .

    Near the mean, the root is small, and the distance is the distance in the Fisher
    metric.

    Parameters
    ----------
    codec : Codec
        Codec of the codes.
    coordinates : ndarray of shape (n, m)
        Coordinates of the training rows.
    masses : ndarray of shape (n,)
        Masses of the training rows.
    labels : ndarray of int of shape (n, n_categorical), default=None
        Category codes of the training rows.
    """

    def __init__(self, codec, coordinates, masses, labels=None):
        self._codec = codec
        coordinates = codec.flat_coordinates(coordinates)
        codec = codec.flat
        self._base, self._coordinates = codec.base, coordinates
        (n, _), xp = coordinates.shape, namespace(coordinates)
        if not codec.with_mass:
            masses = filled(1.0, n, coordinates)
        mean = xp.mean(coordinates, axis=0, keepdims=True)
        mean = codec.coordinates(codec.codes(mean))
        centre = xp.exp(codec.base.energy(mean))
        self._eta = codec.base.expectations(centre)
        factor = codec.base.metric_factor(to_host(centre)[0], codec.with_mass)
        self._factor = floats_like(factor, coordinates)
        parts, total = [], xp.sum(centre)
        # The temporary arrays of a few rows stay in cache.
        step = BLOCK_CELLS * (DEVICE_BLOCKS if is_foreign(coordinates) else 1)
        for block in slices(n, max(1, step // centre.shape[1])):
            offsets = coordinates[block, :] - mean
            divergence = masses[block] - total - offsets @ self._eta[0, :]
            # A small difference of masses has lost half of its digits or more.
            close = np.flatnonzero(to_host(divergence < 1e-7 * total))
            exact = _kl_of_energies(centre, codec.base.energy(take(offsets, close)))
            (divergence,) = replaced((divergence,), close, (exact,))
            along = xp.multiply if self._factor.ndim == 1 else xp.matmul
            offsets = along(offsets, self._factor)
            # The coordinates that normalisation fixes do not depend on the query.
            offsets[:, : codec.n_fixed] = 0
            parts.append((offsets, 2 * divergence - row_dots(offsets, offsets)))
        offsets, remainder = map(concat, zip(*parts, strict=True))
        last = xp.sqrt(remainder - at_most(xp.min(remainder), 0.0))
        points = concat([offsets, last[:, None]], axis=1)
        self._search = EuclideanSearch(points, labels)

    def nearest(self, codes, k, among=None, like=None, n_jobs=None):
        """Find the k rows (n, k) nearest to codes; see :class:`EuclideanSearch`."""
        points = self._points_of(codes)
        return self._search.nearest(points, k, among, like, n_jobs)

    def _points_of(self, codes):
        """Compute the points of codes, of which the nearest rows are nearest in KL."""
        step = self._codec.encoded_at_once
        if codes.shape[0] <= step:
            return self._few_points(codes)[0]
        return map_blocks(self._few_points, codes, step=step, task="measure codes")[0]

    def _few_points(self, codes):
        factor = self._factor
        eta = self._base.expectations(self._codec.measures(codes)) - self._eta
        if factor.ndim == 1:
            eta /= factor
        elif is_foreign(eta):
            eta = namespace(eta).linalg.solve(factor, eta.T).T
        else:
            eta = solve_triangular(factor, eta.T, lower=True, check_finite=False).T
        return (concat([eta, filled(0.0, (eta.shape[0], 1), eta)], axis=1),)

    def distances(self, codes, neighbors):
        """Compute ``KL(w, w_i)`` (n, k) of a block of codes to k points, in nats."""
        n, k = neighbors.shape
        coordinates = self._codec.flat_coordinates(self._codec.coordinates(codes))
        energy = self._base.energy
        xp, each = namespace(coordinates), np.repeat(np.arange(n), k)
        near = take(self._coordinates, neighbors.reshape(-1))
        measures = take(xp.exp(energy(coordinates)), each)
        divergences = _kl_of_energies(measures, energy(near - take(coordinates, each)))
        return (xp.reshape(divergences, (n, k)),)


class EuclideanSearch:
    """Search for the points with the smallest Euclidean distance, with categories.

    Parameters
    ----------
    points : array or sparse array of shape (m, d)
        Points.
    labels : ndarray of int of shape (m, c), default=None
        Category codes of the points.
    deviation : float, default=None
        Distance between two different categories. None uses the typical deviation of
        the points.
    """

    def __init__(self, points, labels=None, deviation=None):
        self._points, self._indicators = points, None
        if labels is None:
            self._with_labels = _with_some_column(points)
            return
        if deviation is None:
            deviation = typical_deviation(points)
        self._indicators = Indicators(labels, deviation)
        self._with_labels = np.hstack([points, self._indicators.points])

    @cached_property
    def _search(self):
        return _fitted(self._with_labels)

    @one_blas_thread()
    def nearest(self, queries, k, among=None, like=None, n_jobs=None):
        """Find the indices (n, k) of the points nearest to queries.

        The neighbours of a query are in ascending order of distance, and neighbours at
        the same distance are in ascending order of their indices. If more points than
        needed are at the distance of the last neighbour, the choice between these
        points is arbitrary: the lowest indices would make a few points the neighbours
        of all queries. The choice depends on the queries and the points, but not on
        the number of threads, on ``n_jobs`` or on the process.

        ``among`` restricts the search to some points. Queries have the categories of
        the points ``like``. If ``like`` is None, queries have no categories and are
        equally far from all categories.
        """
        if self._indicators is None:
            queries = _with_some_column(queries)
        else:
            of_labels = self._indicators.queries(len(queries), like)
            queries = np.hstack([queries, of_labels])
        if not issparse(queries):
            # Points and queries of different types would be compared by slower code.
            queries = cast(queries, self._with_labels.dtype)
        if among is None:
            return _kneighbors(self._search, queries, k, n_jobs)
        search = _fitted(take(self._with_labels, among))
        return among[_kneighbors(search, queries, k, n_jobs)]

    def distances(self, queries, neighbors):
        """Compute the distances (n, k) of a block of queries to k points."""
        (n, k), xp = neighbors.shape, namespace(queries)
        nearest = take(self._points, neighbors.reshape(-1))
        away = nearest - take(queries, np.repeat(np.arange(n), k))
        return (xp.reshape(xp.sqrt(row_dots(away, away)), (n, k)),)


def _fitted(points):
    """Return a search of scikit-learn, or the points if they are on a device."""
    if is_foreign(points):
        return points
    # As "auto" chooses, except that this choice does not depend on k.
    is_brute = (
        issparse(points) or points.shape[1] > MOST_IN_TREES or points.shape[0] < 12
    )
    algorithm = "brute" if is_brute else "kd_tree"
    # `n_jobs=None` would use the workers of an active joblib backend.
    search = NearestNeighbors(algorithm=algorithm, leaf_size=40, n_jobs=1)
    with config_context(assume_finite=True, skip_parameter_validation=True):
        return search.fit(points)


def _kneighbors(search, queries, k, n_jobs):
    """Find the indices (n, k) of the points nearest to queries, in ascending order.

    Points at the same distance are sorted by index, because a search returns them in an
    order that depends on the number of queries.
    """
    if is_foreign(queries):
        distances, near = _nearest_on_device(search, queries, k)
    elif issparse(queries):
        distances, near = _nearest_sparse(search, queries, k)
    else:
        distances, near = _nearest_dense(search, queries, k, n_jobs)
    tied = np.flatnonzero((distances[:, 1:] == distances[:, :-1]).any(axis=1))
    if len(tied):
        order = np.lexsort((near[tied], distances[tied]), axis=1)
        near[tied] = np.take_along_axis(near[tied], order, axis=1)
    return near


def _nearest_dense(search, queries, k, n_jobs):
    """Return distances and indices (n, k) of the nearest points.

    Trees are searched by ``n_jobs`` threads, and all distances by threads of OpenMP.
    """
    n_jobs = effective_n_jobs(n_jobs) if shares_memory() else 1
    if search.algorithm == "kd_tree" and n_jobs > 1:
        find, step = (
            partial(search.kneighbors, n_neighbors=k),
            -(-len(queries) // n_jobs),
        )
        task = "search for neighbours"
        return map_blocks(find, queries, step=max(1, step), task=task, n_jobs=n_jobs)
    options = {"assume_finite": True, "skip_parameter_validation": True}
    with config_context(**options), search_threads(len(queries)):
        return search.kneighbors(queries, k)


def _nearest_sparse(search, queries, k):
    """Return distances and indices (n, k) of the nearest sparse points.

    The compiled search of scikit-learn compares all pairs of cells of two points.
    Sparse products are faster. Their results are dense, in blocks of a few rows.
    """
    options = {"assume_finite": True, "skip_parameter_validation": True}
    options |= {"enable_cython_pairwise_dist": False, "working_memory": 8}
    with config_context(**options):
        return search.kneighbors(queries, k)


def _nearest_on_device(points, queries, k):
    """Return distances and indices (n, k) of the nearest points, on the host.

    The searches of scikit-learn do not support arrays on devices.
    """
    every, near = like(np.arange(points.shape[0]), queries), []
    squares = row_dots(points, points)
    xp, at_once = namespace(queries), BLOCK_CELLS * DEVICE_BLOCKS // points.shape[0]
    for block in slices(queries.shape[0], max(1, at_once)):
        away, indices = squares - 2 * (queries[block, :] @ points.T), []
        for _ in range(k):
            nearest = xp.argmin(away, axis=1)
            away = xp.where(every == nearest[:, None], np.inf, away)
            indices.append(to_host(nearest))
        near.append(np.column_stack(indices))
    near = np.concatenate(near)
    # Squared norms of long points lose digits, so that the distances of the found
    # points are computed again.
    each = np.repeat(np.arange(len(near)), k)
    away = take(points, near.reshape(-1)) - take(queries, each)
    distances = np.sqrt(to_host(row_dots(away, away))).reshape(near.shape)
    order = np.lexsort((near, distances), axis=1)
    found = distances, near
    return tuple(np.take_along_axis(values, order, axis=1) for values in found)


def _with_some_column(points):
    """Add a constant column to points without columns (codes of one cell)."""
    return points if points.shape[1] else filled(0.0, (points.shape[0], 1), points)


METRIC = [StrOptions({"kl", "euclidean"})]


class TrainingRows:
    """Training rows with their codes, for neighbour search and decoding.

    Parameters
    ----------
    codec : Codec
        Codec of the rows.
    rows : ndarray of shape (n, D)
        Training rows, or an empty array of the same dtype if the codec does not need
        the rows.
    encoded : Encoded
        Result of the codec for the rows.
    metric : {"kl", "euclidean"}
        Distance between codes.
    labels : ndarray of int of shape (n, n_categorical), default=None
        Category codes of the rows, which contribute to the distances.
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
    def _search(self):
        if self.metric == "euclidean":
            return EuclideanSearch(self.codes, self.labels)
        return KLSearch(self.codec, self.coordinates, self.masses, self.labels)

    @one_blas_thread()
    def nearest(self, codes, k, among=None, like=None, n_jobs=None):
        """Find the k rows (n, k) nearest to codes; see :class:`EuclideanSearch`."""
        return self._search.nearest(codes, k, among, like, n_jobs)

    def distances(self, codes, neighbors, n_jobs=None):
        """Compute KL(w, w_i) in nats or Euclidean distances of codes to rows (n, k)."""
        step = max(1, self.codec.encoded_at_once // neighbors.shape[1])
        return map_blocks(
            self._search.distances,
            codes,
            neighbors,
            step=step,
            task="measure distances",
            n_jobs=n_jobs,
        )[0]

    def mean(self, neighbors):
        """Compute mean distributions (n, D) of the rows with indices (n, k)."""
        weights = np.full(neighbors.shape, 1 / neighbors.shape[1])
        return self.codec.mean(self.rows, self.masses, neighbors, weights)

    def divergences(self, codes, rows, n_jobs=None):
        """Compute the divergence in nats of each decoded row (n, D) from its code."""
        given = self.codec.divergences, codes, rows
        step, task = self.codec.decoded_at_once, "measure codes"
        return map_blocks(*given, step=step, task=task, n_jobs=n_jobs)[0]

    def decode(self, codes, neighbors, caller, weights=None, n_jobs=None):
        """Decode codes to rows (n, D) by projection onto the local sub-manifolds.

        Codes are decoded in blocks. A warning is issued if some projections did not
        converge.
        """
        codec, rows = self.codec, self.rows
        if weights is None:
            weights = np.full(neighbors.shape, 1 / neighbors.shape[1])
        if not codec.needs_rows:
            # Threads do not speed up a single pass over memory.
            rows, n_jobs = rows[:0, ...], None
        decode = partial(codec.decode, rows=rows, masses=self.masses)
        given, step = (codes, neighbors, weights), codec.decoded_at_once
        rows, residual = map_blocks(
            decode, *given, step=step, task=f"{caller}: decode", n_jobs=n_jobs
        )
        tol = codec.attainable_tol(rows)
        warn_unconverged(caller, to_host(residual), tol, codec.max_iter)
        return rows

    def decoded(self):
        """Decode the training rows (n, D) from their codes."""
        if self.codec.needs_rows:
            return 1 * self.rows
        neighbors = np.arange(self.codes.shape[0])[:, None]
        return self.decode(self.codes, neighbors, "")


def _kl_of_energies(measure, energy):
    """Compute ``KL(m, m exp(u)) = sum m (exp(u) - 1 - u)`` without cancellation."""
    xp = namespace(energy)
    terms = xp.expm1(energy)
    terms -= energy
    terms *= measure
    return at_least(xp.sum(terms, axis=1), 0.0)
