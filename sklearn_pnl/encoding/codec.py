"""Encoding of rows on a flat base, and decoding by a local sub-manifold.

Only this module defines codes. A *row* has one non-negative value for each element of
the poset. If a bottom was added to the poset, its value is the mean of the row. The
*measure* of a row is ``row + offset``, and the *mass* is the sum of the measure.
*Coordinates* are the natural parameters of the projection of the measure onto the base.
A *code* contains the free coordinates: all of them if the code contains the mass, and
otherwise all but the coordinate of the bottom, which normalisation determines.
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
from .._utils.validation import check_masses
from .._utils.warnings import (
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
)
from ..geometry.coordinates import normalized_exp
from ..geometry.many_body.closed_forms import DETERMINED, attainable_tol, rows_at_once
from ..geometry.many_body.completion import fit_exactly, read_observed
from ..geometry.many_body.observed import Design
from ..geometry.many_body.one_body import one_body_theta
from ..geometry.many_body.solvers import mixed_solver
from ..geometry.posets.protocol import zeta_columns
from .forward import ForwardProjection, ProjectedBase


class CodeError(ValueError):
    """Error for a code that cannot be decoded.

    ``row`` is the index of the code in its block, and ``why`` ends the message.
    """

    def __init__(self, row, why):
        super().__init__(row, why)
        self.row, self.why = row, why

    def __str__(self):
        return f"Code {self.row} {self.why}"


class Encoded(NamedTuple):
    """Coordinates and masses of rows, with a report on the projection of each row.

    ``divergence`` is ``KL(p, q)`` of the row and the projection, or NaN if the
    divergence was not requested. ``identified`` tells whether the observed cells
    determine the coordinates, and ``settled`` whether the coordinates are accurate to
    :data:`DETERMINED`.
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
        """Return the result for complete rows with a closed form."""
        n = mass.shape[0]
        if isinstance(divergence, float):
            divergence = filled(divergence, n, mass)
        none, every = filled(0.0, n, mass), np.ones(n, bool)
        return cls(coordinates, mass, none, np.zeros(n, int), divergence, every, every)


class FlatBase:
    """Base of the distributions whose theta is 0 except on some elements (e-flat).

    Coordinates are theta on ``elements``: the bottom, followed by the base.
    """

    has_bottom, is_flat = True, True

    def __init__(self, poset, mask):
        self.poset = poset
        self.elements = np.r_[poset.bottom, np.flatnonzero(mask)]
        self._columns = zeta_columns(poset, self.elements)

    @cached_property
    def design(self):
        """Design of the models for rows with missing cells."""
        return Design(self.poset, element_mask(self.poset, self.elements))

    def coordinates(self, logs, log_mass, offset):
        """Compute theta of distributions with logs (n, D), times their mass.

        Raise a ValueError that names the offset if a log is not finite.
        """
        if not namespace(logs).all(namespace(logs).isfinite(logs)):
            raise ValueError(
                f"offset={offset:g} leaves cells of a projection at 0, and theta is "
                "based on the logs of all cells. Use a positive offset."
            )
        theta = self.poset.moebius(reshaped(logs, (-1, *self.poset.shape)))
        theta = some_columns(reshaped(theta, logs.shape), self.elements)
        theta[:, 0] += log_mass
        return theta

    def energy(self, coordinates):
        """Compute log measures (n, D) by the zeta transform."""
        return self._columns.synthesis(coordinates)

    def expectations(self, measures):
        """Compute eta of measures (n, D) on the bottom and the base."""
        return self._columns.analysis(measures)

    def metric_factor(self, measure, with_mass):
        """Return ``F`` with ``F F'`` the Fisher metric of the coordinates at a measure.

        ``F`` is a matrix, or a diagonal if the metric is too large or singular.
        """
        eta = self.expectations(measure[None])[0]
        # The time of the factorisation grows with the cube of the length.
        if len(eta) <= 2048:
            cells = measure.reshape(self.poset.shape)
            metric = self.poset.fisher_gram(cells, self.elements)
            if not with_mass:
                # Normalisation fixes the bottom, which gets the diagonal entry 1.
                metric = metric - np.outer(eta, eta)
                metric[0, 0] = 1
            try:
                return cholesky(metric, lower=True)
            except LinAlgError:
                pass
        return np.sqrt(eta * (1 if with_mass else np.maximum(1 - eta, eta.min())))


