"""Check that random feasible requests on tables are met at the least cost.

``python -m benchmarks.promises.requests`` moves tables with ``adjust`` to constraints
and totals: 500 feasible requests on floats, 200 on integers and 200 infeasible ones. A
third of the feasible ones is at the edge of what is possible, which a linear programme
finds. Clarabel, a solver that the package does not use, computes the least cost.
``--case integers 17`` runs one case.
"""

import argparse
import re
import sys
import time
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csc_matrix, csr_array, diags_array, eye_array, kron, vstack

from sklearn_pnl.control import ColumnConstraint, Infeasibility, adjust, column_total

from ..tables import markdown, write_csv

CASES = {"floats": 500, "integers": 200, "infeasible": 200}
# A sum may be missed by this share of its terms; a cost may exceed the least cost by
# this share.
SUM, COST = 1e-9, 1e-6


@dataclass(frozen=True)
class Request:
    """A table (n, d), the requirements of each row, and the sums over the rows.

    ``equal`` (k, d) are sums that are 0 in each row. ``capacities`` (c, d) are sums of
    at most ``most`` (c,) or (n, c). Cells lie between ``low`` and ``high`` (d,).
    ``sums`` (s, d) are sums over all rows between ``lower`` and ``upper`` (s,).
    """

    table: np.ndarray
    equal: np.ndarray
    capacities: np.ndarray
    most: np.ndarray
    low: np.ndarray
    high: np.ndarray
    sums: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    is_edge: bool = False

    def adjusted(self):
        """Move the table with the package."""
        X, d = self.table, self.table.shape[1]
        wanted = [
            ColumnConstraint(j, lower=self.low[j], upper=self.high[j]) for j in range(d)
        ]
        for a, most in zip(self.capacities, np.moveaxis(self.most, -1, 0), strict=True):
            wanted.append(ColumnConstraint(_terms(a), upper=most))
        totals = [
            column_total(_terms(a), lower=lower, upper=upper)
            for a, lower, upper in zip(self.sums, self.lower, self.upper, strict=True)
        ]
        identities = [ColumnConstraint(_terms(a), equal=0) for a in self.equal]
        return adjust(X, wanted, totals=totals, equalities=identities)

    def weights(self):
        """Compute the weights of the chi-square distance that ``adjust`` documents."""
        width = np.ptp(self.table, axis=0)
        return ((self.table - self.table.min(axis=0)) / width + 1) * width**2

    def cost(self, rows):
        """Compute the distance of rows from the table."""
        return float(((rows - self.table) ** 2 / self.weights()).sum())

    def system(self):
        """Return coefficients of all cells, and their bounds: all rows, then sums."""
        n = len(self.table)
        each = np.vstack([self.equal, self.capacities])
        rows = kron(eye_array(n), csr_array(each))
        a = vstack(
            [rows, kron(csr_array(np.ones((1, n))), csr_array(self.sums))], "csr"
        )
        n_equal = len(self.equal)
        most = np.broadcast_to(self.most, (n, len(self.capacities)))
        zero, free = np.zeros((n, n_equal)), np.full(most.shape, -np.inf)
        lower = np.append(np.hstack([zero, free]).ravel(), self.lower)
        upper = np.append(np.hstack([zero, most]).ravel(), self.upper)
        return csr_array(a), lower, upper

    def missed(self, rows):
        """Return the largest violations of sums, equalities and inequalities.

        Violations of sums are shares of the absolute terms, and violations of rows are
        shares of the largest range.
        """
        total = self.sums @ rows.sum(axis=0)
        terms = np.maximum(np.abs(self.sums) @ np.abs(rows).sum(axis=0), 1e-300)
        of_sums = np.maximum(self.lower - total, total - self.upper) / terms
        beyond = [rows @ self.capacities.T - self.most, rows - self.high]
        beyond = [*beyond, self.low - rows]
        scale = np.ptp(self.table, axis=0).max()
        largest = max(part.max(initial=0.0) for part in beyond)
        equal = np.abs(rows @ self.equal.T).max(initial=0.0)
        return of_sums.max(), equal / scale, largest / scale


def _terms(a):
    return {int(j): float(a[j]) for j in np.flatnonzero(a)}


# --- random requests ----------------------------------------------------------------


