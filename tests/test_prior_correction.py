"""PriorCorrectedClassifier: probabilities, weights and invalid parts."""

from inspect import signature
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from imblearn import FunctionSampler
from imblearn.base import SamplerMixin
from imblearn.ensemble import (
    BalancedBaggingClassifier,
    BalancedRandomForestClassifier,
    EasyEnsembleClassifier,
    RUSBoostClassifier,
)
from imblearn.over_sampling import SMOTE, RandomOverSampler
from imblearn.pipeline import make_pipeline as make_sampling_pipeline
from imblearn.under_sampling import RandomUnderSampler
from imblearn.utils.estimator_checks import (
    parametrize_with_checks as parametrize_with_sampler_checks,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    log_loss,
    roc_auc_score,
)
from sklearn.model_selection import cross_validate
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from sklearn_pnl import Codes, PNLSampler, PriorCorrectedClassifier, prior_correction

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
# Weights of 2 and repeated rows agree only in distribution.
RANDOM = {
    f"check_sample_weight_equivalence_on_{kind}_data": "new rows are random"
    for kind in ("dense", "sparse")
}
WEIGHTED = "pandas_series", "not_an_array", "list", "shape", "not_overwritten"
REFUSED = dict.fromkeys(
    [*RANDOM, *(f"check_sample_weights_{name}" for name in WEIGHTED)]
    + ["check_classifiers_one_label_sample_weights"],
    "weights are refused: the sampler takes none",
)

if parse_version(sklearn.__version__) < parse_version("1.7"):
    # The check interprets the error as one of sparse rows.
    del REFUSED["check_sample_weight_equivalence_on_sparse_data"]


def expected_failures(estimator):
    params = signature(estimator.sampler.fit_resample).parameters
    return RANDOM if "sample_weight" in params else REFUSED


