"""Types that many signatures name."""

from typing import Any, TypeAlias

from numpy.random import Generator, RandomState
from numpy.typing import ArrayLike

# Arrays, and what has no types to name here: sparse matrices and data frames.
Rows: TypeAlias = ArrayLike | Any
Seed: TypeAlias = int | RandomState | Generator | None
