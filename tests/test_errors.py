"""What bad input gets: a ValueError that says what is wrong, where and what to do."""

import pickle
import re
from functools import partial
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from imblearn.pipeline import make_pipeline
from scipy.optimize import LinearConstraint
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import QuantileTransformer

from sklearn_pnl import (
    BackwardProjector,
    ColumnConstraint,
    DensityDraws,
    EtaManifold,
    FiberManifold,
    KernelDraws,
    LogLinearModel,
    ManyBodyImputer,
    ManyBodyProjector,
    MixtureManifold,
    MixupDraws,
    PNLAugmenter,
    PNLRegressionSampler,
    PNLSampler,
    PrimeFactorReshaper,
    PriorCorrectedClassifier,
    ThetaManifold,
    adjust,
    calibrate,
    column_total,
    compare_samples,
    find_invariants,
    geometry,
    rake,
)
from sklearn_pnl.geometry import Poset, TensorPoset, complete, kl_divergence

PROJECTORS = [ManyBodyProjector, BackwardProjector]
# An augmenter of tensors as they come: no embedding makes them non-negative, none makes
# cells zero, and modes are axes.
ENCODER = partial(PNLAugmenter, order=1, embedding=None, reshaper=None)
TENSORS = [*PROJECTORS, ENCODER]
FITTED = [*PROJECTORS, PNLAugmenter, PrimeFactorReshaper]


def positive(n=12, *shape):
    return np.random.default_rng(0).uniform(1, 2, size=(n, *(shape or (3, 4))))


def fit(estimator, X):
    """``fit``, or for a sampler ``fit_resample`` on classes of five and the rest."""
    if isinstance(estimator, PNLSampler):
        return estimator.fit_resample(X, np.arange(X.shape[0]) >= 5)
    return estimator.fit(X)


# --- values ---------------------------------------------------------------------


