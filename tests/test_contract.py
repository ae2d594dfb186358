"""Guarantees for new rows, for all containers, dtypes and requests.

- The original rows come first and are unchanged. Container, columns and dtypes are
  preserved.
- The number of new rows, bounds, orders, binary columns, levels and integers are exact.
- Equalities of the rows hold up to 1e-9 of the range of their largest column.
- Requested equalities hold up to 1e-9 of that range, inequalities up to rounding.
- Sums of floats hold up to 1e-9 of their absolute terms, or one rounding of the dtype.
  Sums of integers and counts are exact.
"""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from imblearn.pipeline import make_pipeline
from numpy.testing import assert_array_equal
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB

from sklearn_pnl import Codes, Lines, PNLAugmenter, PNLRegressionSampler, PNLSampler
from sklearn_pnl.control import ColumnConstraint, column_total
from sklearn_pnl.methods.draws import KernelDraws

N, N_NEW = 120, 60
LABELS = np.repeat([0, 1], [90, 30])
FLOATS = ["float64", "float32", "missing", "zeros", "total", "order", "Float64"]
WHOLE = ["int64", "int32", "uint8", "bool", "flags", "one_hot", "persons"]
WORDS = ["category", "word", "date", "Int64", "boolean"]
ARRAY, FRAME = ("ndarray", "list", "csr"), ("pandas", "polars", "pyarrow")


def columns(kind):
    """Make columns of a kind, and a column of floats."""
    rng = np.random.default_rng(0)
    x, k = rng.gamma(2.0, size=(N, 3)), rng.poisson(3, N)
    level = rng.integers(0, 3, N)
    flag, other = rng.integers(0, 2, (2, N))
    made = {
        "float64": {"a": x[:, 0], "b": 1e5 * x[:, 1]},
        "float32": {"a": x[:, 0].astype("f4"), "b": (1e5 * x[:, 1]).astype("f4")},
        "missing": {"a": np.where(flag == 1, x[:, 0], np.nan), "b": x[:, 1]},
        "zeros": {"a": x[:, 0] * flag, "b": x[:, 1] * other},
        "total": {"a": x[:, 0], "b": x[:, 1], "sum": x[:, 0] + x[:, 1]},
        "order": {"a": x[:, 0], "b": x[:, 0] + x[:, 1], "c": x.sum(axis=1)},
        "int64": {"a": k, "b": 1000 * k + rng.integers(0, 999, N)},
        "int32": {"a": k.astype("i4"), "b": (k - 5).astype("i4")},
        "uint8": {"a": k.astype("u1"), "b": (255 - k).astype("u1")},
        "bool": {"a": flag == 1, "b": other == 1},
        "flags": {"a": flag * other, "b": flag},
        "one_hot": {f"is_{j}": (level == j).astype(int) for j in range(3)},
        "persons": {"adults": k + 1, "children": level, "persons": k + 1 + level},
        "word": {"a": np.array([*"xyz"], dtype=object)[level], "b": x[:, 0]},
    }  # fmt: skip
    if kind in made:
        return made[kind]
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(7 * k + level, "D")
    return {
        "category": {"a": pd.Categorical(np.array([*"xyz"])[level], [*"zxyw"])},
        "date": {"a": day, "b": day + pd.to_timedelta(k, "D")},
        "Int64": {"a": pd.array(np.where(flag, k, None), "Int64"), "b": x[:, 0]},
        "Float64": {"a": pd.array(x[:, 0], "Float64"), "b": x[:, 1]},
        "boolean": {"a": pd.array(flag == 1, "boolean"), "b": x[:, 0]},
    }[kind]


def table(kind):
    free = np.random.default_rng(1).normal(size=N)
    free = free.astype("f4") if kind == "float32" else free
    return pd.DataFrame({"free": free} | columns(kind))


def kinds_alike(frame):
    """Check whether an array of one type represents the columns as numbers."""
    return "b" not in {dtype.kind for dtype in frame.dtypes}


def given(frame, container):
    """Convert rows to a container."""
    if container == "pandas":
        return frame
    if container in ("polars", "pyarrow"):
        library = pytest.importorskip(container)
        if container == "polars":
            return library.from_pandas(frame)
        return library.Table.from_pandas(frame, preserve_index=False)
    numbers = frame.to_numpy(None if kinds_alike(frame) else float)
    if container == "csr":
        return sp.csr_array(numbers.astype(float))
    return numbers.tolist() if container == "list" else numbers


