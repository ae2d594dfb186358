"""Project existing rows onto equalities, intervals and totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.utils._param_validation import StrOptions, validate_params

from .._utils.threads import one_blas_thread
from .._utils.typing import Rows
from .._utils.validation import NOT_NEGATIVE, POSITIVE, warn_user
from ..frames import TableReader, read_table
from .audit import audit_rows, explain_infeasible
from .calibration import check_order
from .constraints import CONSTRAINTS, Constraint, read_constraints
from .feasible_set import FeasibleSet
from .projection import project_rows
from .relations import ColumnRelations, resolve_equalities
from .sum_projection import project_to_totals
from .totals import Totals
from .value_support import find_value_support


@validate_params(
    {
        "equalities": [StrOptions({"auto"}), *CONSTRAINTS, None],
        "extrapolation": [NOT_NEGATIVE, None],
        "offset": [POSITIVE],
    },
    prefer_skip_nested_validation=True,
)
@one_blas_thread()
def adjust(
    X: Rows,
    constraints: Constraint | Sequence | None = None,
    *,
    totals: object = None,
    equalities: Literal["auto"] | Constraint | Sequence | None = "auto",
    extrapolation: float | None = None,
    offset: float = 1.0,
) -> Any:
    r"""Move rows as little as possible to equalities, intervals and fixed values.

    All cells are free to move. The rows satisfy the constraints and the equalities that
    all rows of ``X`` satisfy, and minimise the chi-square distance

    .. math:: \sum_j (m_j - m_{0j})^2 / m_{0j},
              \quad m_j = (x_j - \min_j) / \text{range}_j + \text{offset}

    over the columns. A constant column is scaled by the size of its value, and moves
    only if the problem is infeasible otherwise. So totals follow their parts. Then
    values are rounded to the steps of their column (whole numbers, tenths, cents, up to
    four decimals): in each sum with coefficients 1 and -1 the largest remainders are
    rounded up, so that it holds. Where a row of whole-number types then lacks what is
    asked, it is the nearest row of whole numbers that has it, by a linear programme.
    Where no values on steps satisfy the constraints of a row or the totals, or sums
    overlap, the cells that moved leave their steps, but for those of these types. Only
    limits that are asked for hold, so that amounts may change their sign:
    ``extrapolation=0``, or a ``ColumnConstraint(..., lower=0)``, prevents this.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n, *shape)
        Rows.
    constraints : constraint or list of them, default=None
        As for :meth:`PNLAugmenter.sample`; arrays ask each row for its own value.
    totals : dict, ColumnTotal, list of them or array-like, default=None
        Totals of all rows, as for :meth:`PNLAugmenter.sample`: sums and
        means of columns. Rows keep their categories, so that none are counted.
    equalities : "auto", constraints or None, default="auto"
        Equalities that the rows keep; "auto" are those of several columns that all of
        them satisfy. With fewer rows than columns and two more, chance satisfies some:
        only sums of neighbours are kept there, such as a total beside its parts, and a
        warning says so.
    extrapolation : float or None, default=None
        How far values may lie beyond the range of their column, as a share of it; None
        for no limit.
    offset : float, default=1.0
        The larger, the less large values are moved before small ones.

    Returns
    -------
    rows : array-like of shape (n, *shape)
        In the container, units and types of ``X``, with its index.

    Raises
    ------
    Infeasibility
        A ValueError: the constraints of a row, or the totals of all, are infeasible.
        The message names one of them, what excludes it, and the range that it can
        reach.

    See Also
    --------
    PNLAugmenter : New rows with constraints.
    ColumnConstraint : A constraint by names of columns.
    calibrate : Weights instead of other values.

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
    """
    is_list = isinstance(constraints, list | tuple)
    for constraint in constraints if is_list else [constraints]:
        for name, end in getattr(constraint, "labelled", {}).items():
            check_order(end, X, name)
    table = read_table(TableReader(), X)
    numbers = np.array(table.numbers(), dtype=np.float64)
    feasible = _feasible_set(table, numbers, constraints, equalities, extrapolation)
    if totals is None:
        rows, infeasible = project_rows(numbers, feasible, offset=offset)
        if infeasible.any():
            raise explain_infeasible(rows, infeasible, feasible)
    else:
        asked = Totals.read(totals, len(numbers), table, numbers)
        if asked.counted:
            raise ValueError(
                f"The counts of {asked.counted[0]}: rows that are moved keep their "
                "categories. calibrate gives rows weights for counts."
            )
        sums = asked.sums_of(numbers)
        rows = project_to_totals(numbers, sums, feasible, offset=offset)
    moved = table.like(rows.copy(), np.arange(len(rows)))
    final = np.asarray(table.read(moved), dtype=np.float64)
    # Steps are kept where possible; types always.
    columns = feasible.columns
    columns = replace(columns, steps=np.where(columns.is_whole, columns.steps, 0.0))
    relations = replace(feasible.relations, columns=columns)
    audit_rows(final, replace(feasible, relations=relations), "adjust")
    if hasattr(X, "iloc"):
        moved.index = X.index
    return moved.tolist() if isinstance(X, list) else moved


def _feasible_set(table, numbers, constraints, equalities, extrapolation):
    """Return the set that given rows (n, D) are moved into."""
    (n, d), kept = numbers.shape, resolve_equalities(equalities, table)
    # Equalities of columns that others give leave fewer to be told from chance.
    if isinstance(equalities, str) and 1 < d and n < d - len(kept) + 2:
        found = "sums of neighbours alone are" if len(kept) else "none is"
        warn_user(
            f"In {n} row{'s' * (n > 1)} of {d} columns equalities cannot be told from "
            f"chance, and {found} kept: give equalities= that are to hold, or None."
        )
    least, most = numbers.min(axis=0), numbers.max(axis=0)
    room = np.inf if extrapolation is None else extrapolation * (most - least)
    steps = find_value_support(numbers, table).steps
    wanted = read_constraints(constraints, table, n)
    ends = least - room, most + room
    relations = ColumnRelations.plain(table, numbers, steps, kept, *ends)
    return FeasibleSet(relations, wanted)
