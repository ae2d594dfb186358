"""Estimators compute on the device of the rows, with array API dispatch."""

import os
import pickle
import runpy
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from _namespaces import NAMESPACES, assert_same
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from sklearn_pnl import (
    BackwardProjector,
    Codes,
    LogLinearModel,
    ManyBodyImputer,
    ManyBodyProjector,
    PNLAugmenter,
    PNLRegressionSampler,
    PNLSampler,
    PrimeFactorReshaper,
    PriorCorrectedClassifier,
)
from sklearn_pnl._utils import arrays
from sklearn_pnl.control import ColumnConstraint, adjust, calibrate, find_equalities
from sklearn_pnl.geometry import Poset
from sklearn_pnl.methods.draws import MixupDraws

EXAMPLE = "train_on_a_device.py"
LINE = Poset.from_relations(4, [(0, 1), (1, 2), (2, 3)])
IS_SET = os.environ.get("SCIPY_ARRAY_API") == "1"
pytestmark = pytest.mark.parametrize("new", NAMESPACES)


@pytest.fixture(autouse=True)
def dispatch():
    if not IS_SET:
        pytest.skip("SCIPY_ARRAY_API=1 is required: test_common.py sets the variable")
    with config_context(array_api_dispatch=True):
        yield


def images(seed=0, dtype=np.float64):
    return np.random.default_rng(seed).gamma(0.5, size=(40, 4, 6)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("order", [1, 2, 3, 4, [(0, 1), (2,)]])
def test_codes_and_measures_agree_with_numpy(new, order, with_mass, dtype):
    X = images(dtype=dtype)

    def results(X):
        reshaper = PrimeFactorReshaper()
        tensors = reshaper.fit_transform(X)
        projector = ManyBodyProjector(order, with_mass=with_mass, tol=1e-10)
        codes = projector.fit_transform(tensors)
        return (
            tensors,
            codes,
            projector.transform(tensors),
            projector.inverse_transform(codes),
            projector.to_measures(tensors) if dtype == np.float64 else codes,
            reshaper.inverse_transform(tensors),
        )

    tol = 1e-9 if dtype == np.float64 else 1e-4
    for got, expected in zip(results(new(X)), results(X), strict=True):
        assert_same(got, expected, new(X), tol)


@pytest.mark.parametrize("metric", ["kl", "euclidean"])
@pytest.mark.parametrize("manifold", ["fiber", "theta", "eta", "mixture"])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_decoded_rows_and_neighbours_agree_with_numpy(new, order, manifold, metric):
    X = PrimeFactorReshaper().fit_transform(images())

    def results(X, new=lambda x: x):
        base = ManyBodyProjector(order, offset=1.0, tol=1e-11)
        projector = BackwardProjector(base, local_manifold=manifold, metric=metric)
        projector.fit(X)
        codes = projector.codes_ + 0.02
        return [
            projector.inverse_transform(codes),
            projector.masses_,
            projector.coordinates_,
            *projector.kneighbors(codes, 7),
        ]

    for got, expected in zip(results(new(X)), results(X), strict=True):
        assert_same(got, expected, new(X))


def test_a_decoded_row_has_the_code_that_it_was_decoded_from(new):
    X = new(PrimeFactorReshaper().fit_transform(images()))
    projector = BackwardProjector(ManyBodyProjector(2, tol=1e-12)).fit(X)
    codes = projector.codes_ + 0.05
    back = projector.transform(projector.inverse_transform(codes))
    assert_same(back, arrays.to_host(codes), X, 1e-6)


def test_a_pipeline_stays_on_the_device(new):
    X, y = images().reshape(40, 24), np.arange(40.0)

    def predicted(X, y):
        pipeline = make_pipeline(
            MinMaxScaler(), PrimeFactorReshaper(), ManyBodyProjector(2, tol=1e-11),
            Ridge(solver="svd"),
        )  # fmt: skip
        return pipeline.fit(X, y).predict(X)

    assert_same(predicted(new(X), new(y)), predicted(X, y), new(X), 1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"order": 1},
        {"order": 2},
        {"order": 2, "draws": "kde"},
        {"order": 2, "draws": "interpolation", "with_mass": False},
        {"order": 2, "local_manifold": "theta"},
        {"order": 2, "draws": MixupDraws(metric="euclidean")},
        {"order": 1, "draws": GaussianMixture(2, random_state=0)},
        {"embedding": None},
    ],
)
def test_new_rows_agree_with_numpy(new, settings, dtype):
    X = images(dtype=dtype)
    if "order" in settings:
        # A loose tol would make the difference between the devices visible.
        settings = dict(settings)
        base = {k: settings.pop(k) for k in ("order", "with_mass") if k in settings}
        base = {"offset": 1.0, "with_mass": True} | base
        settings["order"] = ManyBodyProjector(tol=1e-12).set_params(**base)
    tol = 1e-9 if dtype == np.float64 else 1e-5

    def drawn(X):
        augmenter = PNLAugmenter(
            Codes(**settings), equalities=None, value_support=None, extrapolation=0.1
        )
        augmenter.fit(X)
        return augmenter.sample(50, random_state=1, return_parents=True)

    (rows, parents), (expected, same_parents) = drawn(new(X)), drawn(X)
    assert_same(rows, expected, new(X), tol)
    np.testing.assert_array_equal(parents, same_parents)


