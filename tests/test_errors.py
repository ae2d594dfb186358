"""What bad input gets: an error that says what is wrong, where, and what to do."""

import pickle
import re
from functools import partial

import numpy as np
import pytest
from _methods import in_method
from _projectors import backward
from imblearn.pipeline import make_pipeline
from scipy.optimize import LinearConstraint
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import QuantileTransformer

from sklearn_pnl import (
    BackwardProjector,
    Codes,
    Lines,
    LogLinearModel,
    ManyBodyImputer,
    ManyBodyProjector,
    PNLAugmenter,
    PNLRegressionSampler,
    PNLSampler,
    PrimeFactorReshaper,
    PriorCorrectedClassifier,
    compare_samples,
    geometry,
)
from sklearn_pnl.control import (
    ColumnConstraint,
    adjust,
    calibrate,
    column_total,
    find_equalities,
    rake,
)
from sklearn_pnl.encoding.manifolds import (
    EtaManifold,
    FiberManifold,
    MixtureManifold,
    ThetaManifold,
)
from sklearn_pnl.geometry import Poset, TensorPoset, complete, kl_divergence
from sklearn_pnl.methods.draws import KernelDraws


def encoder(order=1, **params):
    """An augmenter of tensors as they come; what it lacks is its projector's."""
    names = PNLAugmenter._get_param_names()
    kept = {name: params.pop(name) for name in names if name in params}
    plain = {"embedding": None, "reshaper": None}
    return PNLAugmenter(Codes(ManyBodyProjector(order, **params), **plain), **kept)


def augmenter(**params):
    return PNLAugmenter(**in_method(params))


def sampler(**params):
    return PNLSampler(**in_method(params))


PROJECTORS = [ManyBodyProjector, backward]
TENSORS = [*PROJECTORS, encoder]
FITTED = [*PROJECTORS, PNLAugmenter, PrimeFactorReshaper]


def positive(n=12, *shape):
    return np.random.default_rng(0).uniform(1, 2, size=(n, *(shape or (3, 4))))


def fit(estimator, X):
    """``fit``, or for a sampler ``fit_resample`` on classes of five and the rest."""
    if isinstance(estimator, PNLSampler):
        return estimator.fit_resample(X, np.arange(X.shape[0]) >= 5)
    return estimator.fit(X)


# --- values: which, and where ---------------------------------------------------

PLACES = [((12, 5), "row 3, column 2"), ((12, 5, 4), r"row 3, cell \(2, 1\)")]


@pytest.mark.parametrize("make", [*FITTED, PNLSampler])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("shape", "place"), PLACES)
def test_first_value_that_is_no_number_is_named(shape, place, value, make):
    X = positive(*shape)
    X[(3, 2, 1)[: len(shape)]] = value
    X[5] = np.nan
    estimator = make()
    if "method" in estimator.get_params():
        # On lines cells may be missing.
        estimator.set_params(method="codes")
    name = "NaN" if np.isnan(value) else "infinity"
    with pytest.raises(ValueError, match=rf"contains {name}.* first is at {place}\."):
        fit(estimator, X)


@pytest.mark.parametrize(
    ("shape", "imputer"), [((9, 4), "SimpleImputer"), ((9, 4, 4), "ManyBodyImputer")]
)
def test_missing_cells_are_sent_to_an_imputer_that_takes_such_rows(shape, imputer):
    X = positive(*shape)
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match=imputer):
        PNLAugmenter("codes").fit(X)


@pytest.mark.parametrize("make", TENSORS)
@pytest.mark.parametrize(("shape", "place"), PLACES)
def test_first_negative_value_is_named(shape, place, make):
    X = positive(*shape)
    X[(3, 2, 1)[: len(shape)]] = -0.25
    X[5] = -7
    message = f"Negative values .* first is -0.25 at {place}.*(MinMaxScaler|minmax)"
    with pytest.raises(ValueError, match=message):
        make().fit(X)


