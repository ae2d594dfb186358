"""Print a report on the console and in notebooks, and convert it to a data frame."""

from html import escape
from numbers import Real
from textwrap import fill
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._optional_dependencies import check_pandas_support


class TableReport:
    """Mixin of reports with a table, which print it and convert it to a data frame.

    A report is a frozen dataclass, ``@dataclass(frozen=True, eq=False, repr=False)``,
    with the following members:

    - ``_columns()``: a dict from the name of each column to a list of values. The first
      column contains the names of the rows, and is the index of :meth:`to_frame`.
    - ``_title()``: one line on the subject of the report, without a period.
    - ``_notes()``: a list of sentences after the table (optional).
    - ``_digits``: significant digits of printed numbers, 6 by default.

    NaN is printed as an empty cell.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from sklearn_pnl._utils.reports import TableReport
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
            The table, with the first column as index.
        """
        pandas = check_pandas_support(f"{type(self).__name__}.to_frame")
        frame = pandas.DataFrame({k: list(v) for k, v in self._columns().items()})
        return frame.set_index(frame.columns[0])

    def __repr__(self):
        return f"<{type(self).__name__}: {self._title()}>"

    def __str__(self):
        table, notes, columns = self._columns(), self._notes(), []
        n_rows, most = len(next(iter(table.values()))), 30
        if n_rows > most:
            notes = [f"{n_rows - most} more rows; to_frame() returns all.", *notes]
        for head, values in table.items():
            cells = [head, *map(self._text, values[:most])]
            is_numeric = all(isinstance(value, Real) for value in values)
            adjust, width = str.rjust if is_numeric else str.ljust, max(map(len, cells))
            columns.append([adjust(cell, width) for cell in cells])
        lines = ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
        notes = [fill(note, 88, subsequent_indent="  ") for note in notes]
        return "\n".join([self._title(), *lines, *notes])

    def _repr_html_(self):
        return f"<pre>{escape(str(self))}</pre>"

    def _text(self, value):
        if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
            return str(value)
        return "" if np.isnan(value) else f"{value:.{self._digits}g}"