@pytest.mark.filterwarnings("ignore:.* has only ")
@parametrize_with_checks(CORRECTED, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:.* has only ")
@parametrize_with_sampler_checks(CORRECTED)
def test_imbalanced_learn_checks(estimator, check):
    check(estimator)


# --- the theorem ----------------------------------------------------------------


class CellClassifier(ClassifierMixin, BaseEstimator):
    """Exact shares of the classes among the training rows that equal a row."""

    def fit(self, X, y, sample_weight=None):
        self.classes_, labels = np.unique(y, return_inverse=True)
        self.shares_ = {}
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        for row, label, weight in zip(X, labels, weights, strict=True):
            none = np.zeros(len(self.classes_))
            self.shares_.setdefault(tuple(row), none)[label] += weight
        return self

    def predict_proba(self, X):
        shares = np.array([self.shares_[tuple(row)] for row in X])
        return shares / shares.sum(axis=1, keepdims=True)


class Copies(BaseEstimator):
    """Copies of each row as often as ``times`` requests; densities do not change."""

    def __init__(self, times=None):
        self.times = times

    def fit_resample(self, X, y):
        self.rows_ = np.repeat(np.arange(len(y)), [self.times[label] for label in y])
        return X[self.rows_], np.asarray(y)[self.rows_]


class WeightedCopies(Copies):
    """Copies with the weights of their parents."""

    def fit_resample(self, X, y, sample_weight=None):
        X, y = super().fit_resample(X, y)
        if sample_weight is not None:
            self.sample_weight_ = np.asarray(sample_weight)[self.rows_]
        return X, y


def cells(seed, n=197, n_classes=3):
    """Make rows of few different values, in classes of different shares."""
    rng = np.random.default_rng(seed)
    X = rng.integers(3, size=(n, 2)).astype(float)
    chances = rng.dirichlet(np.ones(n_classes), size=9)[
        3 * X[:, 0].astype(int) + X[:, 1].astype(int)
    ]
    y = (rng.uniform(size=(n, 1)) > chances.cumsum(axis=1)).sum(axis=1)
    return X, np.array(list("cab"))[y]


@pytest.mark.parametrize("seed", SEEDS)
def test_corrected_probabilities_equal_the_exact_posterior(seed):
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
def test_sample_weight_replaces_counts_in_the_prior(seed):
    X, y = cells(seed)
    weights = np.random.default_rng(seed).gamma(1.0, size=len(y))
    exact = CellClassifier().fit(X, y, weights)
    times = {"a": 1, "b": 7, "c": 3}
    corrected = PriorCorrectedClassifier(WeightedCopies(times), CellClassifier())
    found = corrected.fit(X, y, sample_weight=weights).predict_proba(X)
    assert_allclose(found, exact.predict_proba(X), rtol=1e-12, atol=1e-15)
    sums = np.array([weights[y == label].sum() for label in corrected.classes_])
    assert_allclose(corrected.class_count_, sums)
    assert_allclose(corrected.resampled_class_count_, sums * [1, 7, 3])
    # Equal weights have no effect, and a class without weight has no probability.
    plain = clone(corrected).fit(X, y).predict_proba(X)
    alike = clone(corrected).fit(X, y, np.full(len(y), 2.0)).predict_proba(X)
    assert_allclose(alike, plain, atol=1e-14)
    corrected.fit(X, y, np.where(y == "b", 0, weights))
    assert_array_equal(corrected.predict_proba(X)[:, 1], 0)


@pytest.mark.parametrize(
    "sampler, learner",
    [
        (RandomOverSampler(random_state=0), GaussianNB()),
        (WeightedCopies({0: 1, 1: 3}), KNeighborsClassifier()),
    ],
)
def test_parts_that_ignore_sample_weight_are_rejected(sampler, learner):
    X, y = uneven()
    model = PriorCorrectedClassifier(sampler, learner)
    with pytest.raises(TypeError):
        model.fit(X, y, sample_weight=np.ones(len(y)))
    model.fit(X, y, sample_weight=None)


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


def uneven(seed=0, n=400, **params):
    return make_classification(
        n, 6, weights=[0.85], class_sep=0.6, random_state=seed, **params
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("sampler", [PNLSampler, SMOTE, RandomUnderSampler])
def test_ranks_are_unchanged_and_probabilities_improve(sampler, seed):
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


# --- predictions ------------------------------------------------------------------


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
    """Make a sampler that returns no row of a class."""

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


# --- among others ---------------------------------------------------------------


def test_tags_combine_sampler_and_estimator():
    both = PriorCorrectedClassifier(PNLSampler(), LogisticRegression(max_iter=1000))
    assert get_tags(both).input_tags.sparse
    assert not get_tags(both.set_params(estimator=GaussianNB())).input_tags.sparse
    assert not get_tags(both).input_tags.positive_only
    both.set_params(sampler=PNLSampler(method=Codes(embedding=None)))
    assert get_tags(both).input_tags.positive_only
    X, y = uneven()
    model = clone(CORRECTED[0]).fit(X, y)
    expected = model.predict_proba(X)
    assert_allclose(model.fit(sp.csr_array(X), y).predict_proba(X), expected, atol=1e-8)


# --- errors -----------------------------------------------------------------------


def test_parts_of_invalid_type_are_rejected():
    X, y = uneven()
    for sampler, learner, wrong in (
        (GaussianNB(), LogisticRegression(max_iter=1000), "'sampler'"),
        (PNLSampler(), LinearSVC(), "'estimator'"),
    ):
        with pytest.raises(ValueError, match=f"{wrong} parameter"):
            PriorCorrectedClassifier(sampler, learner).fit(X, y)
    with pytest.raises(ValueError):
        PriorCorrectedClassifier(PNLSampler(), GaussianNB(), decision="fair").fit(X, y)
    with pytest.raises(ValueError):
        clone(CORRECTED[0]).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError):
        clone(CORRECTED[0]).fit(X, X[:, 0])


def test_samplers_that_change_columns_are_rejected():
    """Test that the classifier does not learn columns that later rows lack."""
    X, y = uneven()
    steps = make_sampling_pipeline(StandardScaler(), PNLSampler(random_state=0))
    with pytest.raises(ValueError, match="'standardscaler'"):
        PriorCorrectedClassifier(steps, LogisticRegression()).fit(X, y)
    alone = make_sampling_pipeline(PNLSampler(random_state=0))
    PriorCorrectedClassifier(alone, LogisticRegression()).fit(X, y)


@pytest.mark.parametrize("wrap", [lambda learner: learner, make_pipeline])
def test_class_weight_is_rejected(wrap):
    X, y = uneven()
    for weight in ("balanced", {0: 1, 1: 5}):
        learner = wrap(LogisticRegression(class_weight=weight, max_iter=1000))
        with pytest.raises(ValueError, match="class_weight"):
            PriorCorrectedClassifier(PNLSampler(), learner).fit(X, y)
    PriorCorrectedClassifier(PNLSampler(), wrap(GaussianNB())).fit(X, y)


@pytest.mark.parametrize("wrap", [lambda learner: learner, make_pipeline])
@pytest.mark.parametrize(
    "name, value, neutral",
    [
        ("scale_pos_weight", 19, 1),
        ("is_unbalance", True, False),
        ("auto_class_weights", "Balanced", "None"),
        ("class_weights", [1, 5], None),
        ("pos_bagging_fraction", 0.5, 1.0),
    ],
)
def test_weights_of_boosting_libraries_are_rejected(wrap, name, value, neutral):
    X, y = uneven()
    with pytest.raises(ValueError, match=name):
        PriorCorrectedClassifier(PNLSampler(), wrap(Boosted(**{name: value}))).fit(X, y)
    PriorCorrectedClassifier(PNLSampler(), wrap(Boosted(**{name: neutral}))).fit(X, y)


class Boosted(GaussianNB):
    """A classifier that passes on its parameters, as LightGBM does."""

    def __init__(self, **params):
        super().__init__()
        self.params = params

    def get_params(self, deep=True):
        return self.params

    def set_params(self, **params):
        self.params.update(params)
        return self


@pytest.mark.parametrize(
    "learner, name",
    [
        (GaussianNB(priors=[0.5, 0.5]), "priors"),
        (BernoulliNB(class_prior=[0.5, 0.5]), "class_prior"),
        (BernoulliNB(fit_prior=False), "fit_prior"),
        (
            VotingClassifier([("a", GaussianNB(priors=[0.1, 0.9]))], voting="soft"),
            "a__priors",
        ),
        (BalancedRandomForestClassifier(5), "sampling_strategy"),
        (BalancedBaggingClassifier(n_estimators=5), "sampling_strategy"),
        (EasyEnsembleClassifier(5), "sampling_strategy"),
        (RUSBoostClassifier(n_estimators=5), "sampling_strategy"),
        (make_sampling_pipeline(RandomUnderSampler(), GaussianNB()), "randomunder"),
        (BaggingClassifier(BalancedRandomForestClassifier(5)), "estimator__sampling"),
    ],
)
def test_priors_and_samplers_inside_the_estimator_are_rejected(learner, name):
    X, y = uneven()
    with pytest.raises(ValueError, match=f"{name}.*second time"):
        PriorCorrectedClassifier(PNLSampler(), learner).fit(X, y)


class Weighing(LogisticRegression):
    """A classifier with fixed weights of its classes, which no parameter shows."""

    weights: ClassVar = [1, 19]

    def fit(self, X, y, sample_weight=None):
        weights = np.take(self.weights, y)
        return super().fit(
            X, y, weights if sample_weight is None else weights * sample_weight
        )


@pytest.mark.parametrize("weights", [[1, 19], [19, 1]])
@pytest.mark.parametrize("sample_weight", [None, 3.0])
def test_a_prior_that_is_corrected_twice_is_warned_about(
    weights, sample_weight, monkeypatch
):
    monkeypatch.setattr(Weighing, "weights", weights)
    X, y = make_classification(3000, weights=[0.95], class_sep=0.5, random_state=0)
    sampler = PNLSampler(sampling_strategy=1 / 3, random_state=0)
    model = PriorCorrectedClassifier(sampler, Weighing())
    if sample_weight:
        sample_weight = np.full(len(y), sample_weight)
    with pytest.warns(UserWarning, match="second time") as warned:
        model.fit(X, y, sample_weight)
    (message,) = [str(warning.message) for warning in warned]
    assert f"is {model.predict_proba(X)[:, 1].mean():.2g}, but" in message
    assert f"{y.mean():.2g} of the rows" in message


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "learner",
    [
        LogisticRegression(),
        GaussianNB(),
        KNeighborsClassifier(),
        RandomForestClassifier(30, random_state=0),
        HistGradientBoostingClassifier(max_iter=30, random_state=0),
    ],
)
@pytest.mark.parametrize(
    "sampler",
    [
        PNLSampler(sampling_strategy=1 / 3, random_state=0),
        RandomUnderSampler(random_state=0),
        RandomUnderSampler(sampling_strategy=1 / 3, random_state=0),
    ],
)
def test_a_prior_that_is_corrected_once_is_not_warned_about(sampler, learner, seed):
    """Test classifiers that memorise rows, which are calibrated only for new rows."""
    X, y = make_classification(1500, weights=[0.94], class_sep=0.8, random_state=seed)
    PriorCorrectedClassifier(sampler, learner).fit(X, y)


