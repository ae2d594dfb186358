"""How new rows are made from training rows.

``lines`` mixes rows of tables on straight lines. ``codes`` encodes rows, samples codes
(``draws``) and decodes them: Algorithm 2 of the paper. Both choose ``parents`` among
the training rows, and return a source of new rows (``source``). ``sampling`` fits a
method, samples new rows from its source, projects them onto constraints and totals, and
checks them. ``device_rows`` computes codes on the device of the rows.
"""

from .codes import Codes, SampledCodes
from .draws import DensityDraws, Draws, KernelDraws, MixupDraws, NewCodes
from .lines import Lines

__all__ = [
    "Codes",
    "DensityDraws",
    "Draws",
    "KernelDraws",
    "Lines",
    "MixupDraws",
    "NewCodes",
    "SampledCodes",
]
