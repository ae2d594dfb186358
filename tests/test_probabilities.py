"""A sampler, a classifier, and the prior of the data."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from imblearn import FunctionSampler
from imblearn.over_sampling import SMOTE, RandomOverSampler
from imblearn.pipeline import make_pipeline as make_sampling_pipeline
from imblearn.under_sampling import RandomUnderSampler
from imblearn.utils.estimator_checks import (
    parametrize_with_checks as parametrize_with_sampler_checks,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    log_loss,
    roc_auc_score,
)
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_pnl import PNLSampler, PriorCorrectedClassifier

SEEDS = [0, 1, 2]

CORRECTED = [
    PriorCorrectedClassifier(
        PNLSampler(random_state=0), LogisticRegression(max_iter=1000)
    ),
    PriorCorrectedClassifier(
        RandomOverSampler(random_state=0),
        DecisionTreeClassifier(random_state=0),
        decision="balanced",
    ),
]


@pytest.mark.filterwarnings("ignore:.*neighbours were asked for.*")
@pytest.mark.filterwarnings("ignore:.*asks for no new row.*")
@parametrize_with_checks(CORRECTED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:.*neighbours were asked for.*")
@pytest.mark.filterwarnings("ignore:.*asks for no new row.*")
@parametrize_with_sampler_checks(CORRECTED)
def test_imbalanced_learn_checks(estimator, check):
    check(estimator)


# --- the theorem ----------------------------------------------------------------


class CellClassifier(ClassifierMixin, BaseEstimator):
    """Shares of the classes among the training rows that are equal to a row: exact."""

    def fit(self, X, y):
        self.classes_, labels = np.unique(y, return_inverse=True)
        self.counts_ = {}
        for row, label in zip(X, labels, strict=True):
            none = np.zeros(len(self.classes_))
            self.counts_.setdefault(tuple(row), none)[label] += 1
        return self

    def predict_proba(self, X):
        counts = np.array([self.counts_[tuple(row)] for row in X])
        return counts / counts.sum(axis=1, keepdims=True)


class Copies(BaseEstimator):
    """Every row of a class as often as ``times`` says: densities of classes stay."""

    def __init__(self, times=None):
        self.times = times

    def fit_resample(self, X, y):
        rows = np.repeat(np.arange(len(y)), [self.times[label] for label in y])
        return X[rows], np.asarray(y)[rows]


def cells(seed, n=197, n_classes=3):
    """Rows of few different values, in classes of different shares."""
    rng = np.random.default_rng(seed)
    X = rng.integers(3, size=(n, 2)).astype(float)
    chances = rng.dirichlet(np.ones(n_classes), size=9)[
        3 * X[:, 0].astype(int) + X[:, 1].astype(int)
    ]
    y = (rng.uniform(size=(n, 1)) > chances.cumsum(axis=1)).sum(axis=1)
    return X, np.array(list("cab"))[y]


@pytest.mark.parametrize("seed", SEEDS)
def test_densities_that_are_kept_give_the_posterior_exactly(seed):
    # Elkan 2001, theorem 2; Saerens et al. 2002, equation 2.4.
    X, y = cells(seed)
    times = {"a": 1, "b": 7, "c": 3}
    exact = CellClassifier().fit(X, y)
    learnt = CellClassifier().fit(*Copies(times).fit_resample(X, y))
    corrected = PriorCorrectedClassifier(Copies(times), CellClassifier()).fit(X, y)
    assert np.abs(learnt.predict_proba(X) - exact.predict_proba(X)).max() > 0.1
    assert_allclose(
        corrected.predict_proba(X), exact.predict_proba(X), rtol=1e-12, atol=1e-15
    )
    labels, counts = np.unique(y, return_counts=True)
    assert_array_equal(corrected.classes_, labels)
    assert_array_equal(corrected.class_count_, counts)
    assert_array_equal(corrected.resampled_class_count_, counts * [1, 7, 3])


@pytest.mark.parametrize("seed", SEEDS)
def test_balanced_decisions_do_not_depend_on_the_sampler(seed):
    X, y = cells(seed)
    decided = [
        PriorCorrectedClassifier(Copies(times), CellClassifier(), decision="balanced")
        .fit(X, y)
        .predict(X)
        for times in ({"a": 1, "b": 1, "c": 1}, {"a": 2, "b": 9, "c": 5})
    ]
    assert_array_equal(*decided)
    exact, (_, counts) = CellClassifier().fit(X, y), np.unique(y, return_counts=True)
    expected = (exact.predict_proba(X) / counts).argmax(axis=1)
    assert_array_equal(decided[0], exact.classes_[expected])
    assert (decided[0] != exact.predict_proba(X).argmax(axis=1)).any()


@pytest.mark.parametrize("seed", SEEDS)
def test_logistic_regression_finds_the_posterior_of_gaussian_classes(seed):
    # Two Gaussians of one covariance: the posterior is logistic, and so is that of
    # every other prior.
    rng = np.random.default_rng(seed)
    n, prior, shift = 40_000, 0.05, np.array([1.5, -1.0])
    y = (rng.uniform(size=n) < prior).astype(int)
    X = rng.normal(size=(n, 2)) + y[:, None] * shift
    odds = np.log(prior / (1 - prior)) + X @ shift - shift @ shift / 2
    learner = LogisticRegression(C=np.inf)
    for sampler in (RandomOverSampler, RandomUnderSampler):
        corrected = PriorCorrectedClassifier(sampler(random_state=seed), learner)
        found = corrected.fit(X, y).predict_proba(X)[:, 1]
        assert np.abs(found - 1 / (1 + np.exp(-odds))).mean() < 0.005
        assert abs(found.mean() - y.mean()) < 0.005


def uneven(seed=0, n=400, **params):
    return make_classification(
        n, 6, weights=[0.85], class_sep=0.6, random_state=seed, **params
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("sampler", [PNLSampler, SMOTE, RandomUnderSampler])
def test_ranks_stay_and_probabilities_get_better(sampler, seed):
    X, y = uneven(seed, 1000)
    X, X_test, y, y_test = X[:500], X[500:], y[:500], y[500:]
    sampler, learner = sampler(random_state=seed), LogisticRegression(max_iter=1000)
    plain = learner.fit(*sampler.fit_resample(X, y)).predict_proba(X_test)[:, 1]
    corrected = PriorCorrectedClassifier(sampler, learner).fit(X, y)
    found = corrected.predict_proba(X_test)[:, 1]
    for score in (roc_auc_score, average_precision_score):
        assert score(y_test, found) == pytest.approx(score(y_test, plain), abs=1e-12)
    for score in (brier_score_loss, log_loss):
        assert score(y_test, found) < score(y_test, plain)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sampler_that_leaves_the_prior_alone_changes_nothing(seed):
    X, y = uneven(seed)
    plain = GaussianNB().fit(X, y)
    corrected = PriorCorrectedClassifier(FunctionSampler(), GaussianNB()).fit(X, y)
    assert_allclose(corrected.predict_proba(X), plain.predict_proba(X), atol=1e-14)
    assert_array_equal(corrected.predict(X), plain.predict(X))


# --- what is predicted ----------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_predict_follows_predict_proba(n_classes):
    weights = [0.7, 0.2, 0.1][:n_classes]
    X, y = make_classification(
        500, 6, n_informative=4, n_classes=n_classes, weights=weights, random_state=0
    )
    model = clone(CORRECTED[0]).fit(X, y)
    probabilities = model.predict_proba(X)
    assert_allclose(probabilities.sum(axis=1), 1)
    assert_array_equal(model.predict(X), model.classes_[probabilities.argmax(axis=1)])
    assert_allclose(np.exp(model.predict_log_proba(X)), probabilities)
    balanced = model.set_params(decision="balanced")
    recalls = (probabilities / model.class_count_).argmax(axis=1)
    assert_array_equal(balanced.predict(X), model.classes_[recalls])
    assert_array_equal(balanced.predict_proba(X), probabilities)
    assert not hasattr(model, "decision_function")


def leave_out(label):
    """A sampler that leaves no row of a class."""

    def fit_resample(X, y):
        return X[y != label], y[y != label]

    return FunctionSampler(func=fit_resample)


def test_a_class_without_rows_after_sampling_has_no_probability():
    X, y = cells(0)
    model = PriorCorrectedClassifier(leave_out("b"), KNeighborsClassifier()).fit(X, y)
    assert_array_equal(model.classes_, ["a", "b", "c"])
    assert model.resampled_class_count_[1] == 0
    probabilities = model.predict_proba(X)
    assert_array_equal(probabilities[:, 1], 0)
    assert_allclose(probabilities.sum(axis=1), 1)
    assert_array_equal(np.isneginf(model.predict_log_proba(X)[:, 1]), True)
    for decision in ("posterior", "balanced"):
        assert "b" not in model.set_params(decision=decision).predict(X)


def test_a_single_class_after_sampling():
    X, y = uneven()
    model = PriorCorrectedClassifier(leave_out(1), KNeighborsClassifier()).fit(X, y)
    assert_array_equal(model.predict_proba(X), np.tile([1.0, 0.0], (len(X), 1)))
    assert_array_equal(model.predict(X), 0)


def test_a_class_that_was_not_there_is_refused():
    X, y = uneven()

    def invent(X, y):
        return X, np.where(np.arange(len(y)) == 3, 7, y)

    model = PriorCorrectedClassifier(FunctionSampler(func=invent), GaussianNB())
    with pytest.raises(ValueError, match=r"made rows of class 7, which is not in y"):
        model.fit(X, y)


# --- among others ---------------------------------------------------------------


def test_a_search_reaches_both_parts():
    X, y = uneven()
    grid = {"sampler__k_neighbors": [3, 5], "estimator__C": [0.1, 1.0]}
    search = GridSearchCV(CORRECTED[0], grid, scoring="neg_log_loss", cv=3).fit(X, y)
    assert set(search.best_params_) == set(grid)
    best = search.best_estimator_
    assert best.sampler_.k_neighbors == search.best_params_["sampler__k_neighbors"]
    assert best.estimator_.C == search.best_params_["estimator__C"]
    assert CORRECTED[0].sampler.k_neighbors == "auto"


@pytest.mark.parametrize("make", [make_pipeline, make_sampling_pipeline])
def test_in_pipelines(make):
    X, y = uneven()
    model = make(StandardScaler(), clone(CORRECTED[0])).fit(X, y)
    alone = clone(CORRECTED[0]).fit(StandardScaler().fit_transform(X), y)
    expected = alone.predict_proba(StandardScaler().fit_transform(X))
    assert_allclose(model.predict_proba(X), expected)


def test_beside_calibration_and_tuned_thresholds():
    X, y = uneven(n=1000)
    X, X_test, y, y_test = X[:500], X[500:], y[:500], y[500:]
    tree = DecisionTreeClassifier(random_state=0)
    corrected = PriorCorrectedClassifier(PNLSampler(random_state=0), tree)
    calibrated = CalibratedClassifierCV(corrected).fit(X, y)
    scores = [
        brier_score_loss(y_test, model.predict_proba(X_test)[:, 1])
        for model in (calibrated, corrected.fit(X, y))
    ]
    assert scores[0] < scores[1]
    smooth = clone(CORRECTED[0]).fit(X, y)
    tuned = TunedThresholdClassifierCV(smooth, scoring="balanced_accuracy").fit(X, y)
    assert 0 < tuned.best_threshold_ < 0.5
    assert tuned.predict(X_test).mean() > smooth.predict(X_test).mean()


def test_frames_strings_and_series():
    X, y = uneven()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    labels = pd.Series(np.where(y, "yes", "no"), name="answer")
    model = clone(CORRECTED[0]).fit(frame, labels)
    assert_array_equal(model.feature_names_in_, list("abcdef"))
    assert model.n_features_in_ == 6
    assert_array_equal(model.classes_, ["no", "yes"])
    expected = clone(CORRECTED[0]).fit(X, y).predict_proba(X)
    assert_allclose(model.predict_proba(frame), expected)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("fedcba")])


def test_frames_of_polars():
    pl = pytest.importorskip("polars", reason="polars is not installed")
    X, y = uneven()
    frame = pl.DataFrame(X, schema=list("abcdef"))
    model = clone(CORRECTED[0]).fit(frame, pl.Series("answer", y))
    expected = clone(CORRECTED[0]).fit(X, y).predict_proba(X)
    assert_allclose(model.predict_proba(frame), expected)


def test_tags_are_those_of_both_parts():
    both = PriorCorrectedClassifier(PNLSampler(), LogisticRegression(max_iter=1000))
    assert get_tags(both).input_tags.sparse
    assert not get_tags(both.set_params(estimator=GaussianNB())).input_tags.sparse
    assert not get_tags(both).input_tags.positive_only
    both.set_params(sampler=PNLSampler(embedding=None))
    assert get_tags(both).input_tags.positive_only
    X, y = uneven()
    model = clone(CORRECTED[0]).fit(X, y)
    expected = model.predict_proba(X)
    assert_allclose(model.fit(sp.csr_array(X), y).predict_proba(X), expected, atol=1e-8)


# --- what is refused ------------------------------------------------------------


def test_parts_of_the_wrong_kind_are_refused():
    X, y = uneven()
    for sampler, learner, wrong in (
        (GaussianNB(), LogisticRegression(max_iter=1000), "'sampler'"),
        (PNLSampler(), LinearSVC(), "'estimator'"),
    ):
        with pytest.raises(ValueError, match=f"The {wrong} parameter"):
            PriorCorrectedClassifier(sampler, learner).fit(X, y)
    with pytest.raises(ValueError, match="'decision' parameter"):
        PriorCorrectedClassifier(PNLSampler(), GaussianNB(), decision="fair").fit(X, y)
    with pytest.raises(NotFittedError):
        clone(CORRECTED[0]).predict(X)
    with pytest.raises(ValueError, match="Multilabel and multioutput"):
        clone(CORRECTED[0]).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="continuous"):
        clone(CORRECTED[0]).fit(X, X[:, 0])


def test_samplers_that_change_columns_are_refused():
    """The classifier would learn columns that rows asked about do not have."""
    X, y = uneven()
    steps = make_sampling_pipeline(StandardScaler(), PNLSampler(random_state=0))
    with pytest.raises(ValueError, match="'standardscaler' in the sampler changes col"):
        PriorCorrectedClassifier(steps, LogisticRegression()).fit(X, y)
    alone = make_sampling_pipeline(PNLSampler(random_state=0))
    PriorCorrectedClassifier(alone, LogisticRegression()).fit(X, y)


def test_weights_of_rows_are_refused():
    X, y = uneven()
    weights = np.ones(len(y))
    message = "'sample_weight' has a value for each of the .* resampled rows would have"
    with pytest.raises(ValueError, match=message):
        clone(CORRECTED[0]).fit(X, y, sample_weight=weights)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        clone(CORRECTED[0]).fit(X, y, word="hello")
    with config_context(enable_metadata_routing=True):
        learner = LogisticRegression(max_iter=1000).set_fit_request(sample_weight=True)
        model = PriorCorrectedClassifier(PNLSampler(), learner)
        with pytest.raises(ValueError, match="'sample_weight' has a value for each"):
            model.fit(X, y, sample_weight=weights)


def test_weights_that_are_none_are_no_weights():
    X, y = uneven()
    fitted = clone(CORRECTED[0]).fit(X, y, sample_weight=None)
    expected = clone(CORRECTED[0]).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(fitted.predict_proba(X), expected)


@pytest.mark.parametrize("wrap", [lambda learner: learner, make_pipeline])
def test_weights_of_classes_are_refused(wrap):
    X, y = uneven()
    for weight in ("balanced", {0: 1, 1: 5}):
        learner = wrap(LogisticRegression(class_weight=weight, max_iter=1000))
        with pytest.raises(ValueError, match="class_weight=.* changes the prior once"):
            PriorCorrectedClassifier(PNLSampler(), learner).fit(X, y)
    PriorCorrectedClassifier(PNLSampler(), wrap(GaussianNB())).fit(X, y)


@pytest.mark.parametrize(
    "sampler, learner, message",
    [
        (
            PNLSampler,
            GaussianNB(),
            r"sampler is the class .* of it: PNLSampler\(\)",
        ),
        (
            PNLSampler(),
            GaussianNB,
            r"estimator is the class .* it: GaussianNB\(\)",
        ),
    ],
)
def test_classes_in_place_of_objects_are_told(sampler, learner, message):
    with pytest.raises(TypeError, match=message):
        PriorCorrectedClassifier(sampler, learner).fit(*uneven())


class TalkingNB(GaussianNB):
    """Keeps a word that ``fit`` was given."""

    def fit(self, X, y, word=None):
        self.word_ = word
        return super().fit(X, y)


def test_other_metadata_reach_the_classifier():
    X, y = uneven()
    with config_context(enable_metadata_routing=True):
        learner = TalkingNB().set_fit_request(word=True)
        model = PriorCorrectedClassifier(PNLSampler(), learner).fit(X, y, word="hello")
        assert model.estimator_.word_ == "hello"


def test_weights_reach_the_score():
    X, y = uneven()
    rows = np.arange(len(y))
    with config_context(enable_metadata_routing=True):
        learner = GaussianNB().set_fit_request(sample_weight=False)
        model = PriorCorrectedClassifier(PNLSampler(random_state=0), learner)
        right = model.fit(X, y).predict(X) == y
        model.set_score_request(sample_weight=True)
        search = GridSearchCV(model, {}, cv=[(rows, rows)])
        assert search.fit(X, y, sample_weight=right + 0.0).best_score_ == 1
    assert not right.all()


def test_a_new_fit_leaves_nothing_of_the_old_one():
    X, y = make_classification(200, weights=[0.8], random_state=0)
    sampler, learner = PNLSampler(random_state=0), LogisticRegression()
    model = PriorCorrectedClassifier(sampler, learner)
    model.fit(pd.DataFrame(X).add_prefix("x"), y).fit(X[:, :5], y)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 5


def test_a_failed_fit_leaves_the_last_one():
    X, y = make_classification(200, weights=[0.8], random_state=0)
    sampler, learner = PNLSampler(random_state=0), LogisticRegression()
    model = PriorCorrectedClassifier(sampler, learner).fit(X, y)
    before = vars(model).copy()
    model.set_params(estimator__C=-1)
    with pytest.raises(ValueError, match="C"):
        model.fit(X[:50], ["no"] * 30 + ["yes"] * 20)
    assert vars(model)["classes_"] is before["classes_"]
    assert vars(model)["sampler_"] is before["sampler_"]
