"""What a method and the sampling of new rows exchange.

A method is fitted to training rows and returns a source of new rows. A ``Request``
asks the source for new rows; a ``Batch`` holds some of the new rows and their parents.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray


@dataclass(frozen=True)
class Request:
    """A request for new rows: their number and their base rows.

    Attributes
    ----------
    n_samples : int
    n_neighbors : int
        Number of neighbours of a training row, or of rows from which a code is decoded.
    shares : ndarray of shape (m,) or None
        Relative frequency of each training row as a base row; None for equal
        frequencies.
    base_rows : ndarray of int of shape (n_samples,) or None
        The base rows, if they are chosen in advance. New rows are then nearer to the
        base row than to the second parent.
    strata : list of (ndarray of int, ndarray of int) or None
        Pairs of rows and their possible neighbours; None for all rows.
    mutual : bool
        Whether to compute which second parents may be donors of cells that are not
        mixed.
    n_jobs : int or None
    """

    n_samples: int
    n_neighbors: int
    shares: NDArray | None = None
    base_rows: NDArray | None = None
    strata: list | None = None
    mutual: bool = False
    n_jobs: int | None = None


class Batch(NamedTuple):
    """New rows as numbers (b, D), with their parents and donors.

    Parents (b, k) are indices of training rows, with weights (b, k). Donors (b,) are
    the training rows that give the categories.
    """

    numbers: Any
    parents: Any
    weights: Any
    donors: Any

    def take_rows(self, rows):
        """Select rows of the batch."""
        return Batch(*(part[rows, ...] for part in self))


class Source(ABC):
    """Base class of the sources of new rows, which the ``fit`` of a method returns.

    Attributes
    ----------
    feasible : FeasibleSet
        The set that each new row must be in, in the units of the training rows.
    n_neighbors : int
    strata : list of (ndarray of int, ndarray of int) or None
        Pairs of rows and the rows that may be mixed with them; None for all rows.
    has_donors : bool
        Whether some cells are copied from one parent, as categories are.
    keeps_equalities : bool
        Whether new rows satisfy the equalities before they are projected.
    can_count : bool
        Whether a new row has the categories of its base row, so that the categories
        can be counted.
    takes_shares : bool
        Whether training rows can be base rows with unequal frequencies.
    """

    @abstractmethod
    def __len__(self):
        """Return the number of training rows."""

    @abstractmethod
    def training_rows(self):
        """Return the training rows (m, D)."""

    @abstractmethod
    def batches(self, request, rng, size):
        """Yield batches of ``size`` new rows of a :class:`Request`."""

    @property
    @abstractmethod
    def n_cells(self):
        """The number of cells of a new row that are computed."""

    @property
    @abstractmethod
    def n_numbers(self):
        """The number of other values that a new row needs while it is computed."""
