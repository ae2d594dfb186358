"""Invalid input raises an error with the argument, the place and a remedy.

Most tests match only the argument, the row or the column. The test of ``MESSAGES``
asserts the wording of one message of each family.
"""

import pickle
import re
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from _methods import in_method
from _projectors import backward
from imblearn.pipeline import make_pipeline
from scipy.optimize import LinearConstraint
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer
from sklearn.utils.fixes import parse_version

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
    """Return an augmenter of tensors; more parameters belong to the projector."""
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
    """Call ``fit``, or ``fit_resample`` with a class of five rows for samplers."""
    if isinstance(estimator, PNLSampler):
        return estimator.fit_resample(X, np.arange(X.shape[0]) >= 5)
    return estimator.fit(X)


# --- values ---------------------------------------------------------------------

PLACES = [((12, 5), "row 3, column 2"), ((12, 5, 4), r"row 3, cell \(2, 1\)")]


@pytest.mark.parametrize("make", [*FITTED, PNLSampler])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("shape", "place"), PLACES)
def test_first_value_that_is_not_finite_is_named(shape, place, value, make):
    X = positive(*shape)
    X[(3, 2, 1)[: len(shape)]] = value
    X[5] = np.nan
    estimator = make()
    if "method" in estimator.get_params():
        # With `Lines`, cells can be missing.
        estimator.set_params(method="codes")
    name = "NaN" if np.isnan(value) else "infinity"
    with pytest.raises(ValueError, match=f"{name}.* {place}"):
        fit(estimator, X)


@pytest.mark.parametrize(
    ("shape", "imputer"), [((9, 4), "SimpleImputer"), ((9, 4, 4), "ManyBodyImputer")]
)
def test_the_imputer_in_the_message_accepts_the_shape_of_the_rows(shape, imputer):
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
    with pytest.raises(ValueError, match=f"-0.25 at {place}"):
        make().fit(X)


@pytest.mark.parametrize("make", PROJECTORS)
def test_values_are_named_at_transform_and_in_codes(make):
    estimator, X = make().fit(positive()), positive()
    codes = estimator.transform(X)
    for value in (np.nan, -0.25):
        X[7, 1, 2] = value
        with pytest.raises(ValueError, match=r"row 7, cell \(1, 2\)"):
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
    for cells, place in (
        ((8, slice(None), -1), "class 1; .*row 8"),
        ((8, slice(None), 0), "row 8"),
        ((8, 3, 0), "Cell 3 of row 8"),
    ):
        X = positive(12, 5)
        X[cells[:2]] *= cells[2]
        with pytest.raises(ValueError, match=place):
            PNLSampler(method=method).fit_resample(X, y)


@pytest.mark.parametrize("make", TENSORS)
def test_zeros_without_offset_are_named(make):
    # The row is beyond the first block of work, which holds 167 rows of 784 cells.
    X = positive(200, 28, 28)
    X[190, 3] = X[195, 0, 0] = 0
    with pytest.raises(ValueError, match="Cell 84 of row 190"):
        make(offset=0).fit(X)


@pytest.mark.parametrize("make", [*FITTED, PNLSampler])
def test_large_finite_values_are_accepted(make):
    # The sum of the values overflows in float32, but not in float64.
    fit(make(), (1e38 * positive(12, 5)).astype(np.float32))


# --- types and shapes -----------------------------------------------------------


@pytest.mark.parametrize("make", [*PROJECTORS, PrimeFactorReshaper])
@pytest.mark.parametrize("shape", [(3, 5), (4, 3), (3, 4, 1), (12,)], ids=str)
def test_rows_of_another_shape_are_rejected_at_transform(shape, make):
    estimator = make().fit(positive(12, 3, 4))
    with pytest.raises(ValueError):
        estimator.transform(positive(12, *shape))