def random_request(seed, integers=False):
    """Return a request that some rows satisfy."""
    rng = np.random.default_rng([seed, int(integers)])
    n, p = int(rng.integers(20, 201)), int(rng.integers(2, 9))
    parts = rng.gamma(rng.uniform(0.5, 4), 10.0 ** rng.uniform(0, 3), (n, p))
    parts *= rng.random((n, p)) < rng.choice([0.5, 1.0])
    parts[:2] += 1
    if integers:
        parts = np.round(parts)
    table, equal = parts, []
    for _ in range(rng.integers(1 if p < 3 else 0, min(p, 4))):
        d = table.shape[1]
        used = rng.choice(d, int(rng.integers(2, d + 1)), replace=False)
        table = np.column_stack([table, table[:, used].sum(axis=1)])
        equal.append(np.isin(np.arange(12), used) - 1.0 * (np.arange(12) == d))
    d = table.shape[1]
    equal = np.array(equal).reshape(-1, 12)[:, :d]
    # Other rows of the same distribution, on which all conditions are read.
    there = table[rng.permutation(n)] if rng.random() < 0.5 else table.copy()
    size = rng.choice([0.0, 0.2, 1.0], p=[0.2, 0.4, 0.4])
    there[:, :p] *= np.exp(size * rng.normal(size=(n, p)))
    if integers:
        there = np.round(there)
    for a in equal:
        last = np.flatnonzero(a == -1)[0]
        there[:, last] = there[:, a == 1].sum(axis=1)
    capacities = (rng.random((int(rng.integers(0, 3)), d)) < 0.5).astype(float)
    capacities = capacities[capacities.sum(axis=1) > 1]
    most = there @ capacities.T
    if rng.random() < 0.5:
        most = np.max(most, axis=0, initial=0.0)
    low, high = np.zeros(d), np.full(d, np.inf)
    if rng.random() < 0.5:
        high = there.max(axis=0)
    sums = np.eye(d)[rng.choice(d, int(rng.integers(1, min(5, d) + 1)), replace=False)]
    if rng.random() < 0.3:
        sums[0] = rng.integers(-1, 3, d)
        sums[0, 0] = 1
    totals = sums @ there.sum(axis=0)
    width = np.abs(totals) * rng.choice([0, 0.01], len(sums)) * (not integers)
    found = Request(
        table, equal, capacities, most, low, high, sums, totals - width, totals + width
    )
    if integers or rng.random() > 1 / 3:
        return found
    return at_edge(found, rng)


def at_edge(request, rng, beyond=0.0):
    """Replace a sum by the extreme that all other conditions leave, or go beyond."""
    k, (a, lower, upper) = int(rng.integers(len(request.sums))), request.system()
    n, place = len(request.table), a.shape[0] - len(request.sums) + k
    others = np.delete(np.arange(a.shape[0]), place)
    equal = others[lower[others] == upper[others]]
    above = others[(lower[others] < upper[others]) & np.isfinite(upper[others])]
    below = others[(lower[others] < upper[others]) & np.isfinite(lower[others])]
    sign = rng.choice([1.0, -1.0])
    cost = a[[place]].toarray()[0]
    unit = request.table.max()
    for way in (sign, -sign):
        solution = linprog(
            -way * cost, vstack([a[above], -a[below]]),
            np.append(upper[above], -lower[below]) / unit, a[equal],
            lower[equal] / unit, method="highs-ds",
            bounds=np.column_stack([np.tile(request.low, n), np.tile(request.high, n)])
            / unit,
        )  # fmt: skip
        if solution.status == 0:
            break
    if solution.status:
        return request
    value = unit * (cost @ solution.x)
    ends = request.lower.copy(), request.upper.copy()
    size = np.abs(request.sums[k]) @ request.table.sum(axis=0)
    for end in ends:
        end[k] = value + way * beyond * size
    return replace(request, lower=ends[0], upper=ends[1], is_edge=True)


def infeasible_request(seed):
    """Return a request that is beyond the extreme of a sum."""
    rng, request = np.random.default_rng([seed, 2]), random_request(seed + 10_000)
    while True:
        beyond = at_edge(request, rng, 10 ** rng.uniform(-4, 0))
        if beyond.is_edge and not np.array_equal(beyond.lower, request.lower):
            return beyond
        seed += 1_000_000
        request = random_request(seed)


# --- the least cost -----------------------------------------------------------------


def least_cost(request):
    """Compute the least cost with Clarabel."""
    a, lower, upper = request.system()
    n, (x, w) = len(request.table), (request.table.ravel(), request.weights().ravel())
    low, high = (np.tile(bound, n) for bound in (request.low, request.high))
    # In units in which all weights are 1, and all coefficients are at most 1.
    root, start = np.sqrt(w), a @ x
    scaled = a @ diags_array(root)
    sizes = np.maximum(abs(scaled).max(axis=1).toarray().ravel(), 1e-300)
    bounds = (lower - start) / sizes, (upper - start) / sizes
    scaled = csr_array(diags_array(1 / sizes) @ scaled)
    return least_square(0 * x, scaled, *bounds, (low - x) / root, (high - x) / root)


