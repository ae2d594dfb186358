"""The learners, at their defaults; each is made from the seed of a fold."""

from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

LEARNERS = {
    "logistic": lambda seed: LogisticRegression(max_iter=2000),
    "5-NN": lambda seed: KNeighborsClassifier(5),
    "forest": lambda seed: RandomForestClassifier(100, random_state=seed, n_jobs=1),
    "boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}
