"""New rows that equal training rows are reported."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from sklearn_pnl import PNLAugmenter, PNLSampler
from sklearn_pnl.columns.copies import _keys

pytestmark = pytest.mark.filterwarnings("error")


def binary_table(n=300, rare=40, columns=10):
    rng = np.random.default_rng(0)
    X = (rng.random((n, columns)) < 0.2).astype(float)
    return X, (np.arange(n) < rare).astype(int)


def shares_of_copies(new, X):
    known = {tuple(row) for row in X}
    return np.mean([tuple(row) in known for row in new])


def test_the_warning_states_the_share_of_copies():
    X, y = binary_table()
    with pytest.warns(UserWarning) as caught:
        X_res, _ = PNLSampler(random_state=0).fit_resample(X, y)
    share = shares_of_copies(X_res[300:], X[:40])
    assert share > 0.5
    assert len(caught) == 1
    message = str(caught[0].message)
    assert message.startswith(f"PNLSampler, class 1: {share:.0%} of the new rows equal")
    assert "class_weight" in message


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_tables_with_a_numeric_column_give_no_warning(noise):
    X, y = binary_table()
    X[:, 0] = np.random.default_rng(1).normal(size=len(X))
    PNLSampler(random_state=0).fit_resample(X, y)


def test_rows_with_equal_numbers_and_other_categories_are_no_copies():
    rows, labels = np.ones((40, 2)), np.arange(40)[:, None]
    assert len(np.unique(_keys(rows, labels))) == 40
    assert not np.isin(_keys(rows, labels + 40), _keys(rows, labels)).any()
    np.testing.assert_array_equal(_keys(rows, labels), _keys(rows.copy(), labels))


def test_few_rows_give_no_warning():
    X, _ = binary_table()
    PNLAugmenter().fit(X).sample(9, random_state=0)


def test_one_warning_for_a_frame_of_categories_and_flags():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"flag": rng.random(80) < 0.5, "level": rng.choice([*"ab"], 80)})
    X["age"] = rng.integers(0, 2, 80)
    with pytest.warns(UserWarning) as caught:
        PNLAugmenter().fit(X).sample(200, random_state=0)
    assert len(caught) == 1


@pytest.mark.parametrize("values", [[0.0, 1.0], [0.0, -0.0, 1.5], [np.nan, 2.0**60]])
def test_keys_are_equal_exactly_for_equal_rows(values):
    rows = np.random.default_rng(0).choice(values, (400, 6))
    # Numbers of distinct rows: -0 equals 0.
    _, number = np.unique(rows + 0.0, axis=0, return_inverse=True, equal_nan=True)
    _, found = np.unique(_keys(rows, None), return_inverse=True)
    same = np.array([str(row) for row in rows + 0.0])
    np.testing.assert_array_equal(found[:, None] == found, same[:, None] == same)


def test_keys_of_sparse_rows_are_those_of_dense_rows():
    rows = np.random.default_rng(0).choice([0, 0, 1, 2.5], (60, 8))
    rows[3] = 0
    keys = _keys(csr_array(rows), None)
    np.testing.assert_array_equal(keys, _keys(rows, None))
    np.testing.assert_array_equal(keys[2:5], _keys(csr_array(rows[2:5]), None))
