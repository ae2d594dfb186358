"""Control: equations and intervals that new rows keep, found, given or asked for.

One type for all of them (:mod:`.system`), a search for those that hold already
(:mod:`.search`), what rows promise and the audit of those that leave
(:mod:`.keeping`), and the ways there, row by row (:mod:`.meeting`) or all rows at once
(:mod:`.together`).
"""

from .report import SampleReport
from .search import find_invariants
from .system import (
    CONSTRAINTS,
    ColumnConstraint,
    Constraint,
    LinearSystem,
    collect_constraints,
)

__all__ = [
    "CONSTRAINTS",
    "ColumnConstraint",
    "Constraint",
    "LinearSystem",
    "SampleReport",
    "collect_constraints",
    "find_invariants",
]
