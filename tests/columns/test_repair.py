"""Tests of the steps that make sampled rows valid rows."""

import ast
from pathlib import Path

import numpy as np
import pytest

import sklearn_pnl
from sklearn_pnl import PNLAugmenter, PNLRegressionSampler, PNLSampler
from sklearn_pnl.columns import repair
from sklearn_pnl.columns.repair import LAST_STEPS, STEPS, audit, steps_with

pd = pytest.importorskip("pandas")

SETTINGS = [{}, {"value_support": "auto"}, {"order": 1}, {"method": "paper"}]


def names_of(steps):
    return [step.__name__ for step in steps]


def test_the_docstring_lists_the_steps_in_their_order():
    lines = [line for line in repair.__doc__.splitlines() if line[:1].isdigit()]
    listed = [line.split("``")[1] for line in lines]
    assert listed == names_of(STEPS)


def test_only_repair_calls_its_steps():
    root = Path(sklearn_pnl.__file__).parent
    names = {*names_of(STEPS), "reflect"} - {"audit"}
    for path in root.rglob("*.py"):
        if path.name == "repair.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in names, path


def test_projections_are_inserted_once_and_the_last_steps_stay_last():
    def project(batch, context):
        return batch

    assert steps_with() == STEPS
    for which in ("relations", "requests"):
        steps = steps_with(**{which: project})
        assert [step for step in steps if step is not project] == [*STEPS]
        assert steps.count(project) == 1
        assert steps[-3:] == (*LAST_STEPS, audit)
    # A request precedes the precision, and relations precede the rounding.
    requests = names_of(steps_with(requests=project))
    assert requests.index("project") == requests.index("convert_precision") - 1
    relations = names_of(steps_with(relations=project))
    assert relations.index("project") == relations.index("round_values") - 1


def each_once(monkeypatch, call):
    """Return how many rows each step repairs in a call."""
    counts = dict.fromkeys(names_of(STEPS), 0)

    def counted(step):
        def run(batch, context):
            counts[step.__name__] += len(batch.donors)
            return step(batch, context)

        run.__name__ = step.__name__
        return run

    steps = tuple(map(counted, STEPS))
    last = next(k for k, step in enumerate(STEPS) if step in LAST_STEPS)
    for module in ("columns.repair", "methods.sampling"):
        monkeypatch.setattr(f"sklearn_pnl.{module}.STEPS", steps)
    for module in ("columns.repair", "methods.totals"):
        monkeypatch.setattr(f"sklearn_pnl.{module}.LAST_STEPS", steps[last:-1])
    for name, step in zip(names_of(STEPS), steps, strict=True):
        monkeypatch.setattr(f"sklearn_pnl.columns.repair.{name}", step)
    call()
    return counts


@pytest.mark.parametrize("settings", [{}, {"order": 1}])
def test_each_step_repairs_each_row_once(monkeypatch, settings):
    rng = np.random.default_rng(0)
    parts = rng.gamma(2.0, size=(60, 2))
    X = np.column_stack([parts, parts.sum(axis=1), rng.integers(0, 5, 60)])
    augmenter = PNLAugmenter(**settings).fit(X)
    counts = each_once(monkeypatch, lambda: augmenter.sample(50, random_state=0))
    assert set(counts.values()) == {50}


# --- near equalities ----------------------------------------------------------------


def rounded_shares(rng, n):
    shares = (100 * rng.dirichlet(np.ones(4), n)).round(1)
    X = pd.DataFrame(shares, columns=["oil", "gas", "wind", "sun"])
    return X.assign(price=rng.normal(50, 10, n)), [1, 1, 1, 1, 0], 100


def rounded_bills(rng, n):
    parts = rng.lognormal(3, 1, (n, 3))
    X = pd.DataFrame(parts.round(2), columns=["a", "b", "c"])
    X = X.assign(total=parts.sum(axis=1).round(2), age=rng.normal(40, 10, n))
    return X, [1, 1, 1, -1, 0], 0


def express_fees(rng, n):
    price, flag = rng.gamma(3, 5, n), (rng.random(n) < 0.45).astype(int)
    full = (price + 4.95 * flag).round(1)
    X = pd.DataFrame({"flag": flag, "full": full, "price": price.round(1)})
    return X.assign(area=rng.gamma(4, 500, n).round()), [-4.95, 1, -1, 0], 0


@pytest.mark.parametrize("make", [rounded_shares, rounded_bills, express_fees])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_near_equalities_are_preserved_by_every_method(make, settings, seed):
    X, a, value = make(np.random.default_rng(seed), 320)

    def gap(rows):
        return np.abs(rows.to_numpy(float) @ a - value).max()

    new = PNLSampler(random_state=0, **settings).fit_resample(X, np.arange(320) < 70)
    assert gap(new[0].iloc[320:]) <= 4 * gap(X)
    rows = PNLAugmenter(**settings).fit(X).sample(200, random_state=0)
    assert gap(rows) <= 4 * gap(X)
    # Rows are not preserved by copying training rows.
    assert len(rows.merge(X)) < 60


