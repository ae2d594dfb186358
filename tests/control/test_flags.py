"""Columns of two values that no training row has on together."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_pnl import ColumnConstraint, PNLAugmenter, PNLSampler
from sklearn_pnl.control.flags import Flags

LEVELS = {"colour": list("abcde"), "size": list("xyz")}


def categories(seed, n=300):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"amount": rng.normal(size=n)})
    for name, levels in LEVELS.items():
        frame[name] = rng.choice(levels, n)
    return frame


def dummies(seed, n=300):
    return pd.get_dummies(categories(seed, n), drop_first=True)


def on_together(rows):
    """Most columns of a dropped level's group that are on in a row, group by group."""
    return [
        int((rows.filter(like=f"{name}_") > 0.5).sum(axis=1).max()) for name in LEVELS
    ]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", [bool, "uint8", "float64", "float32"])
def test_no_row_has_two_levels_of_which_the_first_is_dropped(dtype, seed):
    X = dummies(seed)
    some = X.columns[1:]
    X[some] = X[some].astype(dtype)
    rows = PNLAugmenter().fit(X).sample(500, random_state=seed)
    assert on_together(X) == on_together(rows) == [1, 1]
    assert set(np.unique(rows[some].to_numpy(float))) == {0, 1}


def test_without_a_look_at_pairs_rows_have_two(monkeypatch):
    monkeypatch.setattr(Flags, "of", lambda *given: None)
    X = [dummies(seed, 60) for seed in range(5)]
    rows = [PNLAugmenter().fit(x).sample(2000, random_state=0) for x in X]
    assert max(max(on_together(r)) for r in rows) > 1


def test_nor_where_an_equation_is_about_one_of_them():
    # The dropped level of the other category goes with colour c.
    for seed in range(6):
        rng = np.random.default_rng(seed)
        colour = rng.choice(list("abcde"), 60, p=[0.2, 0.5, 0.1, 0.1, 0.1])
        shape = np.where(colour == "c", "s", rng.choice(list("pqruvwxy"), 60))
        frame = pd.DataFrame({"amount": rng.integers(0, 9, 60), "colour": colour})
        X = pd.get_dummies(frame.assign(shape=shape))
        X = X.drop(columns=["colour_a", "shape_s"])
        group = dict.fromkeys(["colour_c", *X.filter(like="shape")], 1)
        one = ColumnConstraint(group, equal=1)
        rows = PNLAugmenter(invariants=one).fit(X).sample(2000, random_state=0)
        assert rows.filter(like="colour").sum(axis=1).max() == 1
        assert (rows[[*group]].sum(axis=1) == 1).all()


def test_nor_after_scalers_and_in_samplers():
    frame = categories(0, 400)
    encoder = OneHotEncoder(drop="first", sparse_output=False)
    scaler = StandardScaler()
    X = scaler.fit_transform(encoder.fit_transform(frame[[*LEVELS]]))
    X = np.column_stack([frame[["amount"]], X])
    y = (np.arange(400) < 60).astype(int)
    rows = PNLSampler(random_state=0).fit_resample(X, y)[0][400:]
    rows = scaler.inverse_transform(rows[:, 1:])
    np.testing.assert_allclose(rows, np.rint(rows), atol=1e-9)
    for group in (slice(0, 4), slice(4, 6)):
        assert np.all(rows[:, group].sum(axis=1) < 1.5)


def test_what_is_asked_for_stays_on():
    X = dummies(1)
    augmenter = PNLAugmenter().fit(X)
    asked = ColumnConstraint("colour_c", equal=1)
    rows = augmenter.sample(200, constraints=asked, random_state=0)
    assert rows["colour_c"].all()
    assert on_together(rows) == [1, 1]