def read(rows, like):
    """Read rows of any container as a frame with given columns and types."""
    rows = rows.toarray() if sp.issparse(rows) else rows
    rows = rows.to_pandas() if hasattr(rows, "to_pandas") else rows
    return pd.DataFrame(np.asarray(rows), columns=like.columns).astype(like.dtypes)


def check_types(old, new):
    """Check integers, flags, levels, missing cells and bounds exactly."""
    for name, column in new.items():
        seen = old[name].dropna()
        mine = column.dropna()
        assert column.isna().any() <= old[name].isna().any()
        if seen.nunique() <= 2 or not pd.api.types.is_numeric_dtype(
            seen.infer_objects()
        ):
            is_time = pd.api.types.is_datetime64_any_dtype(seen)
            assert is_time or mine.isin(seen).all()
        if pd.api.types.is_numeric_dtype(seen) or seen.dtype.kind == "M":
            assert mine.min() >= seen.min()
            assert mine.max() <= seen.max()
        if seen.dtype.kind == "M":
            assert (mine == mine.dt.normalize()).all()


def check_relations(old, new):
    """Check equalities to 1e-9 of the range, and inequalities and blocks exactly."""
    value = {name: new[name].to_numpy(float) for name in new.select_dtypes("number")}
    if "sum" in new:
        gap = np.abs(value["sum"] - value["a"] - value["b"])
        assert gap.max() <= 1e-9 * np.ptp(old["sum"])
    if "c" in new:
        assert (value["a"] <= value["b"]).all()
        assert (value["b"] <= value["c"]).all()
    if "persons" in new:
        gap = value["persons"] - value["adults"] - value["children"]
        is_integer = old["persons"].dtype.kind == "i"
        assert np.abs(gap).max() <= (0 if is_integer else 1e-12)
    if "is_0" in new:
        assert_array_equal(value["is_0"] + value["is_1"] + value["is_2"], 1)


CASES = [
    *((c, kind) for c in ARRAY for kind in [*FLOATS[:-1], *WHOLE]
      if (c, kind) not in {("csr", "missing"), ("list", "float32")}),
    *((c, kind) for c in FRAME for kind in [*FLOATS[:-1], *WHOLE, *WORDS[:3]]),
    *(("pandas", kind) for kind in ["Float64", "Int64", "boolean"]),
]  # fmt: skip


@pytest.mark.parametrize(("container", "kind"), CASES)
def test_new_rows_of_samplers_resemble_training_rows(container, kind):
    frame = table(kind)
    X = given(frame, container)
    sampler = PNLSampler(random_state=0)
    X_new, y_new = sampler.fit_resample(X, LABELS)
    assert type(X_new) is type(X)
    assert_array_equal(y_new, [*LABELS, *np.ones(N_NEW)])
    assert sampler.parent_indices_.shape == (N_NEW, 2)
    assert (LABELS[sampler.parent_indices_] == 1).all()
    if container in FRAME:
        assert list(sampler.feature_names_in_) == list(frame.columns)
    if container == "polars":
        assert X_new.schema == X.schema
        assert X_new[:N].equals(X)
    elif container == "pyarrow":
        assert X_new.schema.equals(X.schema)
        assert X_new.slice(0, N).equals(X)
    elif container == "pandas":
        assert X_new.dtypes.equals(X.dtypes)
        assert X_new.iloc[:N].equals(X)
    elif container == "csr":
        assert X_new.dtype == X.dtype
        assert_array_equal(X_new[:N].toarray(), X.toarray())
    else:
        assert_array_equal(np.array(X_new[:N]), np.array(X))
        assert np.asarray(X_new).dtype == np.asarray(X).dtype
    # An array has one type. Lists and sparse rows have the type of their numbers.
    like = (
        frame
        if container in FRAME
        else pd.DataFrame(given(frame, "ndarray"), columns=frame.columns)
    )
    like = like.astype(float) if container in ("csr", "list") else like
    rows = read(X_new, like) if container != "pandas" else X_new
    check_types(like, rows.iloc[N:])
    check_relations(like, rows.iloc[N:])