@pytest.mark.parametrize("make", PROJECTORS)
def test_values_are_named_at_transform_and_in_codes(make):
    estimator, X = make().fit(positive()), positive()
    codes = estimator.transform(X)
    for value, told in ((np.nan, "NaN; the first"), (-0.25, "the first is -0.25")):
        X[7, 1, 2] = value
        with pytest.raises(ValueError, match=rf"{told}.* row 7, cell \(1, 2\)"):
            estimator.transform(X)
    bad = codes.copy()
    bad[4, 1] = np.inf
    with pytest.raises(ValueError, match="row 4, column 1"):
        estimator.inverse_transform(bad)
    for wrong in (codes * 1j, codes[:0], codes[:, 1:], codes[0], codes[None]):
        with pytest.raises(ValueError):
            estimator.inverse_transform(wrong)
    with pytest.raises(NotFittedError):
        make().inverse_transform(codes)


def test_values_of_a_class_are_named_by_their_row_in_the_data():
    # Row 8 of the data is row 1 of its class.
    y = np.repeat([0, 1], [7, 5])
    method = Codes(1, offset=0, embedding=None, reshaper=None)
    for cells, told in (
        ((8, slice(None), -1), "class 1; .*row 8"),
        ((8, slice(None), 0), "row 8 .*offset=0"),
        ((8, 3, 0), "Cell 3 of row 8 .*offset=0"),
    ):
        X = positive(12, 5)
        X[cells[:2]] *= cells[2]
        with pytest.raises(ValueError, match=told):
            PNLSampler(method=method).fit_resample(X, y)


@pytest.mark.parametrize("make", TENSORS)
def test_zeros_without_offset_are_named(make):
    # The row is beyond the first block of work, which holds 167 rows of 784 cells.
    X = positive(200, 28, 28)
    X[190, 3, 4] = X[195, 0, 0] = 0
    with pytest.raises(ValueError, match="Cell 88 of row 190 .*offset > 0"):
        make(offset=0).fit(X)


@pytest.mark.parametrize("make", [*FITTED, PNLSampler])
def test_large_finite_values_are_numbers(make):
    # Their sum overflows in float32: that alone is no reason to refuse them.
    fit(make(), (1e38 * positive(12, 5)).astype(np.float32))


# --- types and shapes -----------------------------------------------------------


@pytest.mark.parametrize("make", [*FITTED, PNLSampler])
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (positive(12, 5) * 1j, "Complex data not supported"),
        (np.full((12, 5), "word"), "Column 0 .*Row 0"),
        (np.empty((0, 5)), "0 sample"),
        (np.ones(12), "Expected 2D array, got 1D array"),
        (
            [[1.0, 2.0], [3.0]],
            r"row 0 .*\(2,\), row 1 .*\(1,\).*np.stack",
        ),
        ([positive(3, 4), positive(3, 5)], r"row 1 .*\(3, 5\).*pad the short ones"),
        (np.array([["a", 1.0]] * 12), "Column 0 .*Row 0"),
    ],
    ids=[
        "complex",
        "words",
        "empty",
        "1-D",
        "ragged",
        "ragged series",
        "mixed",
    ],
)
def test_rows_of_other_types_and_shapes_are_refused(X, message, make):
    estimator = make()
    with pytest.raises(ValueError, match=message):
        if isinstance(estimator, PNLSampler):
            estimator.fit_resample(X, np.arange(len(X)) >= 5)
        else:
            estimator.fit(X)


@pytest.mark.parametrize("make", [*PROJECTORS, PrimeFactorReshaper])
def test_objects_and_sparse_matrices_are_refused(make):
    with pytest.raises((TypeError, ValueError)):
        make().fit(np.array([[{}] * 5] * 12, dtype=object))
    with pytest.raises(TypeError):
        make().fit(csr_array(positive(12, 5)))


@pytest.mark.parametrize("make", [*PROJECTORS, PrimeFactorReshaper])
@pytest.mark.parametrize("shape", [(3, 5), (4, 3), (3, 4, 1), (12,)], ids=str)
def test_rows_of_another_shape_are_refused_at_transform(shape, make):
    estimator = make().fit(positive(12, 3, 4))
    with pytest.raises(ValueError):
        estimator.transform(positive(12, *shape))


def test_series_of_rows_are_told_how_to_be_joined():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError):
        PNLAugmenter().fit(pandas.Series([[1.0, 2.0], [3.0]] * 6))
    with pytest.raises(ValueError):
        PNLAugmenter().fit(pandas.Series([[1.0, 2.0], [3.0, 4.0]] * 6))
    frame = pandas.DataFrame({"a": positive(12, 2)[:, 0] * 1j, "b": np.arange(12)})
    with pytest.raises(ValueError):
        PNLAugmenter().fit(frame)


