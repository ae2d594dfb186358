r"""Chi-square projection of many rows at once: equations of each, totals of all.

.. math:: \min_x \sum_{ij} (x_{ij} - s_{ij})^2 / (2 w_{ij}) \quad\text{subject to}\quad
          l_i \le A x_i \le u_i, \; L \le \sum_i T x_i \le U, \; lo \le x \le hi

is ``x_i = clip(s_i + w_i (A' y_i + T' z), lo_i, hi_i)``, with multipliers ``y_i`` of
each row and a few ``z`` that all share. The dual is convex and piecewise quadratic. For
given ``z`` rows are solved apart; the value that is left is a function of ``z`` alone,
whose Hessian is the Schur complement of an arrow,

.. math:: \sum_i T W_i T' - T W_i A' (A W_i A')^{-1} A W_i T'

over the cells that are free. Totals are told apart first: ``T`` without what ``A`` says
of it, in a basis in which this matrix is the identity while all cells are free.
Newton's method with a line search ends after finitely many steps (Mangasarian 2002).
Intervals are equations with one more cell, which costs next to nothing to move; those
of totals have one in each row, for its share.

O. L. Mangasarian, "A finite Newton method for classification", Optimization Methods and
Software 17, 2002. J.-C. Deville, C.-E. Särndal, "Calibration estimators in survey
sampling", JASA 1992, has the distance.
"""

import numpy as np

# Added to Hessians, as a share of what they are and of what they are with all cells
# free: small cells decide where large ones are fixed.
_RIDGE, _LEAST = 1e-10, 1e-15
# Totals that say so little beside equations of rows and other totals say nothing.
_NOTHING = 1e-12
# Weight of a cell that stands for what an interval leaves, times that of other cells.
_LOOSE = 1e4
# Slope along a step, as a share of that at its start, that ends a line search.
_SLOPE = 0.1
_MAX_LENGTHS = 30
# Steps of the multipliers that all share.
_MAX_STEPS = 60
# Steps of a row for given shared multipliers, and what counts as met, in units.
_MAX_ROW_STEPS, _ROW_TOL = 60, 1e-12


def joint_projection(rows, weights, of_rows, of_all, ranges, units, tol=1e-13):
    """Rows (n, d) on equations and totals, moved least.

    Parameters
    ----------
    rows, weights : ndarray of shape (n, d)
        What is moved, and how easily each cell is: positive.
    of_rows : tuple of ndarray of shapes (c, d), (1 or n, c), (1 or n, c)
        Coefficients of each row, and between which ends they bring it.
    of_all : tuple of ndarray of shapes (k, d), (k,), (k,)
        The same for all rows together.
    ranges : tuple of ndarray of shapes (d,) or (n, d)
        Least and most of the cells.
    units : ndarray of shape (d,)
        In which cells are of order one.
    tol : float
        Wanted residual of a total.

    Returns
    -------
    found : ndarray of shape (n, d)
        Rows as near as was found, if they cannot be on all of it.
    residual : ndarray of shape (k,)
        What is missed of each total, as a share of the sum of its absolute terms.
    row_residual : float
        Worst miss of an equation of a row, in units of its largest term.
    """
    (a, *own), (t, *shared) = of_rows, of_all
    arrow = _Arrow(
        rows / units,
        weights / units**2,
        _in_own_units(a * units, *own),
        _in_own_units(t * units, *shared),
        [end / units for end in ranges],
    )
    moves = arrow.solve(tol)
    found = np.clip(rows + moves[:, : rows.shape[1]] * units, *ranges)
    residual = np.abs(arrow.lack(moves)) / arrow.size
    of_rows = np.abs(arrow.missing - moves @ arrow.a.T).max(initial=0)
    return found, residual, float(of_rows)


