"""Existing rows moved as little as possible to what is asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.utils._param_validation import validate_params

from ._drawing.sets import checked
from ._drawing.totals import Wanted
from ._runtime.blocks import ends_of
from ._runtime.typing import Rows
from ._runtime.validation import tells_where, warn_user
from .augment import PNLAugmenter
from .control import Constraint, LinearSystem
from .control.marks import Marks
from .control.meeting import UnmetError, UnmetTotals
from .control.promises import asked_for, for_numbers, keeper_of, resolve_invariants
from .control.search import Reader
from .control.steps import Steps
from .control.together import together
from .embedding import limits
from .tables import read_table
from .weights.columns import check_order

# From so many rows on most totals are found.
_FEW = 8
# The way to units of ranges and back, as a share of the largest value.
_ROUNDING = 8 * np.finfo(float).eps


@tells_where()
@validate_params(
    {name: PNLAugmenter._parameter_constraints[name]
     for name in ("invariants", "range_slack", "offset")},
    prefer_skip_nested_validation=True,
)  # fmt: skip
def adjust(
    X: Rows,
    constraints: Constraint | Sequence | None = None,
    *,
    totals: object = None,
    invariants: Literal["auto"] | Constraint | LinearSystem | Sequence | None = "auto",
    range_slack: float | None = None,
    offset: float = 1.0,
) -> Any:
    r"""Rows moved as little as possible to equations, intervals and fixed values.

    Each row is the nearest in the sense of
    ``sum (m - m_0)**2 / m_0`` (chi-square) that meets what is asked of it and keeps
    what all rows of ``X`` keep, where ``m`` are its columns in units of their ranges
    plus ``offset``; where ranges are too short for that, of ranges and sizes together.
    So totals follow their parts, whole numbers stay whole, and cents cents where what
    is asked for has no more places; zeros that need not move stay zero: scenarios,
    reconciled forecasts, controlled adjustment.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n, *shape)
        Rows.
    constraints : constraint or list of them, default=None
        As for :meth:`PNLAugmenter.sample`; arrays ask each row for its own value.
    totals : dict, ColumnTotal, list of them or array-like, default=None
        What all rows together are to have, as for :meth:`PNLAugmenter.sample`: sums and
        means of columns. Rows keep their categories, so that none are counted.
    invariants : "auto", constraints or None, default="auto"
        Equations that the rows keep; "auto" are those that all of them satisfy and
        that chance would not make. Two rows tell none, three to seven not all: where
        none is found, a warning says so.
    range_slack : float or None, default=None
        How far values may lie beyond the range of their column, as a share of it. None
        is as far as it takes, without a change of sign.
    offset : float, default=1.0
        The larger, the less large values are moved before small ones.

    Returns
    -------
    rows : array-like of shape (n, *shape)
        In the container, units and types of ``X``, with its index.

    Raises
    ------
    ValueError
        If a row, or all of them together, cannot have what is asked: which, and what
        can be reached.

    See Also
    --------
    PNLAugmenter : New rows with what is asked of them.
    ColumnConstraint : What is asked.
    calibrate : Weights instead of other values.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import ColumnConstraint, adjust
    >>> parts = np.random.default_rng(0).gamma(3.0, size=(50, 3))
    >>> X = np.column_stack([parts, parts.sum(axis=1)])
    >>> X[0].round(2)
    array([2.88, 3.86, 1.88, 8.62])
    >>> adjust(X, ColumnConstraint(3, equal=1.1 * X[:, 3]))[0].round(2)
    array([3.21, 4.24, 2.02, 9.48])
    >>> float(adjust(X, totals={3: 500.0})[:, 3].sum().round(6))
    500.0
    """
    if constraints is None and totals is None:
        raise ValueError(
            "Nothing is asked: give constraints of each row, or totals of all of them."
        )
    several = isinstance(constraints, list | tuple)
    for each in constraints if several else [constraints]:
        for name, end in getattr(each, "labelled", {}).items():
            check_order(end, X, name)
    table = read_table(Reader(), X)
    given = np.array(table.numbers(), dtype=np.float64)
    steps, ends = Steps(table), ends_of(given)
    system = resolve_invariants(invariants, table, steps)
    if isinstance(invariants, str):
        _tell_of_few(given, system)
    # Rows that are there may keep all that rounding makes of equations.
    system = system.loosened
    asked = constraints, totals, range_slack, offset
    ways = [(marks, ends) for marks in _marks(steps, system)]
    if range_slack is None:
        # Ranges may be short beside the values, as those of one row are.
        ways.append((ways[-1][0], _ends_by_size(system, table, ends)))
    for way in ways:
        try:
            rows, keeper, wanted = _moved(table, given.copy(), system, *way, *asked)
            break
        except (UnmetError, UnmetTotals) as error:
            unmet = error
    else:
        if len(given) == 1 and isinstance(invariants, str):
            raise ValueError(
                f"{unmet} Of one row every value is an invariant: give as invariants= "
                "the equations that are to hold, or None."
            ) from None
        raise unmet
    # What moved by rounding alone did not need to.
    before = table.numbers()
    still = np.abs(rows - before) <= _ROUNDING * np.abs(rows).max(axis=0)
    rows[still], every = before[still], np.arange(len(rows))
    moved = table.like(rows, every)
    keeper.audit(table.read(moved), "adjust")
    if wanted is not None:
        checked(wanted, table, keeper.precision, moved)
    if hasattr(X, "iloc"):
        # They are the rows that there were.
        moved.index = X.index
    return moved.tolist() if isinstance(X, list) else moved


def _tell_of_few(rows, system):
    """Warn if no equation is found in rows too few to tell most from chance."""
    found = np.count_nonzero(system.coefficients, axis=1) > 1
    if 1 < len(rows) < _FEW and rows.shape[1] > 2 and not found.any():
        warn_user(
            f"In {len(rows)} rows equations are not told from chance, and none is "
            "kept: give as invariants= those that are to hold, or None."
        )


def _marks(steps, system):
    """What columns keep, if it can be: steps that their values have; then types."""
    table = steps.table
    bare = Marks(table.feature_names)
    if np.any(steps.lattice.steps > steps.plain.steps):
        known = {"lattice": steps.lattice, "plain": steps.plain.steps}
        none = np.zeros(len(table.columns), bool)
        inside = for_numbers(system, table)
        yield replace(bare, pairs=none, **known).giving_way(inside, table.precision)
    yield bare


def _moved(
    table, rows, system, marks, ends, constraints, totals, range_slack, offset
):  # fmt: skip
    """Rows (n, D) with all that is asked, what they keep, and totals or None."""
    widest, (least, most) = limits(rows, ends, None), ends_of(rows)
    # A feature keeps its sign, and an end that is a bound is one.
    widest = np.where(least >= 0, 0.0, widest[0]), np.where(most <= 0, 0.0, widest[1])
    allowed = widest if range_slack is None else limits(rows, ends, range_slack)
    given = system, table, ends, (allowed, widest), True, offset
    keeper = keeper_of(*given, marks)
    if constraints is not None:
        asked = asked_for(constraints, table, keeper.ranges, len(rows))
        keeper = keeper.asking(asked)
    wanted = None if totals is None else _sums(totals, table, rows)
    try:
        rows = keeper.meet(rows)[0]
    except UnmetError as error:
        # It was there before.
        error.whose = "Row"
        raise
    if wanted is not None:
        still = np.zeros(rows.shape, bool)
        rng, own = np.random.RandomState(0), keeper.of_rows(np.arange(len(rows)))
        rows, _ = together(own, rows, wanted.sums, still, rng)
    return rows, keeper, wanted


def _ends_by_size(system, table, ends):
    """Ends farther out by half the size of the values.

    But for flags, and columns that an equation says the value of.
    """
    (low, high), inside = ends, for_numbers(system, table).coefficients
    own = inside[np.count_nonzero(inside, axis=1) == 1].any(axis=0)
    half = np.maximum(np.abs(low), np.abs(high)) / 2
    half[own | ((low == 0) & (high == 1))] = 0.0
    return low - half, high + half


def _sums(totals, table, rows):
    """Totals of numbers, which are all that is moved."""
    given = table.like(rows.copy(), np.arange(len(rows)))
    # What is counted, of whatever, is refused here.
    every = np.ones(len(table.columns), bool)
    wanted = Wanted.of(totals, table, every, given, len(rows))
    if wanted.margins:
        raise ValueError(
            f"{wanted.margins[0].names[0]}: rows that are moved keep their categories. "
            "Ask for sums of numbers here; calibrate gives rows weights for counts, "
            "and PNLAugmenter.sample draws new rows with them."
        )
    return wanted
