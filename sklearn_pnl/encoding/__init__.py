"""From rows to codes and back, and the search for neighbours.

``codec`` encodes rows by a projection onto the base and decodes codes by a projection
onto a local manifold (``manifolds``): Algorithm 1 of the paper. ``forward`` is the base
class of forward projections of the user. ``embedding`` maps rows to positive measures
and back. ``neighbors`` finds the training rows whose codes are
nearest; ``table_neighbors`` finds near rows of tables, with categories.
"""

from .forward import ForwardProjection
from .manifolds import (
    EtaManifold,
    FiberManifold,
    LocalManifold,
    MixtureManifold,
    ThetaManifold,
)

__all__ = [
    "EtaManifold",
    "FiberManifold",
    "ForwardProjection",
    "LocalManifold",
    "MixtureManifold",
    "ThetaManifold",
]
