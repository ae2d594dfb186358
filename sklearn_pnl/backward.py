"""Backward projection: codes to rows, through a sub-manifold of near training rows."""

from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.neighbors import NearestNeighbors
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ._callbacks import CallbackSupportMixin, fit_task, with_callbacks
from ._neighbors import kl_neighbors
from ._validation import (
    as_cells,
    check_codes,
    check_tensors,
    clip_neighbors,
    from_simplex,
    map_blocks,
    rows_per_block,
    warn_unconverged,
)
from .geometry.coordinates import normalized_exp
from .geometry.solvers import mixed_solver
from .many_body import _ORDER, ManyBodyProjector, free_mask


class BackwardProjector(CallbackSupportMixin, TransformerMixin, BaseEstimator):
    r"""Encode rows on a flat base, and decode codes to rows like the training rows.

    ``inverse_transform`` takes a code, a point ``w`` of the base, and the
    distribution-valued mean of its nearest training rows, ``r``, and solves one
    convex problem, given by the local sub-manifold of order ell' = ``local_order``:

    ========== =============================================================
    "fiber"    ``min KL(q, r)`` over the ``q`` with all expectations of ``w`` up
               to order ell'. With ell' = ell this is the exact inverse of
               encoding: ``transform(inverse_transform(w)) = w``; with one
               neighbour, its own code gives back the row itself. A decoded row
               is ``q * mass - offset``, so cells far below the offset are lost to
               rounding, and theta with them where a whole marginal is; and a
               bottom that was added to the poset is filled in anew.
    "theta"    theta of the neighbours' geometric mean up to order ell', the
               expectations of ``w`` beyond it: the paper's set M*, closed form.
    "eta"      expectations of ``r`` up to order ell', theta of ``w`` beyond it.
    "mixture"  ``(1 - step) w + step r``: the m-geodesic, which the natural
               gradient flow of the authors' program follows until it stops.
    ========== =============================================================

    Parameters
    ----------
    order : int or list of tuple of int, default=1
        Order ell of the base, or the interactions kept; as in
        :class:`ManyBodyProjector`.

    base : array-like, default=None
        The free coordinates given directly, instead of ``order``; as in
        :class:`ManyBodyProjector`.

    local_order : int or list of tuple of int, default=None
        Order ell' of the local sub-manifold. None means that of the base.

    local_base : array-like, default=None
        The elements "up to order ell'" given directly, instead of ``local_order``.

    local_manifold : {"fiber", "theta", "eta", "mixture"}, default="fiber"
        See above.

    n_neighbors : int, default=5
        Training rows that make a local sub-manifold; at most those there are.

    metric : {"kl", "euclidean"}, default="kl"
        Nearness of codes: ``KL(w, w_i)`` on the base, or distance in theta. Among
        more than 16,384 training rows, codes of at most 11 numbers and the mass are
        compared in KL with the ``4 k + 16`` that are nearest in the mean Fisher metric,
        and no others.

    step : float, default=0.98
        Position between ``w`` (0) and the mean of the neighbours (1) for "mixture".

    poset : TensorPoset or Poset, default=None
        As in :class:`ManyBodyProjector`.

    offset : float, default=1e-5
        Added to every cell on entry, taken off on return.

    with_mass : bool, default=False
        Whether codes carry the mass of a row. If not, a decoded row gets the mean
        mass of its neighbours.

    tol, max_iter, n_jobs
        As in :class:`ManyBodyProjector`.

    Attributes
    ----------
    projector_ : ManyBodyProjector
        The forward projection; without ``reconstruction_err_``, which takes longer
        than a projection of order 1.

    codes_ : ndarray of shape (n, n_params_)
        Codes of the training rows.

    coordinates_ : ndarray of shape (n, 1 + size of the base)
        theta of the training rows on the bottom and the base.

    masses_ : ndarray of shape (n,)
        Sums of the training rows with the offset in each cell.

    rows_ : ndarray of shape (n, *input_shape_)
        The training rows.

    local_mask_ : ndarray of bool of shape ``poset_.shape``
        Elements up to the local order.

    n_neighbors_ : int
        ``n_neighbors``, at most the number of training rows.

    n_params_ : int
        Length of a code.

    n_iter_ : int
        Most Newton steps that encoding a row of ``fit`` took; at least 1.

    poset_ : TensorPoset or Poset
        The poset of the fit.

    input_shape_ : tuple of int
        Shape of a row.

    n_features_in_ : int
        Length of the first axis of a row.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, if all are strings.

    References
    ----------
    P. Hu, M. Sugiyama, ICLR 2026 (backward projection, local data sub-manifold D).

    S. Amari, "Information Geometry and Its Applications", 2016, section 2.8 (mixed
    coordinates; why every problem above has exactly one solution).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import BackwardProjector
    >>> X = np.random.default_rng(0).uniform(size=(20, 3, 4))
    >>> projector = BackwardProjector(order=1, n_neighbors=1).fit(X)
    >>> codes = projector.transform(X[:2])
    >>> bool(np.allclose(projector.inverse_transform(codes), X[:2]))
    True
    """

    _parameter_constraints: dict = {
        **ManyBodyProjector._parameter_constraints,
        "local_order": [*_ORDER, None],
        "local_base": ["array-like", None],
        "local_manifold": [StrOptions({"fiber", "theta", "eta", "mixture"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "metric": [StrOptions({"kl", "euclidean"})],
        "step": [Interval(Real, 0, 1, closed="both")],
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
        self.metric = metric
        self.step = step
        self.poset = poset
        self.offset = offset
        self.with_mass = with_mass
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def fit(self, X, y=None):
        """Encode and keep the training rows.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative rows.
        y : None
            Ignored.

        Returns
        -------
        self : BackwardProjector
        """
        self.fit_transform(X)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit_transform(self, X, y=None):
        """Fit, and return the codes of the same rows.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative rows.
        y : None
            Ignored.

        Returns
        -------
        codes : ndarray of shape (n, n_params_)
        """
        X = check_tensors(self, X, reset=True)
        self.projector_ = ManyBodyProjector(
            self.order,
            base=self.base,
            poset=self.poset,
            offset=self.offset,
            with_mass=self.with_mass,
            tol=self.tol,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
        )
        self.projector_.input_shape_ = self.input_shape_
        with fit_task(self):
            fitted = self.projector_._fit_coordinates(X, divergence=False)
        self.coordinates_, self.masses_ = fitted
        self.poset_ = self.projector_.poset_
        self.n_params_ = self.projector_.n_params_
        self.n_iter_ = self.projector_.n_iter_
        self.local_mask_ = local_mask(self, self.poset_)
        self.codes_ = self.projector_._as_codes(self.coordinates_, X.dtype)
        self.n_neighbors_ = clip_neighbors(self.n_neighbors, len(X))
        self.rows_ = X
        return self.codes_

    def transform(self, X):
        """Codes of rows; see :meth:`ManyBodyProjector.transform`.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative rows.

        Returns
        -------
        codes : ndarray of shape (n, n_params_)
        """
        check_is_fitted(self)
        X = check_tensors(self, X, reset=False)
        projector = self.projector_
        return projector._as_codes(projector._coordinates(X)[0], X.dtype)

    def inverse_transform(self, X):
        """Rows decoded from codes through the local sub-manifold of each.

        Parameters
        ----------
        X : array-like of shape (n, n_params_)
            Codes.

        Returns
        -------
        rows : ndarray of shape (n, *input_shape_)
            In the units of the training rows. The offset is taken off again, so a
            cell may reach down to ``-offset``; clip at 0 where that matters.
        """
        check_is_fitted(self)
        codes = check_codes(X, self.n_params_, type(self).__name__)
        return self._decode(codes, *self._nearest(codes))

    def kneighbors(self, X, n_neighbors=None, return_distance=True):
        """Training rows whose codes are nearest to the given codes.

        Parameters
        ----------
        X : array-like of shape (n, n_params_)
            Codes.
        n_neighbors : int, default=None
            None means the parameter of the estimator.
        return_distance : bool, default=True
            Whether to return the distances too.

        Returns
        -------
        distances : ndarray of shape (n, n_neighbors)
            ``KL(w, w_i)`` in nats, or Euclidean distances, ascending; only if
            ``return_distance``.
        indices : ndarray of shape (n, n_neighbors)
            Rows of the training data.
        """
        check_is_fitted(self)
        codes = check_codes(X, self.n_params_, type(self).__name__)
        k = self.n_neighbors_ if n_neighbors is None else n_neighbors
        if not (isinstance(k, Integral) and 1 <= k <= len(self.rows_)):
            raise ValueError(
                f"n_neighbors must be an integer from 1 to {len(self.rows_)}, the "
                f"number of training rows; got {k!r}."
            )
        distances, indices = self._neighbors(codes, k)
        return (distances, indices) if return_distance else indices

    def get_feature_names_out(self, input_features=None):
        """Names of the coordinates; see :class:`ManyBodyProjector`.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the features; None takes those seen in ``fit``.

        Returns
        -------
        names : ndarray of str objects of shape (n_params_,)
        """
        check_is_fitted(self)
        return ManyBodyProjector.get_feature_names_out(self, input_features)

    @property
    def _base(self):
        return self.projector_._base

    @property
    def _decoded_at_once(self):
        return rows_per_block(self.poset_, self.local_mask_)

    def _neighbors(self, codes, k):
        if self.metric == "euclidean":
            search = NearestNeighbors(n_neighbors=k, n_jobs=self.n_jobs)
            return search.fit(self.codes_).kneighbors(codes)
        masses = self.masses_ if self.with_mass else np.ones(len(self.rows_))
        training = self.coordinates_
        return kl_neighbors(self._base, codes, training, masses, k, self.n_jobs)

    def _nearest(self, codes):
        """The neighbours that codes are decoded from, all of the same weight."""
        k = self.n_neighbors_
        return self._neighbors(codes, k)[1], np.full((len(codes), k), 1 / k)

    def _decode(self, codes, neighbors, weights):
        low = self.local_mask_
        matched = ~low if self.local_manifold == "theta" else low
        decode = partial(
            _decode,
            rows=self.rows_,
            masses=self.masses_,
            base=self._base,
            local_manifold=self.local_manifold,
            solver=mixed_solver(self.poset_, matched),
            step=self.step,
            offset=self.offset,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        rows, residual = map_blocks(
            decode,
            codes,
            neighbors,
            weights,
            poset=self.poset_,
            n_jobs=self.n_jobs,
            step=self._decoded_at_once,
        )
        warn_unconverged(type(self).__name__, residual, self.tol, self.max_iter)
        return rows

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def local_mask(parameters, poset):
    """Elements of the local sub-manifold: by default those of the base."""
    if parameters.local_order is None and parameters.local_base is None:
        return free_mask(poset, parameters.order, parameters.base)
    return free_mask(poset, parameters.local_order, parameters.local_base)


def _decode(
    first_row,
    codes,
    neighbors,
    weights,
    *,
    rows,
    masses,
    base,
    local_manifold,
    solver,
    step,
    offset,
    tol,
    max_iter,
):
    """One block of codes: rows and the residual of their projection."""
    w, log_mass, _ = base.points(codes)
    poset = base.poset
    geometric = local_manifold == "theta"
    mean, mean_mass = _neighbor_mean(
        rows, masses, neighbors, weights, offset, poset, geometric
    )
    residual = np.zeros(len(w))
    if local_manifold == "mixture":
        q = (1 - step) * w + step * mean
    else:
        target, reference = (mean, w) if local_manifold == "eta" else (w, mean)
        if local_manifold == "eta":
            _check_representable(w, first_row)
        projection = solver.project(target, reference, tol=tol, max_iter=max_iter)
        q, residual = projection.prob, projection.residual
    mass = np.exp(log_mass) if base.with_mass else mean_mass
    new = from_simplex(q, mass, offset, poset, rows.shape[1:], rows.dtype)
    return new, residual


def _check_representable(w, first_row):
    empty = np.flatnonzero(w.reshape(len(w), -1).min(axis=1) == 0)
    if len(empty):
        raise ValueError(
            f"The code in row {first_row + empty[0]} lies so far out that cells of its "
            "distribution underflow to 0; draw codes closer to the training rows."
        )


def _neighbor_mean(rows, masses, neighbors, weights, offset, poset, geometric):
    """Mean distribution of each point's neighbours, in eta or in theta, and mass.

    One neighbour a time, so that no array of the size of all of them is made.
    """
    masses = masses[neighbors]
    # In theta the masses are constants of the rows, which normalising takes out again.
    shares = weights if geometric else weights / masses
    mean = np.zeros((len(neighbors), poset.n_elements))
    for near, share in zip(neighbors.T, shares.T, strict=True):
        cells = as_cells(rows[near], poset)
        if geometric:
            cells += offset
            np.log(cells, out=cells)
        cells *= share[:, None]
        mean += cells
    if geometric:
        mean, _ = normalized_exp(mean)
    else:
        mean += offset * shares.sum(axis=1)[:, None]
    return mean.reshape(-1, *poset.shape), (weights * masses).sum(axis=1)