@pytest.mark.parametrize("mark", [None, np.nan, "NA", "NaT"])
def test_missing_value_markers_in_objects_are_read(mark):
    pandas = pytest.importorskip("pandas")
    mark = getattr(pandas, mark) if isinstance(mark, str) else mark
    X = np.array([[1.0, mark], [2.0, 3.0]] * 6, dtype=object)
    assert PNLAugmenter().fit(X).sample(3, random_state=0).shape == (3, 2)
    with pytest.raises(ValueError):
        PNLAugmenter("codes").fit(X)


# --- orders, bases, posets ------------------------------------------------------

CHAIN = Poset.from_relations(4, [(0, 1), (1, 2), (2, 3)])
BAD_BASES = [
    ({"order": 0}, "order"),
    ({"order": "1"}, "order"),
    ({"order": 1.5}, "order"),
    ({"order": 3}, "order=3 "),
    ({"order": [(0, 2)]}, r"\(0, 2\)"),
    ({"order": [(1, 1)]}, r"\(1, 1\)"),
    ({"order": [()]}, r"\[\(\)\]"),
    ({"order": []}, r"order.* \[\]"),
    ({"order": [0, 1]}, "order.*0, 1"),
    ({"base": [12]}, "Element 12 "),
    ({"base": [(0, 1), (0, 4)]}, r"\[0, 4\]"),
    ({"base": [0.5]}, "Elements .*float64"),
    ({"base": np.ones((4, 3), bool)}, r"\(4, 3\)"),
    ({"base": [0]}, "base .*bottom"),
    ({"poset": (3, 4)}, "poset"),
    ({"poset": CHAIN}, "poset=.* 4 "),
    ({"offset": -1e-9}, "offset"),
    ({"tol": 0}, "tol"),
    ({"max_iter": 0}, "max_iter"),
    ({"with_mass": "yes"}, "with_mass"),
    ({"n_jobs": 1.5}, "n_jobs"),
]


@pytest.mark.parametrize("make", TENSORS)
@pytest.mark.parametrize(("params", "name"), BAD_BASES, ids=str)
def test_invalid_bases_are_rejected(params, name, make):
    with pytest.raises(ValueError, match=name):
        make(**params).fit(positive())


@pytest.mark.parametrize("make", TENSORS)
def test_orders_of_a_general_poset_have_no_modes(make):
    X = positive(12, 4)
    with pytest.raises(ValueError, match="order=2 "):
        make(order=2, poset=CHAIN).fit(X)
    with pytest.raises(ValueError):
        make(order=[(0,)], poset=CHAIN).fit(X)


@pytest.mark.parametrize("make", [backward, augmenter, sampler])
@pytest.mark.parametrize("manifold", [FiberManifold, ThetaManifold, EtaManifold])
def test_invalid_local_orders_are_rejected(manifold, make):
    with pytest.raises(ValueError, match=manifold.__name__):
        fit(make(local_manifold=manifold(order=0)), positive())
    with pytest.raises(ValueError):
        fit(make(order=1, local_manifold=manifold(order=5)), positive())


def test_order_above_the_number_of_factors_is_rejected():
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
def test_parameters_out_of_range_are_rejected(params, name, make):
    with pytest.raises(ValueError, match=name):
        fit(make(**params), positive())


@pytest.mark.parametrize("n_neighbors", [0, 13, 2.5])
def test_invalid_numbers_of_neighbors_are_rejected(n_neighbors):
    projector = BackwardProjector().fit(positive())
    with pytest.raises((TypeError, ValueError)):
        projector.kneighbors(projector.codes_, n_neighbors)


@pytest.mark.parametrize("make", [PNLAugmenter, PNLSampler, PNLRegressionSampler])
def test_unknown_parameters_are_rejected(make):
    assert make(method=Lines()).set_params(method__noise=0).method.noise == 0
    with pytest.raises(ValueError):
        make().set_params(drows__noise=1)
    with pytest.raises(TypeError):
        make(noise=1)


