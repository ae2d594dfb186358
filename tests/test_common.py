"""The common checks of scikit-learn and imbalanced-learn, and additional checks."""

import inspect
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from imblearn.base import is_sampler
from imblearn.utils import estimator_checks as sampler_checks
from imblearn.utils.estimator_checks import (
    parametrize_with_checks as parametrize_with_sampler_checks,
)
from sklearn import config_context
from sklearn.utils import estimator_checks as checks
from sklearn.utils.estimator_checks import parametrize_with_checks

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
)
from sklearn_pnl.encoding.embedding import RangeEmbedding
from sklearn_pnl.encoding.manifolds import EtaManifold, ThetaManifold
from sklearn_pnl.methods.draws import KernelDraws

PROJECTORS = [
    ManyBodyProjector(),
    ManyBodyProjector(with_mass=True),
    ManyBodyProjector(handle_missing="ignore"),
    BackwardProjector(),
    BackwardProjector(metric="euclidean", local_manifold="mixture"),
]
AUGMENTERS = [
    PNLAugmenter(),
    PNLAugmenter(Codes(1, embedding=None, draws="kde", local_manifold=EtaManifold(1))),
]
IMPUTERS = [
    ManyBodyImputer(),
    ManyBodyImputer(1, n_neighbors=3),
    ManyBodyImputer(1, offset=0.5),
]
MODELS = [LogLinearModel(), LogLinearModel(offset=0.5)]
OTHERS = [PrimeFactorReshaper(), RangeEmbedding()]
ESTIMATORS = [*OTHERS, *PROJECTORS, *AUGMENTERS, *IMPUTERS, *MODELS]
SAMPLERS = [
    PNLSampler(random_state=0),
    PNLSampler(method=Lines(0.1), extrapolation=None, random_state=0),
    PNLSampler(method="paper", equalities=None, random_state=0),
    PNLSampler(
        method=Codes(1, draws=KernelDraws(0.1), local_manifold=ThetaManifold(order=1)),
        equalities=None, random_state=0,
    ),
]  # fmt: skip
REGRESSORS = [PNLRegressionSampler(n_samples=5, random_state=0)]


@pytest.fixture(autouse=True)
def _few_rows():
    """Ignore the warning of fits on fewer rows than neighbours."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* has only ")
        warnings.filterwarnings("ignore", ".*rows with one axis")
        # A single mode does not determine its missing cells.
        warnings.filterwarnings("ignore", ".*do not determine a code.*")
        yield


@parametrize_with_checks([*ESTIMATORS, *SAMPLERS, *REGRESSORS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@parametrize_with_sampler_checks(SAMPLERS)
def test_imbalanced_learn_checks(estimator, check):
    with warnings.catch_warnings():
        # The suite reads a data frame in ways that cause warnings.
        warnings.simplefilter("ignore", FutureWarning)
        check(estimator)


@pytest.mark.parametrize("ending", ["", "_pandas"])
def test_imbalanced_learn_checks_without_classes(ending):
    # The excluded checks require classes and sampling_strategy.
    check = getattr(sampler_checks, f"check_sampler_get_feature_names_out{ending}")
    check("PNLRegressionSampler", REGRESSORS[0])


@pytest.mark.skipif(
    "only_numpy" not in inspect.signature(checks._yield_array_api_checks).parameters,
    reason="scikit-learn before 1.8 has no such checks for arrays of NumPy",
)
@pytest.mark.starting
def test_array_api_checks_pass_with_scipy_array_api():
    # `conftest` keeps the checks from this process, where they would be skipped.
    here = Path(__file__).parent
    files = [here / "test_common.py", here / "test_devices.py"]
    chosen = ["-k", "check_array_api or test_devices"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", *chosen, *files],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        cwd=here.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert int(re.search(r"(\d+) passed", run.stdout)[1]) >= 110


# --- additional checks ------------------------------------------------------------


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *SAMPLERS, *REGRESSORS])
def test_parameters_are_validated(estimator):
    checks.check_param_validation(type(estimator).__name__, estimator)


@pytest.mark.parametrize("estimator", [*ESTIMATORS, *SAMPLERS])
def test_column_names_are_stored_and_compared(estimator):
    suite = sampler_checks if is_sampler(estimator) else checks
    check = suite.check_dataframe_column_names_consistency
    check(type(estimator).__name__, estimator)


# These checks fit on a data frame and transform an array.
@pytest.mark.filterwarnings(
    "ignore:X (has|does not have valid) feature names:UserWarning"
)
@pytest.mark.parametrize("estimator", [*PROJECTORS, *IMPUTERS])
@pytest.mark.parametrize(
    "name",
    [
        "transformer_get_feature_names_out",
        "transformer_get_feature_names_out_pandas",
        "set_output_transform",
        "set_output_transform_pandas",
        "global_output_transform_pandas",
        "set_output_transform_polars",
        "global_set_output_transform_polars",
    ],
)
def test_feature_names_out_and_set_output(name, estimator):
    for library in ("pandas", "polars"):
        if name.endswith(library):
            pytest.importorskip(library)
    getattr(checks, f"check_{name}")(type(estimator).__name__, estimator)


def test_tensors_stay_arrays_when_data_frames_are_the_global_output():
    pytest.importorskip("pandas")
    with config_context(transform_output="pandas"):
        tensors = PrimeFactorReshaper().fit_transform(np.ones((2, 12)))
    assert isinstance(tensors, np.ndarray)
    assert tensors.shape == (2, 3, 2, 2)


def test_reshaper_names_every_cell():
    reshaper = PrimeFactorReshaper().fit(np.ones((2, 6)))
    names = reshaper.get_feature_names_out()
    assert names.tolist() == ["0_0", "0_1", "1_0", "1_1", "2_0", "2_1"]