def test_rows_are_generated_in_batches(new):
    X = new(images())
    augmenter = PNLAugmenter(Codes(order=2)).fit(X)
    whole = augmenter.sample(25, random_state=0)
    batches = list(augmenter.iter_samples(25, 10, random_state=0))
    assert [batch.shape[0] for batch in batches] == [10, 10, 5]
    joined = np.concatenate([arrays.to_host(batch) for batch in batches])
    np.testing.assert_allclose(joined, arrays.to_host(whole), rtol=1e-9, atol=1e-12)
    assert len(list(augmenter.iter_samples(5, random_state=0))) == 1
    assert images().min() <= joined.min() and joined.max() <= images().max()


def test_copies_and_pickles_draw_the_same_rows(new):
    augmenter = PNLAugmenter(Codes(order=2)).fit(new(images()))
    again = pickle.loads(pickle.dumps(augmenter))
    refitted = clone(augmenter).fit(new(images()))
    rows = arrays.to_host(augmenter.sample(5, random_state=0))
    for other in (again, refitted):
        assert (arrays.to_host(other.sample(5, random_state=0)) == rows).all()


def test_an_augmenter_on_a_device_uses_no_column_relations(new):
    augmenter = PNLAugmenter(Codes(order=1)).fit(new(images()))
    assert len(augmenter.equalities_) == 0 and augmenter.inequalities_ == []
    assert augmenter.value_support_ is None and augmenter.n_neighbors_ == 10


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: PNLAugmenter(categorical_features=[0]).fit(X), "categorical_feat"),
        (lambda X: PNLAugmenter().fit(X).sample(3, totals={0: 1.0}), "totals"),
        (lambda X: PNLAugmenter().fit(X).sample(3, return_report=True), "reports"),
        (
            lambda X: (
                PNLAugmenter()
                .fit(X)
                .sample(3, constraints=ColumnConstraint({0: 1}, equal=1))
            ),
            "constraints .*NumPy",
        ),
        (
            lambda X: ManyBodyProjector(poset=LINE).fit(X[:, :, 0]),
            "NumPy",
        ),
        (lambda X: ManyBodyProjector(base=[(0, 2), (1, 0)]).fit(X), "'general'"),
    ],
)
def test_unsupported_features_are_rejected_by_name(new, call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(new(images()))


CLASSES = np.repeat([0, 1], [30, 10])


CONVERTED = {
    "sampler": lambda X, y: PNLSampler(random_state=0).fit_resample(
        X, y(CLASSES), sample_weight=y(CLASSES + 1)
    ),
    "sampler with codes": lambda X, y: PNLSampler(order=1, random_state=0).fit_resample(
        X, CLASSES, groups=y(CLASSES)
    ),
    "regression": lambda X, y: PNLRegressionSampler(random_state=0).fit_resample(
        X, y(np.arange(40.0))
    ),
    "imputer": lambda X, y: [ManyBodyImputer().fit_transform(X)],
    "imputer of tensors": lambda X, y: [ManyBodyImputer(1).fit_transform(X)],
    "counts": lambda X, y: [LogLinearModel().fit(X).theta_],
    "augmenter": lambda X, y: [PNLAugmenter("lines").fit(X).sample(9, 0)],
    "table": lambda X, y: [PNLAugmenter().fit(X[:, :, 0]).sample(9, 0)],
    "corrected": lambda X, y: [
        PriorCorrectedClassifier(PNLSampler(random_state=0), LogisticRegression())
        .fit(X[:, :, 0], y(CLASSES))
        .class_count_
    ],
    "equalities": lambda X, y: [find_equalities(X[:, :, 0]).coefficients],
    "weights": lambda X, y: [calibrate(X[:, :, 0], {0: 40.0})],
    "adjusted rows": lambda X, y: [adjust(X[:, :, 0], ColumnConstraint(0, lower=0.1))],
}


@pytest.mark.parametrize("is_enabled", [False, True])
@pytest.mark.parametrize("name", CONVERTED)
def test_rows_are_converted_to_numpy_with_one_warning(new, name, is_enabled):
    call = CONVERTED[name]
    expected = call(images(), np.asarray)
    with (
        config_context(array_api_dispatch=is_enabled),
        pytest.warns(UserWarning, match="is converted to an array of NumPy") as warned,
    ):
        found = call(new(images()), new)
    assert len(warned) == 1 and warned[0].filename == __file__
    for got, wanted in zip(found, expected, strict=True):
        assert type(got) is np.ndarray
        np.testing.assert_array_equal(got, wanted)


def test_an_augmenter_with_codes_is_converted_without_dispatch(new):
    augmenter = PNLAugmenter(Codes(order=1))
    expected = augmenter.fit(images()).sample(9, 0)
    with (
        config_context(array_api_dispatch=False),
        pytest.warns(UserWarning, match="array_api_dispatch is enabled"),
    ):
        found = augmenter.fit(new(images())).sample(9, 0)
    np.testing.assert_array_equal(found, expected)


def test_rows_of_a_corrected_classifier_are_converted_in_predictions(new):
    X = images()[:, :, 0]
    model = PriorCorrectedClassifier(PNLSampler(random_state=0), LogisticRegression())
    model.fit(X, CLASSES)
    with pytest.warns(UserWarning, match="is converted"):
        found = model.predict_proba(new(X))
    np.testing.assert_array_equal(found, model.predict_proba(X))


def test_invalid_cells_and_codes_are_named(new):
    X = images()
    X[3, 1, 2] = np.nan
    with pytest.raises(ValueError, match=r"row 3, cell \(1, 2\)"):
        ManyBodyProjector(handle_missing="ignore").fit(new(X))
    X[3, 1, 2] = -1
    with pytest.raises(ValueError, match=r"row 3, cell \(1, 2\)"):
        ManyBodyProjector().fit(new(X))
    projector = ManyBodyProjector(2).fit(new(images()))
    codes = np.zeros((3, projector.n_params_))
    codes[2] = 1e308
    with pytest.raises(ValueError, match="Row 2"):
        projector.inverse_transform(new(codes))
    with pytest.raises(ValueError, match="transform"):
        projector.transform(images())
    with pytest.raises(ValueError, match="transform"):
        BackwardProjector().fit(images()).inverse_transform(new(codes))


def test_without_dispatch_rows_are_converted_to_numpy(new):
    with config_context(array_api_dispatch=False):
        codes = ManyBodyProjector(2).fit_transform(new(images()))
    assert type(codes) is np.ndarray


def test_a_device_with_only_float32_warns_about_tol(new, monkeypatch):
    monkeypatch.setattr(arrays, "_is_single", lambda x: True)
    X = PrimeFactorReshaper().fit_transform(new(images(dtype=np.float32)))
    projector = ManyBodyProjector(2, tol=1e-7)
    with pytest.warns(UserWarning, match="tol=1e-07"):
        codes = projector.fit_transform(X)
    expected = ManyBodyProjector(2, tol=1e-7).fit_transform(arrays.to_host(X))
    assert codes.dtype == X.dtype
    # theta is less accurate than eta for cells with a small mass.
    np.testing.assert_allclose(arrays.to_host(codes), expected, atol=0.05)
    with pytest.warns(UserWarning, match="tol=1e-06"):
        augmenter = PNLAugmenter(Codes(order=2)).fit(new(images(dtype=np.float32)))
        rows = augmenter.sample(10, random_state=0)
    assert rows.dtype == X.dtype


def test_the_example_generates_rows_on_the_device(new, capsys):
    if find_spec("torch") is None:
        pytest.skip("torch is not installed")
    example = runpy.run_path(Path(__file__).parents[1] / "examples" / EXAMPLE)
    example["main"](n_epochs=1)
    assert "with new rows: accuracy" in capsys.readouterr().out


def test_rows_that_do_not_converge_raise_a_warning(new):
    X = new(PrimeFactorReshaper().fit_transform(images()))
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        ManyBodyProjector(3, max_iter=1, tol=1e-13).fit(X)
