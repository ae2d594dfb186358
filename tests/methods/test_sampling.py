"""Tests of new rows that become copies of training rows."""

import numpy as np

from sklearn_pnl import PNLAugmenter
from sklearn_pnl.control import ColumnConstraint
from sklearn_pnl.control.constraints import LinearConstraints


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
    assert (copied.numbers == X[copied.donors]).all()
    assert (copied.numbers[:, 0] >= 0.5).all()
