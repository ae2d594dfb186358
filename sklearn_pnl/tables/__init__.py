"""Rows of users: read once as numbers, and new rows in the container they came in.

From the column of a container (``columns``) through numbers and back (``values``,
``times``) and categories beside them (``categories``) to a table (``table``).
"""

from .columns import columns_of, is_frame
from .table import Table, joined, read_table
from .target import plain_target, read_target

__all__ = [
    "Table",
    "columns_of",
    "is_frame",
    "joined",
    "plain_target",
    "read_table",
    "read_target",
]
