"""Extreme values next to which other values are lost to rounding."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from _containers import read

from sklearn_pnl import PNLAugmenter, PNLSampler
from sklearn_pnl.frames import TableReader, read_table, warn_extreme_values

pd = pytest.importorskip("pandas")
NO_DATA = float(np.finfo(np.float32).min)


def read_gaps(X):
    return read_table(TableReader(None), X, missing=True)


def warn(table, of=None):
    """Warn about a table, within the bounds of another table."""
    numbers = (table if of is None else of).numbers().astype(float)
    warn_extreme_values(table, np.nanmin(numbers, axis=0), np.nanmax(numbers, axis=0))


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    X = rng.lognormal(3, 1, (3000, 4))
    X[::7] = np.nan
    X[:, 2] = 1.0
    X[rng.uniform(size=3000) < 0.6, 3] = 0.0
    return X


@pytest.mark.parametrize("column", [0, 3])
@pytest.mark.parametrize("value", [NO_DATA, -9.96921e36, 1e20, -1e13])
@pytest.mark.parametrize("rows", [[5], [0, 1, 2999], np.s_[:300], np.s_[::9]])
@pytest.mark.parametrize("scale", [1e-300, 1.0])
def test_extreme_values_raise_a_warning_with_the_column(X, column, value, rows, scale):
    warn(read_gaps(X * scale))
    X[rows, column] = value
    end = "smallest" if value < 0 else "largest"
    with pytest.warns(UserWarning, match=f"{end} value in column {column} "):
        warn(read_gaps(X * scale))


def test_extreme_values_of_nearly_constant_columns_raise_no_warning(X):
    X[5, 2] = 1e300
    warn(read_gaps(X))
    X[1:, 0] = 0
    warn(read_gaps(X))


@pytest.mark.filterwarnings("ignore:Integers beyond")
def test_extreme_integers_and_times_raise_a_warning():
    rng = np.random.default_rng(0)
    whole = rng.integers(1, 400, 300)
    whole[10:15] = np.iinfo(np.int64).min
    with pytest.warns(UserWarning, match="column 1 "):
        warn(read(np.column_stack([np.arange(300), whole])))
    seconds = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(600, size=300))
    frame = pd.DataFrame({"at": seconds.to_series(index=range(300))})
    warn(read(frame))
    frame.loc[7, "at"] = pd.Timestamp("1970-01-01")
    with pytest.warns(UserWarning, match="column 'at'"):
        warn(read(frame))


def test_rows_of_a_class_are_compared_with_the_range_of_all_rows():
    X = np.random.default_rng(0).normal(size=(100, 2))
    X[:40, 1] = 1e30
    whole = read_gaps(X)
    with pytest.warns(UserWarning, match="column 1"):
        warn(whole.take(np.arange(60, 100), "class 1"), of=whole)
    warn(whole.take(np.arange(60, 100), "class 1"))
    warn(whole.take(np.arange(0), "no class"), of=whole)
    warn(read(sp.csr_array(X)))


@pytest.mark.parametrize("seed", range(3))
def test_augmenter_and_sampler_warn_once(seed):
    X = np.random.default_rng(seed).normal(size=(90, 3))
    X[4:9, 1] = NO_DATA
    y = np.repeat([0, 1, 2], [60, 15, 15])
    for fit in (PNLAugmenter().fit, PNLSampler(random_state=0).fit_resample):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit(X) if fit.__name__ == "fit" else fit(X, y)
        assert ["column 1" in str(w.message) for w in caught] == [True]


def test_an_extreme_value_among_many_zeros_raises_a_warning():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((20_000, 1)) < 0.99, 0, rng.exponential(size=(20_000, 1)))
    X = np.hstack([X, rng.normal(size=X.shape)])
    X[5, 0] = 1e12
    with pytest.warns(UserWarning, match="column 0"):
        PNLAugmenter().fit(X)
