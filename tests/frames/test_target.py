"""Numeric targets and classes in every container."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from sklearn_pnl.frames import read_classes, read_target

pd = pytest.importorskip("pandas")


def more(y, new):
    return read_target(y)[1](np.asarray(new, dtype=float).reshape(2, -1))


@pytest.mark.parametrize(
    "dtype",
    ["Int64", "UInt8", "int64[pyarrow]", "double[pyarrow]", "int8", "Float32", "f4"],
)
def test_series_preserve_name_and_dtype(dtype):
    y = pd.Series([1, 2, 3], name="price", index=[7, 8, 9]).astype(dtype)
    values, _ = read_target(y)
    assert_array_equal(values, [[1.0], [2.0], [3.0]])
    whole = more(y, [1.7, 2.2])
    assert whole.dtype == y.dtype
    assert whole.name == "price"
    assert whole.index.tolist() == [0, 1, 2, 3, 4]
    exact = [1.7, 2.2] if "o" in dtype.lower()[:3] or dtype == "f4" else [2, 2]
    np.testing.assert_allclose(whole.astype(float)[3:], exact, rtol=1e-6)
    assert more(y.rename(None), [1, 2]).name is None


def test_numeric_targets_of_other_containers_are_restored():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    y = pl.Series("n", [1, 2, 3], dtype=pl.Int16)
    assert more(y, [1.7, 9]).equals(pl.Series("n", [1, 2, 3, 2, 9], dtype=pl.Int16))
    chunks = pa.chunked_array([[1, 2, 3]])
    assert more(chunks, [1.7, 9]).to_pylist() == [1, 2, 3, 2, 9]
    frame = pl.DataFrame({"a": [1.5, 2], "b": [1, 2]})
    assert more(frame, [[3, 3], [4, 4]]).rows() == [(1.5, 1), (2, 2), (3, 3), (4, 4)]
    whole = more(np.array([1, 2, 3], dtype=np.int32), [1.7, 2.2])
    assert whole.dtype == np.int32
    assert whole.tolist() == [1, 2, 3, 2, 2]
    assert more([1.0, 2.0], [3, 4]) == [1, 2, 3, 4]
    assert more(np.ones((4, 2), np.float32), np.zeros((2, 2))).shape == (6, 2)
    values, with_more = read_target(np.full(3, 2**60 + 1))
    assert with_more(values[:1]).tolist() == [2**60 + 1] * 4


RAGGED, COMPLEX = [[1], [1, 2], [3]], np.ones(3) * 1j
MASKED = np.ma.masked_array([0, 1, 2], [False, True, False])


@pytest.mark.parametrize(
    "y",
    [
        None,
        1,
        MASKED,
        np.array([1, np.nan]),
        pd.Series([1, np.nan]),
        [1.0, None],
        np.ones((3, 1, 1)),
        np.array(["a", "b"]),
        pd.Series(["a", "b"], name="kind"),
        RAGGED,
        COMPLEX,
    ],
    ids=str,
)
def test_invalid_numeric_targets_are_rejected(y):
    with pytest.raises((TypeError, ValueError), match=r"\by\b"):
        read_target(y)


def series(values, library, dtype=None):
    if library == "pandas":
        return pd.Series(values, name="c", dtype=dtype)
    return pytest.importorskip(library).Series("c", values, dtype=dtype)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(
    "values", [["no", "yes", "no"], [3, 2**60 + 1, 3], [True, False]]
)
def test_classes_in_a_series_are_restored(library, values):
    if library == "pyarrow":
        y = pytest.importorskip("pyarrow").chunked_array([values])
    else:
        y = series(values, library)
    labels, like = read_classes(y)
    assert labels.tolist() == values
    whole = like(np.concatenate([labels, labels[:1]]))
    assert type(whole) is type(y)
    if library == "pyarrow":
        assert whole.to_pylist() == [*values, values[0]]
        return
    assert whole.to_list() == [*values, values[0]]
    assert (whole.dtype, whole.name) == (y.dtype, "c")


def test_classes_in_enums_lists_and_frames_are_restored():
    pl = pytest.importorskip("polars")
    y = pl.Series("c", ["no", "yes"], dtype=pl.Enum(["yes", "no"]))
    new = read_classes(y)[1](np.array(["no", "yes", "yes"], dtype=object))
    assert new.equals(pl.Series("c", ["no", "yes", "yes"], dtype=y.dtype))
    like = read_classes(["a", "b"])[1]
    assert like(np.array(["a", "b", "b"])) == ["a", "b", "b"]
    like = read_classes(pd.DataFrame({"c": [0, 1]}))[1]
    assert like(np.array([0, 1, 1])).equals(pd.DataFrame({"c": [0, 1, 1]}))


@pytest.mark.parametrize(
    "make", [np.array, sp.csr_array, pd.DataFrame, np.ndarray.tolist]
)
def test_one_hot_classes_are_column_indices(make):
    one_hot = np.eye(3, dtype=int)[[2, 0, 1]]
    labels, like = read_classes(make(one_hot))
    assert labels.tolist() == [2, 0, 1]
    whole = like(np.array([2, 0, 1, 2]))
    assert_array_equal(whole, np.vstack([one_hot, one_hot[:1]]))
    assert make is sp.csr_array or type(whole) is type(make(one_hot))


LABELS = np.array([[1, 1, 0], [0, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize(
    "y, message",
    [
        (None, "PNLAugmenter"),
        ("abc", "y .*str"),
        (MASKED, "y .*masked"),
        (["a", None], "y .*row 1"),
        (pd.array([1, None], dtype="Int64"), "y .*row 1"),
        (RAGGED, "y .*row 1"),
        (COMPLEX, "y .*complex128"),
        (np.array([0.5, 1.5]), "PNLRegressionSampler"),
        (np.array([1, "a"], dtype=object), r"y\.astype"),
        (np.array([[1, 2], [3, 4]]), "PNLRegressionSampler"),
        (pd.DataFrame({"a": [1.5, 2], "b": [0, 1]}), r"\(2, 2\)"),
        (np.zeros((3, 2, 2)), r"\(3, 2, 2\)"),
        (LABELS, r"y .*\(3, 3\)"),
        (sp.csr_array(LABELS), r"y .*\(3, 3\)"),
        (LABELS[1:], r"y .*\(2, 3\)"),
    ],
    ids=str,
)
def test_invalid_classes_are_rejected(y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        read_classes(y)


def test_classes_in_a_polars_frame_are_rejected():
    pl = pytest.importorskip("polars")
    with pytest.raises(ValueError):
        read_classes(pl.DataFrame({"y": [0, 1]}))
