"""Arguments of invalid type are rejected with the name of the argument or column."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import QuantileTransformer
from sklearn.utils.fixes import parse_version

import sklearn_pnl as pnl
from sklearn_pnl import control, geometry

pd = pytest.importorskip("pandas")
N = 60
ROWS = np.random.default_rng(0).gamma(3.0, size=(N, 3))
LABELS = np.repeat([0, 1], [45, 15])
# No value is a numeric table of N rows.
NO_ROWS = {
    "None": None,
    "text": "abc",
    "number": 3,
    "array without axes": np.array(1.0),
    "function": len,
    "module": re,
    "dict": {"a": [1] * N},
    "set": {1, 2, 3},
    "generator": (row for row in ROWS),
    "list of dicts": [{"a": 1, "b": 2}] * N,
    "list of sets": [{1}, {2}] * 30,
    "ragged": [[1, 2]] * 30 + [[1]] * 30,
    "ragged within": [[[1], [2, 3]]] * N,
    "records": np.array([(1.0, 2.0)] * N, dtype=[("a", float), ("b", float)]),
    "raw bytes": np.zeros((N, 2), "V4"),
    "complex": ROWS * 1j,
    "words and numbers": np.array([[1, "a", 2.0]] * N, dtype=object),
    "nothing": [],
}
NO_TABLE = {
    "one axis": ROWS[:, 0],
    "series": pd.Series(ROWS[:, 0]),
    "sparse of one axis": sp.coo_array(ROWS[:, 0]),
    "matrix": np.matrix(ROWS),
    "no rows": np.empty((0, 3)),
    "no columns": np.empty((N, 0)),
    "empty frame": pd.DataFrame(),
    "masked": np.ma.masked_array(ROWS, ROWS > 3),
}
PARTS = np.eye(3, dtype=bool)[0]


def prior_corrected():
    return pnl.PriorCorrectedClassifier(
        pnl.PNLSampler(random_state=0), LogisticRegression()
    )


AT_LEAST_ONE = control.ColumnConstraint({0: 1}, lower=1)
TABLES = {
    "PNLSampler": lambda X: pnl.PNLSampler().fit_resample(X, LABELS),
    "PNLRegressionSampler": lambda X: pnl.PNLRegressionSampler().fit_resample(
        X, ROWS[:, 0]
    ),
    "PNLAugmenter": lambda X: pnl.PNLAugmenter().fit(X),
    "ManyBodyImputer.fit": lambda X: pnl.ManyBodyImputer().fit(X),
    "ManyBodyImputer.transform": lambda X: pnl.ManyBodyImputer().fit(ROWS).transform(X),
    "ManyBodyProjector.fit": lambda X: pnl.ManyBodyProjector(1).fit(X),
    "ManyBodyProjector.transform": lambda X: (
        pnl.ManyBodyProjector(1).fit(ROWS).transform(X)
    ),
    "BackwardProjector": lambda X: pnl.BackwardProjector().fit(X),
    "PrimeFactorReshaper": lambda X: pnl.PrimeFactorReshaper().fit(X),
    "PriorCorrectedClassifier": lambda X: prior_corrected().fit(X, LABELS),
    "LogLinearModel": lambda X: pnl.LogLinearModel().fit(X),
}
ARRAYS = {
    "X": {
        **TABLES,
        "adjust": lambda X: control.adjust(X, AT_LEAST_ONE),
        "calibrate": lambda X: control.calibrate(X, {0: 100.0}),
        "find_equalities": control.find_equalities,
        "compare_samples": lambda X: pnl.compare_samples(X, ROWS),
        "PrimeFactorReshaper.inverse_transform": lambda X: (
            pnl.PrimeFactorReshaper().fit(ROWS).inverse_transform(X)
        ),
    },
    "X_new": {"compare_samples": lambda X: pnl.compare_samples(ROWS, X)},
    "X_test": {"compare_samples": lambda X: pnl.compare_samples(ROWS, ROWS, X_test=X)},
    "codes": {
        "ManyBodyProjector": lambda X: (
            pnl.ManyBodyProjector(1).fit(ROWS).inverse_transform(X)
        )
    },
}


def refused(call, argument, names):
    """Check that a call refuses an argument by one of the names."""
    with pytest.raises((TypeError, ValueError)) as caught:
        call(argument)
    text = str(caught.value)
    assert re.search(rf"\b({names})\b", text), text
    return text


@pytest.mark.parametrize("kind", NO_ROWS)
@pytest.mark.parametrize(
    "name, function", [(name, function) for name in ARRAYS for function in ARRAYS[name]]
)
def test_invalid_arrays_are_rejected_by_name(name, function, kind):
    if (name, kind) == ("X_test", "None"):
        pytest.skip("there may be no test rows")
    if (function, kind) == ("calibrate", "words and numbers"):
        pytest.skip("the first column holds numbers")
    refused(
        ARRAYS[name][function],
        NO_ROWS[kind],
        f"{name}|[Cc]olumn|[Cc]ell|[Rr]ow|0 holds no",
    )


@pytest.mark.parametrize("kind", NO_TABLE)
@pytest.mark.parametrize("function", TABLES)
def test_invalid_tables_are_rejected_by_name(function, kind):
    text = refused(TABLES[function], NO_TABLE[kind], r"X|feature\(s\)|sample\(s\)")
    assert kind == "masked" or "masked" not in text


MEASURES = {
    "measures": lambda x: geometry.complete(x, geometry.TensorPoset((3,)), PARTS),
    "An array": lambda x: geometry.kl_divergence(x, ROWS),
    "tables": lambda x: geometry.rake_array(x, {(0,): np.ones(3)}),
    "margin": lambda x: geometry.rake_array(ROWS, {(0, 1): x}),
}


@pytest.mark.parametrize("name", MEASURES)
def test_complex_measures_are_rejected(name):
    refused(MEASURES[name], NO_ROWS["complex"], name)


SHARES, POSET = np.full((2, 3), 1 / 6), geometry.TensorPoset((2, 3))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("levels", lambda: geometry.deviance_tests(SHARES, POSET, 1)),
        ("margins", lambda: geometry.rake_array(SHARES, None)),
        ("ridge", lambda: geometry.complete(SHARES, POSET, SHARES > 0, ridge=-1.0)),
        (
            "reference",
            lambda: geometry.theta_with_errors(SHARES, 5, POSET, 1, np.ones(3)),
        ),
    ],
)
def test_invalid_arguments_of_geometry_are_rejected_by_name(name, call):
    refused(lambda _: call(), None, name)


DATES = np.array(["2020-01-01", "2021-01-01"] * 30, dtype="M8[D]")
NO_LABELS = {
    "words and numbers": [1, "a"] * 30,
    "two columns": pd.DataFrame({"a": list("uv") * 30, "b": [0, 1] * 30}),
    "array of two columns": np.array([["a", "b"]] * N),
    "lists": [["a"], ["a", "b"]] * 30,
    "lists of lists": [[["a"]], [["b"]]] * 30,
    "bytes": [b"a", b"b"] * 30,
    "dicts": [{"a": 1}] * N,
    "objects": [object() for _ in range(N)],
    "missing": [np.nan, "a"] * 30,
    "infinite": np.where(LABELS, np.inf, 0.0),
    "dates that are missing": np.where(LABELS == 0, DATES, np.datetime64("NaT", "D")),
    "shares": ROWS[:, 0],
    "three axes": np.zeros((N, 2, 2), int),
    "short": LABELS[:9],
}
NO_VALUES = {k: NO_ROWS[k] for k in list(NO_ROWS)[:10] if k != "array without axes"}


@pytest.mark.parametrize("kind", [*NO_LABELS, *NO_VALUES, "records", "nothing"])
@pytest.mark.parametrize("function", ["sampler", "fit", "classifier"])
def test_invalid_labels_are_rejected_by_name(function, kind):
    calls = {
        "sampler": lambda y: pnl.PNLSampler().fit_resample(ROWS, y),
        "fit": lambda y: pnl.PNLSampler().fit(ROWS, y),
        "classifier": lambda y: prior_corrected().fit(ROWS, y),
    }
    if kind == "bytes" and parse_version(sklearn.__version__) < parse_version("1.7"):
        pytest.skip("scikit-learn 1.6 takes them, with a FutureWarning")
    y = NO_LABELS.get(kind, NO_ROWS.get(kind))
    text = refused(calls[function], y, "y|[Ll]abels?|[Tt]argets?|classes")
    assert not re.search("inhomogeneous|not supported between|unhashable", text)


@pytest.mark.parametrize(
    "kind", ["lists", "bytes", "dicts", "objects", "missing", *NO_VALUES, "nothing"]
)
def test_invalid_targets_are_rejected_by_name(kind):
    y = NO_LABELS.get(kind, NO_ROWS.get(kind))
    refused(lambda y: pnl.PNLRegressionSampler().fit_resample(ROWS, y), y, "y")


NO_WEIGHTS = {
    "words": list("ab") * 30,
    "missing": [None] * N,
    "dates": DATES,
    "complex": np.ones(N) * 1j,
    "two columns": np.ones((N, 2)),
    "frame": pd.DataFrame({"a": np.ones(N)}),
    "short": np.ones(5),
    "negative": -np.ones(N),
    "zero": np.zeros(N),
    "sparse": sp.csr_array(np.ones((N, 1))),
    "masked": np.ma.masked_array(np.ones(N), LABELS > 0),
}


@pytest.mark.parametrize("kind", [*NO_WEIGHTS, *NO_VALUES])
@pytest.mark.parametrize("function", ["sampler", "classifier"])
def test_invalid_sample_weight_is_rejected_by_name(function, kind):
    calls = {
        "sampler": lambda w: pnl.PNLSampler().fit_resample(
            ROWS, LABELS, sample_weight=w
        ),
        "classifier": lambda w: prior_corrected().fit(ROWS, LABELS, w),
    }
    weights = NO_WEIGHTS.get(kind, NO_ROWS.get(kind))
    if kind == "None":
        return
    refused(calls[function], weights, "sample_weight|[Ss]ample weights")


@pytest.mark.parametrize(
    "kind", ["missing", "two columns", "short", "masked", "dicts", *NO_VALUES]
)
def test_invalid_groups_are_rejected_by_name(kind):
    groups = NO_WEIGHTS.get(kind, NO_LABELS.get(kind, NO_ROWS.get(kind)))
    if kind == "None":
        return
    refused(
        lambda g: pnl.PNLSampler().fit_resample(ROWS, LABELS, groups=g),
        groups,
        "groups",
    )


@pytest.mark.parametrize(
    "groups",
    [
        [1, "a", (2, 3)] * 20,
        DATES,
        pd.Series(list("ab") * 30),
        pd.Categorical(list("ab") * 30),
        pd.Series([2**60, 2**60 + 1] * 30, dtype="Int64"),
    ],
    ids=["anything", "dates", "words", "categories", "nullable"],
)
@pytest.mark.parametrize("with_gaps", [False, True])
def test_groups_can_have_any_type(groups, with_gaps):
    X = ROWS.copy()
    X[::7, 0] = np.nan if with_gaps else 0.0
    sampler = pnl.PNLSampler(random_state=0)
    sampler.fit_resample(X, LABELS, groups=groups)
    values = list(np.asarray(groups, dtype=object))
    first, second = sampler.parent_indices_.T
    assert len(first)
    assert [values[i] for i in first] == [values[i] for i in second]
    assert list(np.asarray(sampler.groups_, dtype=object)[:N]) == values


@pytest.mark.parametrize(
    "name, call",
    [
        ("sampling_strategy", lambda: sampled(sampling_strategy={1: "100"})),
        ("sampling_strategy", lambda: sampled(sampling_strategy=[100])),
        ("categorical_features", lambda: sampled(categorical_features="sex")),
        ("classifier", lambda: compared(classifier=LinearRegression())),
        ("classifier", lambda: compared(classifier="forest")),
        ("classifier", lambda: compared(classifier=LogisticRegression)),
        ("embedding", lambda: coded(embedding=QuantileTransformer)),
        ("draws", lambda: coded(draws=KernelDensity)),
        ("reshaper", lambda: filled(reshaper=pnl.PrimeFactorReshaper)),
        ("imputer", lambda: filled(imputer=KNNImputer)),
        ("imputer", lambda: filled(imputer=SimpleImputer(add_indicator=True))),
        ("sampler", lambda: corrected(pnl.PNLSampler, LogisticRegression())),
        ("estimator", lambda: corrected(pnl.PNLSampler(), LogisticRegression)),
        ("estimator", lambda: corrected(LogisticRegression(), pnl.PNLSampler())),
    ],
)
def test_invalid_parameters_are_rejected_by_name(name, call):
    refused(lambda _: call(), None, name)


def sampled(**params):
    pnl.PNLSampler(**params).fit_resample(ROWS, LABELS)


def compared(**params):
    pnl.compare_samples(ROWS, ROWS[:20], **params)


def coded(**params):
    pnl.PNLAugmenter(pnl.Codes(**params)).fit(ROWS)


def filled(**params):
    pnl.ManyBodyImputer(**params).fit_transform(np.where(np.eye(N, 3), np.nan, ROWS))


def corrected(*parts):
    pnl.PriorCorrectedClassifier(*parts).fit(ROWS, LABELS)


RAGGED = [[1.0, 2.0], [3.0]]
WORDS = np.array([["a", "b"]] * 4)
HUGE = np.array([[1e308, 1.0], [-1e308, 2.0]] * 4)


@pytest.mark.parametrize(
    ("call", "place", "remedy"),
    [
        (lambda: geometry.rake_array(RAGGED, {(0,): [1.0, 2.0]}), "tables", "numbers"),
        (lambda: control.rake(WORDS, {(0,): [1.0, 2.0]}), "tables", "numbers"),
        (
            lambda: control.rake([[np.nan, 1.0], [2.0, 3.0]], {(0,): [1.0, 2.0]}),
            r"entry \(0, 0\)",
            "impute",
        ),
        (lambda: control.adjust(WORDS, AT_LEAST_ONE), "Column 0", "data frame"),
        (lambda: control.find_equalities(WORDS), "Column 0", "data frame"),
        (lambda: control.calibrate(HUGE, {0: 50.0}), "column 0", "[Dd]ivide"),
        (lambda: pnl.compare_samples(HUGE, HUGE), "column 'x0'", "divide"),
        (lambda: pnl.compare_samples(RAGGED, RAGGED), "X .* row 1", "pad"),
        (lambda: pnl.compare_samples(ROWS, RAGGED), "X_new .* row 1", "pad"),
    ],
)
def test_messages_state_the_place_and_a_remedy_that_the_function_has(
    call, place, remedy
):
    with pytest.raises(ValueError, match=f"{place}.*{remedy}"):
        call()
