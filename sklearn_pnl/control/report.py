"""What was asked of new rows, what was met, and how far rows moved for it."""

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from sklearn.utils._optional_dependencies import check_pandas_support

from ..geometry.reach import span

_HEADS = ("what", "kind", "asked", "drawn", "reached", "residual")
# Lines that are printed.
_SHOWN = 30


@dataclass(frozen=True, eq=False, repr=False)
class SampleReport:
    """What was asked of new rows, what was met, and how far they moved for it.

    :meth:`PNLAugmenter.sample` makes it with ``return_report=True``; ``print`` shows a
    line for each thing asked, :meth:`to_frame` is a data frame of them.

    Parameters
    ----------
    n_rows, n_train : int
        Numbers of new rows, and of training rows.
    names : tuple of str
        What was asked, in words.
    kinds : tuple of str
        "sum", "mean" or "count" of all rows; "constraint" or "invariant" of each.
    lower, upper : ndarray of shape (k,)
        What was asked for; of constraints with a value a row, the ends of all.
    drawn : ndarray of shape (k,)
        What rows had as they were drawn; nan for what is about each row.
    reached : ndarray of shape (k,)
        What they have. Of what is about each row, the value of the row farthest from
        it.
    residual : ndarray of shape (k,)
        What is missed: of all rows as a share of the sum of absolute terms, of each row
        as a share of the range of the largest term.
    features : tuple of str
        Names of the columns of numbers.
    moved : ndarray of shape (D,)
        How far totals moved the rows, by column: root mean square, as a share of the
        range of the column.
    effective_parents : float
        ``(sum w)^2 / sum w^2`` of the weights by which rows were drawn from the
        training rows; ``n_train`` where all are alike.
    n_strangers : int
        New rows whose counted categories are of a training row that is none of their
        parents.
    n_copied : int
        New rows that have columns of one training row, as nothing else was found.

    See Also
    --------
    PNLAugmenter : Its ``sample`` makes it.
    SampleReportDisplay : Draw it.
    CalibrationReport : The same of weights.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import PNLAugmenter
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> augmenter = PNLAugmenter().fit(X)
    >>> rows, report = augmenter.sample(
    ...     20, random_state=0, totals={0: 3.0}, return_report=True
    ... )
    >>> float(report.reached[0].round(9))
    3.0
    >>> report.to_frame().index.tolist()
    ['the sum of 0']
    """

    n_rows: int
    n_train: int
    names: tuple
    kinds: tuple
    lower: np.ndarray
    upper: np.ndarray
    drawn: np.ndarray
    reached: np.ndarray
    residual: np.ndarray
    features: tuple
    moved: np.ndarray
    effective_parents: float
    n_strangers: int = 0
    n_copied: int = 0

    def to_frame(self) -> Any:
        """A row for each thing asked, as a data frame of pandas."""
        pandas = check_pandas_support("SampleReport.to_frame")
        columns = ("kinds", "lower", "upper", "drawn", "reached", "residual")
        held = {name: getattr(self, name) for name in columns}
        frame = pandas.DataFrame(held, index=pandas.Index(self.names, name="what"))
        return frame.rename(columns={"kinds": "kind"})

    def _lines(self):
        """Cells of the table."""
        arrays = self.lower, self.upper, self.drawn, self.reached, self.residual
        for name, kind, *values in zip(self.names, self.kinds, *arrays, strict=True):
            low, high, drawn, reached, residual = values
            shown = "" if np.isnan(drawn) else f"{drawn:.8g}"
            found = f"{reached:.10g}", f"{residual:.1e}"
            yield name, kind, span(low, high), shown, *found

    def _notes(self):
        """What is to be said beside the table."""
        worst = int(np.argmax(self.moved)) if len(self.moved) else 0
        farthest = self.moved.max(initial=0)
        notes = [
            f"{self.n_rows} new rows; effective number of parents "
            f"{self.effective_parents:.1f} of {self.n_train} training rows."
        ]
        if farthest > 0:
            notes.append(
                f"Totals moved rows by up to {farthest:.2g} of a column's range (root "
                f"mean square): {self.features[worst]}."
            )
        if self.n_strangers:
            notes.append(
                f"{self.n_strangers} rows have counted categories of a training row "
                "that is none of their parents."
            )
        if self.n_copied:
            notes.append(f"{self.n_copied} rows have columns of one training row.")
        return notes

    def __repr__(self):
        return (
            f"SampleReport(n_rows={self.n_rows}, asked={len(self.names)}, "
            f"worst residual={self.residual.max(initial=0):.1e})"
        )

    def __str__(self):
        lines = [_HEADS, *self._lines()]
        shown = lines[: _SHOWN + 1]
        widths = [max(map(len, cells)) for cells in zip(*shown, strict=True)]
        table = [
            "  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip()
            for cells in shown
        ]
        if len(lines) > len(shown):
            table.append(f"and {len(lines) - len(shown)} more")
        return "\n".join([*table, *self._notes()])

    def _repr_html_(self):
        """For notebooks."""
        head, rows = _html(_HEADS, "th"), [_html(line, "td") for line in self._lines()]
        table = f"<thead>{head}</thead><tbody>{''.join(rows)}</tbody>"
        notes = escape(" ".join(self._notes()))
        return f"<div><p>{notes}</p><table>{table}</table></div>"


def _html(line, tag):
    cells = "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in line)
    return f"<tr>{cells}</tr>"


def of_each(system, n_kept, rows):
    """What is about each row (n, D), as the arrays of a report."""
    missing = np.abs(system.missing(rows))
    worst, each = missing.argmax(axis=0), np.arange(len(system))
    values = (rows @ system.coefficients.T)[worst, each]
    kinds = ("invariant",) * n_kept + ("constraint",) * (len(system) - n_kept)
    ends = system.lower.min(axis=0), system.upper.max(axis=0)
    names = [*system.part(slice(n_kept)).descriptions, *system.names[n_kept:]]
    drawn, residual = np.full(len(each), np.nan), missing[worst, each] / system.scale
    return tuple(names), kinds, *ends, drawn, values, residual
