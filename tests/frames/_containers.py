"""Example rows in every container and dtype."""

from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from sklearn_pnl.frames import read_table

pd = pytest.importorskip("pandas")

N = 40
FAR = 2**60 + 1


def read(X, categorical=None, missing=None):
    """Read rows as a table."""
    return read_table(Reader(categorical), X, missing)


class Reader(SimpleNamespace):
    """The attributes of an estimator that the reading of rows requires."""

    def __init__(self, categorical=None):
        super().__init__(categorical_features=categorical)

    def __sklearn_tags__(self):
        from sklearn.base import BaseEstimator

        tags = BaseEstimator().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.three_d_array = True
        return tags


def equal(one, other):
    """Check that rows have the same container, names, types and values."""
    if type(one) is not type(other):
        return False
    if sp.issparse(one):
        return one.dtype == other.dtype and not (one != other).nnz
    if isinstance(one, np.ndarray):
        same = one.dtype == other.dtype and one.shape == other.shape
        kinds = one.dtype == object and [*map(type, one.flat)] != [
            *map(type, other.flat)
        ]
        return same and not kinds and (one == other).all()
    if hasattr(one, "iloc"):
        pd.testing.assert_frame_equal(one, other)
        for name in one.columns[
            [getattr(dtype, "char", "") == "O" for dtype in one.dtypes]
        ]:
            assert [*map(type, one[name])] == [*map(type, other[name])]
        return True
    return one.equals(other)


def there_and_back(table):
    return table.like(table.numbers().copy(), np.arange(len(table)))


def common(n=N):
    """Make columns of each type that pandas, polars and pyarrow share."""
    rng = np.random.default_rng(0)
    start = pd.Timestamp("2020-02-27")
    seconds = pd.to_timedelta(rng.integers(0, 10**7, n), unit="s")
    return pd.DataFrame(
        {
            "real": rng.normal(size=n),
            "single": rng.normal(size=n).astype(np.float32),
            "count": rng.integers(-3, 12, n),
            "far": FAR + rng.integers(0, 99, n),
            "constant": np.full(n, FAR),
            "ends": np.uint64(2**63) + (rng.random(n) < 0.5).astype(np.uint64),
            "byte": rng.integers(0, 255, n).astype(np.uint8),
            "flag": rng.random(n) < 0.4,
            "day": start + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "zoned": start.tz_localize("Europe/Paris") + seconds,
            "took": pd.to_timedelta(rng.integers(-9000, 9000, n), unit="ms"),
            "word": rng.choice(["a", "b", "c"], n),
        }
    )


def of_pandas(n=N):
    """Make columns of the types that only pandas has."""
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(1)
    hours = pd.Timestamp("2020-02-27") + pd.to_timedelta(rng.integers(0, 999, n), "h")
    arrow = {
        "arrow time": (hours, pa.timestamp("ms", "UTC")),
        "arrow zone": (hours, pa.timestamp("us", "Europe/Berlin")),
        "arrow day": (hours.date, pa.date32()),
        "arrow took": (hours - hours[0], pa.duration("s")),
    }
    arrow = {k: pd.array(v, dtype=pd.ArrowDtype(t)) for k, (v, t) in arrow.items()}
    objects = {
        "ints": rng.integers(0, 9, n).tolist(),
        "floats": rng.normal(size=n).tolist(),
        "flags": (rng.random(n) < 0.5).tolist(),
        "mixed": [0, 1, 2.5, "1", ("a", 2)] * (n // 5),
    }
    objects = {k: pd.Series(v, dtype=object) for k, v in objects.items()}
    return pd.DataFrame(
        {
            "Int64": pd.array(FAR + rng.integers(0, 99, n), dtype="Int64"),
            "Float32": pd.array(rng.normal(size=n), dtype="Float32"),
            "boolean": pd.array(rng.random(n) < 0.4, dtype="boolean"),
            "arrow int": pd.array(rng.integers(0, 9, n), dtype="int32[pyarrow]"),
            "arrow flag": pd.array(rng.random(n) < 0.4, dtype="bool[pyarrow]"),
            "arrow text": pd.array(rng.choice(["x", "y"], n), dtype="string[pyarrow]"),
            "sparse": pd.arrays.SparseArray(3 * rng.integers(0, 2, n)),
            "sparse real": pd.arrays.SparseArray(1.5 * rng.integers(0, 2, n)),
            "level": pd.Categorical(rng.choice([7, 5], n), [9, 7, 5], ordered=True),
            "half": rng.normal(size=n).astype(np.float16),
            "offset": hours.tz_localize("UTC").tz_convert("+02:00"),
        }
        | arrow
        | objects
    )


def of_polars(n=N):
    """Make columns of the types that only polars has."""
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "enum": pl.Series(
                rng.choice(["u", "v"], n), dtype=pl.Enum(["v", "u", "w"])
            ),
            "level": pl.Series(rng.choice(["u", "v"], n), dtype=pl.Categorical),
            "date": pl.Series(rng.integers(0, 9000, n), dtype=pl.Int32).cast(pl.Date),
            "milli": pl.Series(rng.integers(0, 9000, n)).cast(pl.Datetime("ms", "UTC")),
            "nano": pl.Series(rng.integers(0, 9000, n)).cast(pl.Duration("ns")),
        }
    )


def exotic(n=N):
    """Make columns of types that are read as float64, by container."""
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    cents = rng.integers(0, 999, n).tolist()
    prices = [Decimal(k).scaleb(-2) for k in cents]
    table = pa.table({"price": pa.array(prices, pa.decimal128(10, 2))})
    objects = {
        "price": prices,
        "huge": [10**30 + k for k in cents],
        "mixed": [True, 2, 3.5, 1] * (n // 4),
    }
    return {
        "objects": pd.DataFrame(
            {k: pd.Series(v, dtype=object) for k, v in objects.items()}
        ),
        "pandas": table.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": pl.from_arrow(table),
        "pyarrow": table,
    }


def in_container(frame, container):
    if container == "pandas":
        return frame
    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    table = pl.from_pandas(frame)
    return table if container == "polars" else table.to_arrow()


FRAMES = {
    "pandas": common,
    "polars": lambda: in_container(common(), "polars"),
    "pyarrow": lambda: in_container(common(), "pyarrow"),
    "types of pandas": of_pandas,
    "types of polars": of_polars,
}
