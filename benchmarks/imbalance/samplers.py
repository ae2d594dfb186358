"""The rivals: what is done about the imbalance before or after a learner is fitted."""

from importlib import import_module
from importlib.util import find_spec
from logging import ERROR, getLogger

from imblearn.ensemble import BalancedRandomForestClassifier, EasyEnsembleClassifier
from imblearn.over_sampling import ADASYN, SMOTE, BorderlineSMOTE, RandomOverSampler
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from sklearn_pnl import PNLSampler

from ..rivals import Rival, seeded

# The best of smote-variants by the comparison of its authors.
VARIANTS = (
    "polynom_fit_SMOTE_poly", "ProWSyn", "SMOTE_IPF", "Lee", "SMOBD", "G_SMOTE",
)  # fmt: skip


def balanced_forest(learner, seed):
    """A forest whose trees see as many rows of each class; instead of a forest."""
    if isinstance(learner, RandomForestClassifier):
        return BalancedRandomForestClassifier(random_state=seed)
    return None


def easy_ensemble(learner, seed):
    """Boosting on balanced samples; instead of boosting."""
    if isinstance(learner, HistGradientBoostingClassifier):
        return EasyEnsembleClassifier(random_state=seed)
    return None


def of_other_packages():
    """MGS and the best of smote-variants, where these packages are installed."""
    found = {}
    if find_spec("mgs_grf") is not None:
        kind = import_module("mgs_grf").MGSGRFOverSampler
        found["MGS 5"] = Rival(lambda seed: kind(K=5, random_state=seed))
        # As many neighbours as columns.
        found["MGS"] = Rival(lambda seed: kind(random_state=seed))
    if find_spec("smote_variants") is not None:
        kinds = import_module("smote_variants")
        getLogger("smote_variants").setLevel(ERROR)
        found |= {name: Rival(seeded(getattr(kinds, name))) for name in VARIANTS}
    return found


RIVALS = {
    "none": Rival(),
    "threshold": Rival(threshold=True),
    "ROS": Rival(seeded(RandomOverSampler)),
    "ROS 0.3": Rival(seeded(RandomOverSampler, shrinkage=0.3)),
    "SMOTE": Rival(seeded(SMOTE)),
    "BorderlineSMOTE": Rival(seeded(BorderlineSMOTE)),
    "ADASYN": Rival(seeded(ADASYN)),
    "PNL": Rival(seeded(PNLSampler)),
    "PNL (paper)": Rival(seeded(PNLSampler, method="paper")),
    "calibrated none": Rival(calibrated=True),
    "calibrated SMOTE": Rival(seeded(SMOTE), calibrated=True),
    "calibrated PNL": Rival(seeded(PNLSampler), calibrated=True),
    "balanced forest": Rival(adapt=balanced_forest, balanced=True),
    "EasyEnsemble": Rival(adapt=easy_ensemble, balanced=True),
    **of_other_packages(),
}
