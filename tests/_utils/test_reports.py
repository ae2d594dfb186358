"""Reports as text, as HTML and as data frames."""

from dataclasses import dataclass

import numpy as np
import pytest

from sklearn_pnl._utils.reports import TableReport


@dataclass(frozen=True, eq=False, repr=False)
class Sums(TableReport):
    names: tuple
    requested: np.ndarray
    achieved: np.ndarray

    def _title(self):
        return f"{len(self.names)} sums"

    def _columns(self):
        return {"sum": self.names, "asked": self.requested, "achieved": self.achieved}

    def _notes(self):
        return ["Rows moved by <2>."]


def test_a_report_prints_its_title_table_and_notes():
    report = Sums(("a", "long name"), np.array([1.0, 1234.5]), np.array([np.nan, 1e-9]))
    assert str(report).splitlines() == [
        "2 sums",
        "sum         asked  achieved",
        "a               1",
        "long name  1234.5     1e-09",
        "Rows moved by <2>.",
    ]
    assert repr(report) == "<Sums: 2 sums>"


def test_html_is_escaped():
    html = Sums(("<b>", "b"), np.ones(2), np.array([-4.0, 1.0]))._repr_html_()
    assert "&lt;b&gt;" in html and "&lt;2&gt;" in html


def test_long_tables_are_truncated_only_when_printed():
    pytest.importorskip("pandas")
    values = np.arange(100.0)
    report = Sums(tuple(map(str, range(100))), values, values)
    assert "70 more rows" in str(report) and "70 more rows" in report._repr_html_()
    frame = report.to_frame()
    assert frame.shape == (100, 2) and frame.index.name == "sum"
    np.testing.assert_array_equal(frame["asked"], values)
