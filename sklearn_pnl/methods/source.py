"""What a method and the sampling of new rows exchange.

A method is fitted to :class:`MixableRows` and returns a source of new rows. A
``Request`` asks the source for new rows, which the source yields as batches; see
:class:`Batch`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

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
        Whether second parents may be donors. False makes each base row the donor.
    n_jobs : int or None
    with_codes : bool
        Whether batches contain the new codes and their divergences.
    """

    n_samples: int
    n_neighbors: int
    shares: NDArray | None = None
    base_rows: NDArray | None = None
    strata: list | None = None
    mutual: bool = False
    n_jobs: int | None = None
    with_codes: bool = False


class Source(ABC):
    """Base class of the sources of new rows, which the ``fit`` of a method returns.

    Attributes
    ----------
    mixable : MixableRows
        The training rows.
    n_neighbors : int
    is_affine : bool
        Whether new rows are affine combinations of training rows, which satisfy their
        equalities.
    has_base_rows : bool
        Whether each new row starts from a training row, whose categories it has and
        whose frequency can be chosen.
    takes_shares : bool
        Whether training rows can have unequal frequencies.
    """

    @abstractmethod
    def batches(self, request, rng, size):
        """Yield batches of ``size`` new rows of a :class:`Request`."""

    @abstractmethod
    def training_rows(self):
        """Return the training rows (m, D) in the units of the columns."""

    @property
    @abstractmethod
    def n_cells(self):
        """The number of cells of a new row that are computed."""

    @property
    @abstractmethod
    def n_numbers(self):
        """The number of other values that a new row needs while it is computed."""
