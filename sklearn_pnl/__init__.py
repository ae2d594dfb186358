"""Pseudo-nonlinear data augmentation for scikit-learn and imbalanced-learn.

Rows become positive tensors, tensors become points of a statistical manifold given
by a log-linear model on a poset. Rows are encoded by KL projection on a flat base,
new codes are drawn, and each is decoded by projection on a flat sub-manifold built
from the nearest training rows (Hu and Sugiyama, ICLR 2026).
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from . import geometry
from .adjusting import adjust
from .augment import PNLAugmenter
from .backward import BackwardProjector
from .compare import SampleComparison, compare_samples
from .control import ColumnConstraint, LinearSystem, SampleReport, find_invariants
from .draws import DensityDraws, Draws, KernelDraws, MixupDraws
from .imputer import ManyBodyImputer
from .loglinear import DevianceBootstrap, LogLinearModel
from .manifolds import (
    EtaManifold,
    FiberManifold,
    LocalManifold,
    MixtureManifold,
    ThetaManifold,
)
from .many_body import ManyBodyProjector
from .plotting import SampleComparisonDisplay, SampleReportDisplay
from .probabilities import PriorCorrectedClassifier
from .reshape import PrimeFactorReshaper
from .weights.calibration import CalibrationError, CalibrationReport, calibrate
from .weights.raking import LabelledRaking, rake
from .weights.totals import ColumnTotal, column_total

if TYPE_CHECKING:
    from .over_sampling import PNLSampler
    from .regression import PNLRegressionSampler

try:
    __version__ = version("sklearn-pnl")
except PackageNotFoundError:  # a source tree on the path, not installed
    __version__ = "0+unknown"


_SAMPLERS = {"PNLSampler": "over_sampling", "PNLRegressionSampler": "regression"}


def __getattr__(name):
    """Import samplers on demand: all else works without imbalanced-learn."""
    if name in _SAMPLERS:
        return getattr(import_module(f"{__name__}.{_SAMPLERS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)


__all__ = [
    "BackwardProjector",
    "CalibrationError",
    "CalibrationReport",
    "ColumnTotal",
    "DensityDraws",
    "DevianceBootstrap",
    "Draws",
    "EtaManifold",
    "FiberManifold",
    "LabelledRaking",
    "LinearSystem",
    "KernelDraws",
    "LocalManifold",
    "ManyBodyImputer",
    "LogLinearModel",
    "ManyBodyProjector",
    "MixtureManifold",
    "MixupDraws",
    "PNLAugmenter",
    "PNLRegressionSampler",
    "PNLSampler",
    "PrimeFactorReshaper",
    "PriorCorrectedClassifier",
    "SampleComparison",
    "SampleComparisonDisplay",
    "SampleReport",
    "SampleReportDisplay",
    "ThetaManifold",
    "ColumnConstraint",
    "adjust",
    "calibrate",
    "column_total",
    "compare_samples",
    "find_invariants",
    "geometry",
    "rake",
]