def test_only_some_rows_of_large_data_are_predicted_in_fit(monkeypatch):
    predicted = []

    class Counting(Weighing):
        def predict_proba(self, X):
            predicted.append(len(X))
            return super().predict_proba(X)

    X, y = make_classification(25_000, 3, n_redundant=0, weights=[0.95], random_state=0)
    model = PriorCorrectedClassifier(RandomUnderSampler(random_state=0), Counting())
    with pytest.warns(UserWarning, match="second time"):
        model.fit(X, y)
    assert predicted == [8334]


CONTAINERS = {
    "list": lambda X: X.tolist(),
    "csr": sp.csr_array,
    "coo": sp.coo_array,
    "pandas": lambda X: pytest.importorskip("pandas").DataFrame(X, columns=[*"abcdef"]),
    "polars": lambda X: pytest.importorskip("polars").DataFrame(X, schema=[*"abcdef"]),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_some_rows_are_predicted_for_rows_of_any_container(name, monkeypatch):
    monkeypatch.setattr(prior_correction, "_CHECKED_ROWS", 50)
    X, y = uneven()
    expected = clone(CORRECTED[0]).fit(X, y).predict_proba(X)
    given = CONTAINERS[name](X)
    found = clone(CORRECTED[0]).fit(given, y).predict_proba(given)
    assert_allclose(found, expected, atol=1e-8)
    with pytest.warns(UserWarning, match="second time"):
        X, y = make_classification(3000, weights=[0.95], random_state=0)
        X, weighing = CONTAINERS[name](X[:, :6]), Weighing(max_iter=1000)
        sampler = PNLSampler(sampling_strategy=1 / 3, random_state=0)
        monkeypatch.setattr(prior_correction, "_CHECKED_ROWS", 1500)
        PriorCorrectedClassifier(sampler, weighing).fit(X, y)


@pytest.mark.parametrize(
    "library, name, params",
    [
        ("xgboost", "XGBClassifier", {"early_stopping_rounds": 3}),
        ("lightgbm", "LGBMClassifier", {"verbose": -1}),
    ],
)
@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
def test_boosting_libraries_accept_validation_rows(library, name, params):
    make = getattr(pytest.importorskip(library), name)
    X, y = make_classification(1000, weights=[0.9], random_state=0)
    small = {"n_estimators": 20, "max_depth": 3, "n_jobs": 1}
    learner = make(**small, **params)
    model = PriorCorrectedClassifier(PNLSampler(random_state=0), learner)
    model.fit(X[200:], y[200:], eval_set=[(X[:200], y[:200])])
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), rel=0.5)
    model.set_params(estimator__scale_pos_weight=9)
    with pytest.raises(ValueError, match="scale_pos_weight=9.*second time"):
        model.fit(X, y)