@pytest.mark.parametrize(
    ("make", "name", "advice"),
    [
        (PNLSampler, "method__offset", "method=Codes() or method=Lines()"),
        (PNLAugmenter, "method__noise", "method=Codes() or method=Lines()"),
        (
            partial(PNLRegressionSampler, method="paper"),
            "method__order",
            "Codes.paper()",
        ),
        (
            partial(PNLSampler, method=Codes()),
            "method__draws__noise",
            "draws=MixupDraws()",
        ),
        (BackwardProjector, "local_manifold__step", "local_manifold=FiberManifold()"),
        (Codes, "embedding__clip", "Set embedding to an object"),
    ],
)
def test_parameters_of_a_string_are_rejected_with_the_object(make, name, advice):
    with pytest.raises(
        ValueError, match=f"^{'__'.join(name.split('__')[-2:])} "
    ) as error:
        make().set_params(**{name: 1})
    assert advice in str(error.value)


def test_a_string_and_the_parameters_of_an_object_are_set_together():
    sampler = PNLSampler(method="codes").set_params(method=Lines(), method__noise=0)
    assert sampler.method.noise == 0
    with pytest.raises(ValueError, match="method='lines'"):
        sampler.set_params(method="lines", method__noise=0)


# --- targets --------------------------------------------------------------------


@pytest.mark.parametrize("n", [10, 13])
@pytest.mark.parametrize("method", ["fit", "fit_resample"])
@pytest.mark.parametrize("make", [PNLSampler, PNLRegressionSampler])
def test_rows_and_targets_of_different_number_are_rejected(make, method, n):
    X, y = positive(12, 5), np.repeat([0, 1], [6, n - 6])
    for rows in (X, X.tolist(), csr_array(X)):
        with pytest.raises(ValueError, match=f"12 .* y .*{n}"):
            getattr(make(), method)(rows, y)
    with pytest.raises(ValueError):
        PriorCorrectedClassifier(PNLSampler(), GaussianNB()).fit(X, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y is None.*PNLAugmenter"),
        (np.zeros(12, int), "'y' .* 1 class"),
        (np.linspace(0, 1, 12), "PNLRegressionSampler"),
        (positive(12, 2), r"y .*\(12, 2\).*PNLRegressionSampler"),
        (["a", None] * 6, "y .* row 1"),
    ],
    ids=[
        "none",
        "one",
        "continuous",
        "two",
        "NaN",
    ],
)
def test_targets_that_are_not_classes_are_rejected(y, message):
    with pytest.raises(ValueError, match=message):
        PNLSampler().fit_resample(positive(12, 5), y)


# --- mistakes of newcomers ------------------------------------------------------