def test_what_a_parent_gives_is_off_where_another_flag_is_asked_for():
    rng = np.random.default_rng(0)
    married = rng.random(200) < 0.5
    X = pd.DataFrame({name: rng.random(200) + 3 * married for name in ("age", "rent")})
    X["married"], X["single"] = married, ~married & (rng.random(200) < 0.5)
    X["partner"] = np.where(married, rng.random(200), np.nan)
    # Only rows that are married are near to such ages and rents.
    asked = [ColumnConstraint(name, lower=3.5) for name in ("age", "rent")]
    asked.append(ColumnConstraint("single", equal=1))
    augmenter = PNLAugmenter().fit(X)
    with pytest.warns(ConvergenceWarning, match="do not keep the marks of married"):
        rows = augmenter.sample(50, constraints=asked, random_state=0)
    assert rows["single"].all()
    assert not rows["married"].any()


def test_flags_that_some_row_has_together_are_free():
    X = dummies(2)
    X.loc[0, ["colour_b", "colour_c"]] = True
    augmenter = PNLAugmenter().fit(X)
    told = augmenter.marks_.descriptions["colour_b"]
    assert told.endswith("not on with colour_d, colour_e")


def test_marks_name_the_others():
    told = PNLAugmenter().fit(dummies(0)).marks_.descriptions
    assert told["size_y"].endswith("not on with size_z")
    assert told["colour_b"].endswith("not on with colour_c, colour_d, colour_e")


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_are_no_copies_have_no_two_levels_either(seed):
    X = dummies(seed, 80).drop(columns="amount")
    X["more"] = np.random.default_rng(seed).integers(9, size=80)
    rows = PNLAugmenter().fit(X).sample(400, random_state=seed)
    assert on_together(rows) == [1, 1]


def test_the_audit_tells():
    X = dummies(0)
    augmenter = PNLAugmenter().fit(X)
    rows = X.to_numpy(float)[:5].copy()
    rows[3, 1:5] = 1
    with pytest.warns(UserWarning, match="do not keep the marks of colour_"):
        augmenter._source.keeper.audit(rows, "PNLAugmenter")


@pytest.mark.parametrize("dtype", [bool, float, int])
def test_levels_that_sums_are_not_about_make_room(dtype):
    X = dummies(0)
    some = X.columns[1:]
    X[some] = X[some].astype(dtype)
    totals = {"colour_b": 70, "colour_c": 60, "amount": 20}
    rows = PNLAugmenter().fit(X).sample(200, random_state=0, totals=totals)
    assert rows["colour_b"].sum() == 70
    asked = rows["colour_b"].astype(bool) | rows["colour_c"].astype(bool)
    assert not rows.loc[asked, ["colour_d", "colour_e"]].astype(bool).any(axis=None)


def test_a_missing_flag_is_not_on():
    X = dummies(0, 200).astype(float)
    y = np.arange(200) < 60
    # In one class all that is there of a flag is on, and what is missing is not.
    X.loc[y, X.columns[1:]] = 0
    X.loc[y, "colour_c"] = np.where(np.arange(60) < 30, 1, np.nan)
    X.loc[y & X["colour_c"].isna(), "colour_b"] = 1
    rows = PNLSampler(random_state=0).fit_resample(X, y)[0][200:]
    assert on_together(rows) == [1, 0]
    np.testing.assert_array_equal(rows["colour_c"].isna(), rows["colour_b"] == 1)
    assert 0.3 < rows["colour_b"].mean() < 0.7


def test_a_flag_that_a_class_has_on_stays_on():
    X = dummies(0, 120)[["amount", "colour_b", "colour_c"]].astype(float)
    y = np.arange(120) < 20
    X[["colour_b", "colour_c"]] = 0.0
    X.loc[y, "colour_c"] = np.where(np.arange(20) < 14, 1, np.nan)
    X.loc[14:17, "colour_b"] = 1
    sampler = PNLSampler(random_state=0)
    sampler.fit_resample(X, y)
    keeper = sampler.augmenters_[True]._source.keeper
    # Values between rows may lie beyond those of flags, before they are one of the two.
    rows = keeper.cast(np.array([[0.0, 1.1, 1.0], [0.0, 1.1, np.nan]]))
    np.testing.assert_array_equal(rows[:, 1], [0, 1])
    assert rows[0, 2] == 1
