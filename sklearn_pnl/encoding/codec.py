"""Rows to codes on a flat base, and codes to rows through a local sub-manifold.

The one place that knows what a code is. A *row* is flat: a non-negative value for each
element of the poset but an added bottom, which holds the mean of the row. Its *measure*
is ``row + offset``, of mass its sum. *Coordinates* are those of the measure's
m-projection on the base, in full; a *code* is the part of them that is free: all of
them if it carries the mass, else without the bottom, which normalising decides.
"""

from functools import cached_property, partial
from math import log
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from .._utils.arrays import (
    BLOCK_CELLS,
    DEVICE_BLOCKS,
    at_least,
    cast,
    concat,
    exp_over,
    filled,
    floats_like,
    is_foreign,
    joined,
    log_over,
    namespace,
    reshaped,
    row_sums,
    slices,
    some_columns,
    take,
    to_host,
    widest,
)
from .._utils.blocks import even_step, map_blocks
from .._utils.validation import (
    check_masses,
    warn_not_identified,
    warn_not_settled,
    warn_unconverged,
    warn_user,
)
from ..geometry import (
    TensorPoset,
    element_mask,
    kl_divergence,
    order_mask,
    theta_from_prob,
)
from ..geometry.coordinates import normalized_exp
from ..geometry.many_body.completion import fit_exactly, read_observed
from ..geometry.many_body.observed import Design
from ..geometry.many_body.one_body import one_body_theta
from ..geometry.many_body.solvers import (
    DETERMINED,
    attainable_tol,
    mixed_solver,
    rows_at_once,
)
from ..geometry.posets.protocol import zeta_columns


class CodeError(ValueError):
    """A code that cannot be decoded: ``row`` in the block, and the reason ``why``."""

    def __init__(self, row, why):
        super().__init__(row, why)
        self.row, self.why = row, why

    def __str__(self):
        return f"Code {self.row} {self.why}"


class Encoded(NamedTuple):
    """Coordinates of rows, their masses, and what happened on the way.

    ``divergence`` is ``KL(p, q)`` of row and projection, or NaN if not asked for;
    ``identified`` is where what is observed of a row determines its coordinates, and
    ``settled`` where these are determined to :data:`DETERMINED`.
    """

    coordinates: np.ndarray
    mass: np.ndarray
    residual: np.ndarray
    n_iter: np.ndarray
    divergence: np.ndarray
    identified: np.ndarray
    settled: np.ndarray

    @classmethod
    def closed(cls, coordinates, mass, divergence=np.nan):
        """Whole rows by a closed form."""
        n = mass.shape[0]
        if isinstance(divergence, float):
            divergence = filled(divergence, n, mass)
        none, every = filled(0.0, n, mass), np.ones(n, bool)
        return cls(coordinates, mass, none, np.zeros(n, int), divergence, every, every)


class FlatBase:
    """The e-flat base of the distributions with theta on some elements only.

    Coordinates are theta on ``elements``: the bottom, then the base.
    """

    has_bottom = True

    def __init__(self, poset, mask):
        self.poset = poset
        self.elements = np.r_[poset.bottom, np.flatnonzero(mask)]
        self._columns = zeta_columns(poset, self.elements)

    @cached_property
    def design(self):
        """The design of models of cells some of which are missing."""
        return Design(self.poset, element_mask(self.poset, self.elements))

    def coordinates(self, q, log_mass):
        """theta of distributions ``q`` (n, D) times their mass."""
        theta = theta_from_prob(reshaped(q, (-1, *self.poset.shape)), self.poset)
        theta = some_columns(reshaped(theta, q.shape), self.elements)
        theta[:, 0] += log_mass
        return theta

    def energy(self, coordinates):
        """Log measures (n, D): the zeta transform."""
        return self._columns.synthesis(coordinates)

    def expectations(self, measures):
        """eta of measures (n, D) on bottom and base."""
        return self._columns.analysis(measures)

    def metric_factor(self, measure, with_mass):
        """``F`` with ``F F'`` the Fisher metric of the coordinates at a measure.

        A matrix, or the diagonal of one where the metric is too large or singular.
        """
        eta = self.expectations(measure[None])[0]
        # Factoring takes the cube of their number.
        if len(eta) <= 2048:
            cells = measure.reshape(self.poset.shape)
            metric = self.poset.fisher_gram(cells, self.elements)
            if not with_mass:
                # Normalising fixes the bottom, which gets the diagonal entry 1.
                metric = metric - np.outer(eta, eta)
                metric[0, 0] = 1
            try:
                return cholesky(metric, lower=True)
            except LinAlgError:
                pass
        return np.sqrt(eta * (1 if with_mass else np.maximum(1 - eta, eta.min())))


