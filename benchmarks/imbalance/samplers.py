"""Baselines: treatments of the imbalance before or after a learner is fitted."""

from importlib import import_module
from importlib.util import find_spec
from logging import ERROR, getLogger

from imblearn.ensemble import BalancedRandomForestClassifier, EasyEnsembleClassifier
from imblearn.over_sampling import ADASYN, SMOTE, BorderlineSMOTE, RandomOverSampler
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from sklearn_pnl import PNLSampler

from ..baselines import Baseline, seeded

# The best of smote-variants by the comparison of its authors.
VARIANTS = (
    "polynom_fit_SMOTE_poly", "ProWSyn", "SMOTE_IPF", "Lee", "SMOBD", "G_SMOTE",
)  # fmt: skip


def balanced_forest(learner, seed):
    """Replace a forest by one whose trees see as many rows of each class."""
    if isinstance(learner, RandomForestClassifier):
        return BalancedRandomForestClassifier(random_state=seed)
    return None


def easy_ensemble(learner, seed):
    """Replace boosting by boosting on balanced samples."""
    if isinstance(learner, HistGradientBoostingClassifier):
        return EasyEnsembleClassifier(random_state=seed)
    return None


def of_other_packages():
    """Return MGS and the best of smote-variants, if the packages are installed."""
    found = {}
    if find_spec("mgs_grf") is not None:
        kind = import_module("mgs_grf").MGSGRFOverSampler
        found["MGS 5"] = Baseline(lambda seed: kind(K=5, random_state=seed))
        # As many neighbours as columns.
        found["MGS"] = Baseline(lambda seed: kind(random_state=seed))
    if find_spec("smote_variants") is not None:
        kinds = import_module("smote_variants")
        getLogger("smote_variants").setLevel(ERROR)
        found |= {name: Baseline(seeded(getattr(kinds, name))) for name in VARIANTS}
    return found


BASELINES = {
    "none": Baseline(),
    "threshold": Baseline(threshold=True),
    "ROS": Baseline(seeded(RandomOverSampler)),
    "ROS 0.3": Baseline(seeded(RandomOverSampler, shrinkage=0.3)),
    "SMOTE": Baseline(seeded(SMOTE)),
    "BorderlineSMOTE": Baseline(seeded(BorderlineSMOTE)),
    "ADASYN": Baseline(seeded(ADASYN)),
    "PNL": Baseline(seeded(PNLSampler)),
    "PNL (paper)": Baseline(seeded(PNLSampler, method="paper")),
    "calibrated none": Baseline(calibrated=True),
    "calibrated SMOTE": Baseline(seeded(SMOTE), calibrated=True),
    "calibrated PNL": Baseline(seeded(PNLSampler), calibrated=True),
    "balanced forest": Baseline(adapt=balanced_forest, share=1 / 2),
    "EasyEnsemble": Baseline(adapt=easy_ensemble, share=1 / 2),
    **of_other_packages(),
}
