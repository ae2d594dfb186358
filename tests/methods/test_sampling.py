"""Tests of how batches of new rows keep relations and constraints."""

import numpy as np
import pytest

from sklearn_pnl import Codes, PNLAugmenter
from sklearn_pnl.columns.constraints import LinearConstraints
from sklearn_pnl.control import ColumnConstraint

pd = pytest.importorskip("pandas")


def test_candidates_for_infeasible_rows_are_computed_once_per_constraint(monkeypatch):
    X = np.random.default_rng(0).normal(size=(200, 3))
    rows = PNLAugmenter().fit(X)._rows
    sampler = rows.row_sampler(50, [ColumnConstraint({0: 1.0}, lower=0.5)])
    rng = np.random.RandomState(0)
    batch = next(sampler.source.batches(sampler.request, rng, 50))
    infeasible, sizes = np.ones(len(batch.donors), bool), []
    violations = LinearConstraints.violations

    def counted(self, rows, **options):
        sizes.append(len(rows))
        return violations(self, rows, **options)

    monkeypatch.setattr(LinearConstraints, "violations", counted)
    copied, left = sampler._copied(batch, infeasible, infeasible, sampler.feasible)
    assert sizes.count(len(X)) == 1 and not left.any()
    assert (copied.values == X[copied.donors]).all()
    assert (copied.values[:, 0] >= 0.5).all()


@pytest.mark.parametrize("method", [Codes(), Codes(order=1), Codes.paper()])
def test_new_rows_are_in_order_without_rounding(method):
    rng = np.random.default_rng(0)
    low = rng.gamma(2, 100, 60)
    middle, high = low + rng.gamma(1, 30, (2, 60)).cumsum(axis=0)
    # Rows with equal values are the limit of the order.
    middle[::5], high[::3] = low[::5], np.maximum(low, middle)[::3]
    high[::5] = np.maximum(high, middle)[::5]
    X = np.column_stack([low, middle, high, rng.normal(size=60)])
    augmenter = PNLAugmenter(method).fit(X)
    assert len(augmenter.inequalities_) == 2
    new = augmenter.sample(300, random_state=0)
    assert (np.diff(new[:, :3], axis=1) >= 0).all()


def test_columns_are_made_equal_only_if_rounding_violates_their_order():
    rng = np.random.default_rng(0)
    X = rng.gamma(2, size=(60, 3))
    X[:, 1] = X[:, 0] + rng.gamma(1, size=60) + 0.3
    new = PNLAugmenter(Codes(), extrapolation=None).fit(X).sample(500, random_state=0)
    assert (new[:, 0] < new[:, 1]).all()


def test_counts_and_near_equalities_can_be_requested_together():
    rng = np.random.default_rng(0)
    flag = (rng.random(200) < 0.4).astype(int)
    price = rng.gamma(3, 5, 200)
    X = pd.DataFrame({"full": (price + 4.95 * flag).round(1), "price": price.round(1)})
    X = X.assign(flag=flag, kind=rng.choice(["a", "b"], 200))
    counts = {"kind": {"a": 30, "b": 70}}
    new = PNLAugmenter().fit(X).sample(100, random_state=0, totals=counts)
    assert new["kind"].value_counts().to_dict() == counts["kind"]
    gap = (new["full"] - new["price"] - 4.95 * new["flag"]).abs().max()
    assert gap <= 4 * (X["full"] - X["price"] - 4.95 * X["flag"]).abs().max()


@pytest.mark.parametrize("seed", range(3))
def test_codes_of_many_ordered_columns_are_no_copies(seed):
    # The bands of a peak rise and fall, so that nearly all neighbours are ordered.
    bands, rng = np.linspace(0, 1, 60), np.random.default_rng(seed)
    X = np.exp(-(((bands - rng.normal(0.5, 0.05, size=(40, 1))) / 0.1) ** 2))
    augmenter = PNLAugmenter(Codes(order=2, offset=0.05, embedding=None)).fit(X)
    assert len(augmenter._relations.inequalities) > 40
    new = augmenter.sample(100, random_state=seed)
    away = np.abs(new[:, None] - X).max(axis=2).min(axis=1)
    assert (away > 1e-6).mean() > 0.95
    for p, q in augmenter._relations.inequalities:
        assert (new[:, p] <= new[:, q]).all()
