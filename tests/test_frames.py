"""Data frames: the types of their columns, times, large integers, what is missing."""

import pickle
import re
from decimal import Decimal

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_pnl import KernelDraws, MixupDraws, PNLAugmenter, PNLSampler
from sklearn_pnl.control import ColumnConstraint
from sklearn_pnl.tables.times import step_of_time

pd = pytest.importorskip("pandas")

SEEDS = [0, 1, 2]
N = 60
LABELS = np.repeat([0, 1], [45, 15])
START = pd.Timestamp("2020-02-27")


def numbers(seed=0):
    """Numbers of every kind that polars and pyarrow have too."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "real": rng.normal(size=N),
            "single": rng.normal(size=N).astype(np.float32),
            "count": rng.integers(-3, 12, N),
            "byte": rng.integers(0, 255, N).astype(np.uint8),
            "flag": rng.random(N) < 0.4,
        }
    )


def times(seed=0):
    """Days, seconds with a time zone, and durations."""
    rng = np.random.default_rng(seed)
    seconds = pd.to_timedelta(rng.integers(0, 10**7, N), unit="s")
    return pd.DataFrame(
        {
            "day": START + pd.to_timedelta(rng.integers(0, 900, N), unit="D"),
            "zoned": START.tz_localize("Europe/Paris") + seconds,
            "took": pd.to_timedelta(rng.integers(-9000, 9000, N), unit="ms"),
        }
    )


def words(seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"word": rng.choice(["a", "b", "c"], N)})


def everything(seed=0):
    return pd.concat([numbers(seed), times(seed), words(seed)], axis=1)


def in_container(frame, container):
    if container == "pandas":
        return frame
    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    table = pl.from_pandas(frame)
    return table if container == "polars" else table.to_arrow()


def schema(frame):
    return frame.dtypes.tolist() if hasattr(frame, "iloc") else frame.schema


CONTAINERS = ["pandas", "polars", "pyarrow"]


# --- the same container, names and types -----------------------------------------


@pytest.mark.parametrize("container", CONTAINERS)
def test_new_rows_come_in_the_same_container(container):
    X = in_container(everything(), container)
    augmenter = PNLAugmenter(categorical_features="auto").fit(X)
    rows = augmenter.sample(30, random_state=0)
    assert type(rows) is type(X)
    assert rows.shape == (30, 9)
    assert schema(rows) == schema(X)
    assert list(augmenter.feature_names_in_) == everything().columns.tolist()
    assert augmenter.n_features_in_ == 9
    assert augmenter.integer_features_.tolist() == [2, 3, 4]
    again = pickle.loads(pickle.dumps(augmenter)).sample(30, random_state=0)
    assert again.equals(rows)


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_sampler_keeps_container_types_and_originals(container):
    X = in_container(everything(), container)
    sampler = PNLSampler(categorical_features="auto", random_state=0)
    X_new, y_new = sampler.fit_resample(X, LABELS)
    assert type(X_new) is type(X)
    assert X_new.shape == (90, 9)
    assert schema(X_new) == schema(X)
    first = X_new.iloc[:60] if container == "pandas" else X_new[:60]
    assert first.equals(X)
    assert_array_equal(np.bincount(y_new), [45, 45])


@pytest.mark.parametrize("container", ["polars", "pyarrow"])
def test_all_containers_hold_the_same_rows(container):
    ours = PNLAugmenter(categorical_features="auto").fit(everything()).sample(40, 0)
    X = in_container(everything(), container)
    theirs = PNLAugmenter(categorical_features="auto").fit(X).sample(40, 0)
    theirs = theirs.to_pandas()
    for name in ours:
        assert theirs[name].astype(ours[name].dtype).equals(ours[name]), name


def test_labels_in_a_series_come_back_as_one():
    pl = pytest.importorskip("polars")
    X = pl.DataFrame({"x": np.random.default_rng(0).normal(size=N)})
    y = pl.Series(
        "label", np.where(LABELS == 0, "no", "yes"), dtype=pl.Enum(["yes", "no"])
    )
    X_new, y_new = PNLSampler(random_state=0).fit_resample(X, y)
    assert isinstance(X_new, pl.DataFrame)
    assert y_new.dtype == y.dtype
    assert y_new.name == "label"
    assert y_new[:N].equals(y)
    assert (y_new[N:] == "yes").all()


def test_types_of_polars():
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    X = pl.DataFrame(
        {
            "enum": pl.Series(
                rng.choice(["u", "v"], N), dtype=pl.Enum(["v", "u", "w"])
            ),
            "level": pl.Series(rng.choice(["u", "v"], N), dtype=pl.Categorical),
            "text": rng.choice(["x", "y"], N),
            "flag": rng.random(N) < 0.5,
            "small": pl.Series(rng.integers(-9, 9, N), dtype=pl.Int8),
            "date": pl.Series(rng.integers(0, 9000, N), dtype=pl.Int32).cast(pl.Date),
            "milli": pl.Series(rng.integers(0, 9000, N)).cast(pl.Datetime("ms", "UTC")),
            "nano": pl.Series(rng.integers(0, 9000, N)).cast(pl.Duration("ns")),
        }
    )
    rows = PNLAugmenter(categorical_features="auto").fit(X).sample(50, random_state=0)
    assert rows.schema == X.schema
    assert rows.null_count().to_numpy().sum() == 0
    beside = ["enum", "level", "text"]
    assert set(rows.select(beside).rows()) <= set(X.select(beside).rows())
    for name in ("small", "date", "milli", "nano"):
        assert rows[name].min() >= X[name].min()
        assert rows[name].max() <= X[name].max()


def test_types_of_pandas():
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    hours = START + pd.to_timedelta(rng.integers(0, 999, N), unit="h")
    zoned = pd.ArrowDtype(pa.timestamp("ms", "UTC"))
    X = pd.DataFrame(
        {
            "Int64": pd.array(rng.integers(0, 99, N), dtype="Int64"),
            "Float32": pd.array(rng.normal(size=N), dtype="Float32"),
            "boolean": pd.array(rng.random(N) < 0.4, dtype="boolean"),
            "arrow int": pd.array(rng.integers(0, 9, N), dtype="int32[pyarrow]"),
            "arrow flag": pd.array(rng.random(N) < 0.4, dtype="bool[pyarrow]"),
            "arrow text": pd.array(rng.choice(["x", "y"], N), dtype="string[pyarrow]"),
            "arrow time": pd.array(hours, dtype=zoned),
            "arrow day": pd.array(hours.date, dtype=pd.ArrowDtype(pa.date32())),
            "arrow took": pd.array(
                hours - START, dtype=pd.ArrowDtype(pa.duration("s"))
            ),
            "objects": pd.Series(rng.integers(0, 9, N).tolist(), dtype=object),
            "sparse": pd.arrays.SparseArray(3 * rng.integers(0, 2, N)),
            "sparse real": pd.arrays.SparseArray(1.5 * rng.integers(0, 2, N)),
        }
    )
    augmenter = PNLAugmenter(categorical_features=["arrow text"]).fit(X)
    rows = augmenter.sample(50, random_state=0)
    assert rows.dtypes.tolist() == X.dtypes.tolist()
    assert not any(rows[name].isna().any() for name in rows)
    for name in ("arrow time", "arrow day", "arrow took"):
        assert rows[name].min() >= X[name].min()
        assert rows[name].max() <= X[name].max()
    X_new, _ = PNLSampler(categorical_features="auto").fit_resample(X, LABELS)
    assert X_new.dtypes.tolist() == X.dtypes.tolist()
    assert X_new.iloc[:N].equals(X)


def decimals(kind, missing=False):
    """A frame with a column of prices, from whole cents."""
    rng = np.random.default_rng(0)
    prices = [Decimal(int(cents)).scaleb(-2) for cents in rng.integers(100, 9999, N)]
    if missing:
        prices[3] = None if kind != "objects" else Decimal("NaN")
    columns = {"price": prices, "size": rng.normal(size=N)}
    if kind == "objects":
        return pd.DataFrame(columns)
    if kind == "polars":
        pl = pytest.importorskip("polars")
        return pl.DataFrame(columns, schema_overrides={"price": pl.Decimal(10, 2)})
    pa = pytest.importorskip("pyarrow")
    columns["price"] = pa.array(prices, pa.decimal128(10, 2))
    table = pa.table(columns)
    return table if kind == "pyarrow" else table.to_pandas(types_mapper=pd.ArrowDtype)


DECIMALS = ["objects", "pandas", "polars", "pyarrow"]


@pytest.mark.parametrize("kind", DECIMALS)
def test_decimal_numbers_come_back_with_their_places(kind):
    X = decimals(kind)
    held = list(X["price"] if kind != "pyarrow" else X["price"].to_pylist())
    X_new, _ = PNLSampler(random_state=0).fit_resample(X, LABELS)
    column = X_new["price"]
    column = list(column if kind != "pyarrow" else column.to_pylist())
    assert column[:N] == held
    new = column[N:]
    assert {type(price) for price in new} == {Decimal}
    assert {price.as_tuple().exponent for price in new} == {-2}
    assert not set(new) <= set(held)
    if kind != "objects":
        assert schema(X_new) == schema(X)
    floats = np.column_stack([np.array(held, float), np.asarray(X["size"], float)])
    same, _ = PNLSampler(random_state=0).fit_resample(floats, LABELS)
    # Limits of decimals are decimals, which what is beyond is reflected at.
    assert_allclose(np.array(new, float), same[N:, 0], atol=0.025 + 1e-9)


@pytest.mark.parametrize("kind", DECIMALS[1:])
@pytest.mark.parametrize(("digits", "largest"), [(3, "9.99"), (25, "1e23")])
def test_decimals_stay_within_the_digits_of_their_type(kind, digits, largest):
    pa = pytest.importorskip("pyarrow")
    cents = np.random.default_rng(0).integers(1, 999, N)
    far = Decimal(largest) - Decimal("9.99")
    prices = pa.array([far + Decimal(int(c)).scaleb(-2) for c in cents])
    prices = prices.cast(pa.decimal128(digits, 2))
    X = pa.table({"price": prices, "size": cents % 7 / 7})
    if kind == "pandas":
        X = X.to_pandas(types_mapper=pd.ArrowDtype)
    elif kind == "polars":
        X = pytest.importorskip("polars").from_arrow(X)
    new = PNLAugmenter(range_slack=None).fit(X).sample(500, random_state=0)
    assert schema(new) == schema(X)
    held = new["price"].to_pylist() if kind == "pyarrow" else list(new["price"])
    assert len(set(held)) > 100
    assert far + 9 < max(held) <= Decimal((0, (9,) * digits, -2))


@pytest.mark.parametrize("kind", DECIMALS)
def test_decimal_numbers_that_are_missing_stay_such(kind):
    X = decimals(kind, missing=True)
    with pytest.raises(ValueError, match="NaN; .* row 3, column 'price'"):
        PNLAugmenter(order=1).fit(X)
    rows = PNLAugmenter().fit(X).sample(400, random_state=0)
    held = list(rows["price"] if kind != "pyarrow" else rows["price"].to_pylist())
    there = [price for price in held if isinstance(price, Decimal)]
    assert 0 < len(held) - len(there) < 30
    assert {price.as_tuple().exponent for price in there} == {-2}
    assert schema(rows) == schema(X)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, bool, np.float32])
def test_sparse_frames_stay_sparse(dtype):
    rng = np.random.default_rng(0)
    counts = np.where(rng.random((N, 4)) < 0.7, 0, rng.integers(1, 9, (N, 4)))
    X = pd.DataFrame(counts.astype(dtype), columns=list("abcd"))
    X = X.astype(pd.SparseDtype(dtype, dtype(0)))
    X_new, _ = PNLSampler(random_state=0).fit_resample(X, LABELS)
    assert X_new.dtypes.tolist() == X.dtypes.tolist()
    dense, _ = PNLSampler(random_state=0).fit_resample(counts.astype(dtype), LABELS)
    assert_array_equal(X_new.to_numpy(), dense)


# --- times ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("draws", [MixupDraws(noise=2.0), KernelDraws(1.0)], ids=str)
def test_times_are_new_and_none_is_beyond_those_known(draws, seed):
    X = times(seed)
    rows = PNLAugmenter(draws=draws).fit(X).sample(200, seed)
    for name in X:
        assert rows[name].between(X[name].min(), X[name].max()).all()
    assert not rows["zoned"].isin(X["zoned"]).all()


def test_times_without_limits_are_those_of_their_type():
    X = times()
    draws = KernelDraws(5.0)
    rows = PNLAugmenter(draws=draws, range_slack=None).fit(X).sample(500, 0)
    assert rows["day"].max() > X["day"].max()
    assert (rows["day"] == rows["day"].dt.normalize()).all()


def test_times_have_the_spread_that_numbers_have():
    # Between two far parents they would gather in the middle: .908 of the spread.
    ratios = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.normal(size=(50, 4)), columns=list("abcd"))
        X["when"] = START + pd.to_timedelta(rng.integers(0, 365, 50), "D")
        new = PNLAugmenter().fit(X).sample(2000, 0)
        ratios.append(new["when"].std() / X["when"].std())
    assert 0.92 < np.mean(ratios) < 1


def test_days_stay_days_and_seconds_seconds():
    X = times()
    rows = PNLAugmenter().fit(X).sample(100, random_state=0)
    assert (rows["day"] == rows["day"].dt.normalize()).all()
    assert (rows["zoned"] == rows["zoned"].dt.floor("s")).all()
    assert (rows["zoned"].dt.second != 0).any()
    assert str(rows["zoned"].dt.tz) == "Europe/Paris"


@pytest.mark.parametrize(
    "ticks, unit, step",
    [
        ([0, 86_400, 3 * 86_400], "s", 86_400),
        ([60, 60 + 3600, 60 + 7200], "s", 3600),
        ([0, 60_000, 90_000], "ms", 1000),
        ([5, 10, 15], "us", 1),
        ([7, 7 + 10**6], "ns", 10**6),
        ([3], "ns", 86_400 * 10**9),
        ([], "ns", 86_400 * 10**9),
    ],
)
def test_step_is_the_longest_unit_that_is_kept(ticks, unit, step):
    assert step_of_time(np.array(ticks, np.int64), unit) == step


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_keep_their_unit_over_centuries(unit):
    # Nanoseconds of 400 years are no doubles.
    days = np.random.default_rng(0).integers(-70_000, 70_000, N)
    when = (np.datetime64("1970-01-01") + days).astype(f"datetime64[{unit}]")
    X = pd.DataFrame({"when": when})
    rows = PNLAugmenter().fit(X).sample(100, random_state=0)
    assert rows["when"].dtype == X["when"].dtype
    assert (rows["when"] == rows["when"].dt.normalize()).all()
    assert rows["when"].between(X["when"].min(), X["when"].max()).all()


def test_one_time_alone_is_repeated():
    X = pd.DataFrame({"x": np.arange(9.0), "when": [START] * 9})
    assert (PNLAugmenter().fit(X).sample(9, 0)["when"] == START).all()


# --- equations and constraints ----------------------------------------------------


def test_equations_between_times_and_numbers_are_kept():
    rng = np.random.default_rng(0)
    X = times()[["day"]].assign(days=rng.integers(1, 30, N), word=words()["word"])
    X["end"] = X["day"] + pd.to_timedelta(X["days"], unit="D")
    sampler = PNLSampler(categorical_features="auto", random_state=0)
    X_new, _ = sampler.fit_resample(X, LABELS)
    assert sampler.invariants_.descriptions == ("end = day + days",)
    assert (X_new["end"] - X_new["day"] == pd.to_timedelta(X_new["days"], "D")).all()


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_length_of_time_is_an_end_less_a_start(container):
    rng = np.random.default_rng(0)
    took = pd.to_timedelta(rng.integers(3600, 10**6, N), unit="s")
    X = pd.DataFrame({"start": START + pd.to_timedelta(rng.integers(0, 99, N), "D")})
    X = X.assign(end=X["start"] + took, took=took, real=rng.normal(size=N))
    X = in_container(X, container)
    augmenter = PNLAugmenter().fit(X)
    assert augmenter.invariants_.descriptions == ("end = 86400 start + took",)
    rows = augmenter.sample(50, random_state=0)
    rows = rows if container == "pandas" else rows.to_pandas()
    apart = rows["start"] + rows["took"] - rows["end"]
    # Days and seconds: rounding may part them by half a day.
    assert apart.abs().max() <= pd.Timedelta("12h")


def test_constraints_are_about_numbers():
    X = everything()
    augmenter = PNLAugmenter(categorical_features="auto").fit(X)
    rows = augmenter.sample(
        50, 0, constraints=ColumnConstraint("real", lower=0, upper=0.5)
    )
    assert rows["real"].between(-1e-9, 0.5 + 1e-9).all()
    assert rows.dtypes.tolist() == X.dtypes.tolist()
    with pytest.raises(ValueError, match="about numbers, but column 'day' holds times"):
        augmenter.sample(5, 0, constraints=ColumnConstraint("day", lower=0, upper=0.5))


# --- errors ---------------------------------------------------------------------


@pytest.mark.parametrize("make", [PNLAugmenter, PNLSampler])
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("name", ["real", "count", "flag", "day", "took"])
def test_missing_values_are_named_with_the_imputer(make, container, name):
    X = pd.concat([numbers(), times()], axis=1).astype({"count": "Int64"})
    X = X.astype({"flag": "boolean"})
    X.loc[[7, 20], name] = None
    X = in_container(X, container)
    message = f"NaN; the first is at row 7, column '{name}'.*SimpleImputer"
    with pytest.raises(ValueError, match=message):
        if make is PNLSampler:
            make(order=1).fit_resample(X, LABELS)
        else:
            make(order=1).fit(X)


def test_negative_values_and_lost_features_are_named():
    X = numbers()
    with pytest.raises(ValueError, match="row 0, column 'count'|column 'real'"):
        PNLAugmenter(embedding=None).fit(X[["real", "count"]])
    X["tiny"] = 1e-20 * np.arange(N)
    with pytest.raises(ValueError, match="Column 'tiny' spans"):
        PNLAugmenter(embedding=None).fit(X[["byte", "tiny"]])


def test_lazy_frames_are_refused_with_what_to_do():
    pl = pytest.importorskip("polars")
    X = pl.LazyFrame({"a": [1.0, 2.0]})
    with pytest.raises(TypeError, match="LazyFrame of polars.*collect it"):
        PNLAugmenter().fit(X)


def test_measures_are_read_from_frames_as_in_fit():
    X = everything()
    augmenter = PNLAugmenter(categorical_features="auto").fit(X)
    measures = augmenter.to_measures(X)
    assert measures.shape == (N, 8)
    assert_array_equal(measures.min(axis=0), 1)
    with pytest.raises(ValueError, match="X has 8 columns, but .* had 9"):
        augmenter.to_measures(X.drop(columns="word"))


def test_rows_beyond_the_range_are_measures_as_far_as_the_offset_reaches():
    t = pd.date_range("2020-01-01", periods=60)
    X = pd.DataFrame({"t": t, "v": np.random.default_rng(0).normal(size=60)})
    augmenter = PNLAugmenter().fit(X)
    earlier = augmenter.to_measures(X.assign(t=t - pd.Timedelta("5D")))
    assert_allclose(earlier[0, 0], 1 - 5 / 59)
    new = augmenter.sample(3000, 0)
    assert (new["v"] < X["v"].min()).any()
    assert augmenter.to_measures(new).min() > 0
    with pytest.raises(ValueError, match="below -offset .* -1.01.* row 0, column 0"):
        augmenter.to_measures(X.assign(t=t - pd.Timedelta("60D")))


@pytest.mark.parametrize("container", ["pandas", "polars", "pyarrow"])
def test_columns_in_another_order_are_refused(container):
    X = pd.DataFrame(np.random.default_rng(0).uniform(size=(9, 3)), columns=list("abc"))
    other = X[["b", "a", "c"]]
    if container != "pandas":
        pl = pytest.importorskip("polars")
        X, other = pl.from_pandas(X), pl.from_pandas(other)
    if container == "pyarrow":
        X, other = X.to_arrow(), other.to_arrow()
    augmenter = PNLAugmenter().fit(X)
    assert_array_equal(augmenter.to_measures(X).min(axis=0), 1)
    with pytest.raises(ValueError, match="must be in the same order"):
        augmenter.to_measures(other)


# --- pipelines ------------------------------------------------------------------


@pytest.mark.parametrize("container", CONTAINERS)
def test_frames_go_through_a_pipeline_and_a_search(container):
    from imblearn.pipeline import make_pipeline
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import GridSearchCV
    from sklearn.utils import _safe_indexing

    X = in_container(numbers(), container)
    try:
        _safe_indexing(X, [0, 1])
    except TypeError:
        pytest.skip(f"this scikit-learn takes no rows from tables of {container}")
    y = LABELS[np.random.default_rng(0).permutation(N)]
    model = HistGradientBoostingClassifier(max_iter=3, early_stopping=False)
    pipeline = make_pipeline(PNLSampler(random_state=0), model)
    grid = {"pnlsampler__k_neighbors": [3, 5]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, y)
    assert search.predict(X).shape == (N,)


def test_set_of_names_in_messages_is_not_of_numbers():
    X = numbers()
    X.loc[3, "single"] = np.inf
    with pytest.raises(ValueError) as error:
        PNLAugmenter().fit(X)
    assert re.search(r"infinity; .* row 3, column 'single'", str(error.value))


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_types_of_others_are_categories(kind):
    """Periods of pandas are an extension type in Arrow, of whole numbers below."""
    pa = pytest.importorskip("pyarrow")
    months = pd.period_range("2020", periods=N, freq="M")
    X = pa.Table.from_pandas(pd.DataFrame({"month": months, "size": np.arange(N) / 7}))
    if kind == "polars":
        # Older ones take no such type.
        X = pytest.importorskip("polars", minversion="2.0").from_arrow(X)
    with pytest.raises(ValueError, match="'month' .* holds no numbers"):
        PNLAugmenter(categorical_features=None).fit(X)
    new = PNLAugmenter().fit(X).sample(9, random_state=0)
    assert schema(new) == schema(X)
    held, given = (list(np.asarray(frame["month"])) for frame in (new, X))
    assert set(held) <= set(given)
