"""Projections in mixed coordinates with a closed form, for many rows at once.

The backward projection onto an up-set is the closed form of :class:`SpliceSolver`.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from ..._utils.arrays import (
    BLOCK_CELLS,
    DEVICE_BLOCKS,
    concat,
    filled,
    is_foreign,
    largest,
    like,
    namespace,
    slices,
    take,
    widest,
)
from ..convex.newton import Report
from ..coordinates import distributions
from ..posets.elements import refuse_foreign
from ..posets.protocol import zeta_columns

# Largest error of theta of a code that counts as determined. A step of the dense method
# squares the error, so a last step of a tenth of this size leaves a far smaller error.
DETERMINED = 0.01


@dataclass(frozen=True, kw_only=True)
class Projection(Report):
    """Result of :func:`mixed_projection`: distributions and their convergence.

    Attributes
    ----------
    prob : ndarray of shape (..., *poset.shape)
        The projections.
    residual : ndarray of shape (...,)
        ``max |eta_q - eta_target|`` over the matched elements.
    n_iter : ndarray of int of shape (...,)
        Number of Newton steps, 0 for a closed form.
    tol : float
        The tolerance of the residual.
    converged : ndarray of bool of shape (...,)
        ``residual <= tol``.
    route : {"splice", "tilt", "classes", "general"}
        The solver that was used. "splice" and "classes" are closed forms.

    See Also
    --------
    mixed_projection : Compute a distribution with given mixed coordinates.
    LinearProjection : Result of a projection onto linear constraints.
    """

    prob: np.ndarray
    route: str


class Solver:
    """Base class of the four routes, which checks inputs and handles shapes.

    ``solve(target, reference, tol, max_iter)`` of a subclass works on flat rows. It
    returns distributions, residuals and numbers of steps.
    """

    # Whether the projection with a uniform reference is a product of marginals.
    is_one_body = False
    # Whether the solver uses conjugate gradients, which do not form the Hessian.
    matrix_free = False

    def __init__(self, poset, matched):
        self.poset, self.matched = poset, matched
        self.elements = np.flatnonzero(matched)

    def project(self, target, reference=None, *, tol=1e-6, max_iter=100):
        """Solve for all rows of ``target`` and ``reference``, block by block."""
        given = {} if reference is None else {"reference": reference}
        (target, *others), lead = distributions(self.poset, target=target, **given)
        n, reference = target.shape[0], others[0] if others else None
        tol, at_once = attainable_tol(tol, target), rows_at_once(self.poset, self)
        none = filled(0.0, 0, target), np.zeros(0, int)
        solved = [] if n else [(target, *none)]
        if is_foreign(target):
            at_once *= DEVICE_BLOCKS
        for block in slices(n, at_once):
            part = None if reference is None else reference[block, ...]
            solved.append(self.solve(target[block, ...], part, tol, max_iter))
        prob, residual, n_iter = map(concat, zip(*solved, strict=True))
        xp = namespace(prob)
        if reference is not None and not xp.all(reference > 0):
            # The closed form of the splice ignores structural zeros of the reference.
            prob = xp.where(reference > 0, prob, 0.0)
            residual = self.residual(prob - target)
        return Projection(
            prob=xp.reshape(prob, (*lead, *self.poset.shape)),
            residual=xp.reshape(residual, lead),
            n_iter=n_iter.reshape(lead),
            tol=tol,
            route=self.route,
        )

    def log_solve(self, target, tol, max_iter):
        """Solve for the uniform reference, until theta is determined.

        Return logs of distributions, residuals, numbers of steps, and a mask of the
        rows whose theta is determined to :data:`DETERMINED`. Logs are finite even if a
        cell is smaller than the smallest float.
        """
        q, residual, n_iter = self.solve(target, None, tol, max_iter)
        with np.errstate(divide="ignore"):
            logs = namespace(q).log(q)
        return logs, residual, n_iter, np.ones(q.shape[0], bool)

    @cached_property
    def _columns(self):
        return zeta_columns(self.poset, self.elements)

    def residual(self, difference):
        """Compute ``max |eta_q - eta_t|`` over M from the difference ``q - t``."""
        return largest(self._columns.analysis(difference))


class SpliceSolver(Solver):
    """Solver for an up-set M: the target on M, and the rescaled reference off M."""

    route = "splice"

    def __init__(self, poset, matched):
        super().__init__(poset, matched)
        self._rest, self._is_matched = np.flatnonzero(~matched), matched.reshape(-1)

    def solve(self, target, reference, tol, max_iter):
        """Solve for flat rows that need no check; see :class:`Solver`."""
        xp, n = namespace(target), target.shape[0]
        mass = xp.sum(take(target, self._rest, axis=1), axis=1, keepdims=True)
        # Shares of the mass off M; the default reference is uniform.
        shares = 1 / len(self._rest)
        if reference is not None:
            total = xp.sum(take(reference, self._rest, axis=1), axis=1, keepdims=True)
            shares = reference / xp.where(total > 0, total, 1.0)
        q = xp.where(like(self._is_matched, target), target, shares * mass)
        return q, filled(0.0, n, q), np.zeros(n, int)


class ClassSolver(Solver):
    """Solver for an M with a greatest element below each cell, which is its class.

    eta on M determines the masses of the classes, so the reference is rescaled class by
    class.
    """

    route = "classes"

    def __init__(self, poset, matched, greatest):
        super().__init__(poset, matched)
        ones = np.ones(poset.n_elements)
        places = (np.arange(poset.n_elements), greatest + 1)
        self._classes = csr_array((ones, places))

    def solve(self, target, reference, tol, max_iter):
        """Solve for flat rows that need no check; see :class:`Solver`."""
        refuse_foreign(target, "A projection on the route 'classes'")
        if reference is None:
            reference = np.full((1, self.poset.n_elements), 1 / self.poset.n_elements)
        has, wanted = (x @ self._classes for x in (reference, target))
        factors = np.divide(wanted, has, out=np.zeros_like(wanted), where=has > 0)
        q = reference * (factors @ self._classes.T)
        return q, self.residual(q - target), np.zeros(len(q), int)


def rows_at_once(poset, solver=None):
    """Return the number of rows per block, so that temporaries stay in the cache.

    Blocks are larger for conjugate gradients, because rows leave their block early.
    """
    cells = BLOCK_CELLS * (4 if solver is not None and solver.matrix_free else 1)
    return max(poset.rows_at_once, cells // poset.n_elements)


def attainable_tol(tol, x):
    """Return the tolerance, or the smallest tolerance that the device can attain."""
    if isinstance(x, np.ndarray) or widest(x) == namespace(x).float64:
        return tol
    # The bound is the rounding of sums of the cells of a distribution.
    return max(tol, 64 * float(namespace(x).finfo(widest(x)).eps))