class Recording(GaussianNB):
    """A classifier that records its validation rows."""

    def fit(self, X, y, eval_set=None, verbose=True):
        self.eval_set_, self.verbose_ = eval_set, verbose
        return super().fit(X, y)


def test_fit_parameters_reach_the_estimator():
    X, y = uneven()
    model = PriorCorrectedClassifier(PNLSampler(random_state=0), Recording())
    model.fit(X[100:], y[100:], eval_set=[(X[:100], y[:100])], verbose=False)
    ((rows, labels),) = model.estimator_.eval_set_
    assert_array_equal(rows, X[:100])
    assert_array_equal(labels, y[:100])
    assert model.estimator_.verbose_ is False
    with pytest.raises(TypeError, match="eval_sets"):
        model.fit(X, y, eval_sets=[])


class GroupedCopies(SamplerMixin, BaseEstimator):
    """A sampler that records its groups."""

    _sampling_type = "bypass"

    def fit_resample(self, X, y, groups=None):
        self.groups_ = groups
        return X, y

    def _fit_resample(self, X, y, groups=None):
        raise NotImplementedError


def test_groups_reach_the_sampler():
    X, y = uneven()
    model = PriorCorrectedClassifier(GroupedCopies(), GaussianNB())
    assert_array_equal(model.fit(X, y, groups=y).sampler_.groups_, y)
    with config_context(enable_metadata_routing=True):
        cv = cross_validate(
            model.set_fit_request(groups=True), X, y, params={"groups": y},
            cv=3, return_estimator=True,
        )  # fmt: skip
    assert all(len(fitted.sampler_.groups_) for fitted in cv["estimator"])
    assert clone(model).fit(X, y).sampler_.groups_ is None
