"""Project existing rows onto equalities, constraints and totals."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions, validate_params

from .._utils.threads import one_blas_thread
from .._utils.typing import Rows
from .._utils.validation import NOT_NEGATIVE, POSITIVE
from .._utils.warnings import warn_user
from ..columns.constraints import (
    CONSTRAINTS,
    Constraint,
    Infeasibility,
    read_constraints,
)
from ..columns.relations import ColumnRelations, resolve_equalities
from ..columns.value_support import find_value_support
from ..frames import TableReader, read_table
from ..frames.containers import column_of, columns_of
from .audit import audit_rows
from .calibration import check_order
from .feasible_set import FeasibleSet
from .infeasible_requests import explain_infeasible
from .projection import project_rows
from .sum_projection import project_to_totals
from .totals import Totals, as_totals, columns_shown, levels_of


@validate_params(
    {
        "equalities": [StrOptions({"auto"}), *CONSTRAINTS, None],
        "extrapolation": [NOT_NEGATIVE, None],
        "offset": [POSITIVE],
        "reliability": [dict, None],
    },
    prefer_skip_nested_validation=True,
)
@one_blas_thread()
def adjust(
    X: Rows,
    constraints: Constraint | Sequence | None = None,
    *,
    totals: object = None,
    by: Hashable = None,
    equalities: Literal["auto"] | Constraint | Sequence | None = "auto",
    extrapolation: float | None = None,
    offset: float = 1.0,
    reliability: Mapping | None = None,
) -> Any:
    r"""Move rows as little as possible onto equalities, constraints and totals.

    The new rows satisfy the constraints, and the equalities that all rows of ``X``
    satisfy. All cells can move. The rows minimise the chi-square distance

    .. math:: \sum_j (m_j - m_{0j})^2 / m_{0j},
              \quad m_j = (x_j - \min_j) / \text{range}_j + \text{offset}

    over the columns. A constant column is scaled by the size of its value, and moves
    only if the problem is infeasible otherwise.

    Then values are rounded to the resolution of their column (integers, or up to four
    decimals). In sums with coefficients 1 and -1, the largest remainders are rounded
    up, so that the sums are preserved. A row of integer types that then violates a
    constraint is replaced by the nearest feasible row of integers. If no feasible
    rounded values are found, the moved cells lose their rounding, except for integer
    types.

    Values can leave the range of their column and change their sign. To prevent this,
    pass ``extrapolation=0`` or ``ColumnConstraint(..., lower=0)``.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n, *shape)
        Rows.
    constraints : constraint or list of them, default=None
        Constraints on each row, in the forms of :meth:`PNLAugmenter.sample`. A
        :class:`ColumnConstraint` with an array gives each row a different bound.
    totals : dict, ColumnTotal, list of them or array-like, default=None
        Sums and means of columns over all rows, in the forms of
        :meth:`PNLAugmenter.sample`. Counts of levels raise an error, because categories
        do not change. With ``by``, a dict of group to totals.
    by : column, default=None
        A column, by name or position, whose values are groups of rows. Each group in
        ``totals`` has its own totals. Other groups only satisfy the constraints.
    equalities : "auto", constraints or None, default="auto"
        Linear equalities between columns that the rows satisfy. "auto" searches for
        equalities between several columns that all rows satisfy. If there are fewer
        rows than columns plus two, some equalities can be coincidences: "auto" then
        uses only sums of adjacent columns, such as a total next to its parts, and
        issues a warning. None uses no equalities.
    extrapolation : float or None, default=None
        Distance by which new values may exceed the range of a feature, as a share of
        the length of the range. None sets no bounds.
    offset : float, default=1.0
        Constant in the distance. A larger offset moves small and large values by
        similar amounts; a smaller offset moves mostly large values.
    reliability : dict of column to float, default=None
        Positive factors of the terms of the distance, 1 for other columns. A column
        with a large factor moves only as far as the other columns cannot move.

    Returns
    -------
    rows : array-like of shape (n, *shape)
        The moved rows in the container, units and types of ``X``, with its index.

    Raises
    ------
    Infeasibility
        A ``ValueError``, if the constraints of a row or the totals are infeasible. The
        message names a constraint and its feasible range. If the range has numbers to
        request, each bound of the range is feasible with all other constraints.
    RuntimeError
        If the solver fails on a feasible request.

    See Also
    --------
    PNLAugmenter : Generate new rows with constraints.
    ColumnConstraint : Constrain columns by name.
    calibrate : Compute weights of rows instead of new values.

    Notes
    -----
    Moves are computed by a quadratic programme (PIQP), and rounded by an integer
    programme if no simple rounding satisfies the request (HiGHS). HiGHS can print the
    line "HighsMipSolverData::transformNewIntegerFeasibleSolution tmpSolver.run();".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.control import ColumnConstraint, adjust
    >>> parts = np.random.default_rng(0).gamma(3.0, size=(50, 3))
    >>> X = np.column_stack([parts, parts.sum(axis=1)])
    >>> X[0].round(2)
    array([2.88, 3.86, 1.88, 8.62])
    >>> adjust(X, ColumnConstraint(3, equal=1.1 * X[:, 3]))[0].round(2)
    array([3.21, 4.24, 2.02, 9.48])
    >>> float(adjust(X, totals={3: 500.0})[:, 3].sum().round(6))
    500.0

    The columns 0 and 1 move, because column 2 is reliable:

    >>> moved = adjust(X, totals={3: 500.0}, reliability={2: 1e6})
    >>> [float(move.round(2)) for move in (moved - X).sum(axis=0)]
    [38.14, 40.08, 0.0, 78.22]
    """
    is_list = isinstance(constraints, list | tuple)
    for constraint in constraints if is_list else [constraints]:
        for name, bound in getattr(constraint, "labelled", {}).items():
            check_order(bound, X, name)
    gaps = "ManyBodyImputer preserves linear equalities between columns."
    table = read_table(TableReader(), X, missing=gaps)
    numbers = np.array(table.numbers(), dtype=np.float64)
    feasible = _feasible_set(table, numbers, constraints, equalities, extrapolation)
    factors = _reliability(reliability, table)
    feasible, rows = replace(feasible, reliability=factors), numbers.copy()
    for label, group, wanted in _groups(totals, by, table, numbers):
        part = feasible.take_rows(group)
        try:
            rows[group] = _projected(numbers[group], part, table, wanted, offset)
        except Infeasibility as error:
            if label is None:
                raise
            row = None if error.row is None else int(group[error.row])
            where = f"In the group {label!r}, whose rows are counted from 0: "
            raise Infeasibility(f"{where}{error}", row) from None
    moved = table.like(rows.copy(), np.arange(len(rows)))
    final = np.asarray(table.read(moved), dtype=np.float64)
    # The final check covers the rounding of types, because other rounding can be lost.
    columns = feasible.columns
    columns = replace(columns, steps=np.where(columns.is_integer, columns.steps, 0.0))
    relations = replace(feasible.relations, columns=columns)
    audit_rows(final, replace(feasible, relations=relations), "adjust")
    if hasattr(X, "iloc"):
        moved.index = X.index
    return moved.tolist() if isinstance(X, list) else moved


def _feasible_set(table, numbers, constraints, equalities, extrapolation):
    """Return the set of feasible rows for given rows (n, D)."""
    (n, d), kept = numbers.shape, resolve_equalities(equalities, table)
    # Each equality that was found reduces the number of free columns, and so the number
    # of rows that exclude coincidences.
    if isinstance(equalities, str) and 1 < d and n < d - len(kept) + 2:
        used = "only sums of neighbouring columns" if len(kept) else "no equalities"
        warn_user(
            f"X has {n} row{'' if n == 1 else 's'} and {d} columns, too few rows to "
            f"tell equalities from chance; adjust uses {used}. Pass the equalities in "
            "equalities=, or set equalities=None."
        )
    least, most = numbers.min(axis=0), numbers.max(axis=0)
    room = np.inf if extrapolation is None else extrapolation * (most - least)
    steps = find_value_support(numbers, table).steps
    wanted = read_constraints(constraints, table, n)
    bounds = least - room, most + room
    relations = ColumnRelations.plain(table, numbers, steps, kept, *bounds)
    return FeasibleSet(relations, wanted)


def _projected(numbers, feasible, table, totals, offset):
    """Project rows (n, D) onto their constraints, and onto totals if there are any."""
    if totals is None:
        rows, infeasible = project_rows(numbers, feasible, offset=offset)
        if infeasible.any():
            raise explain_infeasible(rows, infeasible, feasible)
        return rows
    totals = as_totals(totals, table.names, table.row_shape)
    for total in totals:
        if total.by_level:
            raise ValueError(
                f"totals contains counts of {columns_shown(total, table.names)}, but "
                "adjust only changes numbers. Request the sum of a numeric column, for "
                "example of a column of 0 and 1, or use calibrate to satisfy counts by "
                "weights."
            )
    sums = Totals.read(totals, len(numbers), table, numbers).sums_of(numbers)
    return project_to_totals(numbers, sums, feasible, offset=offset)


def _groups(totals, by, table, numbers):
    """Return labels, indices and totals of groups of rows; totals may be None."""
    n = len(numbers)
    if by is None:
        return [(None, np.arange(n), totals)]
    if not isinstance(totals, Mapping):
        raise ValueError(
            f"by={by!r} requires totals of each group, as a dict of group to totals; "
            f"got totals={totals!r}."
        )
    column_of(by, "by", table.names, table.row_shape)
    levels = levels_of(columns_of(table.like(numbers.copy(), np.arange(n))), by)
    groups = {}
    for row, level in enumerate(levels):
        groups.setdefault(level, []).append(row)
    for label in totals:
        if label not in groups:
            raise ValueError(
                f"No row has {by}={label!r}, but totals contain this group. Use values "
                f"of the column, with their type; the first are {[*groups][:10]}."
            )
    return [
        (label, np.array(rows), totals.get(label)) for label, rows in groups.items()
    ]


def _reliability(reliability, table):
    """Return the factor (D,) of each numeric column."""
    factors = np.ones(len(table.columns))
    for key, factor in (reliability or {}).items():
        place = np.flatnonzero(table.columns == table.column_of(key, "reliability"))
        if not len(place) or not (isinstance(factor, Real) and 0 < factor < np.inf):
            raise ValueError(
                f"reliability must have positive numbers for numeric columns; got "
                f"{factor!r} for column {key!r}."
            )
        factors[place] = factor
    return factors
