"""The rivals: what is done about the imbalance before or after a learner is fitted."""

from imblearn.over_sampling import (
    ADASYN,
    SMOTE,
    BorderlineSMOTE,
    RandomOverSampler,
)
from sklearn.model_selection import TunedThresholdClassifierCV

from sklearn_pnl import PNLSampler

from ..rivals import PNL_PAPER, Rival


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
    "ROS": Rival(lambda seed: RandomOverSampler(random_state=seed)),
    "ROS 0.3": Rival(lambda seed: RandomOverSampler(shrinkage=0.3, random_state=seed)),
    "SMOTE": Rival(lambda seed: SMOTE(random_state=seed)),
    "BorderlineSMOTE": Rival(lambda seed: BorderlineSMOTE(random_state=seed)),
    "ADASYN": Rival(lambda seed: ADASYN(random_state=seed)),
    "PNL": Rival(lambda seed: PNLSampler(random_state=seed)),
    "PNL (paper)": Rival(lambda seed: PNLSampler(**PNL_PAPER, random_state=seed)),
    "calibrated SMOTE": Rival(lambda seed: SMOTE(random_state=seed), calibrated=True),
    "calibrated PNL": Rival(
        lambda seed: PNLSampler(random_state=seed), calibrated=True
    ),
}

# Six times the fits of the others, so only when asked for by name.
SLOW_RIVALS = {"tuned threshold": Rival(adapt=tune_threshold)}
