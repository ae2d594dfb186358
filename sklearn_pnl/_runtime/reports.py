"""Print a report, show it in a notebook, turn it into a data frame."""

from html import escape
from numbers import Real
from textwrap import fill
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._optional_dependencies import check_pandas_support

# Rows of a table in print and in HTML; `to_frame` has all.
_MOST_ROWS = 30
_LINE_WIDTH = 88


class TableReport:
    """Mixin of reports: ``print``, HTML for notebooks, and a data frame.

    A report is a frozen dataclass, ``@dataclass(frozen=True, eq=False, repr=False)``,
    that says what its table is. It defines

    - ``_columns()``: a dict from the head of each column to its values, all of one
      length. The first column names the rows: it is the index of :meth:`to_frame`.
    - ``_title()``: one line for what the report is about, without a full stop.
    - ``_notes()``: a list of sentences that follow the table (optional).
    - ``_digits``: significant digits of numbers in print and HTML, 6 by default.
    - ``_not_printed``: heads of columns that HTML and data frames alone have, such as
      long texts (optional).

    Numbers that are NaN are empty cells.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from sklearn_pnl._runtime.reports import TableReport
    >>> @dataclass(frozen=True, eq=False, repr=False)
    ... class SumReport(TableReport):
    ...     names: tuple
    ...     sums: tuple
    ...
    ...     def _title(self):
    ...         return f"{len(self.names)} sums"
    ...
    ...     def _columns(self):
    ...         return {"sum": self.names, "value": self.sums}
    >>> report = SumReport(("a", "b"), (1.0, 2.5))
    >>> report
    <SumReport: 2 sums>
    >>> print(report)
    2 sums
    sum  value
    a        1
    b      2.5
    """

    _digits: ClassVar[int] = 6
    _not_printed: ClassVar[tuple] = ()

    def _columns(self):
        raise NotImplementedError

    def _title(self):
        raise NotImplementedError

    def _notes(self):
        return []

    def to_frame(self) -> Any:
        """Return the table as a data frame.

        Returns
        -------
        frame : pandas.DataFrame
        """
        pandas = check_pandas_support(f"{type(self).__name__}.to_frame")
        frame = pandas.DataFrame({k: list(v) for k, v in self._columns().items()})
        return frame.set_index(frame.columns[0])

    def __repr__(self):
        return f"<{type(self).__name__}: {self._title()}>"

    def __str__(self):
        columns = []
        for head, values in self._columns().items():
            if head in self._not_printed:
                continue
            cells = [head, *(self._text(value) for value in values[:_MOST_ROWS])]
            width = max(map(len, cells))
            is_numeric = all(isinstance(value, Real) for value in values)
            columns.append(
                [c.rjust(width) if is_numeric else c.ljust(width) for c in cells]
            )
        lines = ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
        notes = [
            fill(note, _LINE_WIDTH, subsequent_indent="  ")
            for note in [*self._rows_left_out(), *self._notes()]
        ]
        return "\n".join([self._title(), *lines, *notes])

    def _repr_html_(self):
        columns = self._columns()
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        lines = list(zip(*columns.values(), strict=True))[:_MOST_ROWS]
        cells = [[f"<td>{escape(self._text(v))}</td>" for v in line] for line in lines]
        rows = "".join(f"<tr>{''.join(line)}</tr>" for line in cells)
        notes = escape(" ".join([*self._rows_left_out(), *self._notes()]))
        return (
            f"<div><p>{escape(self._title())}</p><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{rows}</tbody></table><p>{notes}</p></div>"
        )

    def _rows_left_out(self):
        n_rows = len(next(iter(self._columns().values())))
        if n_rows <= _MOST_ROWS:
            return []
        return [f"{n_rows - _MOST_ROWS} more rows: to_frame() has all."]

    def _text(self, value):
        if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
            return str(value)
        return "" if np.isnan(value) else f"{value:.{self._digits}g}"
