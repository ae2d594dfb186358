"""How new rows are made from training rows.

``lines`` mixes rows of tables on straight lines. ``codes`` encodes rows, samples codes
(``draws``) and decodes them: Algorithm 2 of the paper. ``engine`` fits a method to
training rows and samples new rows from it.
"""

from .codes import Codes
from .draws import DensityDraws, Draws, KernelDraws, MixupDraws
from .lines import Lines

__all__ = [
    "Codes",
    "DensityDraws",
    "Draws",
    "KernelDraws",
    "Lines",
    "MixupDraws",
]
