"""The learners; each is made from the seed of a fold."""

from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

# At their default parameters.
LEARNERS = {
    "logistic": lambda seed: LogisticRegression(max_iter=2000),
    "5-NN": lambda seed: KNeighborsClassifier(5),
    "forest": lambda seed: RandomForestClassifier(100, random_state=seed, n_jobs=1),
    "boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}

# Learners that need fewer new rows: more neighbours, and smaller trees.
REGULARISED = {
    "25-NN": lambda seed: KNeighborsClassifier(25, weights="distance"),
    "regularised boosting": lambda seed: HistGradientBoostingClassifier(
        min_samples_leaf=5,
        max_iter=150,
        learning_rate=0.05,
        max_leaf_nodes=8,
        max_features=0.5,
        random_state=seed,
    ),
}


def standardised(make):
    """Put a scaler before a learner, for rows in their original units."""
    return lambda seed: make_pipeline(StandardScaler(), make(seed))


# Trees do not depend on units.
FOR_RAW_ROWS = {
    name: standardised(make) if name in ("logistic", "5-NN") else make
    for name, make in LEARNERS.items()
}
