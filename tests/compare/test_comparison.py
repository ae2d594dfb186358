"""Comparison of samples: containers, dtypes, random states, report, invalid input."""

from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse as sp
from _samples import FAST, draw, mixed, numbers_of, statuses
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_pnl import compare_samples


def test_images_are_flattened_and_their_cells_named():
    X, X_new = np.random.default_rng(0).uniform(size=(2, 20, 3, 4))
    found = compare_samples(X, X_new, **FAST)
    flat = compare_samples(X.reshape(20, -1), X_new.reshape(20, -1), **FAST)
    assert_array_equal(numbers_of(found), numbers_of(flat))
    assert (found.features.names[6], flat.features.names[6]) == ("x1_2", "x6")


def test_lists_and_sparse_matrices_are_compared_as_arrays():
    X, X_new = np.random.default_rng(0).poisson(1.0, (2, 30, 3))
    found = compare_samples(X, X_new, **FAST)
    for make in (np.ndarray.tolist, sp.csr_array, sp.coo_matrix):
        other = compare_samples(make(X), make(X_new), **FAST)
        assert_array_equal(numbers_of(found), numbers_of(other))


def test_data_frames_keep_the_names_of_their_features():
    pandas = pytest.importorskip("pandas")
    X, X_new = draw(0, 20), draw(1, 20)
    X_new[:, 2] += 1000 * X.std(axis=0)[2]
    frame, frame_new = (pandas.DataFrame(a, columns=list("abcd")) for a in (X, X_new))
    found = compare_samples(frame, frame_new, **FAST)
    assert found.features.names == ("a", "b", "c", "d")
    assert found["location"].reason.startswith("c: difference of means")
    for other in (compare_samples(frame, X_new, **FAST),
                  compare_samples(X, X_new, **FAST)):  # fmt: skip
        assert_array_equal(numbers_of(found), numbers_of(other))


@pytest.mark.parametrize("container", ["pandas", "polars", "pyarrow"])
def test_frames_with_categories_get_verdicts(container):
    library = pytest.importorskip(container)

    def given(X):
        if container == "pandas":
            return X
        pytest.importorskip("pyarrow")
        if container == "polars":
            return library.from_pandas(X)
        return library.Table.from_pandas(X, preserve_index=False)

    X, X_test = mixed(0), mixed(1)
    found = compare_samples(given(X), given(X_test), **FAST)
    assert found.verdict == "fine, membership untested"
    frequent = X["city"].value_counts().index, X["note"].value_counts().index
    assert found.features.names == (
        "size", "seen", "rooms",
        *(f"city={name}" for name in frequent[0]),
        *(f"note={name}" for name in frequent[1]),
    )  # fmt: skip
    assert "copies" in compare_samples(given(X), given(X[::2]), **FAST).verdict
    one_city = X_test.assign(city=X_test["city"].cat.categories[0])
    one_city["city"] = one_city["city"].astype(X["city"].dtype)
    assert "shifted" in compare_samples(given(X), given(one_city), **FAST).verdict
    # Categories that no longer depend on the numbers.
    apart = X_test.assign(city=X_test["city"].to_numpy()[::-1])
    apart["city"] = apart["city"].astype(X["city"].dtype)
    verdict = compare_samples(given(X), given(apart), **FAST).verdict
    assert "correlations changed" in verdict


def test_different_columns_are_rejected():
    X = mixed(0)
    for X_new, name in (
        (X.drop(columns="note").to_numpy(), "X_new"),
        (X[["city", "size", "seen", "rooms", "note"]], "X_new .*note"),
        (X.assign(rooms="two"), "'rooms' of X_new"),
        (X.assign(seen=3), "'seen' of X_new"),
    ):
        with pytest.raises(ValueError, match=name):
            compare_samples(X, X_new, **FAST)


def test_strings_in_an_array_are_rejected():
    strings = np.array([["a", "b"]] * 4)
    with pytest.raises(ValueError, match="Column 0 of X "):
        compare_samples(strings, strings)


