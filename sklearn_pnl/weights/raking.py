"""Raking of tables with labels: Series, frames in long form, sparse matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, issparse
from sklearn.utils._optional_dependencies import check_pandas_support
from sklearn.utils._param_validation import validate_params

from .._runtime.validation import tells_where
from ..geometry import Raking, RakingError
from ..geometry.masks import unmasked
from .calibration import SEARCH, WeightSearch, members_of
from .columns import Columns, numbers_of, widened
from .totals import ColumnTotal, UnmetTotals, as_list, read_totals


@tells_where()
@validate_params(SEARCH, prefer_skip_nested_validation=True)
@unmasked
def rake(
    table: object,
    margins: Mapping[object, object],
    *,
    values: str | None = None,
    by: object = None,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    integer: bool = False,
    time_limit: float = 60.0,
    tol: float = 1e-9,
    max_iter: int = 1000,
    strict: bool = True,
) -> LabelledRaking:
    r"""Tables with labels that have given margins, nearest to given tables.

    Solves ``min KL(|q|, |table|)`` over the ``q`` with the margins wanted and the signs
    of the table: raking, or iterative proportional fitting; with negative cells it is
    GRAS. Cells that are 0, or are not there, stay so.

    Parameters
    ----------
    table : pandas Series, data frame, or scipy.sparse matrix
        A Series with a level of its index for each mode, by name; a frame with a cell a
        row (long form), its levels in columns; or a matrix with the modes 0 and 1.
    margins : dict of name, or tuple of names, to dict or Series, or array-like
        The sums over all other modes, by level or tuple of levels. Of a matrix,
        ``{0: sums of rows, 1: sums of columns}``. A
        :func:`~sklearn_pnl.column_total` gives them room (``within=``, ``lower=``,
        ``upper=``). Levels that are not named are free.
    values : str, default=None
        The column of a frame that holds the cells.
    by : name or tuple of names, default=None
        Modes whose levels are tables of their own. All margins must name them.
    lower, upper : float or array-like of shape (n_cells,), default=None
        Ranges of the cells, in the order of the table (of the entries that a matrix in
        COO format holds). None keeps signs.
    integer : bool, default=False
        Whether cells are whole numbers: the nearest next to each cell that keep the
        margins, or else those with the least that is missed, as is told.
    time_limit : float, default=60
        Seconds that whole numbers of a table are searched for.
    tol : float, default=1e-9
        Wanted ``|margin - wanted|``, as a share of the sizes of the cells summed.
    max_iter : int, default=1000
        Most Newton steps; or sweeps, where margins have more than 5,000 cells.
    strict : bool, default=True
        Whether a table that does not have the margins raises. Otherwise ``reasons``
        says it, and the others are there.

    Returns
    -------
    LabelledRaking
        ``tables`` is a Series, frame or matrix as given. ``residual``, ``n_iter`` and
        ``converged`` have an entry for each level of ``by``, in the order in which they
        come, and ``reasons`` is by level; without ``by`` there is one table, 0.

    Raises
    ------
    ValueError
        If a name or level is unknown, a cell is missing, or two margins disagree.
    RakingError
        A ``ValueError`` that carries the result: margins that no such table has, and
        what can be reached.

    See Also
    --------
    calibrate : Weights of rows that meet totals.
    sklearn_pnl.geometry.rake : Many tables as one array, faster.

    References
    ----------
    Deming and Stephan, "On a least squares adjustment of a sampled frequency table
    when the expected marginal totals are known", Annals of Mathematical Statistics,
    1940.

    Junius and Oosterhaven, "The solution of updating or regionalizing a matrix with
    both positive and negative entries", Economic Systems Research, 2003 (GRAS).

    Examples
    --------
    >>> from scipy.sparse import coo_array
    >>> from sklearn_pnl import rake
    >>> table = coo_array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]])
    >>> found = rake(table, {0: [30, 70], 1: [20, 30, 50]})
    >>> found.tables.toarray().round(6)
    array([[20., 10.,  0.],
           [ 0., 20., 50.]])
    """
    cells = _Cells(table, values, lower, upper)
    ranges = "the ranges and signs of cells"
    search = WeightSearch(tol, max_iter, ranges, integer, time_limit)
    totals = cells.totals(margins)
    if by is None:
        parts = {0: (np.arange(len(cells.values)), totals)}
    else:
        parts = _by_level(cells, totals, by if isinstance(by, tuple) else (by,))
    raked, told = cells.values.copy(), {}
    for label, (members, asked) in parts.items():
        try:
            found = _raked(search, cells, members, asked)
        except UnmetTotals as error:
            found = cells.values[members], np.inf, 0, str(error)
        raked[members], *told[label] = found
    reasons = {label: why for label, (*_, why) in told.items() if why}
    residual, n_iter, why = zip(*told.values(), strict=True)
    lead = () if by is None else (len(parts),)
    shaped = (np.reshape(x, lead) for x in (residual, n_iter, np.equal(why, "")))
    result = LabelledRaking(cells.like(raked), *shaped, reasons, tuple(parts))
    if strict and reasons:
        label, reason = next(iter(reasons.items()))
        raise RakingError(
            reason if by is None else f"Table {label!r}: {reason}", result
        )
    return result


@dataclass(frozen=True)
class LabelledRaking(Raking):
    """A :class:`~sklearn_pnl.geometry.Raking` of tables that are called by labels.

    Attributes
    ----------
    labels : tuple
        Of the tables; 0 for one alone.

    See Also
    --------
    rake : Tables with given margins.

    Examples
    --------
    >>> from scipy.sparse import coo_array
    >>> from sklearn_pnl import rake
    >>> found = rake(coo_array([[1.0, 2.0], [3.0, 4.0]]), {0: [30, 70]})
    >>> print(found)
    1 table, all on their margins: worst residual 0.0e+00.
    """

    labels: tuple = (0,)

    def to_frame(self) -> Any:
        """A row a table, as a data frame of pandas."""
        pandas = check_pandas_support("LabelledRaking.to_frame")
        columns = "residual", "n_iter", "converged"
        held: dict[str, Any] = {name: np.ravel(getattr(self, name)) for name in columns}
        held["reason"] = [self.reasons.get(label, "") for label in self.labels]
        index = pandas.Index(list(self.labels), name="table", tupleize_cols=False)
        return pandas.DataFrame(held, index=index)

    def __str__(self):
        n, met = len(self.labels), f"{len(self.reasons)} NOT on their margins"
        told = [f"  {label!r}: {why}" for label, why in self.reasons.items()]
        head = (
            f"{n} table{'s' * (n > 1)}, {met if told else 'all on their margins'}: "
            f"worst residual {np.max(self.residual):.1e}."
        )
        return "\n".join([head, *told])

    def _repr_html_(self):
        return self.to_frame()._repr_html_()


class _Cells:
    """Cells of a table: their levels, values and ranges, and the way back."""

    def __init__(self, table, name, lower, upper):
        if issparse(table):
            self.columns, values, self.like = _of_matrix(table)
        elif hasattr(type(table), "iloc") and not hasattr(table, "columns"):
            self.columns, values, self.like = _of_series(table)
        else:
            self.columns, values, self.like = _of_frame(table, name)
        for cell in np.flatnonzero(~np.isfinite(values)):
            raise ValueError(f"Cells must be finite; cell {cell} is {values[cell]}.")
        given = -np.inf if lower is None else lower, np.inf if upper is None else upper
        self.lower, self.upper = (
            numbers_of(end, name, len(values), "cell", table, "table")
            for end, name in zip(given, ("lower", "upper"), strict=True)
        )
        if np.isnan([self.lower, self.upper]).any():
            raise ValueError("lower and upper must hold no NaN.")
        self.values, self.shape = values, table.shape

    def totals(self, margins):
        """What is asked for, a ColumnTotal each."""
        if not isinstance(margins, Mapping) or not margins:
            raise ValueError("margins must be a dict with at least one margin.")
        asked = dict(margins)
        for modes, margin in margins.items():
            if isinstance(margin, ColumnTotal) or hasattr(margin, "items"):
                continue
            if self.columns.names is not None:
                raise ValueError(
                    f"The margin {modes!r} says no levels: give a dict or Series of "
                    "level to sum; plain arrays are for matrices."
                )
            # Levels of a matrix are numbers.
            asked[modes] = dict(enumerate(np.ravel(margin)))
            if modes in (0, 1) and len(asked[modes]) != self.shape[modes]:
                raise ValueError(
                    f"The margin {modes!r} has {len(asked[modes])} sums for a matrix "
                    f"of shape {self.shape}; a dict by level leaves some free."
                )
        return as_list(asked, self.columns.names, (self.columns.n_columns,))

    def ranges(self, some):
        """Least and largest size of some cells, whose signs stay."""
        up, lower, upper = self.values[some] > 0, self.lower[some], self.upper[some]
        floor = np.maximum(0.0, np.where(up, lower, -upper))
        ceiling = np.where(up, upper, -lower)
        for cell in some[floor > ceiling]:
            raise ValueError(
                f"lower and upper leave nothing of the sign of cell {cell}, which is "
                f"{self.values[cell]:g}."
            )
        return floor, ceiling


def _of_matrix(table):
    matrix = coo_array(widened(table))
    matrix.sum_duplicates()
    columns = Columns(np.column_stack([matrix.row, matrix.col]), "cell")
    values = matrix.data.astype(np.float64)

    def like(raked):
        where = matrix.row, matrix.col
        return type(table)(coo_array((raked, where), shape=matrix.shape))

    return columns, values, like


def _of_series(table):
    if None in table.index.names:
        raise ValueError("The levels of the index need names: set table.index.names.")
    columns = Columns(table.index.to_frame(index=False), "cell")
    values = table.to_numpy(dtype=np.float64)

    def like(raked):
        return type(table)(raked, index=table.index, name=table.name)

    return columns, values, like


def _of_frame(table, name):
    if isinstance(table, np.ndarray | list):
        raise ValueError(
            "table must be a Series, a data frame or a sparse matrix; "
            "sklearn_pnl.geometry.rake takes arrays."
        )
    columns = Columns(table, "cell")
    if name is None:
        raise ValueError(
            "A frame needs values=, the name of the column that holds its cells. One "
            "with a column for each level becomes a Series by table.stack()."
        )
    if name not in columns.names:
        raise ValueError(f"values={name!r} is none of the columns {columns.names}.")
    frame = nw.from_native(table, eager_only=True)

    def like(raked):
        new = nw.new_series(name, raked, backend=frame.implementation)
        return frame.with_columns(new).to_native()

    return columns, columns.numbers(name), like


def _by_level(cells, totals, by):
    """Cells and totals of each table, by its level or tuple of levels."""
    members = members_of(cells.columns.levels(by))
    asked = {level: [] for level in members}
    for total in totals:
        modes = total.of if isinstance(total.of, tuple) else (total.of,)
        if not set(by) <= set(modes):
            raise ValueError(
                f"The margin {total.of!r} does not name {by}, as by does. Give each "
                f"table its own: a margin of {(*by, *modes)!r}."
            )
        places = [modes.index(mode) for mode in by]
        rest = [k for k in range(len(modes)) if k not in places]
        if not rest:
            raise ValueError(f"The margin {total.of!r} names nothing but by.")
        split = [_split(end, places, rest) for end in (total.lower, total.upper)]
        of = itemgetter(*rest)(modes)
        # Of a level without cells too: what is asked of it is refused, not forgotten.
        for level in dict.fromkeys(level for part in split for level in part):
            lower, upper = (part.get(level, {}) for part in split)
            own = replace(total, of=of, lower=lower, upper=upper)
            asked.setdefault(level, []).append(own)
    none = np.empty(0, np.intp)
    return {level: (members.get(level, none), own) for level, own in asked.items()}


def _split(ends, places, rest):
    """Ends by level of some modes, then of the others."""
    if not isinstance(ends, dict):
        raise ValueError("With by, both ends of a margin are needed, by level.")
    parts, first, last = {}, itemgetter(*places), itemgetter(*rest)
    for level, end in ends.items():
        parts.setdefault(first(level), {})[last(level)] = end
    return parts


def _raked(search, cells, members, asked):
    """Cells of one table, what is missed, steps, and why it failed."""
    values = cells.values[members]
    if not asked:
        return values, 0.0, 0, ""
    used, sign = members[values != 0], np.sign(values[values != 0])
    system = read_totals(cells.columns.rows(used), asked)
    system = replace(system, coefficients=system.coefficients * sign, signs=sign)
    sizes = np.abs(cells.values[used]), *cells.ranges(used)
    size, steps, reasons = search.weights(system, *sizes)
    missed = system.missed(size)[0].max()
    raked = np.zeros(len(members))
    raked[values != 0] = sign * size
    share = missed / max(size.sum(), np.finfo(float).tiny)
    return raked, share, steps, " ".join(reasons)
