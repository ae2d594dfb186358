"""Explain which constraints or totals cannot be satisfied, and what can be reached."""

from dataclasses import replace

import numpy as np

from ..columns.constraints import ALMOST, EPS, ROUNDINGS, TOL, Infeasibility
from ..geometry.convex.reach import Program, span
from .projection import nearest_rows


def within(others):
    """Name the constraints that limit what can be reached, or else the bounds."""
    if not others:
        return "within the bounds of the columns"
    shown = others if len(others) <= 4 else [*others[:3], f"{len(others) - 3} more"]
    *most, last = shown
    before = f"{', '.join(most)} and " if most else ""
    return f"that satisfy {before}{last}"


def explain_infeasible(rows, infeasible, feasible, numbers=None, advice=""):
    """Find a constraint that the first infeasible row cannot satisfy, and its range.

    Parameters
    ----------
    rows : ndarray of shape (n, D)
        The best approximations.
    infeasible : ndarray of bool of shape (n,)
    feasible : FeasibleSet
        The feasible set of the rows.
    numbers : ndarray of int of shape (n,), default=None
        Row numbers in messages; None for positions.
    advice : str
        Further advice at the end of the message.

    Returns
    -------
    error : Infeasibility
        The error to raise.
    """
    i, advice = int(np.argmax(infeasible)), f" {advice}" if advice else ""
    number = i if numbers is None else int(numbers[i])
    feasible, row = feasible.take_rows(i), rows[i]
    system = feasible.system(gaps=np.isnan(rows[[i]]))
    system = replace(system, lower=system.lower.ravel(), upper=system.upper.ravel())
    problem = f"Row {number} cannot satisfy all constraints: "
    for integers in (False, True):
        conflict = _program(row, system, feasible, integers).conflict()
        if conflict and conflict.nearest:
            break
    else:
        return Infeasibility(
            f"{problem}{_best_of(row, system, feasible)}{advice}", number
        )
    k, others, n_data = conflict.k, conflict.others, len(feasible.relations.equalities)
    is_above = conflict.nearest == [conflict.above]
    bound = (system.upper if is_above else system.lower)[k]
    # The bounds of a single column have no room.
    is_sum = np.count_nonzero(system.coefficients[k]) > 1
    room = 0.1 * TOL * system.scale[k] if is_sum else 0.0
    found, text = conflict.request(bound, room)
    limits = within([system.descriptions[j] for j in others])
    requested = range(n_data, n_data + len(feasible.constraints))
    remedies = [f"request {text}" if k in requested else "widen the bounds"]
    if not conflict.is_only:
        remedies = ["leave out several of the constraints"]
    elif any(j in requested for j in others):
        remedies.append("leave out one of the constraints")
    remedy = ", or ".join(remedies).capitalize()
    reached = conflict.statement(f"{'integers' if integers else 'rows'} {limits}")
    return Infeasibility(
        f"{problem}{system.names[k]} must be {span(system.lower[k], system.upper[k])}, "
        f"but {reached}: a miss of at least "
        f"{np.abs(system.missing(found)[k]):.6g}. {remedy}.{advice}",
        number,
    )


def _best_of(row, system, feasible):
    """Explain which constraint or binary column the best row violates."""
    columns = feasible.columns
    low, high = columns.low, columns.high
    flags = columns.binary & (low < high) & ~np.isnan(row)
    between = np.flatnonzero(flags & (row != low) & (row != high))
    if len(between):
        j = between[0]
        return (
            f"{system.feature_names[j]} would have to be {row[j]:.6g}, but it has only "
            f"the values {low[j]:.10g} and {high[j]:.10g}, and no training row "
            "satisfies the constraints. Leave out a constraint, or allow an interval."
        )
    missed = np.nan_to_num(np.abs(system.residual(row[None]))[0], nan=np.inf)
    k = int(np.argmax(missed / system.scale))
    return (
        f"the best row that was found misses {system.descriptions[k]} by "
        f"{missed[k]:.3g}. Leave out this constraint, or allow an interval."
    )


