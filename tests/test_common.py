"""The common checks of scikit-learn and imbalanced-learn, and those they leave out."""

import inspect
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from imblearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency as check_sampler_column_names,
)
from imblearn.utils.estimator_checks import (
    parametrize_with_checks as parametrize_with_sampler_checks,
)
from sklearn.utils import estimator_checks as checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_pnl import (
    BackwardProjector,
    EtaManifold,
    KernelDraws,
    LogLinearModel,
    ManyBodyImputer,
    ManyBodyProjector,
    PNLAugmenter,
    PNLSampler,
    PrimeFactorReshaper,
    ThetaManifold,
)
from sklearn_pnl.embedding import RangeEmbedding

PROJECTORS = [
    ManyBodyProjector(),
    ManyBodyProjector(with_mass=True),
    ManyBodyProjector(handle_missing="ignore"),
    BackwardProjector(),
    BackwardProjector(metric="euclidean", local_manifold="mixture"),
]
AUGMENTERS = [
    PNLAugmenter(),
    PNLAugmenter(1, embedding=None, draws="kde", local_manifold=EtaManifold(order=1)),
]
IMPUTERS = [
    ManyBodyImputer(),
    ManyBodyImputer(1, n_neighbors=3, alpha="auto"),
    ManyBodyImputer(2, reshaper=PrimeFactorReshaper()),
]
MODELS = [LogLinearModel(), LogLinearModel("bic", offset=0.5)]
ESTIMATORS = [
    PrimeFactorReshaper(),
    RangeEmbedding(),
    *PROJECTORS,
    *AUGMENTERS,
    *IMPUTERS,
    *MODELS,
]
SAMPLERS = [
    PNLSampler(random_state=0),
    PNLSampler(
        order=2,
        draws=KernelDraws(0.1),
        local_manifold=ThetaManifold(order=1),
        random_state=0,
    ),
]


@pytest.fixture(autouse=True)
def _few_rows():
    """The suites fit on fewer rows than there are neighbours; that warns.

    So does the target that they hand to every estimator, and classes of one size.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*does not use y.*")
        warnings.filterwarnings("ignore", ".*neighbours were asked for.*")
        warnings.filterwarnings("ignore", "X has rows of one axis")
        warnings.filterwarnings("ignore", ".*asks for no new row.*")
        # Nothing tells the missing cells of a single mode.
        warnings.filterwarnings("ignore", ".*do not determine a code.*")
        yield


@parametrize_with_checks([*ESTIMATORS, *SAMPLERS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@parametrize_with_sampler_checks(SAMPLERS)
def test_imbalanced_learn_checks(estimator, check):
    with warnings.catch_warnings():
        # The suite itself reads a data frame in ways that warn.
        warnings.simplefilter("ignore", FutureWarning)
        check(estimator)


@pytest.mark.skipif(
    "only_numpy" not in inspect.signature(checks._yield_array_api_checks).parameters,
    reason="scikit-learn before 1.8 has no such checks for arrays of NumPy",
)
def test_array_api_checks_where_scipy_is_set_to_it():
    # `conftest` keeps them from this process, where they would be skipped.
    here = Path(__file__).parent
    files = [here / "test_common.py", here / "test_regression.py"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "-k", "check_array_api", *files],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        cwd=here.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert f"{len(ESTIMATORS) + len(SAMPLERS) + 1} passed" in run.stdout
    assert "skipped" not in run.stdout


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *SAMPLERS])
def test_parameters_are_validated(estimator):
    checks.check_param_validation(type(estimator).__name__, estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_column_names_are_kept_and_compared(estimator):
    checks.check_dataframe_column_names_consistency(type(estimator).__name__, estimator)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_column_names_are_kept_by_the_sampler(sampler):
    check_sampler_column_names(type(sampler).__name__, sampler)


# These checks fit on a data frame and transform an array.
_MIXED_CONTAINERS = pytest.mark.filterwarnings(
    "ignore:X (has|does not have valid) feature names:UserWarning"
)


@_MIXED_CONTAINERS
@pytest.mark.parametrize("estimator", [*PROJECTORS, *IMPUTERS])
@pytest.mark.parametrize(
    "check",
    [
        checks.check_transformer_get_feature_names_out,
        checks.check_transformer_get_feature_names_out_pandas,
        checks.check_set_output_transform,
        checks.check_set_output_transform_pandas,
        checks.check_global_output_transform_pandas,
    ],
)
def test_feature_names_out_and_set_output(estimator, check):
    check(type(estimator).__name__, estimator)


@_MIXED_CONTAINERS
@pytest.mark.parametrize("estimator", [*PROJECTORS, *IMPUTERS])
@pytest.mark.parametrize(
    "check",
    [
        checks.check_set_output_transform_polars,
        checks.check_global_set_output_transform_polars,
    ],
)
def test_set_output_polars(estimator, check):
    pytest.importorskip("polars", reason="polars is not installed")
    check(type(estimator).__name__, estimator)


def test_tensors_stay_arrays_when_data_frames_are_the_global_output():
    pytest.importorskip("pandas")
    from sklearn import config_context

    with config_context(transform_output="pandas"):
        tensors = PrimeFactorReshaper().fit_transform(np.ones((2, 12)))
    assert isinstance(tensors, np.ndarray)
    assert tensors.shape == (2, 3, 2, 2)


def test_reshaper_names_every_cell():
    reshaper = PrimeFactorReshaper().fit(np.ones((2, 6)))
    names = reshaper.get_feature_names_out()
    assert names.tolist() == [
        "0_0", "0_1", "1_0", "1_1", "2_0", "2_1"
    ]  # fmt: skip
