"""Parameters of the published method, as users pass them on."""

import numpy as np
import pytest
from imblearn.pipeline import make_pipeline
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB

from sklearn_pnl import PAPER_RECIPE, PNLAugmenter, PNLSampler

X = np.random.default_rng(0).uniform(size=(60, 12))
Y = np.repeat([0, 1], [40, 20])


def test_what_one_user_sets_does_not_reach_the_next():
    first = PNLSampler(**PAPER_RECIPE)
    first.set_params(order__order=2, order__offset=0.5, draws__bandwidth=3.0)
    second = PNLSampler(**PAPER_RECIPE)
    assert second.order.order == 1 and second.order.offset == 1e-5
    assert second.draws.bandwidth == 0.05
    for name in PAPER_RECIPE:
        assert PAPER_RECIPE[name] is not PAPER_RECIPE[name]
    with pytest.raises(TypeError):
        PAPER_RECIPE["order"] = 2


def test_it_is_read_as_a_dict():
    assert len(PAPER_RECIPE) == len(dict(PAPER_RECIPE)) == len(list(PAPER_RECIPE))
    assert set(PAPER_RECIPE) == {"order", "draws", "local_manifold", "reshaper"}
    assert "KernelDraws" in repr(PAPER_RECIPE)
    with pytest.raises(KeyError):
        PAPER_RECIPE["nothing"]


@pytest.mark.parametrize("make", [PNLAugmenter, PNLSampler])
def test_estimators_with_it_are_cloned(make):
    estimator = make(**PAPER_RECIPE)
    again = clone(estimator)
    assert again.order is not estimator.order
    assert repr(again) == repr(estimator)
    if make is PNLAugmenter:
        rows = [each.fit(X).sample(5, random_state=0) for each in (estimator, again)]
    else:
        both = [each.set_params(random_state=0) for each in (estimator, again)]
        rows = [each.fit_resample(X, Y)[0] for each in both]
    assert_array_equal(*rows)
    assert not hasattr(estimator.order, "poset_")


def test_its_order_can_be_searched():
    model = make_pipeline(PNLSampler(**PAPER_RECIPE, random_state=0), GaussianNB())
    grid = {"pnlsampler__order__order": [1, 2], "pnlsampler__k_neighbors": [3, 8]}
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, Y)
    chosen = search.best_estimator_[0]
    assert chosen.order_ == search.best_params_["pnlsampler__order__order"]
    assert model[0].order.order == 1
