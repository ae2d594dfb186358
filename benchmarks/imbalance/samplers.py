"""The rivals: what is done about the imbalance before or after a learner is fitted."""

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