@pytest.mark.parametrize("kind", [*FLOATS, *WHOLE, *WORDS])
@pytest.mark.parametrize("make", [PNLAugmenter, PNLRegressionSampler])
def test_new_rows_of_other_estimators_resemble_training_rows(make, kind):
    frame = table(kind)
    if make is PNLAugmenter:
        new = PNLAugmenter().fit(frame).sample(N_NEW, random_state=0)
    else:
        y = np.linspace(-1, 1, N)
        sampler = PNLRegressionSampler(n_samples=N_NEW, random_state=0)
        rows, targets = sampler.fit_resample(frame, y)
        new = rows.iloc[N:]
        assert_array_equal(targets[:N], y)
        assert rows.iloc[:N].equals(frame)
    assert len(new) == N_NEW
    assert new.dtypes.equals(frame.dtypes)
    check_types(frame, new)
    check_relations(frame, new)


def _terms(kind):
    """Return numeric columns without gaps for a constraint or a total."""
    frame = table(kind)
    names = [n for n in frame.select_dtypes("number") if not frame[n].isna().any()]
    whole = [n for n in names if frame[n].dtype.kind == "i" and frame[n].nunique() > 2]
    # Sums of integers and floats are as near as integers permit.
    return frame, whole[:1] or [n for n in names if frame[n].nunique() > 2][:2]


@pytest.mark.parametrize("kind", [*FLOATS, "int64", "persons", "one_hot", "word"])
@pytest.mark.parametrize(
    "requested", ["equal", "lower", "upper", "interval", "each row"]
)
def test_constraints_are_satisfied(requested, kind):
    frame, names = _terms(kind)
    coefficients = dict(zip(names, (1.0, 2.0), strict=False))
    values = sum(c * frame[n].to_numpy(float) for n, c in coefficients.items())
    rare = np.sort(values[LABELS == 1])
    ends = {
        "equal": {"equal": rare[15]},
        "lower": {"lower": rare[15]},
        "upper": {"upper": rare[15]},
        "interval": {"lower": rare[10], "upper": rare[20]},
        "each row": {"equal": np.resize(rare[5:25], N_NEW)},
    }[requested]
    constraint = ColumnConstraint(coefficients, **ends)
    sampler = PNLSampler(constraints={1: constraint}, random_state=0)
    new = sampler.fit_resample(frame, LABELS)[0].iloc[N:]
    value = sum(c * new[n].to_numpy(float) for n, c in coefficients.items())
    eps = np.finfo("f4").eps if kind == "float32" else np.finfo(float).eps
    size = sum(c * new[n].abs().to_numpy(float) for n, c in coefficients.items())
    largest = max(c * np.ptp(frame[n]) for n, c in coefficients.items())
    if "equal" in ends:
        assert (np.abs(value - ends["equal"]) <= 1e-9 * largest + 8 * eps * size).all()
    else:
        # Up to the last digit of the type.
        assert (value >= ends.get("lower", -np.inf) - 8 * eps * size).all()
        assert (value <= ends.get("upper", np.inf) + 8 * eps * size).all()
    assert len(new) == N_NEW
    check_relations(frame, new)
    if kind not in ("float32", "Float64"):
        check_types(frame, new)


@pytest.mark.parametrize("kind", [*FLOATS, *WHOLE[:2], "persons", "word", "category"])
def test_sums_of_all_new_rows_are_satisfied(kind):
    frame, names = _terms(kind)
    rare = frame.iloc[90:]
    wanted = {n: 1.02 * rare[n].to_numpy(float).sum() * N_NEW / 30 for n in names[:1]}
    is_integer = frame[names[0]].dtype.kind in "iu"
    wanted = {n: float(np.rint(v)) if is_integer else v for n, v in wanted.items()}
    sampler = PNLSampler(totals={1: wanted}, random_state=0)
    new = sampler.fit_resample(frame, LABELS)[0].iloc[N:]
    for name, value in wanted.items():
        got = new[name].to_numpy(float)
        size = np.abs(got).sum()
        room = 1e-9 * size
        if kind == "float32":
            room += np.finfo("f4").eps * np.abs(got).max()
        assert abs(got.sum() - value) <= (0 if is_integer else room)
    assert len(new) == N_NEW
    assert sampler.reports_[1].n_rows == N_NEW
    check_relations(frame, new)


