"""Read containers as numbers once, and return new rows in the same container.

From the columns of a container (``columns``, ``readers``) through numbers and back
(``values``) and categories beside them (``categories``) to a table (``table``) and
targets (``target``).
"""

from .columns import columns_of, is_frame
from .table import TableReader, read_table, warn_extreme_values
from .target import read_classes, read_groups, read_target, read_weights

__all__ = [
    "TableReader",
    "columns_of",
    "is_frame",
    "read_classes",
    "read_groups",
    "read_table",
    "read_target",
    "read_weights",
    "warn_extreme_values",
]
