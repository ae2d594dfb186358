"""Forward projection: rows to codes on a flat base of low order."""

from functools import partial
from numbers import Integral, Real

import numpy as np
from scipy.special import xlogy
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from . import geometry
from ._callbacks import CallbackSupportMixin, fit_task, with_callbacks
from ._validation import (
    check_codes,
    check_tensors,
    map_blocks,
    to_simplex,
    warn_unconverged,
)
from .geometry.coordinates import normalized_exp
from .geometry.marginals import one_body_theta
from .geometry.posets import zeta_columns
from .geometry.solvers import TiltSolver, mixed_solver

# Marginal cells up to which one matrix product beats a sum over each mode.
_MARGINAL_CELLS = 128

_ORDER = [Interval(Integral, 1, None, closed="left"), "array-like"]


class ManyBodyProjector(CallbackSupportMixin, TransformerMixin, BaseEstimator):
    r"""Encode positive tensors by KL projection on the ell-body base.

    Each row ``x`` is read as the distribution ``p = (x + offset) / mass`` on the
    cells of a poset, and projected on the e-flat base without interactions beyond
    order ell:

    .. math:: q = \arg\min_q KL(p, q) \quad\text{subject to}\quad
              \theta_q(x) = 0 \text{ for all } x \text{ of order} > \ell .

    ``q`` keeps the expectations ``eta`` of ``p`` up to that order: for a tensor, all
    its marginals of at most ell modes. The code of the row is ``theta_q`` on the base.

    Parameters
    ----------
    order : int or list of tuple of int, default=1
        ell, the largest order kept; for a tensor also the interactions kept, as
        tuples of modes, closed downward.

    base : array-like, default=None
        The free coordinates given directly, instead of ``order``: a boolean mask of
        the shape of the poset, or a list of elements (flat indices, or for a tensor
        tuples of indices). Any set will do.

    poset : TensorPoset or Poset, default=None
        The order between the cells. None is the tensor of the rows' own shape; a
        2-D ``X`` is a tensor of one mode. Rows may stay flat: a feature an element, in
        the order of ``ravel`` for a tensor. A bottom that was added to the poset is no
        feature; its cell holds the mean of the row.

    offset : float, default=1e-5
        Added to every cell on entry, in units of ``X``. Zero cells need it: their
        log is infinite.

    with_mass : bool, default=False
        Project positive measures instead of distributions: the code starts with the
        coordinate of the bottom and carries the row's mass.

    tol : float, default=1e-6
        Wanted ``max |eta_q - eta_p|`` over the base.

    max_iter : int, default=100
        Most Newton steps for one row.

    n_jobs : int, default=None
        Blocks of rows projected at once. None means 1 unless in a
        :obj:`joblib.parallel_config` context.

    Attributes
    ----------
    poset_ : TensorPoset or Poset
        The poset of the fit.

    n_params_ : int
        Length of a code: dimension of the base, with the bottom if ``with_mass``.

    base_mask_ : ndarray of bool of shape ``poset_.shape``
        Elements whose theta makes up the code, without the bottom.

    n_iter_ : int
        Most Newton steps that a row of ``fit`` took; a closed form counts as 1.

    reconstruction_err_ : float
        Mean ``KL(p, q)`` over the rows of ``fit``, normalised, in nats.

    input_shape_ : tuple of int
        Shape of a row.

    n_features_in_ : int
        Length of the first axis of a row.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, if all are strings.

    See Also
    --------
    BackwardProjector : Decodes codes to rows that look like the training rows.

    References
    ----------
    P. Hu, M. Sugiyama, ICLR 2026 (forward projection on the base B).

    K. Ghalamkari, M. Sugiyama, Y. Kawahara, "Many-body approximation for
    non-negative tensors", NeurIPS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import ManyBodyProjector
    >>> X = np.array([[[4.0, 1.0], [2.0, 3.0]]])
    >>> projector = ManyBodyProjector(order=1, offset=0).fit(X)
    >>> projector.inverse_transform(projector.transform(X))
    array([[[0.3, 0.2],
            [0.3, 0.2]]])
    """

    _parameter_constraints: dict = {
        "order": _ORDER,
        "base": ["array-like", None],
        "poset": [geometry.TensorPoset, geometry.Poset, None],
        "offset": [Interval(Real, 0, None, closed="left")],
        "with_mass": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        order=1,
        *,
        base=None,
        poset=None,
        offset=1e-5,
        with_mass=False,
        tol=1e-6,
        max_iter=100,
        n_jobs=None,
    ):
        self.order = order
        self.base = base
        self.poset = poset
        self.offset = offset
        self.with_mass = with_mass
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def fit(self, X, y=None):
        """Set up the base and project the rows.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative rows.
        y : None
            Ignored.

        Returns
        -------
        self : ManyBodyProjector
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
        with fit_task(self):
            coordinates, _ = self._fit_coordinates(X)
        return self._as_codes(coordinates, X.dtype)

    def transform(self, X):
        """Codes of rows: theta on the base.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative rows.

        Returns
        -------
        codes : ndarray of shape (n, n_params_)
            theta in the order of the cells; first the bottom if ``with_mass``.
        """
        check_is_fitted(self)
        X = check_tensors(self, X, reset=False)
        return self._as_codes(self._coordinates(X)[0], X.dtype)

    def inverse_transform(self, X):
        """The point of the base that each code stands for.

        Parameters
        ----------
        X : array-like of shape (n, n_params_)
            Codes.

        Returns
        -------
        tensors : ndarray of shape (n, *poset_.shape)
            Distributions, which sum to 1; with ``with_mass`` measures, whose sum is
            that of ``x + offset``.
        """
        check_is_fitted(self)
        codes = check_codes(X, self.n_params_, type(self).__name__)
        points = partial(_points, base=self._base)
        (tensors,) = map_blocks(points, codes, poset=self.poset_, n_jobs=self.n_jobs)
        return tensors

    def get_feature_names_out(self, input_features=None):
        """Names of the coordinates: ``theta_`` and the feature or cell.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the features; None takes those seen in ``fit``.

        Returns
        -------
        names : ndarray of str objects of shape (n_params_,)
        """
        check_is_fitted(self, "poset_")
        names = list(_check_feature_names_in(self, input_features))
        if len(self.input_shape_) > 1:
            names = ["_".join(map(str, cell)) for cell in np.ndindex(self.input_shape_)]
        if self.poset_.added_bottom:
            names = ["bottom", *names]
        kept = self._base.elements if self.with_mass else self._base.elements[1:]
        return np.array([f"theta_{names[x]}" for x in kept], dtype=object)

    def _fit_coordinates(self, X, divergence=True):
        """Fit on validated rows; returns their theta on bottom and base, and masses."""
        self.poset_ = self._check_poset(X.shape[1:])
        self.base_mask_ = free_mask(self.poset_, self.order, self.base)
        self.n_params_ = int(self.base_mask_.sum()) + self.with_mass
        coordinates, mass, n_iter, kl = self._coordinates(X, divergence)
        self.n_iter_ = max(1, int(n_iter.max()))
        if divergence:
            self.reconstruction_err_ = float(kl.mean())
        return coordinates, mass

    def _check_poset(self, shape):
        if self.poset is None:
            return geometry.TensorPoset(shape)
        n_features = self.poset.n_elements - self.poset.added_bottom
        laid_out = shape == self.poset.shape and not self.poset.added_bottom
        if not laid_out and shape != (n_features,):
            raise ValueError(
                f"{self.poset!r} stands for {n_features} features, but a row of X has "
                f"shape {shape}: there must be one feature for each element"
                + (" but the added bottom." if self.poset.added_bottom else ".")
            )
        return self.poset

    @property
    def _base(self):
        return FlatBase(self.poset_, self.base_mask_, self.with_mass)

    def _coordinates(self, X, divergence=False):
        """theta on bottom and base, mass, Newton steps and, if asked for, KL(p, q)."""
        solver = mixed_solver(self.poset_, self.base_mask_)
        one_body = _has_short_marginals(solver)
        encode = partial(
            _encode_one_body if one_body else _encode,
            solver=solver,
            base=self._base,
            offset=self.offset,
            tol=self.tol,
            max_iter=self.max_iter,
            divergence=divergence,
        )
        # One product a block is as fast as memory: threads would only wait for it.
        n_jobs = None if one_body and not divergence else self.n_jobs
        coordinates, mass, residual, n_iter, divergence = map_blocks(
            encode, X, poset=self.poset_, n_jobs=n_jobs
        )
        warn_unconverged(type(self).__name__, residual, self.tol, self.max_iter)
        return coordinates, mass, n_iter, divergence

    def _as_codes(self, coordinates, dtype):
        """Drop the bottom unless the code carries the mass."""
        kept = coordinates if self.with_mass else coordinates[:, 1:]
        return kept.astype(dtype, copy=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def free_mask(poset, order, elements):
    """Elements whose theta is free: those listed, or else all up to ``order``."""
    if elements is None:
        return geometry.order_mask(poset, order)
    return geometry.element_mask(poset, elements)


class FlatBase:
    """The e-flat base of a poset: translates codes to points of the manifold.

    ``elements`` are the flat indices of the bottom and then of the base, the order of
    *coordinates*; *codes* are coordinates without the bottom unless ``with_mass``.
    """

    def __init__(self, poset, mask, with_mass):
        self.poset = poset
        self.elements = np.r_[poset.bottom, np.flatnonzero(mask)]
        self.with_mass = with_mass
        self._columns = zeta_columns(poset, self.elements)
        self._below, self._closure = poset, slice(None)
        if isinstance(poset, geometry.Poset):
            self._below, self._closure = poset.down_closure(self.elements)

    def coordinates(self, q, log_mass):
        """theta on bottom and base of distributions ``q`` times their mass."""
        theta = np.zeros((len(q), self.poset.n_elements))
        below = q[:, self._closure]
        theta[:, self._closure] = geometry.theta_from_prob(below, self._below).reshape(
            len(q), -1
        )
        theta = theta[:, self.elements]
        if self.with_mass:
            theta[:, 0] += log_mass
        return theta

    def points(self, codes):
        """Distributions of shape (n, *poset.shape), log masses and log partitions.

        Without mass the log masses are 0; with it, ``psi`` is that of the
        distribution, so the coordinate of the bottom is ``log_mass - psi``.
        """
        q, psi = normalized_exp(self._energy(codes[:, 1:] if self.with_mass else codes))
        q = q.reshape(-1, *self.poset.shape)
        log_mass = codes[:, 0] + psi if self.with_mass else np.zeros(len(codes))
        if log_mass.max(initial=0) > np.log(np.finfo(np.float64).max):
            raise ValueError(
                f"The mass of code {np.argmax(log_mass)} overflows: its logarithm is "
                f"{log_mass.max():.3g}. Draw codes closer to the training rows."
            )
        return q, log_mass, psi

    def expectations(self, q, mass):
        """eta on bottom and base of distributions ``q`` times their mass."""
        if self._columns is not None:
            eta = q.reshape(len(q), -1) @ self._columns
        else:
            eta = self.poset.eta(q).reshape(len(q), -1)[:, self.elements]
        return eta * mass[:, None]

    def _energy(self, theta):
        """Zeta transform of rows of theta on the base alone."""
        if self._columns is not None:
            return theta @ self._columns[:, 1:].T
        whole = np.zeros((len(theta), self.poset.n_elements))
        whole[:, self.elements[1:]] = theta
        energy = self.poset.zeta(whole.reshape(-1, *self.poset.shape))
        return energy.reshape(len(theta), -1)


def _encode(first_row, x, *, solver, base, offset, tol, max_iter, divergence):
    """One block of rows: coordinates, mass, residual, iterations, KL(p, q) or NaN."""
    p, mass = to_simplex(x, offset, base.poset, first_row)
    projection = solver.project(p, tol=tol, max_iter=max_iter)
    coordinates = base.coordinates(projection.prob, np.log(mass))
    kl = np.full(len(x), np.nan)
    if divergence:
        cells = tuple(range(1, p.ndim))
        kl = geometry.kl_divergence(p, projection.prob, axis=cells)
    return coordinates, mass, projection.residual, projection.n_iter, kl


def _points(first_row, codes, *, base):
    """One block of codes: their points, times their mass if they carry it."""
    q, log_mass, _ = base.points(codes)
    if base.with_mass:
        q *= np.exp(log_mass).reshape(-1, *(1,) * (q.ndim - 1))
    return (q.astype(codes.dtype),)


def _has_short_marginals(solver):
    """Whether the base is M_1 of a tensor with marginals of few cells."""
    one_body = isinstance(solver, TiltSolver) and solver.is_one_body
    return one_body and sum(solver.poset.shape) <= _MARGINAL_CELLS


def _encode_one_body(first_row, x, *, base, offset, divergence, **settings):
    """:func:`_encode` on M_1, without forming the projection."""
    n = len(x)
    if divergence or offset == 0:
        p, _ = to_simplex(x, offset, base.poset, first_row)
    theta, marginals, mass = one_body_theta(x.reshape(n, -1), offset, base.poset.shape)
    if not np.all(np.isfinite(theta)):
        # An empty marginal, or a sum that overflows: the long way says which.
        settings |= {"base": base, "offset": offset, "divergence": divergence}
        return _encode(first_row, x, **settings)
    if base.with_mass:
        theta[:, 0] += np.log(mass)
    kl = np.full(n, np.nan)
    if divergence:
        own = xlogy(p, p).reshape(n, -1).sum(axis=1)
        kl = np.maximum(own - xlogy(marginals, marginals).sum(axis=1), 0)
    return theta, mass, np.zeros(n), np.zeros(n, int), kl