class _Arrow:
    """Moves (n, D) of cells in units, of which some stand for intervals.

    Equations ``a`` of each row, which lack ``missing``, and ``given`` of all rows
    together, which lack ``wanting``; of these and those ``t`` are ``combined``.
    """

    def __init__(self, cells, weights, of_rows, of_all, ranges):
        (a, *own), (t, *shared) = of_rows, of_all
        n, c = len(cells), len(a)
        values, held = cells @ a.T, cells.sum(axis=0) @ t.T
        # From where rows are to what is asked; of a total each row has its share.
        ends = [
            np.hstack([one - values, np.tile((total - held) / n, (n, 1))])
            for one, total in zip(own, shared, strict=True)
        ]
        inside, is_open = np.clip(0.0, *ends), (ends[0] < ends[1]).any(axis=0)
        room = np.minimum(ranges[0] - cells, 0), np.maximum(ranges[1] - cells, 0)
        self.floor, self.ceiling = (
            np.hstack([gap, (end - inside)[:, is_open]])
            for gap, end in zip(room, ends, strict=True)
        )
        loose = np.full((n, is_open.sum()), _LOOSE * weights.max())
        both = np.vstack([a, t])
        both = np.hstack([both, -np.eye(len(both))[:, is_open]])
        self.a, self.given = both[:c], both[c:]
        self.missing, self.wanting = inside[:, :c], inside[:, c:].sum(axis=0)
        self.weights = np.hstack([weights, loose])
        self.size = np.maximum(np.abs(cells).sum(axis=0) @ np.abs(t).T, 1e-300)
        # What is fixed is no measure of what can be moved.
        self.movable = self.weights * (self.floor < self.ceiling)
        self.t, self.combined = self.told_apart()

    def told_apart(self):
        """Totals that are orthonormal where all cells are free, and of what they are.

        Without what equations of rows say of them: totals of two columns that differ by
        one of small cells are one of these, and one of the small cells.
        """
        root = np.sqrt(self.movable.mean(axis=0))
        own, given = (self.a * root).T, (self.given * root).T
        known = np.linalg.lstsq(own, given, rcond=None)[0]
        rest = self.given - known.T @ self.a
        ways, sizes, _ = np.linalg.svd(rest * root, full_matrices=False)
        some = sizes > _NOTHING * sizes.max(initial=0)
        combined = (ways[:, some] / sizes[some]).T
        return combined @ rest, combined

    def solve(self, tol):
        """Moves on equations and totals, or as near as was found."""
        z, y = np.zeros(len(self.t)), np.zeros(self.missing.shape)
        y, moves = self.rows_for(z, y)
        for _ in range(_MAX_STEPS):
            if np.all(np.abs(self.lack(moves)) <= tol * self.size):
                break
            missing = self.left(moves)
            step, back = self.newton(moves, missing)
            tried = {}

            def slope(length, _, z=z, y=y, step=step, back=back, tried=tried):
                at = z + length[0] * step
                found = self.rows_for(at, y - length[0] * (back @ step))
                tried[float(length[0])] = found
                return -np.atleast_1d(self.left(found[1]) @ step)

            length = _lengths(slope, -np.atleast_1d(missing @ step))[0]
            y, moves = tried[float(length)]
            z = z + length * step
        return moves

    def lack(self, moves):
        """What all rows lack of each total (k,)."""
        return self.wanting - moves.sum(axis=0) @ self.given.T

    def left(self, moves):
        """The same of the combinations."""
        return self.combined @ self.lack(moves)

    def newton(self, moves, missing):
        """A step (k,), and how multipliers (n, c, k) of the rows answer to it."""
        free = self.free(moves)
        schur = (free.sum(axis=0) * self.t) @ self.t.T
        whole = self.movable.sum(axis=0) @ (self.t**2).T
        cross = np.einsum("cd,nd,kd->nck", self.a, free, self.t, optimize=True)
        back = np.linalg.solve(self.grams(free), cross)
        schur -= np.einsum("nck,ncl->kl", cross, back)
        root = 1 / np.sqrt(np.where(whole > 0, whole, 1.0))
        schur = schur * root * root[:, None]
        schur += np.diag(_RIDGE * np.abs(np.diagonal(schur)) + _LEAST)
        step = root * np.linalg.solve(schur, root * missing)
        return self.capped(step[None], self.t, self.movable.any(axis=0))[0], back

    def free(self, moves, rows=slice(None)):
        """Weights of the cells of some rows that are at no end of their range."""
        inside = (moves > self.floor[rows]) & (moves < self.ceiling[rows])
        return self.weights[rows] * inside

    def grams(self, free, rows=slice(None)):
        """``A diag(w) A'`` (n, c, c) over free cells of some rows, with a ridge."""
        c = len(self.a)
        products = (self.a[:, None, :] * self.a).reshape(c * c, self.a.shape[1])
        grams = (free @ products.T).reshape(len(free), c, c)
        whole = self.movable[rows] @ (self.a**2).T
        diagonal = np.einsum("ncc->nc", grams)
        diagonal += _RIDGE * diagonal + _LEAST * np.where(whole > 0, whole, 1.0)
        return grams

    def capped(self, step, coefficients, some, rows=slice(None)):
        """Steps no longer than what takes any of some cells from end to end."""
        w = self.weights[rows]
        ends = self.ceiling[rows], -self.floor[rows]
        far = max((np.where(np.isfinite(e), e, 0) / w).max(initial=1.0) for e in ends)
        change = (np.abs(step @ coefficients) * some).max(axis=1, initial=0)
        return step * np.minimum(1, 4 * far / np.maximum(change, 1e-300))[:, None]

    def moved(self, z, y, rows=slice(None)):
        """Moves of some rows for multipliers."""
        moves = self.weights[rows] * (y @ self.a + z @ self.t)
        return np.clip(moves, self.floor[rows], self.ceiling[rows], out=moves)

    def rows_for(self, z, y):
        """Multipliers and moves of rows on their own equations, for given ``z``."""
        moves, y, todo = self.moved(z, y), y.copy(), np.arange(len(y))
        for _ in range(_MAX_ROW_STEPS):
            missing = self.missing[todo] - moves[todo] @ self.a.T
            going = np.abs(missing).max(axis=1, initial=0) > _ROW_TOL
            todo, missing = todo[going], missing[going]
            if not len(todo):
                break
            grams = self.grams(self.free(moves[todo], todo), todo)
            step = np.linalg.solve(grams, missing[:, :, None])[:, :, 0]
            step = self.capped(step, self.a, self.movable[todo] > 0, todo)

            def slope(length, some, todo=todo, step=step):
                rows = todo[some]
                at = y[rows] + length[:, None] * step[some]
                left = self.missing[rows] - self.moved(z, at, rows) @ self.a.T
                return -np.einsum("nc,nc->n", left, step[some])

            first = -np.einsum("nc,nc->n", missing, step)
            y[todo] += _lengths(slope, first)[:, None] * step
            moves[todo] = self.moved(z, y[todo], todo)
        return y, moves