def least_square(target, a, lower, upper, low, high):
    """Minimise ``|z - target|**2`` under constraints and bounds, with Clarabel.

    Returns
    -------
    value : float
    status : str
    """
    import clarabel

    one, equal = eye_array(len(target), format="csr"), lower == upper
    sides = [(a[equal], lower[equal])]
    for part, bounds in (
        (a[~equal], (lower[~equal], upper[~equal])),
        (one, (low, high)),
    ):
        for sign, bound in zip((-1, 1), bounds, strict=True):
            finite = np.isfinite(bound)
            sides.append((sign * part[finite], sign * bound[finite]))
    matrix = csc_matrix(vstack([side for side, _ in sides], "csc"))
    n_equal = int(equal.sum())
    cones = [
        clarabel.ZeroConeT(n_equal),
        clarabel.NonnegativeConeT(matrix.shape[0] - n_equal),
    ]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    limits = np.concatenate([limit for _, limit in sides])
    solver = clarabel.DefaultSolver(
        csc_matrix(2 * one), -2 * target, matrix, limits, cones, settings
    )
    solution = solver.solve()
    return float(solution.obj_val + target @ target), str(solution.status)


# --- checks -------------------------------------------------------------------------


def check_floats(seed):
    """Describe the fault of the answer to a feasible request on floats."""
    request = random_request(seed)
    rows = request.adjusted()
    of_sums, equal, beyond = request.missed(rows)
    if of_sums > SUM or equal > SUM or beyond > SUM:
        return f"missed by {of_sums:.1e}, {equal:.1e}, {beyond:.1e}"
    (least, status), cost = least_cost(request), request.cost(rows)
    if status == "Solved" and cost > least * (1 + COST) + 1e-9:
        return f"cost {cost:.9g} instead of {least:.9g}"
    return ""


def check_integers(seed):
    """Describe the fault of the answer to a feasible request on integers."""
    request = random_request(seed, integers=True)
    given = replace(request, table=request.table.astype(np.int64))
    rows = given.adjusted()
    if rows.dtype.kind != "i" or max(request.missed(rows)) > 0:
        return f"missed by {request.missed(rows)}"
    least, _ = least_cost(request)
    # Each rounded cell may move by a resolution more than on floats.
    moved, root = np.abs(rows - request.table), 1 / np.sqrt(request.weights())
    price = (np.where(moved > 0, 1 + 2 * moved, 0) * root**2).sum()
    cost = request.cost(rows)
    if cost > 1.1 * least + price:
        return f"cost {cost:.6g} instead of {least:.6g} and {price:.6g} for rounding"
    return ""


def check_infeasible(seed):
    """Describe the fault of the answer to an infeasible request."""
    request = infeasible_request(seed)
    try:
        request.adjusted()
    except Infeasibility as error:
        text = str(error)
    else:
        return "accepted"
    k = int(np.flatnonzero(np.isin(request.lower, request.upper))[0])
    return check_advice(request, text, k)


def check_advice(request, text, k):
    """Request each bound of the range in a message."""
    numbers = r"(-?[\d.]+\d(?:e[+-]?\d+)?|-?\d)"
    reach = re.search(rf"can only reach {numbers}(?: to {numbers})?", text)
    named = re.search(r"sum of (x\d+|\{[^}]*\}) is", text)
    if not reach or not named:
        return f"no range in: {text}"
    for j, a in enumerate(request.sums):
        terms = _terms(a)
        shown = f"{{{', '.join(f'x{i}: {v!r}' for i, v in terms.items())}}}"
        if named[1] == shown:
            k = j
    for value in filter(None, reach.groups()):
        lower, upper = request.lower.copy(), request.upper.copy()
        lower[k] = upper[k] = float(value)
        advised = replace(request, lower=lower, upper=upper)
        try:
            rows = advised.adjusted()
        except ValueError as error:
            return f"advised {value}, then refused: {error}"
        if max(advised.missed(rows)) > SUM:
            return f"advised {value}, then missed"
    return ""


CHECKS = {
    "floats": check_floats,
    "integers": check_integers,
    "infeasible": check_infeasible,
}


def checked(kind, seed):
    """Describe the fault of a case, and measure its seconds of processor time."""
    start = time.process_time()
    try:
        wrong = CHECKS[kind](seed)
    except (ValueError, RuntimeError) as error:
        wrong = f"{type(error).__name__}: {error}"
    return wrong, time.process_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", nargs=2, metavar=("KIND", "SEED"))
    parser.add_argument("--share", type=float, default=1.0, help="share of the cases")
    parser.add_argument("--kind", choices=[*CASES], action="append")
    args = parser.parse_args()
    if args.case:
        print(*checked(args.case[0], int(args.case[1])))
        return 0
    table, n_wrong = [], 0
    for kind in args.kind or CASES:
        results = [checked(kind, seed) for seed in range(int(args.share * CASES[kind]))]
        for seed, (wrong, _) in enumerate(results):
            if wrong:
                print(f"{kind} {seed}: {wrong}", flush=True)
        failed = sum(bool(wrong) for wrong, _ in results)
        seconds = [spent for _, spent in results]
        n_wrong += failed
        table.append(
            {
                "requests": kind,
                "cases": len(results),
                "not as promised": failed,
                "seconds (median)": float(np.median(seconds)),
                "seconds (most)": max(seconds),
            }
        )
    print(markdown(table))
    if args.share == 1 and not args.kind:
        write_csv(table, "promises-requests")
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
