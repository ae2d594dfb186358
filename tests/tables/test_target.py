"""Targets: numbers and classes in every container, and more of them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklearn_pnl.tables import plain_target, read_target

pd = pytest.importorskip("pandas")


def more(y, new):
    return read_target(y, "Sampler")[1](np.asarray(new, dtype=float).reshape(2, -1))


@pytest.mark.parametrize(
    "dtype",
    ["Int64", "UInt8", "int64[pyarrow]", "double[pyarrow]", "int8", "Float32", "f4"],
)
def test_series_keep_name_and_type(dtype):
    y = pd.Series([1, 2, 3], name="price", index=[7, 8, 9]).astype(dtype)
    values, _ = read_target(y, "Sampler")
    assert_array_equal(values, [[1.0], [2.0], [3.0]])
    whole = more(y, [1.7, 2.2])
    assert whole.dtype == y.dtype
    assert whole.name == "price"
    assert whole.index.tolist() == [0, 1, 2, 3, 4]
    exact = [1.7, 2.2] if "o" in dtype.lower()[:3] or dtype == "f4" else [2, 2]
    np.testing.assert_allclose(whole.astype(float)[3:], exact, rtol=1e-6)
    assert more(y.rename(None), [1, 2]).name is None


@pytest.mark.parametrize("dtype", ["boolean", "bool[pyarrow]", "bool", "object"])
def test_flags_stay_flags(dtype):
    y = pd.Series([True, False, True]).astype(dtype)
    whole = more(y, [0.7, 0.2])
    assert whole.dtype == y.dtype
    assert whole.tolist() == [True, False, True, True, False]


def test_series_and_frames_of_other_libraries():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    y = pl.Series("n", [1, 2, 3], dtype=pl.Int16)
    assert more(y, [1.7, 9]).equals(pl.Series("n", [1, 2, 3, 2, 9], dtype=pl.Int16))
    chunks = pa.chunked_array([[1, 2, 3]])
    assert more(chunks, [1.7, 9]).to_pylist() == [1, 2, 3, 2, 9]
    frame = pl.DataFrame({"a": [1.5, 2], "b": [1, 2]})
    assert more(frame, [[3, 3], [4, 4]]).rows() == [(1.5, 1), (2, 2), (3, 3), (4, 4)]


def test_arrays_and_lists():
    counts = np.array([1, 2, 3], dtype=np.int32)
    whole = more(counts, [1.7, 2.2])
    assert whole.dtype == np.int32
    assert whole.tolist() == [1, 2, 3, 2, 2]
    assert more([1.0, 2.0], [3, 4]) == [1, 2, 3, 4]
    assert more(np.ones((4, 2), np.float32), np.zeros((2, 2))).shape == (6, 2)
    far = np.full(3, 2**60 + 1)
    values, with_more = read_target(far, "Sampler")
    assert with_more(values[:1]).tolist() == [2**60 + 1] * 4


def test_bad_targets_are_refused():
    with pytest.raises(ValueError, match="Sampler requires y.*y is None.*PNLAugmenter"):
        read_target(None, "Sampler")
    for y in (np.array([1, np.nan]), pd.Series([1, np.nan]), [1.0, None]):
        with pytest.raises(ValueError, match="Input y contains NaN; .* row 1"):
            read_target(y, "Sampler")
    with pytest.raises(ValueError, match=r"shape \(n,\) or \(n, n_targets\)"):
        read_target(np.ones((3, 1, 1)), "Sampler")
    with pytest.raises(ValueError, match="could not convert string|numeric"):
        read_target(np.array(["a", "b"]), "Sampler")
    with pytest.raises(ValueError, match="Column 'kind'.* of y holds no numbers"):
        read_target(pd.Series(["a", "b"], name="kind"), "Sampler")


@pytest.mark.parametrize("read", [plain_target, lambda y: read_target(y, "Sampler")])
def test_masked_targets_are_refused(read):
    y = np.ma.masked_array([0, 1, 2], [False, True, False])
    with pytest.raises(ValueError, match="y is a masked array.*Drop such rows"):
        read(y)
    read(np.ma.masked_array([0, 1, 2]))


def test_classes_in_a_series_come_back_as_one():
    pl = pytest.importorskip("polars")
    y = pl.Series("c", ["no", "yes"], dtype=pl.Enum(["yes", "no"]))
    plain, as_they_came = plain_target(y)
    assert plain.tolist() == ["no", "yes"]
    new = as_they_came(np.array(["no", "yes", "yes"], dtype=object))
    assert new.equals(pl.Series("c", ["no", "yes", "yes"], dtype=y.dtype))
    for known in (np.array([0, 1]), pd.Series([0, 1]), [0, 1]):
        plain, as_they_came = plain_target(known)
        assert plain is known
        assert as_they_came(plain) is plain


def test_classes_in_a_frame_name_the_series():
    pl = pytest.importorskip("polars")
    with pytest.raises(ValueError, match="y is a DataFrame of polars.*Series"):
        plain_target(pl.DataFrame({"y": [0, 1]}))