def people():
    """Return a table with a category, an integer and two floats, and its classes."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(rng.gamma(2.0, size=(60, 2)), columns=["income", "rent"])
    X["city"], X["rooms"] = rng.choice(["Kiel", "Ulm"], 60), rng.integers(1, 5, 60)
    return X, np.repeat([0, 1], [45, 15])


def drawn(X, **request):
    return PNLAugmenter().fit(X).sample(5, 0, **request)


def table(X):
    return X.groupby(["city", "rooms"]).size().astype(float)


RAGGED = [[1.0, 2.0], [3.0]]
STRINGS = np.array([["a", "b"]] * 4)
HUGE = np.array([[1e308, 1.0], [-1e308, 2.0]] * 4)
SHARES, GRID = np.full((2, 3), 1 / 6), TensorPoset((2, 3))
MISTAKES = [
    (lambda X, y: PNLSampler(sampling_strategy={2: 20}).fit_resample(X, y),
     r"sampling_strategy.*\{2\}"),
    (lambda X, y: PNLSampler(totals={"rent": 5}).fit_resample(X[["rent"]], y),
     "totals .*'rent'"),
    (lambda X, y: PNLRegressionSampler().fit_resample(
        X[["rent"]], np.r_[y[:59], np.nan]), "y .* row 59"),
    (lambda X, y: drawn(X, totals=5), "totals.* 5"),
    (lambda X, y: drawn(X, totals={"city": 9}), "'city'"),
    (lambda X, y: drawn(X, infeasible="skip"), "'skip'"),
    (lambda X, y: drawn(X, constraints=LinearConstraint([[1, 1]], 0, 1)),
     "Constraint 0 .* 2 columns"),
    (lambda X, y: drawn(X[["rent"]].to_numpy(),
                        constraints=ColumnConstraint(7, equal=1)),
     "Constraint 0 .* 7"),
    (lambda X, y: drawn(X[["rent", "rooms"]], constraints=[
        ColumnConstraint("rent", lower=0), ColumnConstraint("rooms", equal=[1, 2])]),
     "Constraint 1 "),
    (lambda X, y: drawn(X[["rent"]], constraints=ColumnConstraint("rent", equal=99)),
     "Row 0 .*99"),
    (lambda X, y: PNLAugmenter(categorical_features=[0, 1]).fit(
        csr_array(np.ones((9, 2)))), "RandomOverSampler"),
    (lambda X, y: PNLAugmenter(categorical_features=[0]).fit(
        np.array([[1, 2j], [2, 3]], object)), "^Column 1 "),
    (lambda X, y: find_equalities(X[["city"]]), "RandomOverSampler"),
    (lambda X, y: ColumnConstraint({"a": "b"}, equal=5), "'a': 'b'"),
    (lambda X, y: ColumnConstraint("a", lower="Ulm"), "^lower="),
    (lambda X, y: ColumnConstraint("a", lower=[[1], [2, 3]]), "^lower="),
    (lambda X, y: column_total("rent"), "'rent'"),
    (lambda X, y: calibrate(X, "rent"), "totals.*'rent'"),
    (lambda X, y: calibrate(X, {"rooms": {"2": 9}}), "rooms=.2."),
    (lambda X, y: calibrate(X.mask(X["rent"] > 2), {"rent": 9}),
     r"Column 'rent' .*row \d+"),
    (lambda X, y: calibrate(X["rent"].to_numpy(), [9]), r"X .* \(60,\)"),
    (lambda X, y: rake(table(X), {"city": [5, 9]}), r"\[5, 9\]"),
    (lambda X, y: rake(0 * table(X), {"city": {"Ulm": 9}}),
     "city='Ulm'"),
    (lambda X, y: geometry.rake_array(np.ones((2, 3)), {(): 6.0}), "n_modes=2"),
    (lambda X, y: geometry.rake_array(np.ones((2, 2)), [[1, 2]]), "margins"),
    (lambda X, y: BackwardProjector().fit(positive()).decode_margins(
        {(0,): [[1, 2, 3]], (1,): [[1, 2, 3, 9]]}),
     r"Margin \(0,\) "),
    (lambda X, y: BackwardProjector().fit(positive()).decode_margins(
        {(7,): [[1, 2, 3]]}), "tables .* 7,"),
    (lambda X, y: adjust(X[["rent"]], ColumnConstraint("rent", equal=99),
                         extrapolation=0.1), "^Row 0 .*99"),
    (lambda X, y: LogLinearModel().fit(X), "Column 'city' "),
    (lambda X, y: LogLinearModel().fit(-positive()),
     r"LogLinearModel.* row 0, cell \(0, 0\)"),
    (lambda X, y: compare_samples(X[[]], X[[]]), r"X .*\(0,\)"),
    (lambda X, y: compare_samples(X[["rent"]], X[["city"]].to_numpy()),
     "Column 0 of X_new"),
    (lambda X, y: ManyBodyImputer().fit(X[["rent"]].replace(X["rent"][3], np.inf)),
     "infinity.* row 3, column 'rent'"),
    (lambda X, y: ManyBodyImputer(order=1).fit(-positive()),
     r"row 0, cell \(0, 0\)"),
    (lambda X, y: PrimeFactorReshaper().fit([[["one", "two"]], [["three", "four"]]]),
     "^Cell .*row 0"),
    (lambda X, y: geometry.deviance_tests(SHARES, GRID, 1), "levels"),
    (lambda X, y: geometry.rake_array(SHARES, None), "margins"),
    (lambda X, y: complete(SHARES, GRID, SHARES > 0, ridge=-1.0), "ridge"),
    (lambda X, y: geometry.theta_with_errors(SHARES, 5, GRID, 1, np.ones(3)),
     "reference"),
    (lambda X, y: geometry.rake_array(RAGGED, {(0,): [1.0, 2.0]}), "tables.*numbers"),
    (lambda X, y: rake(STRINGS, {(0,): [1.0, 2.0]}), "tables.*numbers"),
    (lambda X, y: rake([[np.nan, 1.0], [2.0, 3.0]], {(0,): [1.0, 2.0]}),
     r"entry \(0, 0\).*impute"),
    (lambda X, y: adjust(STRINGS, ColumnConstraint(0, lower=1)),
     "Column 0.*data frame"),
    (lambda X, y: find_equalities(STRINGS), "Column 0.*data frame"),
    (lambda X, y: calibrate(HUGE, {0: 50.0}), "column 0.*[Dd]ivide"),
    (lambda X, y: compare_samples(HUGE, HUGE), "column 'x0'.*divide"),
    (lambda X, y: compare_samples(RAGGED, RAGGED), "X .* row 1.*pad"),
    (lambda X, y: compare_samples(positive(12, 2), RAGGED), "X_new .* row 1.*pad"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "name"), MISTAKES, ids=[m for _, m in MISTAKES])
def test_messages_name_the_argument_or_column(mistake, name):
    with pytest.raises((TypeError, ValueError), match=name):
        mistake(*people())


def test_errors_of_new_rows_survive_a_pickle():
    X, _ = people()
    X = X[["income", "rent"]].assign(total=X["income"] + X["rent"])
    wanted = [ColumnConstraint("total", equal=1), ColumnConstraint("rent", equal=2)]
    for call in (
        lambda: adjust(X, wanted, extrapolation=0),
        lambda: drawn(X, constraints=wanted),
    ):
        with pytest.raises(ValueError, match="Row 0 .*rent") as error:
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
    with pytest.warns(UserWarning) as caught:
        call(X, y)
    assert {warning.filename for warning in caught} == {__file__}


def test_the_warning_of_a_projection_without_convergence_has_the_residual():
    X = np.random.default_rng(0).gamma(1.0, size=(40, 3, 4, 3))
    with pytest.warns(ConvergenceWarning) as caught:
        ManyBodyProjector(2, tol=1e-12, max_iter=1).fit(X)
    message = str(caught[0].message)
    for part in (r"residual .* is \d\.\de-\d\d \(tol=1e-12\)", "max_iter=1 "):
        assert re.search(part, message)


def test_public_functions_of_arrays_can_be_pickled():
    assert pickle.loads(pickle.dumps(kl_divergence)) is kl_divergence


@pytest.mark.parametrize("cell", [[1.0, 2.0], {"k": 1}, np.ones(3)])
def test_columns_of_lists_and_vectors_are_rejected(cell):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": np.arange(9.0), "tags": [cell] * 9})
    kind = type(cell).__name__
    with pytest.raises(TypeError, match=f"'tags'.* {kind}"):
        PNLAugmenter().fit(X)


@pytest.mark.parametrize("as_given", [list, np.array, lambda x: np.array(x, object)])
def test_a_list_of_texts_is_rejected(as_given):
    texts = as_given(["a text", "another"] * 10)
    for estimator in (PNLAugmenter(), ManyBodyProjector(1)):
        with pytest.raises(ValueError, match="X .* 20 .*'a text'"):
            estimator.fit(texts)


def test_ranges_that_overflow_are_rejected_with_the_name_of_the_column():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    rows[:2, 1] = -1.5e308, 1.5e308
    with pytest.raises(ValueError, match="column 1"):
        PNLAugmenter().fit(rows)


def test_the_remedies_for_negative_rows_help():
    X = np.random.default_rng(0).normal(size=(20, 4))
    with pytest.raises(ValueError, match=r"MinMaxScaler\(clip=True\)"):
        ManyBodyProjector(1).fit(X)
    make_pipeline(MinMaxScaler(clip=True), ManyBodyProjector(1)).fit(X)
    with pytest.raises(ValueError, match="ManyBodyProjector"):
        BackwardProjector(1).fit(X)


def test_simple_imputer_is_not_suggested_for_tables_of_counts():
    counts = np.array([[[1.0, np.nan], [2.0, 3.0]]])
    with pytest.raises(ValueError, match="reference=") as caught:
        LogLinearModel().fit(counts)
    assert "SimpleImputer" not in str(caught.value)


# --- the wording of one message of each family ------------------------------------

TINY, A_IS_1 = np.ones((4, 2)), ColumnConstraint("a", equal=1)
DAYS = np.arange(4).astype("M8[D]")
MESSAGES = [
    (lambda: BackwardProjector().fit(np.where(np.eye(4, 2), np.nan, 1.0)),
     "Input X contains NaN; the first is at row 0, column 0. Drop rows with NaN, or "
     "impute them with SimpleImputer."),
    (lambda: PNLAugmenter().fit(np.where(np.eye(4, 2), np.inf, 1.0)),
     "Input X contains infinity; the first is at row 0, column 0. Replace infinity by "
     "NaN and impute, or drop the row."),
    (lambda: ManyBodyProjector(1).fit(-TINY),
     "Negative values in data passed to ManyBodyProjector; the first is -1 at row 0, "
     "column 0. Cells are read as unnormalised probabilities: make the data "
     "non-negative, for example with MinMaxScaler(clip=True), which also clips test "
     "rows."),
    (lambda: ManyBodyProjector(1, offset=0).fit(np.eye(4)),
     "Cell 1 of row 0 is 0, and its logarithm is infinite with offset=0. Increase "
     "offset, or drop the row."),
    (lambda: ManyBodyProjector(1).fit([["a", 1], ["b", 2]]),
     "Column 0 of X is not numeric: row 0 contains 'a'. Encode the values as numbers, "
     "or drop the column."),
    (lambda: ManyBodyProjector(1).fit([[1, 2], [3]]),
     "Rows of X must have one shape, but row 0 has the shape (2,) and row 1 has the "
     "shape (1,). Cut or pad the rows to one shape, and combine them with np.stack."),
    (lambda: ManyBodyProjector(1).fit(["a text"] * 4),
     "X is a list of 4 strings, but must have rows and columns; the first string is 'a "
     "text'. Convert texts to numbers first, for example with TfidfVectorizer of "
     "scikit-learn."),
    (lambda: ManyBodyProjector(1).fit(5),
     "X must be an array, a data frame or a list with one entry per row; got int. If X "
     "is a lazy frame, collect it first."),
    (lambda: PNLAugmenter().fit(TINY * 1j),
     "Complex data not supported: X has the dtype complex128. Pass the real and the "
     "imaginary parts separately."),
    (lambda: PNLAugmenter().fit(TINY).sample(1, constraints=A_IS_1),
     "Constraint 0 refers to 'a', which is not in X. Pass a name or an index (0 to 1) "
     "of a column."),
    (lambda: PNLSampler().set_params(method__noise=1),
     "method__noise cannot be set, because method='auto' is a string without "
     "parameters. Set method=Codes() or method=Lines() first."),
    (lambda: PNLSampler().fit_resample(TINY, [0, 1]),
     "X has 4 rows, but y has 2 values. Pass one value per row."),
    (lambda: PNLSampler().fit_resample(TINY, [0, 0, 1, 1], groups=[1]),
     "groups must have the shape (4,), with one group per row; got (1,)."),
    (lambda: PNLSampler().fit_resample(TINY, [0, 0, 1, 1], sample_weight=DAYS),
     "sample_weight: weights must be numbers; got times. Pass one non-negative number "
     "per row."),
    (lambda: PNLSampler().fit_resample(TINY, [0, 0, 1, 1], sample_weight=np.zeros(4)),
     "sample_weight: all weights are zero. Give rows a positive weight, or pass no "
     "weights."),
    (lambda: PNLSampler(categorical_features=[0]).fit_resample([["a"], ["b"]], [0, 1]),
     "All columns are categories, but at least one numeric column is required. Encode "
     "a column as numbers, or use SMOTEN (new combinations of levels) or "
     "RandomOverSampler (copies) of imbalanced-learn."),
    (lambda: PNLRegressionSampler().fit_resample(TINY, np.ones((4, 1, 1))),
     "y must have shape (n,) or (n, n_targets); got (4, 1, 1). Pass one row of targets "
     "for each row of X."),
    (lambda: ManyBodyProjector(1).fit(np.ones((4, 2, 2))).transform(TINY),
     "X has rows of shape (2,), but ManyBodyProjector was fitted on rows of shape (2, "
     "2). Pass rows with the columns of the training rows, or fit again."),
    (lambda: ManyBodyProjector(1).fit(TINY[:, None]).inverse_transform(TINY * 0),
     "codes must have the shape (n_rows, 1) for ManyBodyProjector; got (4, 2). Pass "
     "the output of transform."),
    (lambda: geometry.rake_array(np.ones((2, 2)), {(0,): [1, -1]}),
     "margin (0,) must be finite and non-negative; entry (1,) is -1.0. Correct or "
     "remove the entry."),
    (lambda: PNLSampler().fit_resample(TINY, np.eye(4, 2)[:, [0, 0]]),
     "y must have one class per row; got the shape (4, 2). Multilabel and multioutput "
     "targets are not supported. Pass one column, for example y[:, 0], or encode each "
     "combination of labels as a class. For several numeric targets, use "
     "PNLRegressionSampler."),
    (lambda: PNLAugmenter().fit(np.ma.masked_array(TINY, TINY > 0)),
     "X is a masked array. Fill the masked cells first, with NaN if missing values are "
     "allowed, or drop the rows."),
    (lambda: ManyBodyProjector(3).fit(np.ones((4, 3, 3))),
     "order=3 is outside 1 to 2: a tensor of 2 modes has interactions of 1 to 2 "
     "modes."),
    (lambda: PNLAugmenter().fit(TINY).sample(1, constraints="a > 1"),
     "Constraint 0 must be a scipy.optimize.LinearConstraint or a ColumnConstraint, "
     "for example ColumnConstraint('age', lower=30); got 'a > 1'."),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), MESSAGES, ids=[m for _, m in MESSAGES])
def test_messages_state_the_fault_the_place_and_the_remedy(call, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert str(caught.value) == message


# --- arguments of invalid type ----------------------------------------------------

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
    "objects": np.array([[{}] * 3] * N, dtype=object),
    "series of lists": pd.Series([[1.0, 2.0], [3.0]] * 30),
    "series of vectors": pd.Series([[1.0, 2.0], [3.0, 4.0]] * 30),
    "complex column": pd.DataFrame({"a": ROWS[:, 0] * 1j, "b": ROWS[:, 1]}),
    "strings and numbers": np.array([[1, "a", 2.0]] * N, dtype=object),
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
    return PriorCorrectedClassifier(PNLSampler(random_state=0), LogisticRegression())


AT_LEAST_ONE = ColumnConstraint({0: 1}, lower=1)
TABLES = {
    "PNLSampler": lambda X: PNLSampler().fit_resample(X, LABELS),
    "PNLRegressionSampler": lambda X: PNLRegressionSampler().fit_resample(
        X, ROWS[:, 0]
    ),
    "PNLAugmenter": lambda X: PNLAugmenter().fit(X),
    "ManyBodyImputer.fit": lambda X: ManyBodyImputer().fit(X),
    "ManyBodyImputer.transform": lambda X: ManyBodyImputer().fit(ROWS).transform(X),
    "ManyBodyProjector.fit": lambda X: ManyBodyProjector(1).fit(X),
    "ManyBodyProjector.transform": lambda X: (
        ManyBodyProjector(1).fit(ROWS).transform(X)
    ),
    "BackwardProjector": lambda X: BackwardProjector().fit(X),
    "PrimeFactorReshaper": lambda X: PrimeFactorReshaper().fit(X),
    "PriorCorrectedClassifier": lambda X: prior_corrected().fit(X, LABELS),
    "LogLinearModel": lambda X: LogLinearModel().fit(X),
}
ARRAYS = {
    "X": {
        **TABLES,
        "adjust": lambda X: adjust(X, AT_LEAST_ONE),
        "calibrate": lambda X: calibrate(X, {0: 100.0}),
        "find_equalities": find_equalities,
        "compare_samples": lambda X: compare_samples(X, ROWS),
        "PrimeFactorReshaper.inverse_transform": lambda X: (
            PrimeFactorReshaper().fit(ROWS).inverse_transform(X)
        ),
    },
    "X_new": {"compare_samples": lambda X: compare_samples(ROWS, X)},
    "X_test": {"compare_samples": lambda X: compare_samples(ROWS, ROWS, X_test=X)},
    "codes": {
        "ManyBodyProjector": lambda X: (
            ManyBodyProjector(1).fit(ROWS).inverse_transform(X)
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
    if (function, kind) == ("calibrate", "strings and numbers"):
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


DATES = np.array(["2020-01-01", "2021-01-01"] * 30, dtype="M8[D]")
NO_LABELS = {
    "strings and numbers": [1, "a"] * 30,
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
    "complex": LABELS * 1j,
    "multilabel": np.array([[1, 1, 0], [0, 0, 1], [0, 1, 0]] * 20),
    "three axes": np.zeros((N, 2, 2), int),
    "short": LABELS[:9],
}
NO_VALUES = {k: NO_ROWS[k] for k in list(NO_ROWS)[:10] if k != "array without axes"}


@pytest.mark.parametrize("kind", [*NO_LABELS, *NO_VALUES, "records", "nothing"])
@pytest.mark.parametrize("function", ["sampler", "fit", "classifier"])
def test_invalid_labels_are_rejected_by_name(function, kind):
    calls = {
        "sampler": lambda y: PNLSampler().fit_resample(ROWS, y),
        "fit": lambda y: PNLSampler().fit(ROWS, y),
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
    refused(lambda y: PNLRegressionSampler().fit_resample(ROWS, y), y, "y")


NO_WEIGHTS = {
    "strings": list("ab") * 30,
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
        "sampler": lambda w: PNLSampler().fit_resample(ROWS, LABELS, sample_weight=w),
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
        lambda g: PNLSampler().fit_resample(ROWS, LABELS, groups=g),
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
    ids=["anything", "dates", "strings", "categories", "nullable"],
)
@pytest.mark.parametrize("with_gaps", [False, True])
def test_groups_can_have_any_type(groups, with_gaps):
    X = ROWS.copy()
    X[::7, 0] = np.nan if with_gaps else 0.0
    sampler = PNLSampler(random_state=0)
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
        ("reshaper", lambda: filled(reshaper=PrimeFactorReshaper)),
        ("imputer", lambda: filled(imputer=KNNImputer)),
        ("imputer", lambda: filled(imputer=SimpleImputer(add_indicator=True))),
        ("sampler", lambda: corrected(PNLSampler, LogisticRegression())),
        ("estimator", lambda: corrected(PNLSampler(), LogisticRegression)),
        ("estimator", lambda: corrected(LogisticRegression(), PNLSampler())),
    ],
)
def test_parameters_of_invalid_type_are_rejected_by_name(name, call):
    refused(lambda _: call(), None, name)


def sampled(**params):
    PNLSampler(**params).fit_resample(ROWS, LABELS)


def compared(**params):
    compare_samples(ROWS, ROWS[:20], **params)


def coded(**params):
    PNLAugmenter(Codes(**params)).fit(ROWS)


def filled(**params):
    ManyBodyImputer(**params).fit_transform(np.where(np.eye(N, 3), np.nan, ROWS))


def corrected(*parts):
    PriorCorrectedClassifier(*parts).fit(ROWS, LABELS)