@pytest.mark.parametrize("mark", [None, np.nan, "NA", "NaT"])
def test_marks_of_missing_values_in_objects_are_read(mark):
    pandas = pytest.importorskip("pandas")
    mark = getattr(pandas, mark) if isinstance(mark, str) else mark
    X = np.array([[1.0, mark], [2.0, 3.0]] * 6, dtype=object)
    assert PNLAugmenter().fit(X).sample(3, random_state=0).shape == (3, 2)
    with pytest.raises(ValueError):
        PNLAugmenter("codes").fit(X)


# --- orders, bases, posets ------------------------------------------------------

CHAIN = Poset.from_relations(4, [(0, 1), (1, 2), (2, 3)])
BAD_BASES = [
    ({"order": 0}, r"'order' parameter .* \[1, inf\)"),
    ({"order": "1"}, "'order' parameter"),
    ({"order": 1.5}, "'order' parameter"),
    ({"order": 3}, "order=3"),
    ({"order": [(0, 2)]}, r"got \[\(0, 2\)\]"),
    ({"order": [(1, 1)]}, r"got \[\(1, 1\)\]"),
    ({"order": [()]}, r"got \[\(\)\]"),
    ({"order": []}, r"got \[\]"),
    ({"order": [0, 1]}, r"got \[0, 1\]"),
    ({"base": [12]}, "Element 12"),
    ({"base": [(0, 1), (0, 4)]}, r"Element \[0, 4\]"),
    ({"base": [0.5]}, "flat indices"),
    ({"base": np.ones((4, 3), bool)}, r"shape \(4, 3\)"),
    ({"base": [0]}, "base"),
    ({"poset": (3, 4)}, "'poset' parameter"),
    ({"poset": CHAIN}, "4.* one feature for each element"),
    ({"offset": -1e-9}, "'offset' parameter"),
    ({"tol": 0}, "'tol' parameter"),
    ({"max_iter": 0}, "'max_iter' parameter"),
    ({"with_mass": "yes"}, "'with_mass' parameter"),
    ({"n_jobs": 1.5}, "'n_jobs' parameter"),
]


@pytest.mark.parametrize("make", TENSORS)
@pytest.mark.parametrize(("params", "message"), BAD_BASES, ids=str)
def test_bases_that_there_are_not_are_refused(params, message, make):
    with pytest.raises(ValueError, match=message):
        make(**params).fit(positive())


@pytest.mark.parametrize("make", TENSORS)
def test_orders_of_a_general_poset_have_no_modes(make):
    X = positive(12, 4)
    with pytest.raises(ValueError, match="order=2"):
        make(order=2, poset=CHAIN).fit(X)
    with pytest.raises(ValueError):
        make(order=[(0,)], poset=CHAIN).fit(X)


def test_relations_that_make_no_poset_are_refused():
    with pytest.raises(ValueError):
        Poset.from_relations(3, [(0, 2), (1, 2)])
    with pytest.raises(ValueError, match="cycle"):
        Poset.from_relations(4, [(0, 1), (1, 2), (2, 3), (3, 1)])


@pytest.mark.parametrize("make", [backward, augmenter, sampler])
@pytest.mark.parametrize("manifold", [FiberManifold, ThetaManifold, EtaManifold])
def test_local_orders_that_there_are_not_are_refused(manifold, make):
    with pytest.raises(ValueError, match=manifold.__name__):
        fit(make(local_manifold=manifold(order=0)), positive())
    with pytest.raises(ValueError):
        fit(make(order=1, local_manifold=manifold(order=5)), positive())


def test_order_above_the_number_of_factors_is_refused():
    with pytest.raises(ValueError):
        fit(PNLSampler(method=Codes(4)), positive(12, 12))


# --- the other parameters -------------------------------------------------------