class WholeBase:
    """All positive distributions: the code is the whole row.

    Coordinates are the logarithms of the cells, which need no poset: theta in another
    basis, so straight lines and the noise on them are the same.
    """

    has_bottom = False

    def __init__(self, poset):
        self.poset = poset
        self.elements = np.arange(poset.n_elements)

    def energy(self, coordinates):
        """Log measures (n, D): the coordinates, in an array of their own."""
        return 1 * cast(coordinates, widest(coordinates))

    def expectations(self, measures):
        """The measures themselves."""
        return measures

    def metric_factor(self, measure, with_mass):
        """Diagonal of the root of the Fisher metric, that of the cells' counts."""
        return np.sqrt(measure)


class Codec:
    """Encodes rows on a base, and decodes codes through near training rows.

    Parameters
    ----------
    poset : Poset or TensorPoset
    base : ndarray of bool of shape ``poset.shape`` or None
        Elements whose theta is free; None is all, without a poset's coordinates.
    numerics : ManyBodyProjector
        With the ``offset``, ``with_mass``, ``tol`` and ``max_iter``.
    local_manifold : object, default=None
        How codes are decoded; it says what is matched and what is kept, as
        :class:`sklearn_pnl.encoding.LocalManifold` does. None encodes only.
    """

    def __init__(self, poset, base, numerics, local_manifold=None):
        self.poset = poset
        self.base = WholeBase(poset) if base is None else FlatBase(poset, base)
        self.mask = np.ones(poset.shape, bool) if base is None else base
        self.offset, self.with_mass = numerics.offset, numerics.with_mass
        self.tol, self.max_iter = numerics.tol, numerics.max_iter
        self.local_manifold = local_manifold
        # The first coordinates, which normalising fixes.
        self.n_fixed = int(self.base.has_bottom and not self.with_mass)
        self.n_params = len(self.base.elements) - self.n_fixed
        self._solver = solver = None if base is None else mixed_solver(poset, base)
        # Up to so many marginal cells one matrix product beats a sum over each mode.
        few = solver is not None and sum(poset.shape) <= 128
        self._is_one_body = few and solver.is_one_body
        # Whether encoding costs more than one pass over the rows.
        self.solves = solver is not None and not self._is_one_body
        self.encoded_at_once = rows_at_once(poset, solver if self.solves else None)
        if local_manifold is not None:
            self._set_up_decoding()

    def _set_up_decoding(self):
        manifold = self.local_manifold
        poset = self.poset if manifold.poset is None else manifold.poset
        if poset.n_elements != self.poset.n_elements:
            raise ValueError(
                f"The local sub-manifold is on {poset!r}, but rows are laid out on "
                f"{self.poset!r}: both must have the same number of elements."
            )
        self.local_mask = manifold.local_mask(poset, self.mask)
        matched = manifold.matched(self.local_mask)
        if matched is not None:
            # Normalising keeps the mass for any set of elements.
            matched = np.array(matched)
            matched.reshape(-1)[poset.bottom] = True
        # If all expectations of the code are matched, the code is the projection.
        is_kept = manifold.keeps_code and matched is not None and matched.all()
        self.needs_rows, self._decoder = not is_kept, None
        if self.needs_rows and matched is not None:
            self._decoder = mixed_solver(poset, matched)
        self.decoded_at_once = rows_at_once(poset, self._decoder)

    def codes(self, coordinates):
        """The free part of coordinates."""
        return coordinates[:, self.n_fixed :]

    def coordinates(self, codes):
        """Coordinates of codes, in full."""
        codes = cast(codes, widest(codes))
        if self.with_mass:
            return 1 * codes
        psi = normalized_exp(self._energy(codes))[1][:, None]
        return concat([-psi, codes], axis=1) if self.base.has_bottom else codes - psi

    def _energy(self, codes):
        """Log cells (n, D), but for the coordinate of a bottom, which all share."""
        if not self.base.has_bottom:
            return self.base.energy(codes)
        none = filled(0.0, (codes.shape[0], 1), codes)
        with_bottom = concat([none, codes[:, 1 - self.n_fixed :]], axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            return self.base.energy(with_bottom)

    def points(self, codes):
        """Distributions (n, D) that codes stand for, and log masses, 0 without mass."""
        codes = cast(codes, widest(codes))
        q, psi = normalized_exp(self._energy(codes))
        if not self.with_mass:
            return q, filled(0.0, q.shape[0], q)
        with np.errstate(over="ignore", invalid="ignore"):
            log_mass = psi + codes[:, 0] if self.base.has_bottom else psi
        _refuse_far(log_mass <= log(namespace(q).finfo(q.dtype).max))
        return q, log_mass

    def measures(self, codes):
        """Measures (n, D) of codes; distributions if codes do not carry the mass."""
        if self.with_mass and not self.base.has_bottom:
            with np.errstate(over="ignore"):
                measures = exp_over(self.base.energy(codes))
                _refuse_far(namespace(codes).isfinite(row_sums(measures)))
            return measures
        q, log_mass = self.points(codes)
        if self.with_mass:
            q *= namespace(q).exp(log_mass)[:, None]
        return q

    def measures_of(self, codes):
        """:meth:`measures` of a block of codes, in their type."""
        return (_narrowed(self.measures(codes), codes.dtype),)

    def attainable_tol(self, x):
        """The tolerance, or what the device of an array allows if that is more."""
        return attainable_tol(self.tol, x)

    # --- rows to codes -------------------------------------------------------------

    def phi(self, rows):
        """phi, distributions ``p = (x + offset) / mass`` (Example 4.1), and masses."""
        p = self.cells(rows)
        with np.errstate(over="ignore", invalid="ignore"):
            mass = namespace(p).sum(p, axis=1)
            p /= mass[:, None]
        return p, mass

    def cells(self, rows):
        """Measures (n, D) of rows: with the offset, and the mean in an added bottom."""
        if is_foreign(rows):
            return cast(rows, widest(rows)) + self.offset
        # One memory layout for all rows, since rounding of sums depends on it.
        cells = np.array(rows, np.float64, order="C")
        if self.poset.added_bottom:
            cells = np.column_stack([np.nanmean(cells, axis=1), cells])
        cells += self.offset
        return cells

    def encode(self, rows, divergence=False):
        """Enc = Proj_B after phi: coordinates of a block of rows; see :class:`Encoded`.

        M_1 and whole rows have closed forms, which do not need phi. Where a mass
        overflows it is not finite, and neither are the coordinates.
        """
        if self._solver is None:
            return self._encode_whole(rows)
        if self._is_one_body:
            return self._encode_one_body(rows, divergence)
        return self._encode(rows, divergence)

    def _encode(self, rows, divergence):
        p, mass = self.phi(rows)
        xp = namespace(p)
        if not xp.all(xp.isfinite(mass)):
            coordinates = filled(np.nan, (p.shape[0], len(self.base.elements)), p)
            return Encoded.closed(coordinates, mass)
        # w = Proj_B(p), B = M_ell of equation 1: theta is 0 off the base, that of the
        # uniform distribution, which is the reference where none is given.
        tol = self.attainable_tol(p)
        w, residual, n_iter, settled = self._solver.solve(
            p, None, tol, self.max_iter, settle=True
        )
        log_mass = xp.log(mass) if self.with_mass else 0.0
        coordinates = self.base.coordinates(w, log_mass)
        kl = kl_divergence(p, w, axis=1) if divergence else np.nan
        encoded = Encoded.closed(coordinates, mass, kl)
        return encoded._replace(residual=residual, n_iter=n_iter, settled=settled)

    def encode_observed(self, rows, divergence=False):
        """:meth:`encode` of rows with NaN, by the model of the cells that are there.

        If several codes fit, the one with the least variance of the log measure.
        """
        lacks = np.isnan(rows).any(axis=1)
        pieces, encode = [], partial(self.encode, divergence=divergence)
        for some, way in ((~lacks, encode), (lacks, self._encode_observed)):
            if some.any():
                pieces.append((np.flatnonzero(some), way(rows[some])))
        return Encoded(*joined(pieces))

    def _encode_observed(self, rows):
        cells = self.cells(rows).reshape(-1, *self.poset.shape)
        observed, _ = read_observed(cells, self.poset)
        design = self.base.design
        settings = {"tol": self.tol, "max_iter": self.max_iter}
        measure, residual, n_iter, _, rank = fit_exactly(observed, design, settings)
        q = np.where(observed.seen, measure / observed.mass[:, None], 0.0)
        mass = row_sums(measure)
        log_mass = np.log(mass) if self.with_mass else 0.0
        coordinates = self.base.coordinates(measure / mass[:, None], log_mass)
        divergence = kl_divergence(observed.target, q, axis=1)
        identified = rank > design.n_functions
        every = np.ones(len(rows), bool)
        return Encoded(
            coordinates, mass, residual, n_iter, divergence, identified, every
        )

    def _encode_one_body(self, rows, divergence):
        """w = Proj_B(p), B = M_1: the product of the marginals, without forming it."""
        theta, marginals, mass = one_body_theta(rows, self.offset, self.poset.shape)
        xp = namespace(theta)
        if not xp.all(xp.isfinite(theta)):
            # Single precision may overflow where double does not.
            return self._encode(rows, divergence)
        if self.with_mass:
            theta[:, 0] += xp.log(mass)
        if not divergence:
            return Encoded.closed(theta, mass)
        p, _ = self.phi(rows)
        kl = at_least(_negentropy(p) - _negentropy(marginals), 0.0)
        return Encoded.closed(theta, mass, kl)

    def _encode_whole(self, rows):
        m = self.cells(rows)
        with np.errstate(over="ignore"):
            mass = row_sums(m)
        coordinates = log_over(m)
        if not self.with_mass:
            coordinates -= namespace(mass).log(mass)[:, None]
        return Encoded.closed(coordinates, mass, 0.0)

    # --- codes to rows -------------------------------------------------------------

    def decode(self, codes, neighbors, weights, *, rows, masses):
        """Algorithm 1 behind N: D, Proj_D(w), phi^-1, of a block of codes; residuals.

        ``neighbors`` (n, k) are those of ``rows``, the training rows, whose ``masses``
        are given; they count with ``weights`` (n, k), ``1 / k`` in the paper. Rows are
        of the type of ``rows``.
        """
        weights = floats_like(weights, masses)
        mass = None
        if not self.with_mass:
            # The mean mass of N (Remark 4.3).
            mass = namespace(masses).sum(weights * _each(masses, neighbors), axis=1)
        if not self.needs_rows:
            # Whole rows: nothing is projected (not the paper's).
            x = self.phi_inverse(self.measures(codes), mass, rows.dtype)
            return x, filled(0.0, x.shape[0], x)
        # w, the point of the base B that a code stands for.
        w, log_mass = self.points(codes)
        # D by its point r. For "theta" it is M*_ell(N), and r the geometric mean of N:
        # with equal weights its theta is the mean of equation 2. Else r is the mean in
        # eta.
        r = self.mean(rows, masses, neighbors, weights)
        # q = Proj_D(w). For "theta" it has the theta of r up to ell', which is to be in
        # D, and the eta of w beyond it.
        q, residual = self.local_manifold.project_from_code(w, r, self._project)
        # x = phi^-1(q)
        if self.with_mass:
            mass = namespace(log_mass).exp(log_mass)
        return self.phi_inverse(q, mass, rows.dtype), residual

    def _project(self, target, reference):
        # Off the matched set theta of the reference counts, which cells of 0 lack.
        is_positive = namespace(reference).min(reference, axis=1) > 0
        _refuse_far(is_positive, "cells of its distribution underflow to 0")
        # The solver for the matched set, from `_set_up_decoding`: of "theta" it is an
        # up-set, and q a closed form (`SpliceSolver`).
        tol = self.attainable_tol(target)
        return self._decoder.solve(target, reference, tol, self.max_iter)[:2]

    def mean(self, rows, masses, neighbors, weights):
        """Mean distribution of each point's neighbours N, in eta or in theta.

        In theta, with equal weights, it is the mean of equation 2.
        """
        geometric = self.local_manifold.geometric
        # In theta the mass adds a constant to a row, which normalising removes.
        shares = weights if geometric else weights / _each(masses, neighbors)
        (n, k), size, means = neighbors.shape, self.poset.n_elements, []
        # A few points at a time, so that all of their neighbours stay in cache.
        step = BLOCK_CELLS * (DEVICE_BLOCKS if is_foreign(rows) else 1)
        for points in slices(n, max(1, step // (k * size))):
            cells = self.cells(take(rows, neighbors[points].reshape(-1)))
            if geometric:
                cells = log_over(cells)
            cells = reshaped(cells, (-1, k, size))
            means.append((shares[points, :][:, None, :] @ cells)[:, 0, :])
        mean = means[0] if len(means) == 1 else concat(means)
        return normalized_exp(mean)[0] if geometric else mean

    def phi_inverse(self, q, mass, dtype):
        """phi^-1 (Remark 4.3): rows of distributions times a mass, less the offset.

        In decoding it is the mean mass of N; None is for measures that have theirs.
        """
        if mass is not None:
            q *= mass[:, None]
        rows = q
        if self.poset.added_bottom:
            # It is dropped. Filled in again it would be the mean, 1 / D of the mass, so
            # the features get the rest: a row keeps its sum.
            kept = row_sums(q) * (1 - 1 / self.poset.n_elements)
            rows = q[:, 1:]
            rows = rows * (kept / rows.sum(axis=1))[:, None]
        rows -= self.offset
        rows = _narrowed(rows, dtype)
        # Rounding must not set nearly empty cells to 0.
        kind = np.float32 if namespace(rows).finfo(dtype).bits == 32 else np.float64
        return at_least(rows, float(np.nextafter(kind(-self.offset), kind(0))))


def _refuse_far(fine, what="its measure overflows"):
    """Raise a :class:`CodeError` for the first code that is not ``fine``."""
    if not namespace(fine).all(fine):
        why = f"lies so far out that {what}. Draw codes closer to the training rows."
        raise CodeError(int(np.argmin(to_host(fine))), why)


def _narrowed(rows, dtype):
    """Rows in another type of floats, which they must not overflow."""
    if dtype == rows.dtype:
        return rows
    xp = namespace(rows)
    largest = xp.max(xp.abs(rows), axis=1)
    _refuse_far(largest <= float(xp.finfo(dtype).max), f"its row overflows {dtype}")
    return cast(rows, dtype)


def _negentropy(p):
    """``sum p log p`` of rows."""
    xp = namespace(p)
    with np.errstate(divide="ignore", invalid="ignore"):
        return xp.sum(xp.where(p > 0, p * xp.log(p), 0.0), axis=1)


def _each(values, numbers):
    """Values of rows, by an array (n, k) of their numbers."""
    return reshaped(take(values, numbers.reshape(-1)), numbers.shape)


# --- parameters of estimators ------------------------------------------------------


def free_mask(poset, order, elements):
    """Elements whose theta is free: those listed, or else all up to ``order``."""
    if elements is None:
        return order_mask(poset, order)
    if order is not None and not np.array_equal(order, 1):
        raise ValueError(
            f"order={order!r} beside base=, which gives the free coordinates itself: "
            "leave order out."
        )
    return element_mask(poset, elements)


def lay_out(poset, shape):
    """The poset that rows of a shape are laid out on; None is the tensor of them."""
    if poset is None:
        return TensorPoset(shape)
    n_features = poset.n_elements - poset.added_bottom
    laid_out = shape == poset.shape and not poset.added_bottom
    if laid_out or shape == (n_features,):
        return poset
    raise ValueError(
        f"{poset!r} stands for {n_features} features, but rows have the shape {shape}: "
        "there must be one feature for each element but an added bottom. A poset "
        "orders the features themselves: leave out one of reshaper and poset."
    )


def unshared(rows, X):
    """Copy rows, so that later changes of ``X`` do not matter; memory maps stay."""
    shared = isinstance(X, np.ndarray) and np.may_share_memory(rows, X)
    return rows.copy() if shared and X.flags.writeable else rows


def encode_rows(codec, rows, caller, n_jobs=None, divergence=False, missing=False):
    """:class:`Encoded` of rows (n, D), with a warning if some did not converge.

    NaN is a ``missing`` cell if asked for; a warning says where the others do not
    determine a code.
    """
    # On a device no cell may be missing.
    missing = missing and not is_foreign(rows)
    # A closed form is one pass over memory, which threads do not speed up.
    step = codec.encoded_at_once
    if codec.solves or divergence or missing:
        step = even_step(rows.shape[0], step)
    else:
        n_jobs = None
    encode = codec.encode_observed if missing else codec.encode
    encode = partial(encode, divergence=divergence)
    encoded = Encoded(*map_blocks(encode, rows, step=step, n_jobs=n_jobs))
    check_masses(to_host(encoded.mass))
    residual, tol = to_host(encoded.residual), codec.attainable_tol(rows)
    if codec.solves and tol > codec.tol:
        warn_user(
            f"{caller}: tol={codec.tol:g} is below the rounding of single precision, "
            f"which is all that the device has; {tol:.1e} was used."
        )
    warn_unconverged(caller, residual, tol, codec.max_iter)
    is_unconverged = ~(residual <= tol)
    warn_not_settled(caller, encoded.settled | is_unconverged, DETERMINED)
    warn_not_identified(caller, encoded.identified)
    return encoded._replace(residual=residual)