@pytest.mark.parametrize("unit", [1e-100, 1e-9, 1e100])
def test_results_do_not_depend_on_the_unit_of_the_columns(unit):
    X, X_new = np.random.default_rng(0).normal(size=(2, 40, 2))
    expected = compare_samples(X, X_new, **FAST)
    found = compare_samples(X * unit, X_new * unit, **FAST)
    assert found.verdict == expected.verdict == "fine, membership untested"
    assert_allclose(found.distance, expected.distance, rtol=1e-9)


@pytest.mark.parametrize("held_out", [False, True])
def test_one_seed_gives_the_same_numbers_for_every_n_jobs(held_out):
    X, X_new = draw(0), draw(1)
    X_test = draw(2) if held_out else None
    first, again, other, jobs = (
        compare_samples(X, X_new, X_test=X_test, cv=3, random_state=seed, n_jobs=n_jobs)
        for seed, n_jobs in ((0, None), (0, None), (1, None), (0, 2))
    )
    assert_array_equal(numbers_of(first), numbers_of(again))
    assert_array_equal(numbers_of(first), numbers_of(jobs))
    assert not np.array_equal(first.fold_auc, other.fold_auc)
    assert_array_equal(first.distance, other.distance)
    generators = (np.random.default_rng(3) for _ in range(2))
    found = [compare_samples(X, X_new, cv=3, random_state=g) for g in generators]
    assert_array_equal(*map(numbers_of, found))


# --- the report -----------------------------------------------------------------


def test_the_report_has_a_line_for_each_criterion():
    pandas = pytest.importorskip("pandas")
    X, X_new = (
        pandas.DataFrame(draw(seed), columns=["a", "b", "c", "<b> & c"])
        for seed in (0, 1)
    )
    X_new["a"] = 0.0
    found = compare_samples(X, X_new, X_test=X + 1, random_state=0)
    lines = str(found).splitlines()
    assert lines[1].split() == [
        "criterion", "status", "value", "baseline", "threshold"
    ]  # fmt: skip
    for line, finding in zip(lines[2:], found.findings, strict=False):
        assert line.startswith(finding.criterion) and finding.status in line
        assert (finding.reason in " ".join(str(found).split())) == (
            finding.status != "fine"
        )
    assert max(map(len, lines[1:])) <= 88
    page = ElementTree.fromstring(found._repr_html_())
    assert page.text == str(found)
    assert found.to_frame()["status"].to_dict() == statuses(found)
    assert tuple(found.features.to_frame().index) == found.features.names
    with pytest.raises(KeyError):
        found["zeros"]


# --- bad input ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["X", "X_new", "X_test"])
@pytest.mark.parametrize("bad", [-np.inf, np.inf])
def test_infinite_values_are_rejected(bad, name):
    rows = {"X": draw(0), "X_new": draw(1), "X_test": draw(2)}
    rows[name][2, 2], rows[name][3, 2] = np.nan, bad
    message = f"{name} .* row 3, column 'x2'"
    with pytest.raises(ValueError, match=message):
        compare_samples(rows["X"], rows["X_new"], X_test=rows["X_test"])


@pytest.mark.parametrize(
    "wrong",
    [{"cv": 1}, {"max_samples": 1}, {"classifier": "forest"}, {"n_jobs": 0.5}],
    ids=str,
)
def test_invalid_parameters_are_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        compare_samples(draw(0), draw(1), **wrong)


@pytest.mark.parametrize(
    "X, X_new, X_test",
    [
        (draw(0), draw(1)[:, :3], None),
        (draw(0), draw(1), draw(2).reshape(-1, 2, 2)),
        (np.ones((4, 0, 3)), np.ones((4, 0, 3)), None),
        (draw(0, 1), draw(1), None),
        (draw(0), draw(1), draw(2)[:0]),
        (draw(0), draw(1)[:0], None),
        (draw(0) * 1j, draw(1), None),
    ],
)
def test_rows_that_cannot_be_compared_are_rejected(X, X_new, X_test):
    with pytest.raises(ValueError):
        compare_samples(X, X_new, X_test=X_test)