@pytest.mark.parametrize("make", [augmenter, sampler])
@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"k_neighbors": 0}, "k_neighbors"),
        ({"k_neighbors": 1.5}, "k_neighbors"),
        ({"local_manifold": "fibre"}, "local_manifold"),
        ({"local_manifold": MixtureManifold(1.1)}, "step"),
        ({"draws": "mixup2"}, "draws"),
        ({"draws": KernelDraws(0)}, "bandwidth"),
        ({"method": Lines(noise="much")}, "noise"),
        ({"draws": GaussianMixture("two")}, "n_components"),
        ({"embedding": "pca"}, "embedding"),
        ({"embedding": QuantileTransformer(n_quantiles=-3)}, "n_quantiles"),
        ({"reshaper": 5}, "reshaper"),
        ({"reshaper": PrimeFactorReshaper(pad_value=np.inf)}, "pad_value"),
        ({"order": ManyBodyProjector(1, offset=-1)}, "offset"),
        ({"value_support": "zeros"}, "value_support"),
        ({"extrapolation": -0.1}, "extrapolation"),
        ({"equalities": "all"}, "equalities"),
        ({"n_jobs": 1.5}, "n_jobs"),
    ],
    ids=str,
)
def test_parameters_out_of_range_are_refused(params, name, make):
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        fit(make(**params), positive())


@pytest.mark.parametrize("n_neighbors", [0, 13, 2.5])
def test_neighbors_that_are_not_there_are_refused(n_neighbors):
    projector = BackwardProjector().fit(positive())
    with pytest.raises((TypeError, ValueError)):
        projector.kneighbors(projector.codes_, n_neighbors)


@pytest.mark.parametrize("make", [PNLAugmenter, PNLSampler, PNLRegressionSampler])
def test_parameters_that_there_are_not_are_named(make):
    assert make(method=Lines()).set_params(method__noise=0).method.noise == 0
    with pytest.raises(ValueError):
        make().set_params(drows__noise=1)
    with pytest.raises(TypeError):
        make(noise=1)


@pytest.mark.parametrize(
    ("make", "name", "advice"),
    [
        (PNLSampler, "method__offset", r"method='auto'.* Write method=Codes\(\)"),
        (PNLAugmenter, "method__noise", r"or method=Lines\(\) first"),
        (
            partial(PNLRegressionSampler, method="paper"),
            "method__order",
            r"Write method=Codes.paper\(\) first",
        ),
        (
            partial(PNLSampler, method=Codes()),
            "method__draws__noise",
            r"draws='mixup'.* Write draws=MixupDraws\(\)",
        ),
        (
            BackwardProjector,
            "local_manifold__step",
            r"Write local_manifold=FiberManifold\(\)",
        ),
        (Codes, "embedding__clip", "Pass an object as embedding first"),
    ],
)
def test_parameters_of_a_string_are_refused_with_what_to_write(make, name, advice):
    with pytest.raises(ValueError, match=advice):
        make().set_params(**{name: 1})


def test_a_string_and_the_parameters_of_an_object_are_set_together():
    sampler = PNLSampler(method="codes").set_params(method=Lines(), method__noise=0)
    assert sampler.method.noise == 0
    with pytest.raises(ValueError, match="method='lines' is a string"):
        sampler.set_params(method="lines", method__noise=0)


# --- targets --------------------------------------------------------------------


@pytest.mark.parametrize("n", [10, 13])
@pytest.mark.parametrize("method", ["fit", "fit_resample"])
@pytest.mark.parametrize("make", [PNLSampler, PNLRegressionSampler])
def test_rows_and_targets_of_different_number_are_refused(make, method, n):
    X, y = positive(12, 5), np.repeat([0, 1], [6, n - 6])
    for rows in (X, X.tolist(), csr_array(X)):
        with pytest.raises(ValueError, match=f"X has 12 rows, but y has {n} values"):
            getattr(make(), method)(rows, y)
    with pytest.raises(ValueError):
        PriorCorrectedClassifier(PNLSampler(), GaussianNB()).fit(X, y)


