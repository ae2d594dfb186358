"""Parameters by name: the method as it was published."""

from collections.abc import Iterator, Mapping
from typing import Any

from .draws import KernelDraws
from .manifolds import MixtureManifold
from .projectors import ManyBodyProjector
from .reshape import PrimeFactorReshaper


class Recipe(Mapping):
    """Parameters of an estimator, whose objects are made anew each time they are read.

    So what one user sets in them reaches nobody else.

    Parameters
    ----------
    **makers : callable
        By parameter, a function without arguments that makes its value.
    """

    def __init__(self, **makers: Any) -> None:
        self._makers = makers

    def __getitem__(self, name: str) -> Any:
        return self._makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __repr__(self) -> str:
        return repr(dict(self))


def _base():
    return ManyBodyProjector(1, offset=1e-5, with_mass=False)


#: The settings of the authors' program: codes on M_1, the offset 1e-5 of its embedding,
#: kernel density of bandwidth .05, and the point of the m-geodesic from the code to the
#: mean of its neighbours at which its natural gradient stops (Hu and Sugiyama, ICLR
#: 2026, appendix C.1). ``PNLSampler(**PAPER_RECIPE)`` runs these;
#: ``local_manifold="theta"`` in it is the set that equation 2 prints. A search over
#: its order names ``order__order``.
PAPER_RECIPE = Recipe(
    order=_base,
    draws=KernelDraws,
    local_manifold=MixtureManifold,
    reshaper=PrimeFactorReshaper,
)
