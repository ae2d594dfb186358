"""Pseudo-nonlinear data augmentation for scikit-learn and imbalanced-learn.

Rows become positive tensors, tensors become points of a statistical manifold given
by a log-linear model on a poset. Rows are encoded by KL projection on a flat base,
new codes are drawn, and each is decoded by projection on a flat sub-manifold built
from the nearest training rows (Hu and Sugiyama, ICLR 2026). Draws, local manifolds,
geometry and what functions return live in their modules.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from . import geometry
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
except PackageNotFoundError:  # a source tree on the path, not installed
    __version__ = "0+unknown"


_SAMPLERS = {"PNLSampler": "sampler", "PNLRegressionSampler": "regression"}


def __getattr__(name):
    """Import samplers on demand: all else works without imbalanced-learn."""
    if name in _SAMPLERS:
        return getattr(import_module(f"{__name__}.{_SAMPLERS[name]}"), name)
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
]
