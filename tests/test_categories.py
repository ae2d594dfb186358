"""Categories: combinations that occur, nearness that counts them, what is refused."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_pnl import MixupDraws, PNLAugmenter, PNLSampler
from sklearn_pnl.tables.categories import Indicators, typical_variance

pd = pytest.importorskip("pandas")

SEEDS = [0, 1, 2]


def mixed(seed=0, n=60):
    """Numbers beside two categories that go together, and one of many levels."""
    rng = np.random.default_rng(seed)
    country = rng.integers(3, size=n)
    return pd.DataFrame(
        {
            "income": rng.normal(size=n) + 3 * country,
            "city": np.array(["Oslo", "Bergen", "Lima", "Cusco", "Pune", "Agra"])[
                2 * country + rng.integers(2, size=n)
            ],
            "children": rng.integers(5, size=n),
            "country": pd.Categorical(
                np.array(["Norway", "Peru", "India"])[country],
                categories=["Peru", "India", "Norway", "Chile"],
                ordered=True,
            ),
            "grade": pd.Categorical(rng.choice([7, 5, 9], n), categories=[9, 7, 5]),
        }
    )


CATEGORIES = ["city", "country", "grade"]


def combinations(frame):
    return set(frame[CATEGORIES].astype(str).itertuples(index=False))


# --- new rows -------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("augment", ["mixup", "kde"])
def test_categories_of_a_row_are_those_of_one_of_its_parents(augment, seed):
    X = mixed(seed)
    augmenter = PNLAugmenter(draws=augment).fit(X)
    rows, parents = augmenter.sample(200, seed, return_parents=True)
    beside = X[CATEGORIES].astype(str).to_numpy()
    own = rows[CATEGORIES].astype(str).to_numpy()
    agrees = (own[:, None] == beside[parents]).all(axis=2)
    assert agrees.any(axis=1).all()
    assert combinations(rows) <= combinations(X)
    # Not always the first one.
    assert not agrees[:, 0].all()


@pytest.mark.parametrize("seed", SEEDS)
def test_categories_come_from_the_parents_with_their_weights(seed):
    # Two rows, each in turn the first: a weight is the share of its category.
    # 1.5 is no whole number, so that those between are not rounded.
    X = np.array([[0.0, "a"], [1.5, "b"]], dtype=object)
    draws = MixupDraws(noise=0.0)
    augmenter = PNLAugmenter(
        categorical_features=[1], draws=draws, k_neighbors=1, offset=1e6
    ).fit(X)
    rows = augmenter.sample(20_000, random_state=seed)
    position, is_b = rows[:, 0].astype(float) / 1.5, rows[:, 1] == "b"
    # Nearly on the straight line: the number is the weight of the second row.
    for low in np.arange(0, 1, 0.25):
        here = (position >= low) & (position < low + 0.25)
        share, n = is_b[here].mean(), here.sum()
        assert abs(share - position[here].mean()) < 4 * np.sqrt(0.25 / n)


@pytest.mark.parametrize("batch_size", [1, 7, 100])
@pytest.mark.parametrize("augment", ["mixup", "kde"])
def test_batches_and_jobs_change_no_byte(augment, batch_size):
    X = mixed()
    params = {"categorical_features": CATEGORIES, "draws": augment}
    whole = PNLAugmenter(**params).fit(X).sample(150, random_state=0)
    augmenter = PNLAugmenter(n_jobs=2, **params).fit(X)
    batches = list(augmenter.iter_samples(150, batch_size, random_state=0))
    assert pd.concat(batches, ignore_index=True).equals(whole)


def test_types_levels_and_their_order_are_kept():
    X = mixed()
    rows = PNLAugmenter(categorical_features="auto").fit(X).sample(40, random_state=0)
    assert rows.dtypes.tolist() == X.dtypes.tolist()
    assert rows["country"].cat.categories.tolist() == [
        "Peru",
        "India",
        "Norway",
        "Chile",
    ]
    assert rows["country"].cat.ordered
    assert not rows.isna().any().any()


def test_missing_values_are_a_category():
    X = mixed()
    X.loc[::3, "city"] = None
    X.loc[1::3, "grade"] = np.nan
    rows = PNLAugmenter(categorical_features="auto").fit(X).sample(200, random_state=0)
    assert combinations(rows) <= combinations(X)
    assert rows["city"].isna().any()
    assert rows["grade"].isna().any()


def test_a_table_of_categories_alone_is_refused():
    X = np.random.default_rng(0).choice(["a", "b", "c"], (40, 3)).astype(object)
    with pytest.raises(ValueError, match="All columns are categories.*RandomOverS"):
        PNLAugmenter(categorical_features=[0, 1, 2]).fit(X)
    numbers = np.random.default_rng(0).integers(3, size=(40, 3))
    for kind in (int, float, np.float32):
        with pytest.raises(ValueError, match="All columns are categories.*RandomOverS"):
            PNLAugmenter(categorical_features=[0, 1, 2]).fit(numbers.astype(kind))


# --- the ways to say which ------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        "auto",
        CATEGORIES,
        np.array(CATEGORIES),
        [1, 3, 4],
        [4, 1, -2],
        np.array([False, True, False, True, True]),
        [False, True, False, True, True],
    ],
    ids=str,
)
def test_all_ways_to_name_them_are_the_same(given):
    X = mixed()
    rows = PNLAugmenter(categorical_features=given).fit(X).sample(30, random_state=0)
    first = PNLAugmenter(categorical_features=CATEGORIES).fit(X)
    assert rows.equals(first.sample(30, random_state=0))
    assert first.integer_features_.tolist() == [2]


def test_integers_are_categories_where_they_are_named():
    X = np.column_stack([np.random.default_rng(0).normal(size=50), [1, 5] * 25])
    rows = PNLAugmenter(categorical_features=[1]).fit(X).sample(50, random_state=0)
    assert rows.dtype == X.dtype
    assert set(rows[:, 1]) == {1, 5}
    # Integers in a frame too: between 1 and 5 there is nothing.
    frame = pd.DataFrame({"x": X[:, 0], "kind": X[:, 1].astype(int)})
    rows = PNLAugmenter(categorical_features=["kind"]).fit(frame).sample(50, 0)
    assert rows.dtypes.tolist() == frame.dtypes.tolist()
    assert set(rows["kind"]) == {1, 5}


def test_objects_keep_what_they_hold():
    rng = np.random.default_rng(0)
    X = np.empty((40, 3), dtype=object)
    X[:, 0], X[:, 1] = rng.normal(size=40), rng.choice(["a", "b"], 40)
    X[:, 2] = rng.integers(0, 9, 40).tolist()
    augmenter = PNLAugmenter(categorical_features=[1]).fit(X)
    rows = augmenter.sample(20, random_state=0)
    assert rows.dtype == object
    assert augmenter.integer_features_.tolist() == [2]
    assert all(type(row[0]) is float and row[2] == int(row[2]) for row in rows)


@pytest.mark.parametrize("make", [PNLAugmenter, PNLSampler])
@pytest.mark.parametrize(
    "given, message",
    [
        (["town"], "names 'town', but X has the columns .*'income', 'city'"),
        ([5], "holds 5; .* of the 5 columns"),
        ([True, False], "mask categorical_features has 2 entries, but X has 5"),
        (["city", "country"], "Column 'grade'.*holds no numbers.*categorical_features"),
        (None, "Column 'city'.*holds no numbers.*categorical_features='auto'"),
    ],
    ids=str,
)
def test_columns_that_do_not_fit_are_named(make, given, message):
    X, y = mixed(), np.repeat([0, 1], [45, 15])
    estimator = make(categorical_features=given)
    arguments = (X, y) if make is PNLSampler else (X,)
    with pytest.raises(ValueError, match=message):
        getattr(estimator, "fit_resample" if make is PNLSampler else "fit")(*arguments)


def test_arrays_with_words_name_the_column_and_the_parameter():
    X = np.array([[1.0, "a"], [2.0, "b"]] * 5, dtype=object)
    for given in ("auto", None):
        with pytest.raises(ValueError, match="Column 1 holds no numbers.*categor"):
            PNLAugmenter(categorical_features=given).fit(X)
    with pytest.raises(ValueError, match="rows of one axis"):
        PNLAugmenter(categorical_features=[0]).fit(np.ones((9, 2, 2)))


def test_values_without_a_hash_are_no_categories():
    X = mixed()
    X["tags"] = [["a"], ["b"]] * 30
    with pytest.raises(TypeError, match="Column 'tags'.* no categories: unhashable"):
        PNLAugmenter(categorical_features="auto").fit(X)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix])
def test_sparse_rows_may_have_categories(make):
    X = np.column_stack([np.random.default_rng(0).normal(size=60), [0, 2, 5] * 20])
    y = np.repeat([0, 1], [45, 15])
    sampler = PNLSampler(categorical_features=[1], random_state=0)
    X_new, _ = sampler.fit_resample(make(X), y)
    assert type(X_new) is make
    assert_array_equal(X_new.toarray(), sampler.fit_resample(X, y)[0])


# --- nearness -------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("n_levels", [1, 2, 5, 60])
def test_indicators_are_as_far_as_categories_differ(n_levels, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_levels, size=(40, 3))
    weight = rng.uniform(0.1, 5)
    indicators = Indicators(labels, weight)
    queries = indicators.queries(40, np.arange(40))
    squares = ((queries[:, None] - indicators.points) ** 2).sum(axis=2)
    differing = (labels[:, None] != labels).sum(axis=2)
    # A level that one row has is as far from all rows as from others: its own is
    # not asked for.
    alone = [np.bincount(c, minlength=61)[c] == 1 for c in labels.T]
    n_alone = np.sum(alone, axis=0)
    expected = weight * (differing - n_alone[:, None] / 2)
    off = ~np.eye(40, dtype=bool)
    assert_allclose(squares[off], expected[off], atol=1e-12)
    # Without categories all rows are as far.
    none = ((indicators.queries(1)[:, None] - indicators.points) ** 2).sum(axis=2)
    assert_allclose(none, 3 * weight / 2)


def test_the_weight_is_the_squared_median_deviation():
    points = np.random.default_rng(0).normal(size=(50, 5)) * [0, 1, 2, 3, 0]
    deviations = points.std(axis=0)[1:4]
    assert_allclose(typical_variance(points), np.median(deviations) ** 2)
    assert typical_variance(np.ones((5, 2))) == 1


@pytest.mark.parametrize("metric", ["kl", "euclidean"])
def test_partners_are_those_of_a_search_by_hand(metric):
    rng = np.random.default_rng(1)
    X = np.empty((50, 4), dtype=object)
    X[:, :2] = rng.normal(size=(50, 2))
    X[:, 2:] = rng.choice(["a", "b", "c"], (50, 2))
    augmenter = PNLAugmenter(
        categorical_features=[2, 3], k_neighbors=3, metric=metric
    ).fit(X)
    training = augmenter._source.training
    every = np.arange(50)
    everyone = np.broadcast_to(every, (50, 50))
    distances = training.distances(augmenter.codes_, everyone)
    squares = 2 * distances if metric == "kl" else distances**2
    weight = typical_variance(training._points)
    squares = squares + weight * (X[:, None, 2:] != X[:, 2:]).sum(axis=2)
    np.fill_diagonal(squares, np.inf)
    nearest = np.argsort(squares, axis=1)[:, :3]
    _, parents = augmenter.sample(2000, 0, return_parents=True)
    seen = [set(parents[parents[:, 0] == row, 1]) for row in every]
    assert seen == [set(near) for near in nearest]


def test_partners_mostly_share_categories():
    # Without the categories it would be one in six.
    X = mixed(n=300).drop(columns="income")
    X["number"] = np.random.default_rng(0).normal(size=300)
    augmenter = PNLAugmenter(categorical_features="auto").fit(X)
    _, parents = augmenter.sample(500, 0, return_parents=True)
    cities = X["city"].to_numpy()[parents]
    assert (cities[:, 0] == cities[:, 1]).mean() > 0.5


# --- samplers -------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_each_class_keeps_its_own_combinations(seed):
    X, y = mixed(seed), np.repeat(["no", "yes"], [45, 15])
    sampler = PNLSampler(categorical_features="auto", random_state=seed)
    X_new, y_new = sampler.fit_resample(X, y)
    assert X_new.dtypes.tolist() == X.dtypes.tolist()
    assert X_new.iloc[:60].equals(X)
    assert len(X_new) == 90
    assert (y_new[60:] == "yes").all()
    assert combinations(X_new.iloc[60:]) <= combinations(X.iloc[45:])
    assert sampler.feature_names_in_.tolist() == X.columns.tolist()
    assert sampler.n_features_in_ == 5


def test_a_column_is_a_category_in_all_classes_or_none():
    # Objects that are numbers in one class and words in the other.
    X = pd.DataFrame({"x": np.random.default_rng(0).normal(size=60)})
    X["code"] = pd.Series([*["a", "b", 7] * 15, *[1, 2, 3] * 5], dtype=object)
    y = np.repeat([0, 1], [45, 15])
    sampler = PNLSampler(categorical_features="auto", random_state=0)
    X_new, _ = sampler.fit_resample(X, y)
    assert set(X_new["code"][60:]) == {1, 2, 3}
    assert sampler.augmenters_[1].integer_features_.tolist() == []


def test_search_over_a_pipeline_with_categories():
    from imblearn.pipeline import make_pipeline
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    X = mixed(n=120)
    y = (X["income"] + np.random.default_rng(1).normal(size=120) > 6.5).astype(int)
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), CATEGORIES),
        remainder=StandardScaler(),
    )
    pipeline = make_pipeline(
        PNLSampler(categorical_features="auto", random_state=0),
        encoder,
        LogisticRegression(),
    )
    grid = {"pnlsampler__k_neighbors": [3, 5]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, y)
    assert search.score(X, y) > 0.8


def test_categories_survive_pickling_and_later_changes():
    import pickle

    X = mixed()
    augmenter = PNLAugmenter(categorical_features="auto").fit(X)
    rows = augmenter.sample(20, random_state=0)
    X["city"] = "nowhere"
    assert augmenter.sample(20, random_state=0).equals(rows)
    assert pickle.loads(pickle.dumps(augmenter)).sample(20, 0).equals(rows)


def test_an_array_of_categories_may_change_later():
    X = np.empty((20, 2), dtype=object)
    X[:, 0], X[:, 1] = np.arange(20.0), "a"
    augmenter = PNLAugmenter(categorical_features=[1]).fit(X)
    X[:, 1] = "b"
    assert_array_equal(augmenter.sample(5, random_state=0)[:, 1], "a")


# --- after an encoder -------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("nested", [False, True])
def test_one_hots_of_a_column_transformer_stay_one_hot(nested, seed):
    from imblearn.over_sampling import SMOTE
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    X, y = mixed(seed, n=200), np.repeat([0, 1], [150, 50])
    names = CATEGORIES if nested else ["city", "grade"]
    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), names),
        (StandardScaler(), ["income", "children"]),
    )
    encoded = encoder.fit_transform(X)
    ends = np.cumsum([0, 6, 3, 3][: len(names) + 1])
    valid = {}
    for name, sampler in {"smote": SMOTE(), "pnl": PNLSampler()}.items():
        sampler.set_params(random_state=seed)
        new = sampler.fit_resample(encoded, y)[0][200:]
        groups = [new[:, a:b] for a, b in pairwise(ends)]
        one = [((g == 0) | (g == 1)).all(axis=1) & (g.sum(axis=1) == 1) for g in groups]
        valid[name] = np.mean(np.all(one, axis=0))
    assert valid["pnl"] > valid["smote"]
    # Also where one group decides another, as cities their countries.
    assert valid["pnl"] == 1