SEVERAL = np.array([[1, 1, 0], [0, 0, 1], [0, 1, 0]])[np.arange(12) % 3]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "the target y is None: PNLAugmenter"),
        (np.zeros(12, int), "classes.*1.*PNLAugmenter|[Oo]ne class|1 class"),
        (np.linspace(0, 1, 12), "PNLRegressionSampler"),
        (positive(12, 2), r"y has the shape \(12, 2\).*PNLRegressionSampler"),
        (np.arange(24).reshape(12, 2) % 5, r"y has the shape \(12, 2\).*y\[:, 0\]"),
        (SEVERAL, "combination of labels"),
        (np.arange(12) * 1j, "Complex data not supported: y"),
        ([[0], [0, 1]] * 6, r"row 0 has the shape \(1,\), row 1 .*\(2,\)"),
        (["a", None] * 6, "NaN or None.* the first in row 1"),
    ],
    ids=[
        "none",
        "one",
        "continuous",
        "two",
        "two whole",
        "multilabel",
        "complex",
        "ragged",
        "NaN",
    ],
)
def test_targets_that_are_no_classes_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        PNLSampler().fit_resample(positive(12, 5), y)


# --- mistakes of newcomers: what, where, and what to do -------------------------


def people():
    """A table of a category, a whole number and two numbers; its classes."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(rng.gamma(2.0, size=(60, 2)), columns=["income", "rent"])
    X["city"], X["rooms"] = rng.choice(["Kiel", "Ulm"], 60), rng.integers(1, 5, 60)
    return X, np.repeat([0, 1], [45, 15])


def drawn(X, **asked):
    return PNLAugmenter().fit(X).sample(5, 0, **asked)


def table(X):
    return X.groupby(["city", "rooms"]).size().astype(float)


MISTAKES = [
    (lambda X, y: PNLSampler(sampling_strategy={2: 20}).fit_resample(X, y),
     "target class is/are not present"),
    (lambda X, y: PNLSampler(totals={"rent": 5}).fit_resample(X[["rent"]], y),
     r"totals contains the class 'rent', .* only contain \[1\]"),
    (lambda X, y: PNLSampler().fit_resample(y, X[["rent", "income"]].to_numpy()),
     r"y has the shape \(60, 2\).* one class for each row"),
    (lambda X, y: PNLSampler().fit_resample(X, y, groups=[1]), r"60 rows: give"),
    (lambda X, y: PNLRegressionSampler().fit_resample(
        X[["rent"]], np.r_[y[:59], np.nan]), r"NaN; the first is at row 59.* Drop"),
    (lambda X, y: drawn(X, totals=5), "dict by column.*; got 5"),
    (lambda X, y: drawn(X, totals={"city": 9}), "'city' holds categories .* by level"),
    (lambda X, y: drawn(X, infeasible="skip"), "'raise' or 'drop'; got 'skip'"),
    (lambda X, y: drawn(X, constraints=LinearConstraint([[1, 1]], 0, 1)),
     "coefficients for 2 columns; rows have 4"),
    (lambda X, y: drawn(X[["rent"]].to_numpy(),
                        constraints=ColumnConstraint(7, equal=1)),
     r"names 7; give .* number \(0 to 0\)"),
    (lambda X, y: drawn(X[["rent", "rooms"]], constraints=[
        ColumnConstraint("rent", lower=0), ColumnConstraint("rooms", equal=[1, 2])]),
     "Constraint 1 has 2 values .* 5 rows: give 5 values"),
    (lambda X, y: drawn(X[["rent"]], constraints=ColumnConstraint("rent", equal=99)),
     "Row 0 .*99, .*only have"),
    (lambda X, y: PNLAugmenter(categorical_features=[0, 1]).fit(
        csr_array(np.ones((9, 2)))), "All columns are categories"),
    (lambda X, y: PNLAugmenter(categorical_features=[0]).fit(
        np.array([[1, 2j], [2, 3]], object)), "^Column 1 holds no numbers"),
    (lambda X, y: find_equalities(X[["city"]]), "All columns are categories"),
    (lambda X, y: ColumnConstraint({"a": "b"}, equal=5), "its name or number.*got"),
    (lambda X, y: ColumnConstraint("a", lower="Ulm"), "^lower= of a ColumnConstraint"),
    (lambda X, y: ColumnConstraint("a", lower=[[1], [2, 3]]), "^lower= of a Column"),
    (lambda X, y: column_total("rent"), "'rent' must lie .*: give equal, or lower"),
    (lambda X, y: calibrate(X, "rent"), "dict by column.*; got 'rent'"),
    (lambda X, y: calibrate(X, {"rooms": {"2": 9}}), r"No row has rooms=.2."),
    (lambda X, y: calibrate(X.mask(X["rent"] > 2), {"rent": 9}),
     r"Column 'rent' must hold numbers.*; row \d+ is nan"),
    (lambda X, y: calibrate(X["rent"].to_numpy(), [9]), r"two dimensions; .* \(60,\)"),
    (lambda X, y: rake(table(X), {"city": [5, 9]}), "dict or Series of level"),
    (lambda X, y: rake(0 * table(X), {"city": {"Ulm": 9}}),
     "city='Ulm' asks for 9; within the signs of cells it reaches 0"),
    (lambda X, y: geometry.rake_array(np.ones((2, 3)), {(): 6.0}), "n_modes=2"),
    (lambda X, y: geometry.rake_array(np.ones((2, 2)), [[1, 2]]), "margins"),
    (lambda X, y: BackwardProjector().fit(positive()).decode_margins(
        {(0,): [[1, 2, 3]], (1,): [[1, 2, 3, 9]]}),
     r"Margin \(0,\)"),
    (lambda X, y: BackwardProjector().fit(positive()).decode_margins(
        {(7,): [[1, 2, 3]]}), "modes up to 7"),
    (lambda X, y: adjust(X[["rent"]], ColumnConstraint("rent", equal=99),
                         extrapolation=0.1), "^Row 0 .*99"),
    (lambda X, y: LogLinearModel().fit(X), "Column 'city' holds no numbers. Encode it"),
    (lambda X, y: LogLinearModel().fit(-positive()), "counts must not be negative"),
    (lambda X, y: compare_samples(X[[]], X[[]]), "at least one"),
    (lambda X, y: compare_samples(X[["rent"]], X[["city"]].to_numpy()),
     "X_new: Column 0 holds no numbers"),
    (lambda X, y: ManyBodyImputer().fit(X[["rent"]].replace(X["rent"][3], np.inf)),
     "infinity; the first is at row 3, column 'rent'.*Make it NaN first"),
    (lambda X, y: ManyBodyImputer(order=1).fit(-positive()),
     r"first is -1.6\d+ at row 0, cell \(0, 0\)"),
    (lambda X, y: PrimeFactorReshaper().fit([[["one", "two"]], [["three", "four"]]]),
     "^Cell .*Row 0"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "told"), MISTAKES, ids=[m for _, m in MISTAKES])
def test_mistakes_are_told_with_what_to_do(mistake, told):
    with pytest.raises((TypeError, ValueError), match=told):
        mistake(*people())


def test_errors_of_new_rows_survive_a_pickle():
    X, _ = people()
    X = X[["income", "rent"]].assign(total=X["income"] + X["rent"])
    asked = [ColumnConstraint("total", equal=1), ColumnConstraint("rent", equal=2)]
    for call in (
        lambda: adjust(X, asked, extrapolation=0),
        lambda: drawn(X, constraints=asked),
    ):
        with pytest.raises(ValueError, match="[Rr]ow 0") as error:
            call()
        assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda X, y: LogLinearModel(order=1).fit(X[:, :, 0, 0]),
        lambda X, y: ManyBodyProjector(2, tol=1e-12, max_iter=1).fit_transform(X),
        lambda X, y: ManyBodyImputer(order=2, max_iter=1).fit_transform(
            np.where(X < 0.1, np.nan, X)
        ),
        lambda X, y: PNLSampler(k_neighbors=50).fit_resample(X, y),
        lambda X, y: make_pipeline(
            ManyBodyProjector(2, tol=1e-12, max_iter=1), GaussianNB()
        ).fit(X, y),
    ],
)
def test_warnings_are_given_at_the_line_of_the_user(call):
    X, y = np.random.default_rng(0).gamma(1.0, size=(40, 3, 4, 3)), np.arange(40) < 10
    with pytest.warns(UserWarning) as told:
        call(X, y)
    assert {warning.filename for warning in told} == {__file__}


def test_a_projection_that_does_not_converge_says_how_far_off_it_is():
    X = np.random.default_rng(0).gamma(1.0, size=(40, 3, 4, 3))
    with pytest.warns(ConvergenceWarning) as told:
        ManyBodyProjector(2, tol=1e-12, max_iter=1).fit(X)
    message = str(told[0].message)
    for part in (r"residual .* is \d\.\de-\d\d > tol=1e-12", "max_iter=1 ", "Increase"):
        assert re.search(part, message)


# --- masked arrays --------------------------------------------------------------

MASKED = np.ma.masked_greater(np.random.default_rng(0).random((30, 4)), 0.8)
SMALL = np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], [[0, 1], [0, 0]])
ENDS = SMALL[0]
SQUARE = TensorPoset((2, 2))
USES = [
    (lambda: PNLAugmenter().fit(MASKED), "X"),
    (lambda: ManyBodyImputer().fit(MASKED), "X"),
    (lambda: ManyBodyProjector().fit(MASKED), "X"),
    (lambda: LogLinearModel().fit([MASKED]), "X"),
    (lambda: PNLSampler().fit_resample(MASKED, np.arange(30) < 10), "X"),
    (lambda: compare_samples(SMALL.data, SMALL), "X_new"),
    (lambda: calibrate(MASKED, {0: 7.0}), "X"),
    (lambda: adjust(MASKED, ColumnConstraint(0, lower=0)), "X"),
    (lambda: geometry.rake_array(SMALL, {(0,): [3, 7]}), "tables"),
    (lambda: geometry.rake_array(SMALL.data, {(0,): ENDS}), r"margin \(0,\)"),
    (lambda: kl_divergence(SMALL.data, q=SMALL), "An array"),
    (
        lambda: complete(SMALL.data, SQUARE, SQUARE.order == 1, reference=SMALL),
        "reference",
    ),
    (lambda: complete(SMALL, SQUARE, SQUARE.order == 1), "measures"),
    (lambda: ColumnConstraint("a", equal=ENDS), "equal"),
    (lambda: calibrate([[1.0, 2.0]], ENDS), "totals"),
    (lambda: drawn(np.eye(9)[:, :2], totals=ENDS), "totals"),
]


@pytest.mark.parametrize(("use", "name"), USES)
def test_masked_cells_are_not_taken_for_data(use, name):
    with pytest.raises(ValueError, match=f"{name} is a masked array"):
        use()


def test_public_functions_of_arrays_can_be_pickled():
    assert pickle.loads(pickle.dumps(kl_divergence)) is kl_divergence


@pytest.mark.parametrize("cell", [[1.0, 2.0], {"k": 1}, np.ones(3)])
def test_columns_of_lists_and_vectors_are_told_what_to_do(cell):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": np.arange(9.0), "tags": [cell] * 9})
    kind = type(cell).__name__
    with pytest.raises(TypeError, match=f"'tags'.* of the type {kind}.*np.stack"):
        PNLAugmenter().fit(X)


@pytest.mark.parametrize("as_given", [list, np.array, lambda x: np.array(x, object)])
def test_a_list_of_texts_is_told_to_be_vectorised(as_given):
    texts = as_given(["a text", "another"] * 10)
    for estimator in (PNLAugmenter(), ManyBodyProjector(1)):
        with pytest.raises(ValueError, match="list of 20 strings.*TfidfVectorizer"):
            estimator.fit(texts)


def test_ranges_that_overflow_are_refused_by_the_name_of_the_column():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    rows[:2, 1] = -1.5e308, 1.5e308
    with pytest.raises(ValueError, match=r"range of column 1.*overflows.*divide"):
        PNLAugmenter().fit(rows)


def test_complex_columns_of_a_frame_are_refused():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": np.arange(9.0), "b": 1j * np.arange(9.0)})
    with pytest.raises(ValueError, match="complex values. Pass the real"):
        ManyBodyProjector(1).fit(X)


def test_advice_on_negative_rows_can_help():
    X = np.random.default_rng(0).normal(size=(20, 4))
    with pytest.raises(ValueError, match=r"MinMaxScaler\(clip=True\)"):
        ManyBodyProjector(1).fit(X)
    with pytest.raises(ValueError, match=r"BackwardProjector\(ManyBodyProjector"):
        BackwardProjector(1).fit(X)


def test_tables_of_counts_are_not_sent_to_an_imputer_of_columns():
    counts = np.array([[[1.0, np.nan], [2.0, 3.0]]])
    with pytest.raises(ValueError, match="cannot occur.*reference=") as caught:
        LogLinearModel().fit(counts)
    assert "SimpleImputer" not in str(caught.value)
