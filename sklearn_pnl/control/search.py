"""Linear equations that hold in every row: totals, shares, one-hot groups, copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from math import prod

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from sklearn.base import BaseEstimator

from .._runtime.blocks import ends_of
from .._runtime.threads import one_blas_thread
from ..tables import read_table
from .candidates import MOST_IN_BALANCE, balances, sums
from .chance import LOOSE, Chance, all_above
from .decimals import rounded_equations
from .groups import one_hot_groups
from .readable import as_fractions, fewer_features, scales, shortest, values_of, whole
from .steps import Steps
from .system import LinearSystem

# Rows in which equations of any kind are looked for: so many times the features.
_ROWS_PER_FEATURE = 2
# Rows that the null space is taken from, per feature, before all rows are asked.
_SAMPLE = 1.25
_MAX_ROUNDS = 20
# Where rounding is a smaller share than this, rank is certain.
_CLEARLY = 1e-6
# Rounding beyond this share is not that of double precision.
_CLEARLY_SINGLE = 1e-12
# What is left of a range by rounding is none.
_CONSTANT = 1e-12
# Rows in which rounded coefficients are tried first.
_FEW_ROWS = 64
# Candidates that are tried.
_MOST_CANDIDATES = 5000


def find_invariants(
    X: ArrayLike, feature_names: Sequence[str] | None = None, *, tol: float = 1e-9
) -> LinearSystem:
    """Find the linear equations that hold in every row.

    Constant features, copies, totals, nested subtotals, balances, shares and one-hot
    groups: all of them vectors in the null space of the centred rows. With at least
    twice as many distinct rows as features that vary, equations with any coefficients
    are found there. With fewer, rows satisfy equations by chance, and only simple ones
    are looked for: copies, up to four features that balance (coefficients 1 and -1),
    and the sum of neighbouring columns that is constant or another feature. One-hot
    groups are neighbouring columns of two values, in any units, with the upper one in
    just one of them in each row; counts tell whether chance makes them. Other equations
    are taken if they hold in all rows and shuffled features would not let chance make
    one of their size. Of coefficients other than small whole numbers, rows that are
    alike in its features speak once; and but for plain sums, no coefficient may be for
    a single row. Where columns have steps, whole numbers or decimals in double
    precision, also equations are found that hold up to half a step of each of them, as
    shares in per cent do: of two of them, or of more with small whole weights. Their
    ``rounding`` says how far.

    Parameters
    ----------
    X : array-like or data frame of shape (n, n_columns)
        Finite rows; those of higher dimension flat. Columns of a frame that hold no
        numbers are in no equation.
    feature_names : sequence of str, default=None
        Names for the descriptions; None is those of the frame, or ``x0``, ``x1``, ...
    tol : float, default=1e-9
        An equation holds if no row misses it by more than this share of the range of
        its largest term, and the rounding of columns in single or half precision.

    Returns
    -------
    LinearSystem
        The first ones are constants; others have as few features as could be found.

    See Also
    --------
    LinearSystem : The equations found.
    ColumnConstraint : What is asked of new rows.
    PNLAugmenter : One set of rows, without classes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import find_invariants
    >>> parts = np.random.default_rng(0).gamma(1.0, size=(50, 3))
    >>> X = np.column_stack([parts.sum(axis=1), parts, 2 * parts[:, 0] + 32])
    >>> find_invariants(X, ["total", "a", "b", "c", "d"])
    2 invariants of 5 features
      total = a + b + c
      d = 2 a + 32
    """
    table = read_table(Reader(), X)
    found = found_in(table, Steps(table), tol)
    if feature_names is None:
        return found
    names, n_known = tuple(map(str, feature_names)), len(found.feature_names)
    if len(names) != n_known:
        raise ValueError(f"{len(names)} feature_names for {n_known} features.")
    return replace(found, feature_names=names)


class Reader(BaseEstimator):
    """What a table is read for, if it is not for an estimator."""

    def __init__(self, categorical_features="auto"):
        self.categorical_features = categorical_features


def found_in(table, steps, tol=1e-9, most=np.inf):
    """Equations of the rows of a table, about the columns of X, those of steps last.

    Of none with features of sizes beyond ``most``, or of less than its inverse.
    """
    rows = table.numbers()
    *found, note = _search(rows, tol, table.precision, most)
    system = _about_columns(table, *found, note)
    # Cells of images and signals are no sums of each other that were rounded.
    if note or not len(rows) or len(table.row_shape) > 1:
        return system
    lattice = steps.lattice.with_steps(table.times, 0.0)
    if np.count_nonzero(lattice.on_it) < 2:
        return system
    *more, rounding = rounded_equations(rows, lattice, found[0], steps.precision)
    if not len(rounding):
        return system
    more = _about_columns(table, *more, np.ptp(rows, axis=0), note)
    system = replace(system, ranges=more.ranges)
    return system.and_also(replace(more, rounding=rounding))


def groups_in(table, note):
    """One-hot groups alone, among any number of columns."""
    found, values = one_hot_groups(table.raw(), precision=table.precision)
    used = np.flatnonzero(found.any(axis=0))
    ranges = np.zeros(found.shape[1])
    if len(used):
        ranges[used] = np.ptp(table.columns_of(used), axis=0)
    return _about_columns(table, found, values, ranges, note)


def _about_columns(table, found, values, ranges, note):
    """Equations about the numbers of a table as some about the columns of X."""
    names = names_of(table)
    coefficients, wide = np.zeros((len(found), len(names))), np.zeros(len(names))
    coefficients[:, table.columns], wide[table.columns] = found, ranges
    values = values + found @ table.starts
    return LinearSystem.equations(coefficients, values, names, wide, note)


@one_blas_thread()
def _search(X, tol, precision, most):
    """Equations of finite numbers (n, D), their values, ranges (D,), and a note.

    ``precision`` (D,) is the rounding of each column's type; else as in
    :func:`find_invariants` and :func:`found_in`.
    """
    none = np.empty((0, X.shape[1])), np.empty(0), np.zeros(X.shape[1])
    if not len(X) or clearly_full_rank(X):
        return *none, ""
    X = np.asarray(X, dtype=np.float64)
    low, ranges, size, rounding = spread(X, precision)
    if np.any((size > most) | ((size > 0) & (size < 1 / most))):
        why = "Features in extreme units: equations were not looked for. Rescale X to "
        return *none, f"{why}keep them."
    varying, constant = np.flatnonzero(ranges), np.flatnonzero(ranges == 0)
    rows = _Rows(X, varying, ranges, size, tol, rounding)
    if rows.n_distinct >= _ROWS_PER_FEATURE * len(varying):
        found, values, note = *rows.null_space(), ""
    else:
        found, values = rows.simple_equations()
        note = (
            f"{rows.n_distinct} distinct rows are too few for {len(varying)} features "
            f"that vary (fewer than {_ROWS_PER_FEATURE} times as many): only copies, "
            "up to four features that balance and sums of neighbouring columns were "
            "looked for."
        )
    found, values = rows.with_groups(found, values, precision)
    found = np.vstack([np.eye(len(ranges))[constant], found])
    return found, np.concatenate([low[constant], values]), ranges, note


def spread(X, precision):
    """Smallest values (D,) of columns, ranges, sizes, and what their types round."""
    low, high = (end.astype(np.float64) for end in ends_of(X))
    size, ranges = np.maximum(np.abs(low), np.abs(high)), high - low
    # What is left of constants is rounding, which nothing is a share of.
    ranges[ranges <= _CONSTANT * size] = 0
    return low, ranges, size, (4 * precision + 16 * np.finfo(float).eps) * size


class _Rows:
    """The rows that equations are looked for in, and must hold in."""

    def __init__(self, X, varying, ranges, size, tol, rounding):
        self.X, self.varying, self.ranges, self.size = X, varying, ranges, size
        self.tol, self.rounding = tol, rounding
        self.chance = Chance(X, varying, ranges, tol, _ROWS_PER_FEATURE)
        self.n_distinct = self.chance.n_distinct

    # --- many rows: any equation ------------------------------------------------

    def null_space(self):
        """Equations of any kind, from a sample of rows that grows where they fail."""
        n = len(self.X)
        n_some = min(n, int(_SAMPLE * len(self.varying)) + 50)
        some = np.linspace(0, n - 1, n_some).astype(int)
        still = self.varying[np.ptp(self.X[np.ix_(some, self.varying)], axis=0) == 0]
        still = self.X[:, still]
        some = np.concatenate([some, still.argmin(axis=0), still.argmax(axis=0)])
        for _ in range(_MAX_ROUNDS):
            some = np.unique(some)
            raw = self._dependent(some) if len(self.varying) else []
            if not len(raw):
                return self._none()
            holds, _, ends = self._check(raw)
            if holds.all() or len(some) == n:
                break
            # One end alone may be a row that is among them already.
            some = np.concatenate([some, *ends[:, ~holds]])
        found, values = self._readable(raw[holds])
        likely = self._likely(found)
        if likely.all():
            return found, values
        # With one that chance makes, a sum of the same features may have any form.
        found, values = found[likely], values[likely]
        return self._joined(found, values, *self.simple_equations())

    def _likely(self, equations):
        unlikely = [
            self.chance.makes(
                a,
                fitted=not _is_plain(a),
                looked_for=np.count_nonzero(a) <= MOST_IN_BALANCE,
            )
            for a in equations
        ]
        return ~np.array(unlikely, bool)

    def _dependent(self, some):
        """Equations (k, D) that give some features by others, in some rows.

        Features of small range come first: what depends on them are totals. Whether a
        single row decides some coefficients is kept.
        """
        order = self.varying[np.argsort(self.ranges[self.varying], kind="stable")]
        Z = self.X[np.ix_(some, order)]
        Z = (Z - Z.mean(axis=0)) / self.ranges[order]
        norms = np.linalg.norm(Z, axis=0)
        noise = 6 * self.rounding[order] / self.ranges[order]
        least = np.maximum(10 * self.tol, noise) * np.sqrt(len(some))
        triangle = np.linalg.qr(Z, mode="r")
        diagonal = np.abs(np.diagonal(triangle))
        depends = diagonal <= np.maximum(least[: len(diagonal)], 1e-14 * norms.max())
        free, follow = np.flatnonzero(~depends), np.flatnonzero(depends)
        if not len(follow):
            return np.empty((0, self.X.shape[1]))
        # Up to the first that follows it is a triangle as it is.
        first, triangle = follow[0], triangle[:, [*free, *follow]]
        triangle[first:, first:] = np.linalg.qr(triangle[first:, first:], mode="r")
        k = len(free)
        root = triangle[:k, :k]
        orthonormal = solve_triangular(root, Z[:, free].T, trans="T")
        leverages = np.einsum("kn,kn->n", orthonormal, orthonormal)
        some_alone = leverages.max() + 1 / len(Z) > 1 - LOOSE
        self.chance.fitted(order[free], some_alone)
        weights = solve_triangular(root, triangle[:k, k:]).T
        weights[np.abs(weights) < self.tol / 10] = 0.0
        equations = np.zeros((len(follow), self.X.shape[1]))
        own = self.ranges[order[follow], None]
        equations[:, order[free]] = -weights * own / self.ranges[order[free]]
        equations[np.arange(len(follow)), order[follow]] = 1.0
        return equations

    def _readable(self, raw):
        """Small fractions for coefficients, few features, whole numbers."""
        exact = self._fractions(raw)
        equations = whole(fewer_features(exact))
        holds, rounded, _ = self._check(equations)
        if not holds.all():
            # Some coefficients are no such fractions.
            good, _, _ = self._check(exact)
            equations = np.vstack([whole(fewer_features(exact[good])), raw[~good]])
            holds, rounded, _ = self._check(equations)
        if not holds.all():
            # Of fewer features, what is left of them counts for more.
            equations = np.where(good[:, None], exact, raw)
            holds, rounded, _ = self._check(equations)
        return equations[holds], rounded[holds]

    def _fractions(self, raw):
        """Coefficients as small fractions, where equations hold with them as well."""
        rounding = np.abs(raw) @ self.rounding
        exact = as_fractions(raw, self.ranges, self.tol, rounding)
        # Columns that nearly depend on each other, or have most of their range from a
        # single row, leave more in the coefficients than rows may miss.
        sizes = np.abs(raw) * self.ranges
        most = sizes.max(axis=1, keepdims=True, initial=0)
        simpler = as_fractions(raw, self.ranges, LOOSE, rounding)
        simpler[sizes <= LOOSE * most] = 0.0
        few = self.X[:: max(1, len(self.X) // _FEW_ROWS)]
        for rows in (few, self.X):
            some = np.flatnonzero((simpler != exact).any(axis=1))
            if len(some):
                own = np.ptp(rows @ simpler[some].T, axis=0)
                least = np.ptp(rows @ exact[some].T, axis=0)
                worse = own > np.maximum(2 * least, self.tol * most[some, 0])
                simpler[some[worse]] = exact[some[worse]]
        return simpler

    # --- few rows: simple equations ---------------------------------------------

    def simple_equations(self):
        """Copies, balances of up to four features, sums of neighbouring columns."""
        if len(self.X) < 3 or not len(self.varying):
            return self._none()
        found, directions = [], np.empty((0, self.X.shape[1]))
        in_ranges = directions
        # One number a feature: equations between features hold between these.
        weights = self.chance.rng.uniform(-1, 1, size=len(self.X))
        code = (weights - weights.mean()) @ self.X
        for make in (balances, sums):
            candidates = make(code, self.varying, self.tol)
            for equation in islice(candidates, _MOST_CANDIDATES):
                if np.abs(equation).max() != 1 or np.count_nonzero(equation) < 2:
                    continue
                new = _beyond(directions, equation)
                if new is None or not self._check(equation[None])[0][0]:
                    continue
                # What rows may miss is not to make a constant of a column.
                own = equation * self.ranges
                room = (
                    self.tol + 2 * np.abs(equation) @ self.rounding / np.abs(own).max()
                )
                differs = _beyond(in_ranges, own, 2 * room)
                if differs is None or self.chance.makes(equation, False, True):
                    continue
                found.append(equation)
                directions = np.vstack([directions, new])
                in_ranges = np.vstack([in_ranges, differs])
        found = np.reshape(found, directions.shape)
        simple = whole(fewer_features(found))
        # What is little in two equations may be all that is left of their difference.
        found = simple if self._check(simple)[0].all() else whole(found)
        return found, self._check(found)[1]

    # --- both -------------------------------------------------------------------

    def with_groups(self, found, values, precision):
        """Also one-hot groups, before what was found and they do not say."""
        share = min(1, self.n_distinct / len(self.X))
        groups, _ = one_hot_groups(self.X, share, precision)
        if not len(groups):
            return found, values
        groups = whole(groups)
        return self._joined(groups, self._check(groups)[1], found, values)

    def _joined(self, equations, values, more, more_values):
        """Equations and values, and those of more that do not follow from others."""
        found = np.vstack([equations, more])
        values = np.concatenate([values, more_values])
        some = independent(found * self.ranges)
        return found[some], values[some]

    def _none(self):
        return np.empty((0, self.X.shape[1])), np.empty(0)

    def _check(self, equations):
        """Whether equations hold in all rows, their values, and rows at their ends."""
        products = values_of(equations, self.X)
        low, high = products.min(axis=1), products.max(axis=1)
        values = low + (high - low) / 2
        scale = scales(equations, self.ranges, values)
        rounding = np.abs(equations) @ self.rounding
        noise = np.maximum(high - low, 1e-3 * self.tol * scale)
        values = self._short(equations, products, values, noise, rounding)
        distance = np.maximum(high - values, values - low)
        holds = distance <= self.tol * scale + 2 * rounding
        ends = np.array([products.argmin(axis=1), products.argmax(axis=1)])
        return holds, values, ends

    def _short(self, equations, products, values, noise, rounding):
        """Short numbers for the values, to what types round in each row.

        Beyond that new rows like it would lose the zeros and limits that it has.
        """
        short = _shortest(values, np.maximum(noise, rounding))
        if not np.any(self.rounding > _CLEARLY_SINGLE * self.size):
            return short
        size = np.where(self.size > 0, self.size, 1)
        room = (np.abs(equations) * self.rounding / (4 * size)) @ np.abs(self.X).T
        # What types round alone, or else also what sums in them have lost.
        least, most = (products - room).max(axis=1), (products + room).min(axis=1)
        wider = (products - 2 * room).max(axis=1), (products + 2 * room).min(axis=1)
        least, most = np.where(least < most, (least, most), wider)
        between, known = least + (most - least) / 2, least < most
        noise = np.where(known, most - between, noise)
        own = _shortest(np.where(known, between, values), noise)
        return np.where((least <= short) & (short <= most), short, own)


def clearly_full_rank(X):
    """Whether some of the rows, and so all of them, clearly satisfy no equation."""
    some = X[:: max(1, int(len(X) // (_SAMPLE * X.shape[1] + 50)))]
    if len(some) <= some.shape[1]:
        return False
    some = some.astype(np.float64)
    Z = some / np.maximum(np.abs(some).max(axis=0), np.finfo(float).tiny)
    Z -= Z.mean(axis=0)
    gram = Z.T @ Z
    norms = np.sqrt(np.diagonal(gram))
    if np.any(norms <= _CLEARLY * np.sqrt(len(some))):
        return False
    return all_above(gram / np.outer(norms, norms), _CLEARLY)


def _is_plain(equation):
    """Whether it adds and takes features alone: nothing is fitted."""
    own = np.abs(equation[equation != 0])
    return len(own) > 1 and bool(np.all(own == 1))


def independent(equations):
    """Which of some equations (c, D) do not follow from those before."""
    directions, new = np.empty((0, equations.shape[1])), np.zeros(len(equations), bool)
    for k, own in enumerate(equations):
        direction = _beyond(directions, own)
        if direction is not None:
            new[k], directions = True, np.vstack([directions, direction])
    return new


def _beyond(directions, equation, least=1e-6):
    """The direction that an equation has beside some; None if it follows from them.

    But for the ``least`` share that counts.
    """
    new = equation - (directions @ equation) @ directions
    # Whole numbers leave no doubt.
    new -= (directions @ new) @ directions
    length = np.linalg.norm(new)
    return new / length if length > least * np.linalg.norm(equation) else None


def _shortest(values, noise):
    each = zip(values.tolist(), noise.tolist(), strict=True)
    return np.array([shortest(*own) for own in each])


def names_of(table):
    """Names of all columns of X, for messages."""
    if table.names is None:
        return tuple(f"x{j}" for j in range(prod(table.row_shape)))
    return tuple(map(str, table.names))