def _in_own_units(a, *ends):
    """Equations (c, d) and their ends, by the largest coefficient of each."""
    size = np.abs(a).max(axis=1, initial=0)
    size = np.where(size > 0, size, 1.0)
    return a / size[:, None], *(end / size for end in ends)


def _lengths(slope, first):
    """Steps of at most 1 to where a rising slope is about 0, from below 0 at 0."""
    n = len(first)
    low, high = np.zeros(n), np.ones(n)
    at_low, at_high = first.copy(), slope(np.ones(n), np.arange(n))
    lengths, todo = np.ones(n), np.flatnonzero(at_high > _SLOPE * np.abs(first))
    for _ in range(_MAX_LENGTHS):
        if not len(todo):
            break
        rise = np.maximum(at_high[todo] - at_low[todo], 1e-300)
        share = np.clip(-at_low[todo] / rise, 0.05, 0.95)
        lengths[todo] = low[todo] + share * (high[todo] - low[todo])
        value = slope(lengths[todo], todo)
        up = value > 0
        high[todo[up]], at_high[todo[up]] = lengths[todo[up]], value[up]
        low[todo[~up]], at_low[todo[~up]] = lengths[todo[~up]], value[~up]
        todo = todo[np.abs(value) > _SLOPE * np.abs(first[todo])]
    return lengths