@pytest.mark.parametrize("kind", ["word", "category", "boolean", "bool", "flags"])
@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_counts_of_levels_are_exact(container, kind):
    frame = table(kind)
    levels = list(dict.fromkeys(frame["a"].iloc[90:]))[:2]
    counts = dict(zip(levels, (41, 12), strict=True))
    requested = {"a": counts}
    if len(set(frame["a"])) == 2:
        requested = {"a": dict(zip(levels, (41, N_NEW - 41), strict=True))}
    X = given(frame, container)
    sampler = PNLSampler(totals={1: requested}, random_state=0)
    new = read(sampler.fit_resample(X, LABELS)[0], frame).iloc[N:]
    for level, count in requested["a"].items():
        assert (new["a"] == level).sum() == count


def test_means_with_a_tolerance_and_sums_of_several_columns():
    frame = table("total")
    mean = frame["a"].iloc[90:].mean() * 1.05
    requested = [
        column_total("a", mean, mean=True),
        column_total(
            {"a": 1, "b": 1}, 1.03 * frame["sum"].iloc[90:].sum() * 2, rtol=0.01
        ),
    ]
    new, report = (
        PNLAugmenter()
        .fit(frame.iloc[90:])
        .sample(N_NEW, 0, totals=requested, return_report=True)
    )
    assert abs(new["a"].mean() - mean) <= 1e-9 * new["a"].abs().mean()
    both = (new["a"] + new["b"]).sum()
    assert report.lower[1] * (1 - 1e-9) <= both <= report.upper[1] * (1 + 1e-9)
    check_relations(frame, new)


@pytest.mark.parametrize("infeasible", ["raise", "drop"])
def test_infeasible_rows_are_named_or_dropped(infeasible):
    frame = table("float64")
    wanted = np.where(np.arange(N_NEW) % 3 == 0, 1e9, frame["a"].median())
    requested = ColumnConstraint("a", equal=wanted)
    augmenter = PNLAugmenter().fit(frame)
    if infeasible == "raise":
        with pytest.raises(ValueError, match="Row 0 .* a .* 1000000000,"):
            augmenter.sample(N_NEW, 0, constraints=requested)
        return
    new = augmenter.sample(N_NEW, 0, constraints=requested, infeasible="drop")
    assert len(new) == N_NEW * 2 // 3
    assert np.abs(new["a"] - frame["a"].median()).max() <= 1e-9 * np.ptp(frame["a"])


def test_a_copied_row_has_its_donor_as_parent():
    rng = np.random.default_rng(4)
    hours, flag = rng.integers(0, 5, 14), rng.integers(0, 2, 14)
    base = rng.integers(2, 9, 14)
    minutes = 60 * hours + rng.integers(0, 3, 14)
    X = np.column_stack([base + 10 * flag, base, flag, hours, minutes])
    requested = ColumnConstraint({0: 1, 3: 1}, equal=float(X[1, 0] + X[1, 3]))
    augmenter = PNLAugmenter().fit(X)
    rows, parents = augmenter.sample(40, 0, constraints=requested, return_parents=True)
    copies = np.flatnonzero(parents[:, 0] == parents[:, 1])
    assert len(copies)
    assert_array_equal(rows[copies], X[parents[copies, 0]])


# --- arrays of other shapes and kinds, and frames of all types at once ---------------


