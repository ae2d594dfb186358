"""The rivals: what is done about the imbalance before or after a learner is fitted."""

from importlib import import_module
from importlib.util import find_spec
from logging import ERROR, getLogger

from imblearn.over_sampling import (
    ADASYN,
    SMOTE,
    BorderlineSMOTE,
    RandomOverSampler,
)
from sklearn.model_selection import TunedThresholdClassifierCV

from sklearn_pnl import PNLSampler

from ..rivals import PNL_PAPER, Rival, seeded


def balance_weights(learner, seed):
    if "class_weight" not in learner.get_params():
        return None
    return learner.set_params(class_weight="balanced")


def tune_threshold(learner, seed):
    return TunedThresholdClassifierCV(learner, random_state=seed)


RIVALS = {
    "none": Rival(),
    "threshold": Rival(threshold=True),
    "class weight": Rival(adapt=balance_weights),
    "ROS": Rival(seeded(RandomOverSampler)),
    "ROS 0.3": Rival(seeded(RandomOverSampler, shrinkage=0.3)),
    "SMOTE": Rival(seeded(SMOTE)),
    "BorderlineSMOTE": Rival(seeded(BorderlineSMOTE)),
    "ADASYN": Rival(seeded(ADASYN)),
    "PNL": Rival(seeded(PNLSampler)),
    "PNL (paper)": Rival(seeded(PNLSampler, **PNL_PAPER)),
    "calibrated SMOTE": Rival(seeded(SMOTE), calibrated=True),
    "calibrated PNL": Rival(seeded(PNLSampler), calibrated=True),
}

# Six times the fits of the others, so only when asked for by name.
SLOW_RIVALS = {"tuned threshold": Rival(adapt=tune_threshold)}

# The best of smote-variants by the comparison of its authors.
VARIANTS = (
    "polynom_fit_SMOTE_poly", "ProWSyn", "SMOTE_IPF", "Lee", "SMOBD", "G_SMOTE",
)  # fmt: skip


def smote_variants():
    """Those where the package is there."""
    if find_spec("smote_variants") is None:
        return {}
    kinds = import_module("smote_variants")
    getLogger("smote_variants").setLevel(ERROR)
    return {name: Rival(seeded(getattr(kinds, name))) for name in VARIANTS}
