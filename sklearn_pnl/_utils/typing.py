"""Type aliases for signatures."""

from typing import Any, TypeAlias

from numpy.random import Generator, RandomState
from numpy.typing import ArrayLike

# Arrays; sparse matrices and data frames of any library have no common type.
Rows: TypeAlias = ArrayLike | Any
Seed: TypeAlias = int | RandomState | Generator | None