@pytest.mark.parametrize("make", [*FITTED, PNLSampler])
@pytest.mark.parametrize(
    ("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
@pytest.mark.parametrize(
    ("shape", "place"),
    [((12, 5), r"row 3, column 2\."), ((12, 5, 4), r"row 3, cell \(2, 1\)\.")],
)
def test_first_value_that_is_no_number_is_named(shape, place, value, name, make):
    X = positive(*shape)
    X[(3, 2, 1)[: len(shape)]] = value
    X[5] = np.nan
    estimator = make()
    if "order" in estimator.get_params():
        # Where codes are the whole rows cells may be missing.
        estimator.set_params(order=1)
    with pytest.raises(ValueError, match=f"X contains {name}.* first is at {place}"):
        fit(estimator, X)


@pytest.mark.parametrize("make", [*FITTED, PNLSampler])
def test_large_finite_values_are_numbers(make):
    # Their sum overflows in float32: that alone is no reason to refuse them.
    X = (1e38 * positive(12, 5)).astype(np.float32)
    fit(make(), X)


@pytest.mark.parametrize("make", PROJECTORS)
def test_value_that_is_no_number_is_named_at_transform(make):
    estimator, X = make().fit(positive()), positive()
    X[7, 1, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN; the first is at row 7, cell \(1, 2\)"):
        estimator.transform(X)


@pytest.mark.parametrize("make", PROJECTORS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_codes_that_are_no_numbers_are_refused(value, make):
    estimator = make().fit(positive())
    codes = estimator.transform(positive())
    codes[4, 1] = value
    with pytest.raises(ValueError, match="codes contains .* row 4, column 1"):
        estimator.inverse_transform(codes)


@pytest.mark.parametrize("make", PROJECTORS)
def test_complex_codes_are_refused(make):
    estimator = make().fit(positive())
    with pytest.raises(ValueError, match="[Cc]omplex"):
        estimator.inverse_transform(estimator.transform(positive()) * 1j)


@pytest.mark.parametrize("make", PROJECTORS)
def test_no_codes_are_refused(make):
    # As rows are.
    estimator = make().fit(positive())
    with pytest.raises(ValueError, match="0 sample"):
        estimator.inverse_transform(np.empty((0, 5)))


def test_value_that_is_no_number_is_named_in_a_sparse_matrix():
    X = positive(12, 5)
    X[:, 0] = 0
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN; the first is at row 3, column 2"):
        fit(PNLSampler(order=1), csr_array(X))


@pytest.mark.parametrize("make", TENSORS)
@pytest.mark.parametrize(
    ("shape", "place"),
    [((12, 5), "row 3, column 2"), ((12, 5, 4), r"row 3, cell \(2, 1\)")],
)
def test_first_negative_value_is_named(shape, place, make):
    X = positive(*shape)
    X[(3, 2, 1)[: len(shape)]] = -0.25
    X[5] = -7
    with pytest.raises(
        ValueError,
        match=f"Negative values .* first is -0.25 at {place}.*(MinMaxScaler|minmax)",
    ):
        make().fit(X)


@pytest.mark.parametrize("make", PROJECTORS)
def test_negative_value_is_named_at_transform(make):
    estimator, X = make().fit(positive()), positive()
    X[7, 1, 2] = -0.25
    with pytest.raises(ValueError, match=r"first is -0.25 at row 7, cell \(1, 2\)"):
        estimator.transform(X)


def test_negative_value_without_embedding_is_named_by_its_row_in_the_data():
    # Row 8 of the data is row 1 of its class.
    X = positive(12, 5)
    X[8] *= -1
    told = r"Negative values in data passed to PNLSampler, class 1; .* row 8\b"
    with pytest.raises(ValueError, match=told):
        PNLSampler(embedding=None).fit_resample(X, np.repeat([0, 1], [7, 5]))


def test_row_of_zeros_without_offset_is_named_by_its_row_in_the_data():
    # Row 8 of the data is row 1 of its class.
    X = positive(12, 5)
    X[8] = 0
    with pytest.raises(ValueError, match=r"[Rr]ow 8\b.*zero and offset=0"):
        PNLSampler(embedding=None, offset=0).fit_resample(X, np.repeat([0, 1], [7, 5]))


@pytest.mark.parametrize("make", TENSORS)
def test_row_of_zeros_without_offset_is_named(make):
    # The row is beyond the first block of work, which holds 167 rows of 784 cells.
    X = positive(200, 28, 28)
    X[190] = 0
    with pytest.raises(
        ValueError, match="Row 190 is all zero and offset=0.* offset > 0"
    ):
        make(offset=0).fit(X)


@pytest.mark.parametrize("make", TENSORS)
def test_cell_of_zero_without_offset_is_named(make):
    X = positive(200, 28, 28)
    X[190, 3, 4] = X[195, 0, 0] = 0
    with pytest.raises(ValueError, match="zero and offset=0.*offset > 0") as error:
        make(offset=0).fit(X)
    # The cell by its indices, or flat.
    assert re.search(r"\brow 190\b", str(error.value))
    assert re.search(r"cell \(3, 4\)|cell 88\b", str(error.value), re.IGNORECASE)


@pytest.mark.parametrize("make", PROJECTORS)
def test_zeros_without_offset_are_refused_at_transform(make):
    estimator = make(offset=0).fit(positive())
    X = positive()
    X[7] = 0
    with pytest.raises(ValueError, match="Row 7 is all zero and offset=0"):
        estimator.transform(X)
    X[7, 1:] = 1
    with pytest.raises(ValueError, match="row 7.* is zero and offset=0"):
        estimator.transform(X)


def test_zeros_without_offset_are_refused_by_the_sampler():
    # Any feature has its least value somewhere, which "minmax" maps to 0.
    with pytest.raises(ValueError, match="offset=0.*offset > 0"):
        fit(PNLSampler(offset=0), positive(12, 5))


# --- types ----------------------------------------------------------------------


@pytest.mark.parametrize("make", [*FITTED, PNLSampler])
def test_complex_numbers_are_refused(make):
    with pytest.raises(ValueError, match="Complex data not supported"):
        fit(make(), positive(12, 5) * (1 + 1j))


@pytest.mark.parametrize("make", [*FITTED, PNLSampler])
@pytest.mark.parametrize("dtype", [object, str])
def test_words_are_refused(dtype, make):
    X = np.full((12, 5), "word", dtype=dtype)
    with pytest.raises(ValueError, match="could not convert string to float|'numeric'"):
        fit(make(), X)


@pytest.mark.parametrize("make", FITTED)
def test_objects_are_refused(make):
    X = np.array([[{}] * 5] * 12, dtype=object)
    with pytest.raises((TypeError, ValueError), match="float"):
        make().fit(X)


@pytest.mark.parametrize("make", [*FITTED, PNLSampler])
def test_no_rows_are_refused(make):
    with pytest.raises(ValueError, match="0 sample"):
        fit(make(), np.empty((0, 5)))


@pytest.mark.parametrize("make", [*FITTED, PNLSampler])
def test_one_dimension_is_refused(make):
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        fit(make(), np.ones(12))


@pytest.mark.parametrize("make", [*PROJECTORS, PrimeFactorReshaper])
def test_sparse_matrices_are_refused(make):
    with pytest.raises(TypeError, match="dense data is required"):
        make().fit(csr_array(positive(12, 5)))


# --- shapes ---------------------------------------------------------------------


@pytest.mark.parametrize("make", [*PROJECTORS, PrimeFactorReshaper])
@pytest.mark.parametrize("shape", [(3, 5), (4, 3), (3, 4, 1), (12,)], ids=str)
def test_rows_of_another_shape_are_refused_at_transform(shape, make):
    estimator = make().fit(positive(12, 3, 4))
    with pytest.raises(ValueError, match=r"features|rows of shape .* \(3, 4\)"):
        estimator.transform(positive(12, *shape))


@pytest.mark.parametrize("make", [*PROJECTORS, PrimeFactorReshaper])
def test_both_shapes_are_named(make):
    estimator = make().fit(positive(12, 3, 4))
    with pytest.raises(
        ValueError, match=rf"shape \(3, 5\), but {make.__name__} was .* shape \(3, 4\)"
    ):
        estimator.transform(positive(12, 3, 5))


@pytest.mark.parametrize("make", PROJECTORS)
@pytest.mark.parametrize("shape", [(7, 4), (7, 6), (5,), (2, 5, 1)], ids=str)
def test_codes_of_another_length_are_refused(shape, make):
    estimator = make().fit(positive(12, 3, 4))
    with pytest.raises(ValueError, match=rf"{make.__name__} have shape \(n_rows, 5\)"):
        estimator.inverse_transform(np.zeros(shape))


@pytest.mark.parametrize("n_neighbors", [0, -1, 13, 2.5])
def test_neighbors_that_are_not_there_are_refused(n_neighbors):
    projector = BackwardProjector().fit(positive())
    with pytest.raises(ValueError, match="integer from 1 to 12, the number"):
        projector.kneighbors(projector.codes_, n_neighbors)


@pytest.mark.parametrize("make", PROJECTORS)
@pytest.mark.parametrize("method", ["transform", "inverse_transform"])
def test_unfitted_projectors_are_refused(method, make):
    with pytest.raises(NotFittedError):
        getattr(make(), method)(positive())


# --- orders, interactions, posets -----------------------------------------------


@pytest.mark.parametrize("make", [*TENSORS, PNLSampler])
@pytest.mark.parametrize("order", [0, -1])
def test_order_below_one_is_refused(order, make):
    with pytest.raises(ValueError, match=rf"'order' parameter .* \[1, inf\).* {order}"):
        fit(make(order=order), positive())


LOCAL = [FiberManifold, ThetaManifold, EtaManifold]


@pytest.mark.parametrize("make", [BackwardProjector, PNLAugmenter, PNLSampler])
@pytest.mark.parametrize("manifold", LOCAL)
@pytest.mark.parametrize("order", [0, -1])
def test_local_order_below_one_is_refused(order, manifold, make):
    message = rf"'order' .* {manifold.__name__} .* \[1, inf\).* {order}"
    with pytest.raises(ValueError, match=message):
        fit(make(local_manifold=manifold(order=order)), positive())


@pytest.mark.parametrize("make", TENSORS)
def test_order_above_the_number_of_modes_is_refused(make):
    with pytest.raises(ValueError, match="order=3 is outside 1 to 2: .* 2 modes"):
        make(order=3).fit(positive(12, 3, 4))
    with pytest.raises(ValueError, match="order=2 is outside 1 to 1"):
        make(order=2).fit(positive(12, 5))


@pytest.mark.parametrize("make", [BackwardProjector, ENCODER])
@pytest.mark.parametrize("manifold", LOCAL)
def test_local_order_above_the_number_of_modes_is_refused(manifold, make):
    with pytest.raises(ValueError, match="order=3 is outside 1 to 2"):
        make(local_manifold=manifold(order=3)).fit(positive(12, 3, 4))


def test_order_above_the_number_of_factors_is_refused():
    with pytest.raises(ValueError, match="order=4 is outside 1 to 3"):
        fit(PNLSampler(order=4), positive(12, 12))


@pytest.mark.parametrize("make", TENSORS)
@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([(0, 2)], r"\(0, 2\) names mode 2, but the tensor has modes 0 to 1"),
        ([(0,), (-1,)], r"\(-1,\) names mode -1"),
        ([(1, 1)], r"\(1, 1\) names a mode twice"),
        ([()], "at least one mode"),
        ([], "No interaction was given"),
        ([0, 1], "tuple of modes"),
        ([("a",)], "tuple of modes"),
        ([(0.5,)], "tuple of modes"),
    ],
)
def test_unknown_interactions_are_refused(order, message, make):
    with pytest.raises(ValueError, match=message):
        make(order=order).fit(positive(12, 3, 4))


@pytest.mark.parametrize(
    ("make", "order"),
    [*((make, order) for make in TENSORS for order in ("1", 1.5)),
     *((make, order) for make in PROJECTORS for order in ("auto", None))],
)  # fmt: skip
def test_things_that_are_no_order_are_refused(order, make):
    with pytest.raises(ValueError, match="'order' parameter"):
        make(order=order).fit(positive())


def test_poset_without_a_bottom_is_refused():
    with pytest.raises(ValueError, match=r"no bottom: 2 elements \(0, 1\)"):
        Poset.from_relations(3, [(0, 2), (1, 2)])


def test_poset_with_a_cycle_is_refused():
    with pytest.raises(ValueError, match="cycle: 1 <= 2 <= 3 <= 1.*Remove"):
        Poset.from_relations(4, [(0, 1), (1, 2), (2, 3), (3, 1)])


CHAIN = Poset.from_relations(4, [(0, 1), (1, 2), (2, 3)])


# An augmenter lays rows of two axes out on the poset, if their cells are as many.
@pytest.mark.parametrize(
    ("make", "shape"),
    [*((make, shape) for make in TENSORS for shape in ((3,), (5,), (3, 2))),
     *((make, (2, 2)) for make in PROJECTORS)],
)  # fmt: skip
def test_poset_that_does_not_match_the_columns_is_refused(shape, make):
    with pytest.raises(ValueError, match="4.* one feature for each element"):
        make(poset=CHAIN).fit(positive(12, *shape))


@pytest.mark.parametrize("make", TENSORS)
def test_order_above_the_largest_of_the_poset_is_refused(make):
    with pytest.raises(ValueError, match="order=2 is outside 1 to 1, the largest"):
        make(order=2, poset=CHAIN).fit(positive(12, 4))


@pytest.mark.parametrize("make", TENSORS)
def test_interactions_of_a_general_poset_are_refused(make):
    with pytest.raises(ValueError, match="modes are defined for a tensor"):
        make(order=[(0,)], poset=CHAIN).fit(positive(12, 4))


@pytest.mark.parametrize("make", TENSORS)
@pytest.mark.parametrize("poset", [(3, 4), "tensor", 4])
def test_things_that_are_no_poset_are_refused(poset, make):
    with pytest.raises(ValueError, match="'poset' parameter"):
        make(poset=poset).fit(positive())


@pytest.mark.parametrize("make", TENSORS)
@pytest.mark.parametrize(
    ("base", "message"),
    [
        ([12], r"\[?12\]? is out of range"),
        ([3, -1], r"\[?-1\]? is out of range"),
        ([(0, 1), (0, 4)], r"\[0, 4\] is out of range.*\[2, 3\]"),
        ([(0, 1, 0)], "tuples of 2 indices"),
        ([0.5], "flat indices"),
        (np.ones((4, 3), bool), r"shape \(3, 4\).*got \(4, 3\)"),
        (np.ones(11, bool), r"shape \(3, 4\).*got \(11,\)"),
        ([], "no element besides the bottom"),
        ([0], "no element besides the bottom"),
        (np.zeros((3, 4), bool), "no element besides the bottom"),
    ],
)
def test_unknown_elements_are_refused(base, message, make):
    with pytest.raises(ValueError, match=message):
        make(base=base).fit(positive(12, 3, 4))


# --- the other parameters -------------------------------------------------------


@pytest.mark.parametrize("make", [PNLAugmenter, PNLSampler])
@pytest.mark.parametrize("bandwidth", [0, -0.1, "scott"])
def test_bandwidth_that_is_not_positive_is_refused(bandwidth, make):
    with pytest.raises(ValueError, match=r"'bandwidth' parameter .* \(0.0, inf\)"):
        fit(make(draws=KernelDraws(bandwidth=bandwidth)), positive())


@pytest.mark.parametrize("k", [0, -3, 1.5, None])
def test_numbers_of_neighbors_below_one_are_refused(k):
    with pytest.raises(ValueError, match=r"'n_neighbors' parameter .* \[1, inf\)"):
        BackwardProjector(n_neighbors=k).fit(positive())
    for make in (PNLAugmenter, PNLSampler):
        with pytest.raises(ValueError, match=r"'k_neighbors' parameter .* \[1, inf\)"):
            fit(make(k_neighbors=k), positive())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("offset", -1e-9),
        ("tol", 0),
        ("max_iter", 0),
        ("local_manifold", "fibre"),
        ("with_mass", "yes"),
        ("n_jobs", 1.5),
    ],
)
@pytest.mark.parametrize("make", [BackwardProjector, PNLAugmenter, PNLSampler])
def test_parameters_out_of_range_are_refused(make, name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        fit(make(**{name: value}), positive())


@pytest.mark.parametrize("step", [1.1, -0.1, "half"])
@pytest.mark.parametrize("make", [BackwardProjector, PNLAugmenter, PNLSampler])
def test_steps_beyond_the_ends_are_refused(make, step):
    message = r"'step' parameter of MixtureManifold .* \[0.0, 1.0\]"
    with pytest.raises(ValueError, match=message):
        fit(make(local_manifold=MixtureManifold(step)), positive())


@pytest.mark.parametrize(
    "make", [BackwardProjector, PNLAugmenter, PNLSampler, PNLRegressionSampler]
)
def test_names_have_no_parameters_and_objects_have(make):
    manifold = make(local_manifold="mixture")
    with pytest.raises(ValueError, match="local_manifold='mixture' has no param.*step"):
        manifold.set_params(local_manifold__step=0.5)
    manifold.set_params(local_manifold=MixtureManifold(), local_manifold__step=0.5)
    assert manifold.local_manifold.step == 0.5
    # What there is not is scikit-learn's to say.
    with pytest.raises(ValueError, match="Invalid parameter 'drows'"):
        make().set_params(drows__noise=1)


@pytest.mark.parametrize("make", [PNLAugmenter, PNLSampler, PNLRegressionSampler])
@pytest.mark.parametrize("name", ["auto", "mixup", "interpolation", "kde"])
def test_noise_of_draws_by_name_is_refused_with_what_to_pass(name, make):
    message = f"draws__noise of {make.__name__} .* draws={name!r} has no .*MixupDraws"
    with pytest.raises(ValueError, match=message):
        make(draws=name).set_params(draws__noise=0)
    assert make(draws=MixupDraws()).set_params(draws__noise=0).draws.noise == 0


def test_a_search_over_the_noise_of_a_name_says_what_to_pass():
    X, y = positive(40, 3), np.repeat([0, 1], [28, 12])
    grid = {"pnlsampler__draws__noise": [0, 0.4]}
    for draws in ("auto", MixupDraws()):
        model = make_pipeline(PNLSampler(draws=draws, random_state=0), GaussianNB())
        search = GridSearchCV(model, grid, cv=2)
        if isinstance(draws, str):
            with pytest.raises(ValueError, match="draws='auto' has no parameters"):
                search.fit(X, y)
        else:
            noise = search.fit(X, y).best_estimator_[0].draws.noise
            assert noise == search.best_params_["pnlsampler__draws__noise"]


@pytest.mark.parametrize(
    "wrong", [["a", "b"], {"a": "b"}, {"a": None}, {}, {"a": [1, 2]}], ids=str
)
def test_things_that_are_no_columns_of_a_constraint_are_refused(wrong):
    with pytest.raises(
        ValueError, match=r"its name or number.*got " + re.escape(str(wrong))
    ):
        ColumnConstraint(wrong, equal=5)


@pytest.mark.parametrize("name", ["equal", "lower", "upper"])
@pytest.mark.parametrize("value", ["Ulm", np.nan, [[1, 2]], [1, np.nan]], ids=str)
def test_ends_that_are_no_numbers_are_refused_as_they_were_given(value, name):
    with pytest.raises(ValueError, match=f"^{name}= of a ColumnConstraint must be a n"):
        ColumnConstraint("a", **{name: value})


@pytest.mark.parametrize("name", ["equal", "lower", "upper"])
def test_a_value_a_row_for_other_rows_is_refused_with_both_numbers(name):
    augmenter = PNLAugmenter().fit(positive(12, 3))
    asked = [ColumnConstraint(0, lower=0), ColumnConstraint(1, **{name: [1, 1.5, 1]})]
    message = rf"Constraint 1 has 3 values \({name}=\).* are 4 rows: give 4 values, or"
    with pytest.raises(ValueError, match=message):
        augmenter.sample(4, constraints=asked)


# --- classes --------------------------------------------------------------------


def test_class_that_is_not_there_is_refused():
    X, y = positive(12, 5), np.repeat([0, 1], [8, 4])
    with pytest.raises(ValueError, match="target class is/are not present"):
        PNLSampler(sampling_strategy={2: 20}).fit_resample(X, y)


def test_fewer_rows_than_there_are_are_refused():
    X, y = positive(12, 5), np.repeat([0, 1], [8, 4])
    with pytest.raises(ValueError, match="greater or equal to the original number"):
        PNLSampler(sampling_strategy={1: 3}).fit_resample(X, y)


def test_one_class_alone_is_refused():
    with pytest.raises(ValueError, match="class"):
        PNLSampler().fit_resample(positive(12, 5), np.zeros(12, int))


@pytest.mark.parametrize("n", [10, 13])
@pytest.mark.parametrize("method", ["fit", "fit_resample"])
@pytest.mark.parametrize("container", [np.asarray, list, csr_array, "frame"])
@pytest.mark.parametrize("make", [PNLSampler, PNLRegressionSampler])
def test_rows_and_targets_of_different_number_are_refused(make, container, method, n):
    X = positive(12, 5)
    if container == "frame":
        X = pytest.importorskip("pandas").DataFrame(X)
    else:
        X = container(X)
    y = np.repeat([0, 1], [6, n - 6])
    with pytest.raises(ValueError, match=f"X has 12 rows, but y has {n} values.*each"):
        getattr(make(), method)(X, y)
    with pytest.raises(ValueError, match=f"12 rows, but y has {n}"):
        PriorCorrectedClassifier(PNLSampler(), GaussianNB()).fit(X, y)


@pytest.mark.parametrize("make", [PNLSampler, PNLRegressionSampler])
def test_no_targets_are_refused_and_the_estimator_without_any_is_named(make):
    with pytest.raises(ValueError, match="the target y is None.* by PNLAugmenter"):
        make().fit_resample(positive(12, 5), None)


def test_a_continuous_target_is_refused():
    with pytest.raises(ValueError, match="[Uu]nknown label type|continuous"):
        PNLSampler().fit_resample(positive(12, 5), np.linspace(0, 1, 12))


@pytest.mark.parametrize("make", [PNLAugmenter, PNLSampler])
@pytest.mark.parametrize("name", ["embedding", "reshaper"])
@pytest.mark.parametrize("value", ["pca", 3, object()])
def test_things_that_do_not_invert_are_refused(name, value, make):
    with pytest.raises(ValueError, match=f"'{name}' parameter .*'inverse_transform'"):
        fit(make(**{name: value}), positive())


def test_cell_of_zero_without_offset_is_named_by_its_row_in_the_data():
    # Row 8 of the data is row 1 of its class.
    X = positive(12, 5)
    X[8, 3] = 0
    sampler = PNLSampler(embedding=None, offset=0)
    with pytest.raises(ValueError, match=r"Cell 3 of row 8 .*offset=0"):
        sampler.fit_resample(X, np.repeat([0, 1], [7, 5]))


# --- mistakes of newcomers: what, where, and what to do -------------------------


def people():
    """A table of a category, a whole number and two numbers; its classes."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(rng.gamma(2.0, size=(60, 2)), columns=["income", "rent"])
    X["city"], X["rooms"] = rng.choice(["Kiel", "Ulm"], 60), rng.integers(1, 5, 60)
    return X, np.repeat([0, 1], [45, 15])


MISSPELT = [
    (lambda: ManyBodyProjector(ordr=1), "ManyBodyProjector .*'order'"),
    (lambda: BackwardProjector(metrik=1), "BackwardProjector .*'metric'"),
    (lambda: PrimeFactorReshaper(max_factr=1), "'max_factor'"),
    (lambda: ManyBodyImputer(alfa=1), "'alpha'"),
    (lambda: LogLinearModel(ofset=1), "'offset'"),
    (lambda: PriorCorrectedClassifier(samplr=1), "'sampler'"),
    (lambda: MixupDraws(noize=1), "'noise'"),
    (lambda: KernelDraws(bandwith=1), "'bandwidth'"),
    (lambda: DensityDraws(estimtor=1), "'estimator'"),
    (lambda: PNLAugmenter().sample(constraint=1), "sample .*'constraints'"),
    (lambda: calibrate(0, 0, bound=1), "calibrate .*'bounds'"),
    (lambda: rake(0, 0, value=1), "rake .*'values'"),
    (lambda: adjust(0, constraint=1), "adjust .*'constraints'"),
    (lambda: compare_samples(0, 0, Xtest=1), "compare_samples .*'X_test'"),
    (lambda: ColumnConstraint("rent", equals=5), "ColumnConstraint .*'equal'"),
    (lambda: column_total("rent", lowr=5), "column_total .*'lower'"),
    (lambda: PNLAugmenter().iter_samples(9, totals=5),
     r"iter_samples .*need all rows at once: sample\(n, totals="),
]  # fmt: skip


@pytest.mark.parametrize(("call", "told"), MISSPELT, ids=[m for _, m in MISSPELT])
def test_misspelt_parameters_are_told_what_was_meant(call, told):
    with pytest.raises(TypeError, match=told):
        call()


def test_what_tells_of_parameters_keeps_its_signature_and_its_pickle():
    for told in (ManyBodyImputer, calibrate, ColumnConstraint, PNLAugmenter.sample):
        assert not {"args", "params"} & signature(told).parameters.keys()
        assert pickle.loads(pickle.dumps(told)) is told
    assert clone(DensityDraws(GaussianMixture(2))).estimator.n_components == 2


MISTAKES = [
    (lambda X, y: PNLSampler(smote=5),
     r"PNLSampler has no parameter 'smote': it has \['order', 'base'"),
    (lambda X, y: PNLSampler(offst=5), "no parameter 'offst': did you mean 'offset'"),
    (lambda X, y: PNLSampler(totals={"rent": 5}).fit_resample(X[["rent"]], y),
     r"totals has the class 'rent', but y has the classes \[0, 1\]: .* \{0: ...\}"),
    (lambda X, y: drawn(X, totals=5), "dict by column, such as .* shape .4,.; got 5"),
    (lambda X, y: calibrate(X, "rent"), "dict by column, such as .*; got 'rent'"),
    (lambda X, y: calibrate(X, {"rooms": {"2": 9}}),
     r"No row has rooms='2', for which 9 is .* there are (\d, ){3}\d"),
    (lambda X, y: calibrate(X.mask(X["rent"] > 2), {"rent": 9}),
     r"Column 'rent' must hold numbers to be summed; row \d+ is nan. Impute it"),
    (lambda X, y: drawn(X, totals={"city": 9}),
     "sums are about numbers, but column 'city' .* by level, totals="),
    (lambda X, y: drawn(X, constraints=LinearConstraint([[1, 1]], 0, 1)),
     "coefficients for 2 columns; rows have 4: 0 is for others"),
    (lambda X, y: PNLAugmenter().fit(X[["rent"]].to_numpy()).sample(
        constraints=ColumnConstraint(7, equal=1)), r"holds 7; .* numbers \(0 to 0\)"),
    (lambda X, y: column_total("rent"), "'rent' must lie .*: give equal, or lower <="),
    (lambda X, y: PNLRegressionSampler().fit_resample(
        X[["rent"]], np.r_[y[:59], np.nan]),
     r"Input y contains NaN; the first is at row 59\. Drop the rows"),
    (lambda X, y: ManyBodyImputer(alpha=[]).fit(positive()),
     r"or alpha=\[\] has no value of 0 or more. Give one alpha"),
    (lambda X, y: ManyBodyImputer(
        constraints=ColumnConstraint(0, lower=0)).fit(positive()),
     "constraints are about columns of a table, .* Pass order=None"),
    (lambda X, y: ManyBodyImputer(
        invariants=ColumnConstraint(0, equal=0)).fit(positive()),
     "invariants are about columns of a table, .* or invariants=None"),
    (lambda X, y: ManyBodyImputer(smooth=[0]).fit(positive()[0]),
     r"smooth=\[0\] names modes of tensors, .* Pass order=1"),
    (lambda X, y: ManyBodyImputer().fit(X[["rent"]].replace(X["rent"][3], np.inf)),
     "infinity; the first is at row 3, column 'rent'.*make it NaN first"),
    (lambda X, y: ManyBodyImputer(order=1).fit(-positive()),
     r"first is -1.6\d+ at row 0, cell \(0, 0\).*order=None"),
    (lambda X, y: ManyBodyImputer(order=2).fit(positive()[0]),
     r"order=2 .* each row is a tensor of one mode. Pass .* as \[X\]; order=None"),
    (lambda X, y: ManyBodyImputer().fit(X), "Ulm|Kiel.* Column 'city' .* Encode it"),
    (lambda X, y: LogLinearModel().fit(X), "Column 'city' holds no .* OneHotEncoder"),
    (lambda X, y: LogLinearModel().fit(X.to_numpy()), "Column 2 holds no numbers"),
    (lambda X, y: LogLinearModel().fit(-positive()), "counts are 0 or more; mend or"),
    (lambda X, y: BackwardProjector().fit(positive()).decode_margins(
        {(0,): [[1, 2, 3]], (1,): [[1, 2, 3, 9]]}),
     r"^Row 0: .* \(0,\) and \(1,\) have different totals: 6 and 15\. Scale or mend"),
    (lambda X, y: geometry.rake(np.ones((2, 3)), {(): 6.0}),
     "^No margin names a mode; .*, such as n_modes=2"),
    (lambda X, y: BackwardProjector().fit(positive()).decode_margins(
        {(7,): [[1, 2, 3]]}),
     "^margins name mode 7, but the modes of the tables are 0 to 1"),
    (lambda X, y: rake(table(X), {"city": [5, 9]}),
     "margin 'city' says no levels: give a dict or Series of level to sum"),
    (lambda X, y: BackwardProjector().fit(positive()).decode_margins([[1, 2, 3]]),
     r"margins must be a dict by modes, such as {\(0,\): row_sums}; got list"),
    (lambda X, y: geometry.rake(np.ones((2, 2)), [[1, 2]]), "dict by modes, .* got l"),
    (lambda X, y: rake(table(X).rename_axis([None, None]), {"city": {"Ulm": 9}}),
     "levels of the index need names: set table.index.names"),
    (lambda X, y: rake(0 * table(X), {"city": {"Ulm": 9}}),
     "No cell has city='Ulm', for which 9 .* there are none beside cells that are 0"),
    (lambda X, y: rake(table(X), {"city": {"Ulm": 9}}, by="city"),
     "The margin 'city' names nothing but by"),
    (lambda X, y: rake(table(X), {("city", "rooms"): column_total(
        ("city", "rooms"), lower={("Ulm", 1): 9})}, by="city"),
     "both ends of a margin are needed, by level"),
    (lambda X, y: calibrate(X["rent"].to_numpy(), [9]), r"two dimensions; .* \(60,\)"),
    (lambda X, y: calibrate(X, [9], domains="city"), "must be a dict by label of a do"),
    (lambda X, y: calibrate(X, {k: {"rent": 9} for k in ("Kiel", "Ulm", "Rom")},
                            domains="city"), "No row is in the domain 'Rom'"),
    (lambda X, y: calibrate(X, {"Kiel": {"rant": 9}, "Ulm": {}}, domains="city"),
     "^Domain 'Kiel': .*'rant'"),
    (lambda X, y: calibrate(X[["rent", "income"]], [90, 80], max_iter=1),
     "A solution exists, but max_iter=1 .* Increase max_iter"),
    (lambda X, y: compare_samples(X[[]], X[[]]), "X has no column"),
    (lambda X, y: compare_samples(X[["rent"]], X[["city"]].to_numpy()),
     r"Column 'rent' of X_new \(object\) holds no numbers"),
    (lambda X, y: PNLSampler().fit_resample(y, X[["rent", "income"]].to_numpy()),
     r"y has the shape \(60, 2\).* Are X and y swapped"),
    (lambda X, y: PNLAugmenter(categorical_features=[0, 1]).fit(
        csr_array(np.ones((9, 2)))), "All columns are categories"),
    (lambda X, y: find_invariants(X[["city"]]), "All columns are categories"),
    (lambda X, y: adjust(X[["rent"]], ColumnConstraint("rent", equal=99),
                         range_slack=0.1), "rent asks for 99; within the ranges"),
    (lambda X, y: PNLAugmenter(categorical_features=[0]).fit(
        np.array([[1, 2j], [2, 3]], object)), "^Column 1 holds no numbers"),
    (lambda X, y: PNLAugmenter().fit(X[["rent"]]).sample(on_unmet="skip"),
     "on_unmet must be 'raise' or 'drop'; got 'skip'"),
    (lambda X, y: PrimeFactorReshaper().fit([[["one", "two"]], [["three", "four"]]]),
     "could not convert|arrays of bytes/strings"),
]  # fmt: skip


def drawn(X, **asked):
    return PNLAugmenter(categorical_features="auto").fit(X).sample(5, 0, **asked)


def table(X):
    return X.groupby(["city", "rooms"]).size().astype(float)


@pytest.mark.parametrize(("mistake", "told"), MISTAKES, ids=[m for _, m in MISTAKES])
def test_mistakes_are_told_with_what_to_do(mistake, told):
    with pytest.raises((TypeError, ValueError), match=told):
        mistake(*people())


def test_shares_given_as_counts_are_told_how_to_ask_for_them():
    X, _ = people()
    counts = {"rooms": dict.fromkeys(range(1, 5), 15)}
    with pytest.raises(ValueError, match="sum to 1 and 60.*Shares have mean=True"):
        calibrate(X, {"city": {"Kiel": 0.4, "Ulm": 0.6}} | counts)
    with pytest.raises(ValueError, match="sum to 50 and 60") as e:
        calibrate(X, {"city": {"Kiel": 25, "Ulm": 25}} | counts)
    assert "mean=True" not in str(e.value)


def test_a_criterion_that_is_none_is_refused_with_those_there_are():
    found = compare_samples(positive(12, 3), positive(12, 3), random_state=0)
    with pytest.raises(KeyError, match="'privacy' is no .*'exact copies'.*'detection'"):
        found["privacy"]


def test_an_imputer_names_all_that_contradicts_what_is_observed():
    X, _ = people()
    X["total"] = X["income"] + X["rent"]
    X = X.drop(columns=["city", "rooms"])
    X.loc[::5, "income"] = np.nan
    asked = ColumnConstraint("income", equal=500)
    with pytest.warns(
        ConvergenceWarning, match=r"total = income \+ rent and income = 500"
    ):
        ManyBodyImputer(constraints=asked).fit_transform(X)


@pytest.mark.parametrize("hole", [(0, "rent"), (3, "income"), None])
def test_rows_whose_observed_cells_contradict_a_constraint_are_named(hole):
    X, _ = people()
    X = X[["income", "rent"]]
    if hole is not None:
        X.loc[hole] = np.nan
    low = X["income"].nlargest(5).iloc[-1]
    asked = ColumnConstraint("income", upper=low)
    first = X.index[X["income"] > low][0]
    told = f"4 rows cannot have 'income <= .*observed, which stays; .* row {first}\\."
    with pytest.warns(ConvergenceWarning, match=told):
        filled = ManyBodyImputer(constraints=asked).fit_transform(X)
    seen = X.notna().to_numpy()
    np.testing.assert_array_equal(filled[seen], X.to_numpy()[seen])


def test_rows_that_are_adjusted_are_no_new_ones_and_are_told_what_to_ask():
    X, _ = people()
    X = X[["income", "rent"]].assign(total=X["income"] + X["rent"])
    asked = [ColumnConstraint("total", equal=1), ColumnConstraint("rent", equal=2)]
    told = "^Row 0 cannot .* 0 to 1. Ask for what can be reached.$"
    with pytest.raises(ValueError, match=told) as error:
        adjust(X, asked)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)
    augmenter = PNLAugmenter().fit(X)
    with pytest.raises(ValueError, match="^New row 0 .* Ask for what can") as error:
        augmenter.sample(3, 0, constraints=asked)
    # It would help, and no sum has a negative part.
    assert "range_slack" not in str(error.value)
    wide = PNLAugmenter(range_slack=None).fit(X)
    assert wide.sample(3, 0, constraints=asked)["income"].max() < 0


@pytest.mark.parametrize(
    "call",
    [
        lambda X, y: LogLinearModel(order=1).fit(X[:, :, 0, 0]),
        lambda X, y: ManyBodyProjector(2, tol=1e-12, max_iter=1).fit_transform(X),
        lambda X, y: ManyBodyImputer(order=2, max_iter=1).fit_transform(
            np.where(X < 0.1, np.nan, X)
        ),
        lambda X, y: PNLAugmenter(order=2, max_iter=1).fit(X, y).sample(3),
        lambda X, y: make_pipeline(
            ManyBodyProjector(2, tol=1e-12, max_iter=1), GaussianNB()
        ).fit(X, y),
        lambda X, y: compare_samples(X[:20], X),
    ],
)
def test_warnings_are_given_at_the_line_of_the_user(call):
    X, y = np.random.default_rng(0).gamma(1.0, size=(40, 3, 4, 3)), np.arange(40) < 10
    with pytest.warns(UserWarning) as told:
        call(X, y)
    assert {warning.filename for warning in told} == {__file__}


MASKED = np.ma.masked_greater(np.random.default_rng(0).random((30, 4)), 0.8)


@pytest.mark.parametrize(
    "use",
    [
        lambda X: PNLAugmenter().fit(X),
        lambda X: ManyBodyImputer().fit(X),
        lambda X: ManyBodyProjector().fit(X),
        lambda X: LogLinearModel().fit([X]),
        lambda X: PNLSampler().fit_resample(X, np.repeat([0, 1], [20, 10])),
        lambda X: compare_samples(np.asarray(X), X),
        lambda X: calibrate(X, {0: 7.0}),
        lambda X: adjust(X, ColumnConstraint(0, lower=0)),
    ],
)
def test_masked_cells_are_not_taken_for_data(use):
    with pytest.raises(ValueError, match=r"masked array: .* X(_new)?.astype\(float\)"):
        use(MASKED)
    use(np.ma.masked_array(MASKED.data))


TABLE = np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], [[0, 1], [0, 0]])
ENDS = TABLE[0]
SQUARE = TensorPoset((2, 2))
SERIES = pd.Series([1.0, 2.0], pd.Index([0, 1], name="a"))


@pytest.mark.parametrize(
    ("use", "name"),
    [
        (lambda: geometry.rake(TABLE, {(0,): [3, 7]}), "tables"),
        (lambda: geometry.rake(TABLE.data, {(0,): ENDS}), "margins"),
        (lambda: kl_divergence(TABLE.data, q=TABLE), "q"),
        (lambda: complete(TABLE, SQUARE, SQUARE.order == 1), "measures"),
        (lambda: ColumnConstraint("a", equal=ENDS), "equal"),
        (lambda: column_total("a", {0: 1}, upper=ENDS), "upper"),
        (lambda: calibrate([[1.0, 2.0]], ENDS), "totals"),
        (lambda: PNLAugmenter().fit(np.eye(9)[:, :2]).sample(2, totals=ENDS), "totals"),
        (lambda: LogLinearModel(reference=TABLE).fit([TABLE.data]), "reference"),
        (lambda: compare_samples(TABLE.data, TABLE), "X_new"),
        (lambda: rake(SERIES, {"a": {0: 2}}, upper=ENDS), "upper"),
    ],
)
def test_masked_arguments_are_refused_by_name(use, name):
    with pytest.raises(ValueError, match=f"^{name} is a masked array"):
        use()


def test_public_functions_of_arrays_can_be_pickled():
    assert pickle.loads(pickle.dumps(kl_divergence)) is kl_divergence


@pytest.mark.parametrize(
    ("shape", "imputer"), [((9, 4), "SimpleImputer"), ((9, 4, 4), "ManyBodyImputer")]
)
def test_missing_cells_are_sent_to_an_imputer_that_takes_such_rows(shape, imputer):
    X = np.random.default_rng(0).random(shape)
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match=f"for instance with {imputer}"):
        PNLAugmenter(order=1, embedding=None).fit(X)


@pytest.mark.parametrize(
    "params, message",
    [
        ({"embedding": QuantileTransformer(n_quantiles=-3)}, "'n_quantiles' parameter"),
        ({"draws": GaussianMixture("two")}, "'n_components' parameter"),
        ({"reshaper": PrimeFactorReshaper(max_factor=0)}, "'max_factor' parameter"),
    ],
)
def test_parameters_of_what_is_passed_are_checked_by_it(params, message):
    X, y = np.random.default_rng(0).gamma(2.0, size=(60, 4)), np.arange(60) % 4 == 0
    for fit in (
        lambda: PNLAugmenter(**params).fit(X),
        lambda: PNLSampler(**params).fit_resample(X, y),
        lambda: PNLRegressionSampler(**params).fit_resample(X, X[:, 0]),
    ):
        with pytest.raises(ValueError, match=message):
            fit()


def test_an_imputer_checks_the_parameters_of_its_reshaper():
    X = np.random.default_rng(0).gamma(2.0, size=(9, 4))
    imputer = ManyBodyImputer(reshaper=PrimeFactorReshaper(max_factor=0))
    with pytest.raises(ValueError, match="'max_factor' parameter"):
        imputer.fit(np.where(X > 5, np.nan, X))