@pytest.mark.parametrize("seed", range(3))
def test_rounding_of_linked_totals_with_missing_parts_is_accepted(seed):
    rng = np.random.default_rng(seed)
    part = rng.uniform(0, 1e7, (300, 4)).round(2)
    X = pd.DataFrame(part, columns=list("abcd"))
    X["mean_ab"] = X[["a", "b"]].mean(axis=1).round(2)
    X["mean"] = (X[["mean_ab", "c", "d"]].sum(axis=1) / 3).round(2)
    X["mean_usd"] = (1.17 * X["mean"]).round(2)
    X.loc[rng.random(300) < 0.3, "a"] = np.nan
    X.loc[rng.random(300) < 0.1, "mean_ab"] = np.nan
    new = PNLAugmenter().fit(X).sample(200, random_state=0)
    assert (new["mean_usd"] - 1.17 * new["mean"]).abs().max() < 0.05


# --- precision ----------------------------------------------------------------------


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("single", ["low", "high"])
def test_columns_of_two_precisions_stay_in_order(settings, single):
    rng = np.random.default_rng(0)
    low = rng.gamma(2, 100, 200)
    high = np.where(rng.random(200) < 0.3, low, low + rng.gamma(1, 1e-4, 200))
    X = pd.DataFrame({"low": low, "high": high, "free": rng.normal(size=200)})
    X[single] = X[single].astype("float32")
    X["low"] = np.minimum(X["low"], X["high"].astype(X["low"].dtype))
    X = X[X["low"] <= X["high"]]
    new = PNLAugmenter(**settings).fit(X).sample(2000, random_state=0)
    assert (new["low"] <= new["high"]).all()
    assert new.dtypes.equals(X.dtypes)


@pytest.mark.parametrize("cap", [97.3, 99.9, 48.7])
def test_the_target_of_equal_targets_is_the_same_number(cap):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.minimum(cap, cap * np.exp(0.3 * X[:, 0] + 0.2 * rng.normal(size=400)))
    sampler = PNLRegressionSampler(random_state=0)
    new = sampler.fit_resample(X, y)[1][400:]
    of_parents = y[sampler.parent_indices_]
    equal = of_parents[:, 0] == of_parents[:, 1]
    assert equal.sum() > 20
    assert (new[equal] == of_parents[equal, 0]).all()
    assert new.max() <= cap


# --- least differences of ordered columns ---------------------------------------------


def staff(seed, kind, n=400):
    """Return employees who were hired at 18 years or more."""
    rng = np.random.default_rng(seed)
    birth = rng.integers(-5000, 9000, n)
    hired = birth + 6575 + rng.gamma(2, 1460, n).astype(int)
    X = pd.DataFrame({"birth": birth, "hired": hired, "pay": rng.normal(size=n)})
    if kind == "float":
        return X + rng.random((n, 1))
    if kind == "date":
        for name in ("birth", "hired"):
            X[name] = pd.Timestamp("1970-01-01") + pd.to_timedelta(X[name], "D")
    return X


def least_days(X):
    days = X["hired"] - X["birth"]
    return (days.dt.days if days.dtype.kind == "m" else days).min()


@pytest.mark.parametrize("kind", ["int", "float", "date"])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_ordered_columns_keep_their_least_difference(settings, kind):
    X = staff(0, kind)
    new = PNLAugmenter(**settings).fit(X).sample(1500, random_state=0)
    rounding = 1e-5 if kind == "float" else 0
    assert least_days(new) >= least_days(X) - rounding
    sampler = PNLSampler(random_state=0, **settings)
    new = sampler.fit_resample(X, np.arange(len(X)) < 40)[0].iloc[len(X) :]
    assert least_days(new) >= least_days(X) - rounding
    # The difference is not kept by copies of training rows.
    assert len(new.merge(X)) < 0.3 * len(new)


@pytest.mark.parametrize(
    "kind, support", [("int", None), ("float", None), ("float", "auto")]
)
def test_extrapolation_reduces_the_least_difference_of_floats_only(kind, support):
    X = staff(1, kind).round(1)
    difference = X["hired"] - X["birth"]
    for share in (0.1, None):
        augmenter = PNLAugmenter(value_support=support, extrapolation=share).fit(X)
        (k,) = np.flatnonzero((augmenter._relations.inequalities == [0, 1]).all(axis=1))
        room = np.inf if share is None else share * np.ptp(difference)
        expected = difference.min() - (room if kind == "float" else 0)
        distance = augmenter._relations.distances[k]
        assert distance == pytest.approx(max(expected, 0))
        new = augmenter.sample(1500, random_state=0)
        assert (new["hired"] - new["birth"]).min() >= distance - 1e-5


def test_requests_preserve_the_order_but_not_the_least_difference():
    X = staff(2, "int")
    request = {"totals": {"hired": float(X["hired"].sum() // 2)}}
    new = PNLAugmenter().fit(X).sample(len(X), random_state=0, **request)
    assert new["hired"].sum() == request["totals"]["hired"]
    assert (new["birth"] <= new["hired"]).all()
