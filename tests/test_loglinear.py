"""LogLinearModel: the model of the summed rows and its score."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from sklearn_pnl import LogLinearModel, ManyBodyProjector
from sklearn_pnl.geometry import Poset, goodness_of_fit, theta_with_errors

SHAPE = (2, 3, 2)


def strata(seed, n_rows=12, mean=40):
    """Draw tables of counts of a model in which modes 0 and 1 depend on each other."""
    rng = np.random.default_rng(seed)
    pair = np.array([[3, 1, 1], [1, 1, 3.0]])
    rates = np.multiply.outer(pair / pair.mean(), [0.7, 1.3])
    return rng.poisson(mean * rates, (n_rows, *SHAPE))


@pytest.mark.parametrize(
    "model, rows",
    [
        (LogLinearModel(2), strata(0)),
        (LogLinearModel([(0, 1), (2,)]), strata(1)),
        (LogLinearModel(base=[(0, 1, 0), (1, 0, 0), (1, 1, 1)]), strata(2)),
        (LogLinearModel(2, offset=0.5), strata(3, mean=1)),
    ],
)
def test_the_sum_of_the_rows_is_fitted(model, rows):
    model.fit(rows)
    assert model.n_features_in_ == 2 and model.input_shape_ == SHAPE
    assert_allclose(model.counts_, rows.sum(axis=0) + model.offset)
    fit = goodness_of_fit(model.counts_, model.poset_, model.base_mask_)
    for name in ("deviance", "pearson", "dof", "adjusted_dof", "aic", "bic"):
        assert getattr(model.statistics_, name) == pytest.approx(getattr(fit, name))
    assert_allclose(model.expected_, fit.expected)
    theta, errors = theta_with_errors(
        fit.expected / fit.total, fit.total, model.poset_, model.base_mask_
    )
    assert_allclose(model.theta_, theta)
    assert_allclose(model.standard_errors_, errors)
    assert model.n_params_ == len(theta) == model.base_mask_.sum()


def test_theta_is_the_code_of_the_sum():
    rows = strata(0)
    model = LogLinearModel(2).fit(rows)
    projector = ManyBodyProjector(2, offset=0, tol=1e-10)
    assert_allclose(model.theta_, projector.fit_transform([rows.sum(axis=0)])[0])


def test_score_is_the_mean_log_likelihood_of_a_count():
    rows, new = strata(0), strata(1)
    model = LogLinearModel(2).fit(rows)
    q = model.expected_ / rows.sum()
    of_rows = (new * np.log(q)).sum(axis=(1, 2, 3))
    assert_allclose(model.score_samples(new), of_rows)
    assert model.score(new) == pytest.approx(of_rows.sum() / new.sum())
    # For the training rows, the score is that in the AIC.
    aic = 2 * model.n_params_ - 2 * rows.sum() * model.score(rows)
    assert model.statistics_.aic == pytest.approx(aic)
    # A repeated row counts twice, and a row without counts does not count.
    assert model.score(np.concatenate([new, new, 0 * new])) == pytest.approx(
        model.score(new)
    )


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_search_over_orders_chooses_the_model(seed):
    orders = [1, [(0, 1), (2,)], [(0, 2), (1,)], 2, 3]
    search = GridSearchCV(LogLinearModel(), {"order": orders}, cv=4)
    search.fit(strata(seed, mean=100))
    assert search.best_params_["order"] == [(0, 1), (2,)]
    # The training rows would choose the largest order.
    own = [LogLinearModel(o).fit(strata(seed)).score(strata(seed)) for o in orders]
    assert np.argmax(own) == len(orders) - 1


def test_counts_in_impossible_cells_have_zero_likelihood():
    rows = np.array([[[5, 0], [3, 4]]])
    model = LogLinearModel(2).fit(rows)
    assert model.score([[[1, 1], [1, 1]]]) == -np.inf
    assert np.isfinite(model.score(rows))
    assert np.isnan(model.theta_[[0, 2]]).all() and np.isfinite(model.theta_[1])
    assert np.isfinite(
        LogLinearModel(2, offset=0.5).fit(rows).score([[[1, 1], [1, 1]]])
    )


def test_structural_zeros_are_excluded_everywhere():
    rows, can = strata(0), np.ones(SHAPE, bool)
    can[1, 2] = False
    rows = rows * can
    model = LogLinearModel(2, reference=can, offset=0.5).fit(rows)
    counts = model.counts_
    assert_allclose(counts, rows.sum(axis=0) + 0.5 * can)
    fit = goodness_of_fit(counts, model.poset_, 2, reference=can)
    assert model.statistics_.dof == fit.dof == 1
    assert model.n_params_ == fit.n_params < model.base_mask_.sum()
    assert_allclose(model.expected_, fit.expected)
    assert not model.expected_[~can].any()
    assert np.isnan(model.theta_).any() and np.isfinite(model.theta_).any()
    tests = model.deviance_tests()
    assert tests.dof.sum() == can.sum() - 1
    assert clone(model).fit(rows).statistics_.dof == 1
    assert model.score(rows + ~can) == -np.inf
    with pytest.raises(ValueError):
        model.fit(rows + 1)


def test_parameters_and_cells_can_be_converted_to_frames():
    pytest.importorskip("pandas")
    model = LogLinearModel(1).fit(strata(0))
    frame = model.to_frame()
    assert frame.index.names == ["mode 0", "mode 1", "mode 2"]
    assert frame.index.tolist() == [(0, 0, 1), (0, 1, 0), (0, 2, 0), (1, 0, 0)]
    assert_allclose(frame["z"], model.theta_ / model.standard_errors_)
    assert ((frame["p"] >= 0) & (frame["p"] <= 1)).all()
    cells = model.to_frame("cell")
    assert len(cells) == 12
    assert np.sum(cells["residual"] ** 2) == pytest.approx(model.statistics_.pearson)
    assert_array_equal(cells["count"], model.counts_.ravel())
    one = LogLinearModel().fit([[3, 4, 5]]).to_frame("cell")
    assert one.index.tolist() == [0, 1, 2]
    with pytest.raises(ValueError):
        model.to_frame("mode")


def test_rows_that_are_not_counts_are_rejected():
    for counts in ([[1, -1]], [[1, np.nan]], [[0, 0], [0, 0]]):
        with pytest.raises(ValueError):
            LogLinearModel().fit(counts)
    with pytest.raises(ValueError):
        LogLinearModel().fit(strata(0)).score(np.ones((2, 3)))
    added = Poset.from_relations(2, [], add_bottom=True)
    with pytest.raises(ValueError):
        LogLinearModel(poset=added).fit([[1, 2]])


def test_a_single_table_raises_a_warning():
    table = strata(0).sum(axis=0)[0]
    with pytest.warns(UserWarning, match=r"fit\(X\[None\]"):
        assert LogLinearModel().fit(table).statistics_.dof == 0
    assert LogLinearModel().fit(table[None]).statistics_.dof == 2


@pytest.mark.parametrize("n_rows", [1, 3])
def test_shares_instead_of_counts_raise_a_warning(n_rows):
    shares = strata(0, n_rows) / strata(0, n_rows).sum(axis=(1, 2, 3), keepdims=True)
    with pytest.warns(UserWarning, match="shares and not counts. The.*number of cases"):
        LogLinearModel().fit(shares)
    assert LogLinearModel().fit(100 * shares).statistics_.total == pytest.approx(
        100 * n_rows
    )
