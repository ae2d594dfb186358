"""Control: equations and intervals that new rows keep, found, given or asked for.

One type for all of them (:mod:`.system`), a search for those that hold already
(:mod:`.search`), one function that brings rows to them and one that checks the rows
that leave (:mod:`.meeting`).
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
