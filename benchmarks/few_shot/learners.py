"""Learners, each made from the seed of a draw."""

from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

LEARNERS = {
    "1-NN": lambda seed: KNeighborsClassifier(1),
    "logistic": lambda seed: LogisticRegression(max_iter=1000),
    "SVM": lambda seed: SVC(C=5),
    "forest": lambda seed: RandomForestClassifier(100, random_state=seed),
}