@pytest.mark.parametrize("shape", [(6,), (2, 3, 1)], ids=str)
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i1", "u4", "bool"])
def test_arrays_preserve_dtype_shape_and_range(dtype, shape):
    X = 20 * np.random.default_rng(0).uniform(size=(40, *shape))
    X = (X > 8 if dtype == "bool" else X).astype(dtype)
    augmenter = PNLAugmenter(value_support=None).fit(X)
    rows = augmenter.sample(30, random_state=0)
    assert isinstance(rows, np.ndarray)
    assert (rows.dtype, rows.shape) == (dtype, (30, *shape))
    assert ((rows >= X.min(axis=0)) & (rows <= X.max(axis=0))).all()
    whole = np.arange(6) if X.dtype.kind in "iub" else []
    assert_array_equal(augmenter.integer_features_, whole)


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_array, np.ndarray.tolist])
def test_sparse_rows_and_lists_are_read_as_arrays(make):
    X = np.random.default_rng(1).normal(size=(60, 4))
    X[np.random.default_rng(2).random(X.shape) < 0.4] = 0
    rows = PNLAugmenter(value_support=None).fit(make(X)).sample(30, 0)
    assert type(rows) is (make if sp.issparse(rows) else np.ndarray)
    rows = rows.toarray() if sp.issparse(rows) else rows
    assert_array_equal(rows, PNLAugmenter(value_support=None).fit(X).sample(30, 0))


@pytest.mark.parametrize("dtype", [np.int64, bool, np.float32])
def test_sparse_frames_stay_sparse(dtype):
    rng = np.random.default_rng(0)
    counts = np.where(rng.random((N, 4)) < 0.7, 0, rng.integers(1, 9, (N, 4)))
    X = pd.DataFrame(counts.astype(dtype), columns=list("abcd"))
    X = X.astype(pd.SparseDtype(dtype, dtype(0)))
    X_new, _ = PNLSampler(random_state=0).fit_resample(X, LABELS)
    assert X_new.dtypes.tolist() == X.dtypes.tolist()
    dense, _ = PNLSampler(random_state=0).fit_resample(counts.astype(dtype), LABELS)
    assert_array_equal(X_new.to_numpy(), dense)


def times(seed=0):
    """Make days, seconds with a time zone, and durations."""
    rng = np.random.default_rng(seed)
    start = pd.Timestamp("2020-02-27")
    return pd.DataFrame(
        {
            "day": start + pd.to_timedelta(rng.integers(0, 900, N), unit="D"),
            "zoned": start.tz_localize("UTC")
            + pd.to_timedelta(rng.integers(0, 10**7, N), unit="s"),
            "took": pd.to_timedelta(rng.integers(-9000, 9000, N), unit="ms"),
        }
    )


def everything():
    kinds = [table(kind).add_prefix(kind) for kind in ("float32", "uint8", "bool")]
    return pd.concat([*kinds, times(), table("word")], axis=1)


@pytest.mark.parametrize("container", FRAME)
def test_all_containers_hold_the_same_rows(container):
    X, ours = given(everything(), container), PNLAugmenter().fit(everything())
    augmenter = PNLAugmenter().fit(X)
    rows = augmenter.sample(40, random_state=0)
    assert type(rows) is type(X)
    assert list(augmenter.feature_names_in_) == everything().columns.tolist()
    assert_array_equal(augmenter.integer_features_, ours.integer_features_)
    again = pickle.loads(pickle.dumps(augmenter)).sample(40, random_state=0)
    assert again.equals(rows)
    if container != "pandas":
        assert rows.schema == X.schema
        rows = rows.to_pandas().astype(everything().dtypes)
    assert rows.equals(ours.sample(40, random_state=0))


def test_batches_of_frames_preserve_the_class_of_the_frame():
    class Named(pd.DataFrame):
        @property
        def _constructor(self):
            return Named

    X = Named(table("int64")).set_index(np.arange(N) * 7)
    augmenter = PNLAugmenter().fit(X)
    batches = list(augmenter.iter_samples(50, 20, random_state=0))
    assert [len(batch) for batch in batches] == [20, 20, 10]
    rows = augmenter.sample(50, random_state=0)
    assert type(rows) is type(batches[0]) is Named
    assert rows.index.tolist() == list(range(50))
    assert pd.concat(batches, ignore_index=True).equals(rows)


@pytest.mark.parametrize("container", FRAME)
def test_frames_go_through_a_pipeline_and_a_search(container):
    from sklearn.utils import _safe_indexing

    X = given(table("int64"), container)
    try:
        _safe_indexing(X, [0, 1])
    except TypeError:
        pytest.skip(f"this scikit-learn takes no rows from tables of {container}")
    y = LABELS[np.random.default_rng(0).permutation(N)]
    pipeline = make_pipeline(PNLSampler(random_state=0), GaussianNB())
    grid = {"pnlsampler__k_neighbors": [3, 5]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, y)
    assert search.predict(X).shape == (N,)