def _program(row, system, feasible, integers):
    """Build the linear programme of one row; some columns are integers or binary."""
    columns, gaps = feasible.columns, np.isnan(row)
    steps = columns.steps
    low, high = (np.where(gaps, 0.0, bound) for bound in (columns.low, columns.high))
    unit = np.where(
        columns.ranges > 0,
        columns.ranges,
        np.abs(columns.least),
    )
    unit = np.where(unit > 0, unit, 1.0)
    base = np.clip(np.where(gaps, 0.0, row), low, high)
    is_integer = np.zeros(len(row), bool)
    if integers:
        binary = columns.binary & (low < high)
        unit = np.where(binary, high - low, np.where(columns.is_integer, steps, unit))
        base = np.where(columns.is_integer, np.rint(base / unit) * unit, base)
        base, is_integer = np.where(binary, low, base), columns.is_integer | binary
    sizes = np.abs(system.coefficients) @ np.where(np.isfinite(base), np.abs(base), 0.0)
    return Program(
        system.coefficients,
        system.lower,
        system.upper,
        low,
        high,
        base,
        unit,
        is_integer,
        room=TOL * system.scale + ROUNDINGS * EPS * sizes,
    )


def explain_infeasible_totals(problem, found):
    """Return the error of a problem that has no solution, or none that was found.

    Parameters
    ----------
    problem : TotalsProblem
    found : Solution
        The best rows.

    Returns
    -------
    error : Infeasibility or RuntimeError
        A ``RuntimeError`` if the solver failed, although a linear programme has a
        solution.
    """
    kept = problem.system, problem.low, problem.high
    alone, satisfied = nearest_rows(problem.start, problem.weights, *kept)
    if not satisfied.all():
        return explain_infeasible(alone, ~satisfied.all(axis=1), problem.set)
    sums, n_kept = problem.sums, len(problem.system)
    has_integers = bool(problem.set.columns.is_integer.any())
    for integers in dict.fromkeys([has_integers, False]):
        conflict = problem.program(integers).conflict(0 if integers else n_kept)
        if conflict and conflict.k >= n_kept and conflict.nearest:
            break
    else:
        return _not_found(problem, found)
    k = conflict.k - n_kept
    names = [*problem.system.descriptions, *sums.descriptions]
    limits = within([names[j] for j in conflict.others])
    is_above = conflict.nearest == [conflict.above]
    bound = (sums.upper if is_above else sums.lower)[k]
    value, text = conflict.request(bound, 0.1 * problem.tol * abs(bound))
    cells = f"{len(problem.start)} rows {limits}"
    remedy = f"Request {text}{_interval(sums, {k: value})}."
    if not conflict.is_only:
        remedy = "Leave out several totals, or request intervals."
    elif has_integers and not problem.accepts(k, float(text)):
        cells = f"ignoring the rounding to integers, {cells}"
        remedy = "Request an interval, or leave out a total."
    return Infeasibility(
        f"The requested {_requested(sums, k)}, but {conflict.statement(cells, 'reach')}"
        f". {remedy}"
    )


def _not_found(problem, found):
    """Return the error of sums that were not found, but may be feasible."""
    sums, rows = problem.sums, found.value
    if not found.is_solved:
        return RuntimeError(
            f"The quadratic solver failed ({found.message}), although rows with all "
            "requested totals exist. Scale columns of very different sizes, or request "
            "an interval for a total."
        )
    missed = np.flatnonzero(sums.share_missed(rows) > problem.tol)
    if not len(missed) or not problem.keeps(rows).all():
        return Infeasibility(
            "No rows were found that have all requested totals and satisfy all "
            "constraints, with values rounded to the resolution of their columns. "
            "Leave out a total, or request an interval."
        )
    used = sums.coefficients[missed[0]] != 0
    reached, steps = sums.of(rows), problem.set.columns.steps[used]
    of_steps = f", with multiples of {steps.max():g}," if steps.any() else ""
    each = [f"{reached[k]:.12g} for {sums.names[k]}" for k in missed]
    return Infeasibility(
        f"The requested {_requested(sums, missed[0])}, but the rows that were "
        f"found{of_steps} have {reached[missed[0]]:.12g}. Request "
        f"{' and '.join(each)}{_interval(sums, {k: reached[k] for k in missed})}."
    )


def _requested(sums, k):
    """Name a sum and its request."""
    requested = span(sums.lower[k], sums.upper[k], 12)
    return f"{sums.names[k].removeprefix('the ')} is {requested}"


def _interval(sums, found):
    """Advise an interval that contains the sums that can be reached.

    The advice is empty if requests are intervals already, or if the interval would
    be wider than half of the request.
    """
    share = 0.0
    for k, value in found.items():
        bound = sums.lower[k]
        is_exact = bound == sums.upper[k] != 0
        share = max(share, abs(value - bound) / abs(bound) if is_exact else np.inf)
    if not 0 < share <= 0.5:
        return ""
    # Two digits, rounded up.
    digit = 10.0 ** (np.floor(np.log10(share)) - 1)
    rtol = np.ceil(share / digit * (1 + ALMOST)) * digit
    return f", or an interval: column_total(..., rtol={rtol:.2g})"
