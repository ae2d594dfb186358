"""New rows on straight lines: theorems and distribution."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import LinearConstraint

from sklearn_pnl import PNLAugmenter
from sklearn_pnl.columns.relations import find_relations
from sklearn_pnl.columns.repair import STEPS, Batch, repair
from sklearn_pnl.control import ColumnConstraint, column_total
from sklearn_pnl.encoding.table_neighbors import RowSearch
from sklearn_pnl.frames import TableReader, read_table
from sklearn_pnl.methods.lines import Lines
from sklearn_pnl.methods.parents import choose_donors, choose_parents
from sklearn_pnl.methods.sampling import fit_rows
from sklearn_pnl.methods.source import Request

pd = pytest.importorskip("pandas")

SEEDS = [0, 1, 2]
BARE = {"extrapolation": None}


def draw(X, n=500, seed=0, with_parents=False, **params):
    """Sample from an augmenter that uses only the types, as the samplers do."""
    augmenter = PNLAugmenter(**{"value_support": None, **params}).fit(X)
    return augmenter.sample(n, random_state=seed, return_parents=with_parents)


def gamma(seed, *shape):
    return np.random.default_rng(seed).gamma(2.0, size=shape)


# --- theorems ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_affine_combinations_stay_in_every_m_flat_submanifold(seed):
    # An m-flat submanifold is an affine subspace of eta, and contains affine
    # combinations of its points (Amari and Nagaoka, Methods of information geometry,
    # 2000, section 3.4). With 80 rows, equalities between 122 columns cannot be
    # detected, but they hold.
    rng = np.random.default_rng(seed)
    parts = rng.gamma(1.0, size=(80, 120))
    shares = rng.uniform(size=(120, 2)) * (rng.uniform(size=(120, 2)) < 0.5)
    order = rng.permutation(122)
    X = np.hstack([parts, parts @ shares])[:, order]
    coefficients = np.vstack([shares, -np.eye(2)])[order]
    new = draw(X, seed=seed, **BARE)
    missed = np.abs(new @ coefficients).max(axis=0)
    assert (missed <= 1e-12 * np.ptp(parts @ shares, axis=0)).all()
    # The factor of the noise of a row preserves all inequalities between columns.
    for p, q in itertools.permutations(range(122), 2):
        if (X[:, p] <= X[:, q]).all():
            assert (new[:, p] <= new[:, q]).all()
    # The noise is not reduced.
    assert 0.85 < (new.std(axis=0) / X.std(axis=0)).mean() < 1.15


@pytest.mark.parametrize("seed", SEEDS)
def test_convex_combinations_stay_in_every_half_space(seed):
    # The intersection of the half-spaces that contain the rows is their convex hull
    # (Rockafellar, Convex analysis, 1970, theorem 11.5).
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 6)) * 10.0 ** rng.integers(-3, 4, 6)
    new = draw(X, seed=seed, method=Lines(noise=0))
    normals = rng.normal(size=(6, 2000)) / X.std(axis=0)[:, None]
    ends = X @ normals
    room = 1e-12 * np.ptp(ends, axis=0)
    assert (new @ normals <= ends.max(axis=0) + room).all()
    assert (new @ normals >= ends.min(axis=0) - room).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_mixing_removes_a_sixth_of_the_covariance_of_differences(seed):
    # Var(x_i + t d) = V - E[d d'] / 6 for exchangeable pairs and uniform t; the noise
    # adds noise^2 E[d d']. If all other rows are neighbours (k = m - 1), both terms
    # have a closed form.
    m, n = 40, 60_000
    X = np.random.default_rng(seed).normal(size=(m, 3)) @ np.diag([1, 10, 0.1])
    differences = 2 * np.cov(X.T)
    spread = np.sqrt(np.diag(differences))
    for noise in (0, 6**-0.5, 0.6):
        bare = {"extrapolation": None, "method": Lines(noise)}
        new = draw(X, n, seed, k_neighbors=m - 1, equalities=None, **bare)
        expected = np.cov(X.T, ddof=0) + differences * (noise**2 - 1 / 6)
        error = (np.cov(new.T) - expected) / np.outer(spread, spread)
        # The deviation of an estimated covariance, sqrt(2 / n), nine times.
        assert np.abs(error).max() < 9 * np.sqrt(2 / n)
        # The mean is that of the rows, within six deviations.
        gap = np.abs(new.mean(axis=0) - X.mean(axis=0)) / X.std(axis=0)
        assert gap.max() < 6 / np.sqrt(n)


@pytest.mark.parametrize("seed", SEEDS)
def test_noise_has_the_covariance_of_the_differences_to_neighbours(seed):
    rng = np.random.default_rng(seed)
    X, n, k = rng.normal(size=(30, 3)) * [1, 10, 0.1], 40_000, 5
    read = read_table(TableReader(None), X)
    found = find_relations(read, None, 0.0, None)
    source = fit_rows(Lines(0.5), read, found, k, None, None, "test").source
    state = np.random.RandomState(seed)
    request = Request(n, k, base_rows=np.full(n, 7))
    parents = choose_parents(source.search, request, state)
    noise = source.mix(parents, parents.base_rows, state)[1]
    differences = X[parents.neighbors[0, 1:]] - X[7]
    assert len(parents.neighbors) == 1
    expected = 0.25 * differences.T @ differences / k
    size = np.sqrt(np.diag(expected))
    error = (noise.T @ noise / n - expected) / np.outer(size, size)
    assert np.abs(error).max() < 6 * np.sqrt(2 / n)


def test_copies_of_a_column_stay_copies():
    # Each step is invariant to the scale of a column.
    X = np.random.default_rng(0).gamma(1.0, size=(20, 15))
    new = draw(np.hstack([X, 3 * X, -X, X + 7]))
    for copy, scale, shift in ((1, 3, 0), (2, -1, 0), (3, 1, 7)):
        columns = slice(15 * copy, 15 * copy + 15)
        assert_allclose(new[:, columns], scale * new[:, :15] + shift, atol=1e-12)


# --- the draw, literally ----------------------------------------------------------


def draw_slow(X, parents, noise, rng, low, high, equal, inequalities, distances):
    """Compute steps 2 to 6 of the sampling for one row and cell after the other."""
    n, k = len(parents.base_rows), parents.neighbors.shape[1] - 1
    g = rng.standard_normal((n, k))
    tied = np.zeros(X.shape[1], bool)
    tied[[*equal, *np.ravel(inequalities)]] = True
    new = np.empty((n, X.shape[1]))
    for row in range(n):
        x_i, x_j = X[parents.base_rows[row]], X[parents.second[row]]
        b = x_i + parents.position[row] * (x_j - x_i)
        z = g[row] * noise / np.sqrt(k)
        near = parents.neighbors[parents.source[row], 1:]
        step = sum(z[a] * (X[near[a]] - x_i) for a in range(k))
        for c in range(X.shape[1]):
            if x_i[c] == x_j[c] and c not in equal:
                step[c] = 0
        s = np.inf
        for c in np.flatnonzero(tied):
            if step[c] != 0:
                s = min(s, ((high[c] if step[c] > 0 else low[c]) - b[c]) / step[c])
        for (p, q), least in zip(inequalities, distances, strict=True):
            if step[p] > step[q]:
                s = min(s, (b[q] - b[p] - least) / (step[p] - step[q]))
        s = max(s, 0)
        for c in range(X.shape[1]):
            if tied[c]:
                # The value 1, reflected at 0 and s until it is between 0 and s.
                h = 1.0 if s >= 1 else s - abs(1 % (2 * s) - s) if s > 0 else 0.0
                new[row, c] = b[c] + h * step[c]
                continue
            value = b[c] + step[c]
            if value < low[c]:
                value = 2 * low[c] - value
            if value > high[c]:
                value = 2 * high[c] - value
            new[row, c] = min(max(value, low[c]), high[c])
    return new


@pytest.mark.parametrize("seed", range(5))
def test_new_rows_follow_the_documented_formula(seed):
    rng = np.random.default_rng(seed)
    parts = rng.gamma(1.0, size=(60, 3))
    ordered = rng.gamma(0.5, size=(60, 3)).cumsum(axis=1)
    free = rng.choice([0, 0, 1.5, 2.5, 7], (60, 4)) * rng.normal(size=4)
    X = np.column_stack([parts, parts.sum(axis=1), ordered, free])
    read = read_table(TableReader(None), X)
    found = find_relations(read, None, 0.0, "auto")
    assert_array_equal(np.flatnonzero(found.in_equality), range(4))
    assert {(4, 5), (5, 6)} <= {tuple(pair) for pair in found.inequalities}
    state = np.random.RandomState
    settings = Lines(0.6, n_candidates=None)
    rows = fit_rows(settings, read, found, 7, None, None, "test")
    source = rows.source
    parents = choose_parents(source.search, Request(300, 7), state(seed))
    donors, givers = choose_donors(parents, source.mixable, None)
    mixed, noise = source.mix(parents, donors, state(seed))
    pairs = np.column_stack([parents.base_rows, parents.second])
    batch = Batch(mixed, pairs, None, donors, noise, givers)
    new = repair(batch, rows.context, STEPS)
    slow = draw_slow(
        X, parents, 0.6, state(seed), X.min(axis=0), X.max(axis=0), range(4),
        found.inequalities, found.distances,
    )  # fmt: skip
    assert_allclose(new.values, slow, rtol=0, atol=1e-9)
    assert_array_equal(new.donors, parents.base_rows)


def test_base_row_neighbour_and_position_are_uniform():
    X = np.random.default_rng(0).normal(size=(30, 3)) * [1, 1e3, 1e-3]
    state, n, k = np.random.RandomState(0), 60_000, 4
    parents = choose_parents(RowSearch(X), Request(n, k), state)
    scaled = X / np.ptp(X, axis=0)
    distances = np.linalg.norm(scaled[:, None] - scaled, axis=2)
    near = np.argsort(distances, axis=1)[:, 1:11]
    # Distances are relative to the differences between near rows.
    scaled /= np.abs(scaled[:, None] - scaled[near]).mean(axis=(0, 1))
    distances = np.linalg.norm(scaled[:, None] - scaled, axis=2)
    near = np.argsort(distances, axis=1)[:, 1 : k + 1]
    pairs = np.zeros((30, 30))
    np.add.at(pairs, (parents.base_rows, parents.second), 1)
    expected = np.zeros((30, 30))
    np.put_along_axis(expected, near, n / 30 / k, axis=1)
    assert_array_equal(pairs > 0, expected > 0)
    assert np.abs(pairs - expected).max() < 6 * np.sqrt(n / 30 / k)
    # Kolmogorov's bound: a gap above 3.9 / sqrt(n) has probability 1e-13.
    t = np.sort(parents.position)
    assert np.abs(t - (np.arange(n) + 0.5) / n).max() < 3.9 / np.sqrt(n)


# --- distribution -----------------------------------------------------------------


@pytest.mark.parametrize("apart", [8, 20])
@pytest.mark.parametrize("seed", SEEDS)
def test_dense_clusters_keep_their_spread(seed, apart):
    # Noise of one size for all rows would enlarge the cluster, and mixing without noise
    # would reduce its variance by a ninth.
    rng = np.random.default_rng(seed)
    wide, tight = rng.normal(size=(100, 8)), 0.1 * rng.normal(size=(100, 8)) + apart
    new = draw(np.vstack([wide, tight]), 4000, seed)
    of_tight = new.mean(axis=1) > apart / 2
    assert abs(of_tight.mean() - 0.5) < 6 * 0.5 / np.sqrt(4000)
    for cluster, rows in ((tight, new[of_tight]), (wide, new[~of_tight])):
        spread = (rows.std(axis=0) / cluster.std(axis=0)).mean()
        assert 0.85 < spread < 1.15


def test_few_new_values_equal_a_bound():
    # Neither free columns, which are reflected, nor columns of equalities, whose step
    # is shortened.
    parts = gamma(0, 200, 3)
    X = np.column_stack([parts, parts.sum(axis=1), gamma(1, 200, 2)])
    new = draw(X, 4000)
    on_limit = (new == X.min(axis=0)) | (new == X.max(axis=0))
    assert on_limit.mean() < 0.01


# --- equalities -------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("turned", [False, True])
def test_totals_and_subtotals_hold_up_to_rounding(turned, seed):
    rng = np.random.default_rng(seed)
    parts = rng.gamma(1.0, size=(300, 6)) * 10.0 ** rng.integers(-2, 3, 6)
    first, second = parts[:, :3].sum(axis=1), parts[:, 3:].sum(axis=1)
    X = np.column_stack([parts, first, second, first + second, rng.normal(size=300)])
    order = rng.permutation(10) if turned else np.arange(10)
    new = np.empty((500, 10))
    new[:, order] = draw(X[:, order], seed=seed)
    range_ = np.ptp(X[:, 8])
    assert_allclose(new[:, 6], new[:, :3].sum(axis=1), rtol=0, atol=1e-12 * range_)
    assert_allclose(new[:, 8], new[:, 6] + new[:, 7], rtol=0, atol=1e-12 * range_)
    assert (new >= X.min(axis=0)).all()
    assert (new <= X.max(axis=0)).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_near_equalities_hold_as_closely_as_in_the_data(seed):
    # Parts in cents with an exact total; percentages that sum to 99 to 101.
    rng = np.random.default_rng(seed)
    parts = rng.gamma(1.0, size=(400, 5)) * 100
    X = np.column_stack([np.round(parts, 2), parts.sum(axis=1)])
    new = draw(X, seed=seed)
    off = X[:, 5] - X[:, :5].sum(axis=1)
    new_off = new[:, 5] - new[:, :5].sum(axis=1)
    assert new_off.std() < 1.5 * off.std()
    assert np.abs(new_off).max() < 4 * np.abs(off).max()
    shares = np.rint(100 * rng.dirichlet(np.full(4, 3.0), 400))
    new_sums = draw(shares, seed=seed).sum(axis=1)
    assert new_sums.std() < 1.5 * shares.sum(axis=1).std()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_exact_equalities_hold_next_to_a_trend_over_integer_years(seed):
    rng = np.random.default_rng(seed)
    year = np.repeat(np.arange(1980, 2020), 2)
    log_cost = 0.03 * year + 0.005 * rng.normal(size=80)
    log_share = rng.normal(size=80)
    X = pd.DataFrame({"year": year, "log_cost": log_cost, "log_share": log_share})
    X["log_part"] = X["log_cost"] + X["log_share"]
    rows = PNLAugmenter().fit(X).sample(200, random_state=seed)
    missed = rows["log_part"] - rows["log_cost"] - rows["log_share"]
    assert np.abs(missed).max() <= 1e-12
    # The trend is that of the data.
    assert (rows["log_cost"] - 0.03 * rows["year"]).std() <= 0.01


def test_sums_along_the_axes_of_images_hold():
    X = np.random.default_rng(0).gamma(1.0, size=(40, 5, 6))
    X /= X.sum(axis=2, keepdims=True)
    new = draw(X, 100, method="lines")
    assert_allclose(new.sum(axis=2), 1, atol=1e-12)


def test_given_equalities_hold_with_few_training_rows():
    rng = np.random.default_rng(0)
    parts = rng.gamma(1.0, size=(12, 15))
    total = parts[:, ::2].sum(axis=1)
    X = pd.DataFrame(np.column_stack([parts, total]), columns=[*"abcdefghijklmnop"])
    a = np.zeros((1, 16))
    a[0, :15:2], a[0, 15] = 1, -1
    new = draw(X, equalities=LinearConstraint(a, 0, 0))
    assert_allclose(new.iloc[:, :15:2].sum(axis=1), new["p"], atol=1e-11)
    assert (draw(X, equalities=None).iloc[:, :15:2].sum(axis=1) != new["p"]).any()


# --- inequalities -----------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("noise", [0.6, 3.0])
def test_orders_always_hold(noise, seed):
    rng = np.random.default_rng(seed)
    low = rng.normal(size=200)
    mid, high = low + rng.gamma(0.5, size=200), low + rng.gamma(0.5, size=200) + 3
    mid = np.minimum(mid, high)
    X = np.column_stack([high, rng.normal(size=200), low, mid])
    augmenter = PNLAugmenter(method=Lines(noise), value_support=None).fit(X)
    assert {(2, 3), (3, 0)} <= set(augmenter.inequalities_)
    new = augmenter.sample(4000, random_state=seed)
    assert (new[:, 2] <= new[:, 3]).all()
    assert (new[:, 3] <= new[:, 0]).all()
    # The order is not preserved by making both values equal.
    assert (new[:, 2] == new[:, 3]).mean() < 0.01


def test_orders_of_integers_and_floats_hold():
    rng = np.random.default_rng(0)
    whole = rng.poisson(3, 300)
    X = pd.DataFrame(
        {
            "whole": whole,
            "above": whole + rng.gamma(0.3, size=300),
            "below": np.maximum(whole - rng.gamma(0.3, size=300), -1),
            "twice": whole + rng.poisson(1, 300),
        }
    )
    new = draw(X, 3000, method=Lines(1.0))
    assert (new["below"] <= new["whole"]).all()
    assert (new["whole"] <= new["above"]).all()
    assert (new["whole"] <= new["twice"]).all()
    assert new["whole"].dtype == X["whole"].dtype


def test_orders_of_dates_hold_and_dates_stay_days():
    rng = np.random.default_rng(0)
    start = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 500, 150), "D")
    end = start + pd.to_timedelta(rng.integers(0, 30, 150), "D")
    X = pd.DataFrame({"end": end, "amount": rng.normal(size=150), "start": start})
    new = draw(X, 2000)
    assert (new["start"] <= new["end"]).all()
    assert new.dtypes.equals(X.dtypes)
    assert new["end"].dt.normalize().equals(new["end"])
    assert new["start"].between(X["start"].min(), X["start"].max()).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_orders_with_a_binary_column_hold(seed):
    rng = np.random.default_rng(seed)
    children = rng.poisson(0.7, 300)
    X = pd.DataFrame({"has": (children > 0).astype(int), "children": children})
    new = draw(X.assign(income=rng.normal(size=300)), 3000, seed)
    assert (new["has"] <= new["children"]).all()


def paid_and_due(seed, n=400):
    """Return amounts with frequent zeros and caps: paid <= whole <= due <= cap."""
    rng = np.random.default_rng(seed)
    due = np.where(rng.random(n) < 0.2, 0, np.round(rng.gamma(2.0, 40, size=n), 2))
    paid = np.where(rng.random(n) < 0.4, 0, np.round(due * rng.random(n), 2))
    whole = np.where(rng.random(n) < 0.3, due, paid)
    cap = np.where(rng.random(n) < 0.3, 500, 300 + np.ceil(due / 20) * 20)
    columns = {"paid": paid, "whole": whole, "due": due, "cap": np.maximum(cap, due)}
    return pd.DataFrame(columns).assign(free=rng.normal(size=n))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("noise", [0.6, 3.0])
@pytest.mark.parametrize("missing", [0, 0.1])
def test_ordered_columns_keep_their_atoms(missing, noise, seed):
    X = paid_and_due(seed)
    gaps = np.random.default_rng(seed).random(X.shape) < missing
    X = X.mask(gaps)
    augmenter = PNLAugmenter(method=Lines(noise)).fit(X)
    found = {("paid", "whole"), ("whole", "due"), ("due", "cap")}
    assert found <= {*augmenter.inequalities_}
    new = augmenter.sample(4000, random_state=seed)
    for low, high in augmenter.inequalities_:
        assert not (new[low] > new[high]).any()
    for name, atom in [("due", 0), ("paid", 0), ("whole", 0), ("cap", 500)]:
        assert abs((new[name] == atom).mean() - (X[name] == atom).mean()) < 0.06
    # The other amounts are mixed, and few are copied with an atom.
    mixed = new["due"][new["due"] > 0]
    assert mixed.isin(X["due"]).mean() < 0.15


@pytest.mark.parametrize("seed", SEEDS)
def test_requests_preserve_the_order_of_columns_with_atoms(seed):
    X = paid_and_due(seed)
    augmenter = PNLAugmenter().fit(X)
    total = round(1.2 * X["paid"].sum(), 2)
    for request in (
        {"totals": {"paid": total}},
        {"constraints": [ColumnConstraint("due", lower=20)]},
        {
            "constraints": [ColumnConstraint("paid", upper=30)],
            "totals": {"due": 20_000},
        },
    ):
        new = augmenter.sample(400, random_state=seed, **request)
        assert ((new["paid"] <= new["due"]) & (new["due"] <= new["cap"])).all()
        assert (new["whole"] <= new["due"]).all()
        assert ((new >= X.min()) & (new <= X.max())).all(axis=None)


# --- types ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_sums_of_integers_are_exact(seed):
    rng = np.random.default_rng(seed)
    adults, children = rng.poisson(2, 200) + 1, rng.poisson(1, 200)
    hours, minutes = rng.integers(0, 8, 200), rng.integers(0, 60, 200)
    X = pd.DataFrame(
        {"persons": adults + children, "adults": adults, "children": children,
         "total": 60 * hours + minutes, "hours": hours, "minutes": minutes}
    )  # fmt: skip
    new = draw(X, 2000, seed)
    assert (new["persons"] == new["adults"] + new["children"]).all()
    assert (new["total"] == 60 * new["hours"] + new["minutes"]).all()
    assert ((new >= X.min()) & (new <= X.max())).all(axis=None)
    assert new.drop_duplicates().shape[0] > 500


# --- degenerate rows --------------------------------------------------------------


def test_new_rows_of_two_rows_and_of_copies():
    X = np.random.default_rng(0).normal(size=(2, 4))
    with np.errstate(all="raise"):
        new = draw(X, 50, k_neighbors=1, **BARE)
    t = (new - X[0]) @ (X[1] - X[0]) / np.sum((X[1] - X[0]) ** 2)
    assert_allclose(new, X[0] + t[:, None] * (X[1] - X[0]), atol=1e-12)
    copies = np.repeat(X[:1], 30, axis=0)
    with pytest.warns(UserWarning, match="100% of the new rows equal a training row"):
        new = draw(copies, 50)
    assert_array_equal(new, np.repeat(X[:1], 50, axis=0))


def test_copies_of_a_row_are_equally_likely_second_parents():
    # With 40 copies and 5 neighbours, a search would return the same five rows for all
    # copies.
    X = np.vstack([np.zeros((40, 2)), np.random.default_rng(0).normal(size=(20, 2))])
    with pytest.warns(UserWarning, match="equal a training row"):
        _, parents = draw(X, 4000, k_neighbors=5, with_parents=True)
    of_copies = parents[parents[:, 0] < 40, 1]
    assert set(of_copies) == set(range(40))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_integers_that_depend_on_missing_cells_stay_integers(seed):
    # Ages at marriage and now; some ages are unknown.
    rng = np.random.default_rng(seed)
    then, years = rng.integers(18, 40, (2, 150)), rng.integers(1, 30, 150)
    X = pd.DataFrame({"his": then[0] + years, "hers": then[1] + years})
    X["his_then"], X["hers_then"], X["years"] = *then, years
    unknown = rng.random(150) < 0.2
    X = X.astype(dict.fromkeys(X.columns[1:], float))
    X.loc[unknown, ["hers", "hers_then", "years"]] = np.nan
    augmenter = PNLAugmenter().fit(X)
    totals = {"his": int(60 * X["his"].mean())}
    free = augmenter.sample(300, seed)
    for rows in (free, augmenter.sample(60, seed, totals=totals)):
        known = rows.dropna()
        assert len(known) < len(rows)
        assert (known["his"] == known["his_then"] + known["years"]).all()
        assert (known["hers"] == known["hers_then"] + known["years"]).all()
        # The age follows from his own years, and not from values that replace her
        # missing age.
        assert rows["his"].between(X["his"].min(), X["his"].max()).all()
        alone, lone = rows[rows["hers"].isna()], X[unknown]
        spread = (alone["his"] - alone["his_then"]).std()
        assert 0.6 <= spread / (lone["his"] - lone["his_then"]).std() <= 1.4


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_integers_near_equalities_with_missing_cells_stay_integers(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 40, (150, 2)), columns=["first", "second"])
    both = X["first"] + X["second"] + (rng.random(150) < 0.05)
    X["both"] = both.astype(float).mask(rng.random(150) < 0.3)
    X["threefold"] = 3 * both
    rows = PNLAugmenter().fit(X).sample(300, random_state=seed)
    assert rows["both"].isna().any()
    assert rows["threefold"].between(0, X["threefold"].max()).all()
    off = (rows["threefold"] - 3 * rows["both"]).dropna()
    assert off.abs().max() <= 3


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("kind", ["Int64", "float64", "float32"])
def test_sums_that_follow_without_a_missing_part_are_kept(kind, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.gamma(2.0, 6.0, (200, 3)).round(2), columns=list("abc"))
    X = X.round() if kind == "Int64" else X
    X["subtotal"] = (X["a"] + X["b"]).round(2)
    X["total"] = (X["subtotal"] + X["c"]).round(2)
    for name, share in ("a", 0.2), ("b", 0.1), ("c", 0.05):
        X[name] = X[name].mask(rng.random(200) < share)
    augmenter = PNLAugmenter().fit(X.astype(kind))
    assert len(augmenter.equalities_) == 2
    total = column_total("total", float(round(300 * X["total"].mean())))
    requested = ColumnConstraint("total", lower=20, upper=24)
    for given in {}, {"totals": total}, {"constraints": requested}:
        rows = augmenter.sample(300, random_state=seed, **given).astype(float)
        off = (rows["total"] - rows["subtotal"] - rows["c"]).dropna()
        assert len(off) > rows["a"].notna().sum()
        assert off.abs().max() <= (1e-4 if kind == "float32" else 1e-10)