# --- times ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", [Lines(2.0), Codes(draws=KernelDraws(1.0))], ids=str)
def test_new_times_are_within_the_observed_range(method, seed):
    X = times(seed)
    rows = PNLAugmenter(method, value_support=None).fit(X).sample(200, seed)
    for name in X:
        assert rows[name].between(X[name].min(), X[name].max()).all()
    assert not rows["zoned"].isin(X["zoned"]).all()
    assert (rows["day"] == rows["day"].dt.normalize()).all()
    assert (rows["zoned"] == rows["zoned"].dt.floor("s")).all()
    assert (rows["zoned"].dt.second != 0).any()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_preserve_their_unit_over_centuries(unit):
    # Nanoseconds of 400 years exceed the precision of float64.
    days = np.random.default_rng(0).integers(-70_000, 70_000, N)
    when = (np.datetime64("1970-01-01") + days).astype(f"datetime64[{unit}]")
    X = pd.DataFrame({"when": when})
    rows = PNLAugmenter().fit(X).sample(100, random_state=0)
    assert rows["when"].dtype == X["when"].dtype
    check_types(X, rows)


@pytest.mark.parametrize("container", FRAME)
def test_end_times_are_start_plus_duration(container):
    X = times().drop(columns="zoned")
    X["took"] = pd.to_timedelta(np.random.default_rng(1).integers(1, 30, N), "D")
    X = X.assign(end=X["day"] + X["took"])
    rows = PNLAugmenter().fit(given(X, container)).sample(50, random_state=0)
    rows = rows if container == "pandas" else rows.to_pandas()
    assert (rows["day"] + rows["took"] == rows["end"]).all()


# --- integers beyond float64 ------------------------------------------------------

ID = 2**53 + 1


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("dtype", ["int64", "uint64", "Int64"])
def test_integers_beyond_float64_are_unchanged_in_the_original_rows(dtype, mixed):
    # Identifiers and nanoseconds are in this range.
    rng = np.random.default_rng(0)
    ids = ID + 2 * np.arange(N)
    nanoseconds = 1_700_000_000_000_000_000 + rng.integers(0, 10**15, N)
    X = pd.DataFrame({"id": ids, "time": nanoseconds}).astype(dtype)
    if mixed:
        X["real"] = rng.normal(size=N)
    before = X.copy()
    X_new, _ = PNLSampler(random_state=0).fit_resample(X, LABELS)
    assert X_new.dtypes.tolist() == before.dtypes.tolist()
    assert X_new.iloc[:N].equals(before)
    assert [int(i) for i in X_new["id"][:N]] == ids.tolist()
    assert X_new["id"][N:].between(ids[0], ids[-1]).all()
    assert X.equals(before)


@pytest.mark.filterwarnings("ignore:Integers beyond")
@pytest.mark.parametrize("end", ["min", "max"])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int8])
def test_integers_near_the_limits_of_their_dtype_do_not_overflow(dtype, end):
    limits = np.iinfo(dtype)
    X = np.full((40, 4), getattr(limits, end), dtype=dtype)
    X[::2, 1], X[::3, 2] = 0, limits.max // 2
    augmenter = PNLAugmenter(method=Lines(1.0), extrapolation=None).fit(X)
    rows = augmenter.sample(30, random_state=0)
    middle = float(limits.max) / 2
    assert (abs(rows[:, 0].astype(float) - float(X[0, 0])) < middle / 2 + 1).all()
    assert_array_equal(np.unique(rows[:, 3]), np.unique(rows[:, 0]))


def test_object_arrays_of_rows_are_supported():
    """Test arrays of objects, in which packages for time series store rows."""
    rows = np.random.default_rng(0).gamma(2.0, size=(12, 3, 4))
    series = np.empty(12, dtype=object)
    series[:] = list(rows)
    new = PNLAugmenter().fit(series).sample(5, random_state=0)
    assert_array_equal(new, PNLAugmenter().fit(rows).sample(5, random_state=0))
    series[1] = series[1][:, :3]
    with pytest.raises(ValueError, match=r"row 1 .*\(3, 3\)"):
        PNLAugmenter().fit(series)