class WholeBase:
    """Base of all positive distributions: the code contains the complete row.

    Coordinates are the logarithms of the cells, which need no poset. They are theta in
    another basis. Straight lines and noise are the same in both bases.
    """

    has_bottom, is_flat = False, True

    def __init__(self, poset):
        self.poset = poset
        self.elements = np.arange(poset.n_elements)

    def energy(self, coordinates):
        """Return a copy of the coordinates, which are the log measures (n, D)."""
        return 1 * cast(coordinates, widest(coordinates))

    def expectations(self, measures):
        """Return the measures, which are their own expectations."""
        return measures

    def metric_factor(self, measure, with_mass):
        """Return the square root of the Fisher metric of the cells, a diagonal."""
        return np.sqrt(measure)


class Codec:
    """Encoder of rows on a base, and decoder of codes by near training rows.

    Parameters
    ----------
    poset : Poset or TensorPoset
        Partial order of the cells.
    base : ndarray of bool of shape ``poset.shape``, ForwardProjection or None
        Elements whose theta is free, or a forward projection of the user. None makes
        all cells free (:class:`WholeBase`).
    numerics : ManyBodyProjector
        Source of ``offset``, ``with_mass``, ``tol`` and ``max_iter``.
    local_manifold : LocalManifold, default=None
        Local sub-manifold that decodes codes. None allows encoding only.
    """

    def __init__(self, poset, base, numerics, local_manifold=None):
        self.poset = poset
        if isinstance(base, ForwardProjection):
            self.base = ProjectedBase(poset, base)
            self.mask, base = self.base.mask, None
        elif base is None:
            self.base, self.mask = WholeBase(poset), np.ones(poset.shape, bool)
        else:
            self.base, self.mask = FlatBase(poset, base), base
        self.offset, self.with_mass = numerics.offset, numerics.with_mass
        self.tol, self.max_iter = numerics.tol, numerics.max_iter
        self.local_manifold = local_manifold
        # Number of leading coordinates that normalisation fixes.
        self.n_fixed = int(self.base.has_bottom and not self.with_mass)
        self.n_params = len(self.base.elements) - self.n_fixed
        self._solver = solver = None if base is None else mixed_solver(poset, base)
        # For few marginal cells, a matrix product is faster than a sum over each mode.
        few = solver is not None and sum(poset.shape) <= 128
        self._is_one_body = few and solver.is_one_body
        # Whether encoding costs more than one pass over the rows.
        self.solves = solver is not None and not self._is_one_body
        self.encoded_at_once = rows_at_once(poset, solver if self.solves else None)
        self.solves |= not self.base.is_flat
        if local_manifold is not None:
            self._set_up_decoding()

    def _set_up_decoding(self):
        manifold = self.local_manifold
        poset = self.poset if manifold.poset is None else manifold.poset
        if poset.n_elements != self.poset.n_elements:
            raise ValueError(
                f"local_manifold has poset={poset!r}, but the rows have the poset "
                f"{self.poset!r}. Both must have the same number of elements."
            )
        self.local_mask = manifold.local_mask(poset, self.mask)
        matched = manifold.matched(self.local_mask)
        if matched is not None:
            # Normalisation matches the expectation of the bottom for every set.
            matched = np.array(matched)
            matched.reshape(-1)[poset.bottom] = True
        # If all elements are matched, the point of the code is the decoded row.
        is_kept = manifold.keeps_code and matched is not None and matched.all()
        self.needs_rows, self._decoder = not is_kept, None
        if self.needs_rows and matched is not None:
            self._decoder = mixed_solver(poset, matched)
        self.decoded_at_once = rows_at_once(poset, self._decoder)

    def codes(self, coordinates):
        """Return the free coordinates."""
        return coordinates[:, self.n_fixed :]

    def coordinates(self, codes):
        """Return all coordinates of codes."""
        codes = cast(codes, widest(codes))
        if self.with_mass:
            return 1 * codes
        psi = normalized_exp(self._energy(codes))[1][:, None]
        return concat([-psi, codes], axis=1) if self.base.has_bottom else codes - psi

    def _energy(self, codes):
        """Compute log cells (n, D) with 0 as the coordinate of the bottom."""
        if not self.base.has_bottom:
            return self.base.energy(codes)
        none = filled(0.0, (codes.shape[0], 1), codes)
        with_bottom = concat([none, codes[:, 1 - self.n_fixed :]], axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            return self.base.energy(with_bottom)

    def points(self, codes):
        """Compute distributions (n, D) and log masses of codes.

        Log masses are 0 if codes do not contain the mass.
        """
        codes = cast(codes, widest(codes))
        q, psi = normalized_exp(self._energy(codes))
        if not self.with_mass:
            return q, filled(0.0, q.shape[0], q)
        with np.errstate(over="ignore", invalid="ignore"):
            log_mass = psi + codes[:, 0] if self.base.has_bottom else psi
        _refuse_far(log_mass <= log(namespace(q).finfo(q.dtype).max))
        return q, log_mass

    def measures(self, codes):
        """Compute measures (n, D) of codes.

        The measures are distributions if codes do not contain the mass.
        """
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
        """Compute :meth:`measures` of a block of codes in the dtype of the codes."""
        return (_narrowed(self.measures(codes), codes.dtype),)

    @property
    def flat(self):
        """Codec of the same measures, whose logarithms are linear in coordinates."""
        # An attribute that refers to the object itself could not be saved by skops.
        return self if self.base.is_flat else self._full

    @cached_property
    def _full(self):
        return Codec(self.poset, None, self)

    def flat_coordinates(self, coordinates):
        """Convert coordinates to coordinates of the codec :attr:`flat`."""
        return coordinates if self.base.is_flat else self.base.energy(coordinates)

    def attainable_tol(self, x):
        """Return ``tol``, or the smallest tolerance of the device if it is larger."""
        return attainable_tol(self.tol, x)

    # --- rows to codes -------------------------------------------------------------

    def phi(self, rows):
        """Compute ``p = (x + offset) / mass`` (phi, Example 4.1), and the masses."""
        p = self.cells(rows)
        with np.errstate(over="ignore", invalid="ignore"):
            mass = namespace(p).sum(p, axis=1)
            p /= mass[:, None]
        return p, mass

    def cells(self, rows):
        """Compute measures (n, D) of rows.

        The value of an added bottom is the mean of the row.
        """
        if is_foreign(rows):
            return cast(rows, widest(rows)) + self.offset
        # The rounding of sums depends on the memory layout, which is therefore fixed.
        cells = np.array(rows, np.float64, order="C")
        if self.poset.added_bottom:
            cells = np.column_stack([np.nanmean(cells, axis=1), cells])
        cells += self.offset
        return cells

    def encode(self, rows, divergence=False):
        """Encode a block of rows (Enc = Proj_B after phi).

        The base of order 1 and the base of complete rows have closed forms, which do
        not need phi. If a mass overflows, the mass and the coordinates are not finite.
        """
        if not self.base.is_flat:
            return self._encode_by_user(rows, divergence)
        if self._solver is None:
            return self._encode_complete(rows)
        if self._is_one_body:
            return self._encode_one_body(rows, divergence)
        return self._encode(rows, divergence)

    def _encode(self, rows, divergence):
        p, mass = self.phi(rows)
        xp = namespace(p)
        if not xp.all(xp.isfinite(mass)):
            coordinates = filled(np.nan, (p.shape[0], len(self.base.elements)), p)
            return Encoded.closed(coordinates, mass)
        # w = Proj_B(p), B = M_ell of equation 1. Outside the base, theta is 0, as for
        # the uniform distribution, which is the default reference of the solver.
        tol = self.attainable_tol(p)
        logs, residual, n_iter, settled = self._solver.log_solve(p, tol, self.max_iter)
        log_mass = xp.log(mass) if self.with_mass else 0.0
        coordinates = self.base.coordinates(logs, log_mass, self.offset)
        kl = _divergence(p, logs) if divergence else np.nan
        encoded = Encoded.closed(coordinates, mass, kl)
        return encoded._replace(residual=residual, n_iter=n_iter, settled=settled)

    def _encode_by_user(self, rows, divergence):
        """Project by the :class:`ForwardProjection` of the user."""
        p, mass = self.phi(rows)
        check_masses(to_host(mass))
        coordinates = self.base.coordinates(p, np.log(mass) if self.with_mass else 0.0)
        if not divergence:
            return Encoded.closed(coordinates, mass)
        w, _ = self.points(self.codes(coordinates))
        return Encoded.closed(coordinates, mass, kl_divergence(p, w, axis=1))

    def encode_observed(self, rows, divergence=False):
        """Encode rows with NaN by the model of the observed cells.

        If several codes fit, the code has the smallest variance of the log measure.
        """
        is_missing = np.isnan(rows).any(axis=1)
        pieces, encode = [], partial(self.encode, divergence=divergence)
        encoders = (~is_missing, encode), (is_missing, self._encode_observed)
        for mask, encoder in encoders:
            if mask.any():
                pieces.append((np.flatnonzero(mask), encoder(rows[mask])))
        return Encoded(*joined(pieces))

    def _encode_observed(self, rows):
        cells = self.cells(rows).reshape(-1, *self.poset.shape)
        observed, _ = read_observed(cells, self.poset)
        design = self.base.design
        settings = {"tol": self.tol, "max_iter": self.max_iter}
        logs, residual, n_iter, _, rank = fit_exactly(observed, design, settings)
        divergence = _divergence(observed.target, logs - np.log(observed.mass)[:, None])
        mass = row_sums(np.exp(logs))
        log_mass = np.log(mass)
        logs -= log_mass[:, None]
        log_mass = log_mass if self.with_mass else 0.0
        coordinates = self.base.coordinates(logs, log_mass, self.offset)
        identified = rank > design.n_functions
        every = np.ones(len(rows), bool)
        return Encoded(
            coordinates, mass, residual, n_iter, divergence, identified, every
        )

    def _encode_one_body(self, rows, divergence):
        """Project onto the base of order 1 (w = Proj_B(p), B = M_1).

        The projection is the product of the marginals, which is not computed.
        """
        theta, marginals, mass = one_body_theta(rows, self.offset, self.poset.shape)
        xp = namespace(theta)
        if not xp.all(xp.isfinite(theta)):
            # Single precision can overflow although double precision does not.
            return self._encode(rows, divergence)
        if self.with_mass:
            theta[:, 0] += xp.log(mass)
        if not divergence:
            return Encoded.closed(theta, mass)
        p, _ = self.phi(rows)
        kl = at_least(_negentropy(p) - _negentropy(marginals), 0.0)
        return Encoded.closed(theta, mass, kl)

    def _encode_complete(self, rows):
        m = self.cells(rows)
        with np.errstate(over="ignore"):
            mass = row_sums(m)
        coordinates = log_over(m)
        if not self.with_mass:
            coordinates -= namespace(mass).log(mass)[:, None]
        return Encoded.closed(coordinates, mass, 0.0)

    # --- codes to rows -------------------------------------------------------------

    def decode(self, codes, neighbors, weights, *, rows, masses):
        """Decode a block of codes, and return the rows and the residuals.

        This is Algorithm 1 after the search for N. ``neighbors`` (n, k) contains
        indices of the training rows ``rows``, whose sums are ``masses``. The neighbours
        have the ``weights`` (n, k), which are ``1 / k`` in the paper. Decoded rows have
        the dtype of ``rows``.
        """
        weights = floats_like(weights, masses)
        mass = None
        if not self.with_mass:
            # The mean mass of N (Remark 4.3).
            mass = namespace(masses).sum(weights * _each(masses, neighbors), axis=1)
        if not self.needs_rows:
            # The code contains the complete row (not in the paper).
            x = self.phi_inverse(self.measures(codes), mass, rows.dtype)
            return x, filled(0.0, x.shape[0], x)
        # w, the point of the base B for each code.
        w, log_mass = self.points(codes)
        # r, a point of D. For "theta", D is M*_ell(N) and r the geometric mean of N:
        # with equal weights, theta of r is the mean of equation 2. Otherwise, r is the
        # mean in eta.
        r = self.mean(rows, masses, neighbors, weights)
        # q = Proj_D(w). For "theta", q is in D, because q has the theta of r up to
        # ell'; beyond ell', q has the eta of w.
        q, residual = self.local_manifold.project_from_code(w, r, self._project)
        # x = phi^-1(q)
        if self.with_mass:
            mass = namespace(log_mass).exp(log_mass)
        return self.phi_inverse(q, mass, rows.dtype), residual

    def divergences(self, codes, rows):
        """Compute ``KL(w, q)`` of the points of codes and of rows (n, D), in nats."""
        (w, _), (q, _) = self.points(codes), self.phi(rows)
        return (kl_divergence(w, q, axis=1),)

    def _project(self, target, reference):
        # Outside the matched set, q has the theta of the reference, which does not
        # exist if a cell is 0.
        is_positive = namespace(reference).min(reference, axis=1) > 0
        _refuse_far(is_positive, "cells of its distribution underflow to 0")
        # `_set_up_decoding` chose the solver for the matched set. For "theta", the set
        # is an up-set, and q has a closed form (`SpliceSolver`).
        tol = self.attainable_tol(target)
        return self._decoder.solve(target, reference, tol, self.max_iter)[:2]

    def mean(self, rows, masses, neighbors, weights):
        """Compute the mean distribution of the neighbours of each code.

        The mean is taken in eta, or in theta for a geometric mean. With equal weights,
        the mean in theta is the mean of equation 2.
        """
        geometric = self.local_manifold.geometric
        # In theta, the mass adds a constant to a row, which normalisation removes.
        shares = weights if geometric else weights / _each(masses, neighbors)
        (n, k), size, means = neighbors.shape, self.poset.n_elements, []
        # The neighbours of a few codes at a time stay in cache.
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
        """Multiply distributions by ``mass`` and subtract the offset (phi^-1).

        Decoding uses the mean mass of N (Remark 4.3). None is for measures, which
        contain the mass.
        """
        if mass is not None:
            q *= mass[:, None]
        rows = q
        if self.poset.added_bottom:
            # The bottom is dropped. When the row is encoded again, the bottom will be
            # the mean, 1 / D of the mass. The features therefore get the rest of the
            # mass, so that the row keeps its sum.
            kept = row_sums(q) * (1 - 1 / self.poset.n_elements)
            rows = q[:, 1:]
            rows = rows * (kept / rows.sum(axis=1))[:, None]
        rows -= self.offset
        rows = _narrowed(rows, dtype)
        # A cell of -offset would have the measure 0.
        kind = np.float32 if namespace(rows).finfo(dtype).bits == 32 else np.float64
        return at_least(rows, float(np.nextafter(kind(-self.offset), kind(0))))


def _refuse_far(fine, what="its measure overflows"):
    """Raise a :class:`CodeError` for the first code that is not ``fine``."""
    if not namespace(fine).all(fine):
        why = (
            f"is so far from the training rows that {what}. Use codes closer to the "
            "codes of the training rows. For new rows, reduce the noise or the "
            "bandwidth of draws."
        )
        raise CodeError(int(np.argmin(to_host(fine))), why)


def _narrowed(rows, dtype):
    """Cast rows to a float dtype, or raise an error if a row overflows the dtype."""
    if dtype == rows.dtype:
        return rows
    xp = namespace(rows)
    largest = xp.max(xp.abs(rows), axis=1)
    _refuse_far(largest <= float(xp.finfo(dtype).max), f"its row overflows {dtype}")
    return cast(rows, dtype)


def _negentropy(p):
    """Compute ``sum p log p`` of each row."""
    xp = namespace(p)
    with np.errstate(divide="ignore", invalid="ignore"):
        return xp.sum(xp.where(p > 0, p * xp.log(p), 0.0), axis=1)


def _divergence(p, logs):
    """Compute ``KL(p, exp(logs))`` of each row, for distributions on the same cells."""
    xp = namespace(p)
    # The log of an empty cell may be infinite.
    crossed = xp.sum(p * xp.where(p > 0, logs, 0.0), axis=1)
    return at_least(_negentropy(p) - crossed, 0.0)


def _each(values, indices):
    """Take the values at an array (n, k) of indices."""
    return reshaped(take(values, indices.reshape(-1)), indices.shape)


# --- parameters of estimators ------------------------------------------------------


def free_mask(poset, order, elements):
    """Return the mask of ``elements``, or of the elements up to ``order`` if None."""
    if elements is None:
        return order_mask(poset, order)
    if order is not None and not np.array_equal(order, 1):
        raise ValueError(
            f"order={order!r} cannot be combined with base, which replaces order. "
            "Leave order at its default."
        )
    return element_mask(poset, elements)


def selected_base(poset, order, elements):
    """Return the forward projection ``order``, or the mask of :func:`free_mask`."""
    if not isinstance(order, ForwardProjection):
        return free_mask(poset, order, elements)
    if elements is not None:
        raise ValueError(
            f"order={order!r} cannot be combined with base. Override base_mask of "
            f"{type(order).__name__} instead."
        )
    order._validate_params()
    return order


def lay_out(poset, shape):
    """Return the poset for rows of a shape; None makes the poset of a tensor."""
    if poset is None:
        return TensorPoset(shape)
    n_features = poset.n_elements - poset.added_bottom
    laid_out = shape == poset.shape and not poset.added_bottom
    if laid_out or shape == (n_features,):
        return poset
    raise ValueError(
        f"poset={poset!r} has {n_features} features, but the rows have the shape "
        f"{shape}. A row must have one feature for each element, without an added "
        "bottom. If a reshaper changed the shape of the rows, set reshaper=None."
    )


def unshared(rows, X):
    """Copy rows that share memory with ``X``, except for read-only arrays."""
    shared = isinstance(X, np.ndarray) and np.may_share_memory(rows, X)
    return rows.copy() if shared and X.flags.writeable else rows


def encode_rows(codec, rows, caller, n_jobs=None, divergence=False, missing=False):
    """Encode rows (n, D), with a warning if some rows did not converge.

    ``missing`` allows NaN as a missing cell. A warning names the rows whose observed
    cells do not determine a code.
    """
    # Missing cells are not supported on a device.
    missing = missing and not is_foreign(rows)
    # A closed form needs one pass over memory, which threads do not speed up.
    step = codec.encoded_at_once
    if codec.solves or divergence or missing:
        step = even_step(rows.shape[0], step)
    else:
        n_jobs = None
    encode = codec.encode_observed if missing else codec.encode
    encode = partial(encode, divergence=divergence)
    encoded = Encoded(
        *map_blocks(encode, rows, step=step, task=f"{caller}: encode", n_jobs=n_jobs)
    )
    check_masses(to_host(encoded.mass))
    residual, tol = to_host(encoded.residual), codec.attainable_tol(rows)
    if codec.solves and tol > codec.tol:
        warn_user(
            f"{caller}: tol={codec.tol:g} is smaller than the rounding error of the "
            f"device, which has single precision; tol={tol:.1e} was used. Set a larger "
            "tol, or compute on a device with double precision."
        )
    # Increasing max_iter does not help rows that stopped earlier.
    is_unconverged = ~(residual <= tol) & (encoded.n_iter >= codec.max_iter)
    warn_unconverged(
        caller, np.where(is_unconverged, residual, 0.0), tol, codec.max_iter
    )
    is_settled = encoded.settled & (residual <= tol) | is_unconverged
    warn_not_settled(caller, is_settled, DETERMINED)
    warn_not_identified(caller, encoded.identified)
    return encoded._replace(residual=residual)
