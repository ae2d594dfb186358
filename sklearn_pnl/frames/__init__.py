"""Read containers as numbers once, and return new rows in the same container.

The modules ``containers`` and ``column_types`` read the columns of a container.
``number_types`` converts values to floats and back, and ``categories`` encodes
categories. ``table`` combines these modules into a table of rows, and ``target`` reads
targets, groups and weights.
"""

from .containers import columns_of, is_frame
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
