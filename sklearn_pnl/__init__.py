"""Pseudo-nonlinear data augmentation for scikit-learn and imbalanced-learn.

:class:`PNLSampler` and :class:`PNLRegressionSampler` add rows to classification and
regression problems, and :class:`PNLAugmenter` generates rows without targets. New rows
lie near straight lines between neighbouring rows (:class:`Lines`), or are decoded from
codes (:class:`Codes`). Codes are projections of positive tensors onto log-linear models
on a poset (Hu and Sugiyama, ICLR 2026). The subpackage ``control`` contains constraints
and totals, and ``geometry`` contains the log-linear models.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from . import geometry
from ._utils.progress import progress_bar
from .augmenter import PNLAugmenter
from .compare import compare_samples
from .imputer import ManyBodyImputer
from .loglinear import LogLinearModel
from .methods import Codes, Lines
from .prior_correction import PriorCorrectedClassifier
from .projectors import BackwardProjector, ManyBodyProjector
from .reshape import PrimeFactorReshaper

if TYPE_CHECKING:
    from .regression import PNLRegressionSampler
    from .sampler import PNLSampler

try:
    __version__ = version("sklearn-pnl")
except PackageNotFoundError:  # The source tree is on the path, but is not installed.
    __version__ = "0+unknown"


_SAMPLERS = {"PNLSampler": "sampler", "PNLRegressionSampler": "regression"}


def __getattr__(name):
    """Import a sampler when it is first used, and look up names of ``control``.

    All other parts of the package work without imbalanced-learn.
    """
    if name in _SAMPLERS:
        return getattr(import_module(f"{__name__}.{_SAMPLERS[name]}"), name)
    control = import_module(f"{__name__}.control")
    if name in control.__all__:
        return getattr(control, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)


__all__ = [
    "BackwardProjector",
    "Codes",
    "Lines",
    "LogLinearModel",
    "ManyBodyImputer",
    "ManyBodyProjector",
    "PNLAugmenter",
    "PNLRegressionSampler",
    "PNLSampler",
    "PrimeFactorReshaper",
    "PriorCorrectedClassifier",
    "compare_samples",
    "geometry",
    "progress_bar",
]
