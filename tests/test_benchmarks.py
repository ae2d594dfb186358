"""The harness of the benchmarks, and their tables: those of the committed results."""

import re
import subprocess
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import sklearn_pnl
from benchmarks import data
from benchmarks.harness import Split, evaluate
from benchmarks.paper import printed, report
from benchmarks.paper.problems import DATA_SETS, experiments
from benchmarks.paper.recipe import base_size, equation, recipe, reshaper
from benchmarks.promises.asks import Ask
from benchmarks.promises.checks import misses
from benchmarks.promises.run import trials
from benchmarks.promises.tables import sources
from benchmarks.rivals import PNL_PAPER, Rival, seeded
from benchmarks.speed import guard
from benchmarks.tables import read_csv
from sklearn_pnl import PNLSampler
from sklearn_pnl.geometry import TensorPoset, order_mask

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Halves:
    name: str = "halves"
    n_seeds: int = 2

    @property
    def head(self):
        return {"problem": self.name}

    @property
    def seeds(self):
        return range(self.n_seeds)

    key = "halves"

    def split(self, seed):
        X, y = make_classification(120, weights=[0.8], random_state=seed)
        return Split(seed, X[::2], y[::2], X[1::2], y[1::2])


SAMPLERS = {"none": None, "ROS": seeded(RandomOverSampler)}
LEARNERS = {"logistic": lambda seed: LogisticRegression()}


def accuracy(model, split, rival):
    return {"accuracy": model.score(split.X_test, split.y_test)}


def run(folder, samplers=SAMPLERS, score=accuracy, **params):
    told = []
    rows = evaluate(
        [Halves()], samplers, LEARNERS, score, folder=folder, log=told.append, **params
    )
    return rows, told


def test_rows_are_those_of_a_pipeline(tmp_path):
    rows, _ = run(tmp_path)
    assert [(r["problem"], r["sampler"], r["seed"]) for r in rows] == [
        ("halves", name, seed) for seed in (0, 1) for name in SAMPLERS
    ]
    for row in rows:
        split = Halves().split(row["seed"])
        make = SAMPLERS[row["sampler"]]
        sampler = "passthrough" if make is None else make(row["seed"])
        model = make_pipeline(sampler, LogisticRegression()).fit(split.X, split.y)
        assert row["accuracy"] == model.score(split.X_test, split.y_test)


def test_what_is_cached_is_not_computed_again(tmp_path):
    first, _ = run(tmp_path)

    def refuse(model, split, rival):
        raise AssertionError("computed")

    assert run(tmp_path, score=refuse)[0] == first
    more = SAMPLERS | {"ROS 0.3": seeded(RandomOverSampler, shrinkage=0.3)}
    known, _ = run(tmp_path, more, refuse, known=True)
    assert known == first
    with pytest.raises(AssertionError, match="computed"):
        run(tmp_path, more, refuse)


def test_a_sampler_that_fails_is_scored_as_none_and_told(tmp_path):
    class Fails(RandomOverSampler):
        def fit_resample(self, X, y):
            raise ValueError("too few")

    rows, told = run(tmp_path, SAMPLERS | {"fails": Rival(seeded(Fails))})
    failed = [r for r in rows if r["sampler"] == "fails"]
    plain = [r for r in rows if r["sampler"] == "none"]
    assert [r["accuracy"] for r in failed] == [r["accuracy"] for r in plain]
    assert all(r["failure"] == "ValueError: too few" for r in failed)
    assert any("too few" in text for text in told)


def test_the_page_of_the_paper_has_all_tables():
    page = ROOT / "benchmarks" / "paper" / "README.md"
    text = page.read_text(encoding="utf-8")
    assert all(table in text for table in report.tables().values())


def test_the_summary_is_that_of_the_runs():
    written = read_csv("paper")
    found = report.summarise(read_csv("paper-runs"))
    assert len(found) == len(written) > 0
    for mine, row in zip(found, written, strict=True):
        for name, value in mine.items():
            assert row[name] == ("" if value is None else str(value))
    assert all(row["versions"] and row["command"] for row in written)


def test_differences_are_paired_and_count_the_overlap_of_splits():
    rng = np.random.default_rng(0)
    a, b = rng.uniform(size=(2, 5))
    runs = [
        {"problem": problem, "size": "0.2", "sampler": sampler, "seed": seed}
        | {"accuracy": str(value), "train": "80", "test": "20"}
        | dict.fromkeys(report.MEANS, "0")
        | {"failure": "", "warning": ""}
        for problem in ("sonar", "mnist")
        for sampler, values in (("none", a), ("STD", b))
        for seed, value in enumerate(values)
    ]
    rows = {(r["problem"], r["sampler"]): r for r in report.summarise(runs)}
    gains = 100 * (b - a)
    for problem, more in (("sonar", 20 / 80), ("mnist", 0)):
        row = rows[problem, "STD"]
        wanted = gains.mean(), gains.std(ddof=1) * np.sqrt(1 / 5 + more)
        got = row["minus none"], row["minus none, se"]
        np.testing.assert_allclose(got, wanted, atol=1e-5)


# As the table of data sets counts, with the bottom.
DIMENSIONS = {
    "mnist": (17, 767),
    "cifar10": (1410, 2334),
    "speech": (136, 3430),
    "sonar": (9, 30),
    "taiwan_bankruptcy": (23, 72),
    "wine_quality": (10, 7),
}
WIDTHS = {
    "mnist": (28, 28),
    "cifar10": (32, 32, 3),
    "speech": (4000,),
    "speech uncut": (16000,),
    "sonar": (60,),
    "taiwan_bankruptcy": (95,),
    "wine_quality": (11,),
}


@pytest.mark.parametrize("name", DATA_SETS)
def test_geometry_is_that_of_the_paper(name):
    experiment = DATA_SETS[name]
    made = reshaper(experiment).fit(np.ones((2, *WIDTHS[name])))
    assert made.tensor_shape_ == experiment.tensor
    if name in DIMENSIONS:
        local = order_mask(TensorPoset(experiment.tensor), experiment.local_order)
        size = prod(experiment.tensor) - int(local.sum()) - 1
        assert (base_size(experiment), size) == DIMENSIONS[name]


def test_wine_is_padded_with_a_zero():
    rows = np.arange(1.0, 23.0).reshape(2, 11)
    tensors = reshaper(DATA_SETS["wine_quality"]).fit_transform(rows)
    np.testing.assert_array_equal(tensors.reshape(2, 12)[:, 11], 0)


def test_recipes_differ_from_the_common_one_by_the_settings_alone():
    for experiment in DATA_SETS.values():
        found = recipe(experiment)
        changed = {key for key in found if found[key] is not PNL_PAPER.get(key)}
        assert changed <= {"order", "reshaper", "k_neighbors", "embedding"}
        assert found["draws"].bandwidth == 0.05
        assert equation(experiment)["local_manifold"].order == experiment.local_order


def told_recipes():
    """The recipe as the site and the reference have it."""
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    yield re.search(r"PNLSampler\(\n    order=1,\n.*?\n\)", text, re.S)[0]
    text = " ".join(PNLSampler.__doc__.split())
    yield re.search(r"``(PNLSampler\(order=1,.*?\)\))``", text)[1]


@pytest.mark.parametrize("number", range(2))
def test_the_recipe_that_is_told_is_that_of_the_benchmarks(number):
    names = {name: getattr(sklearn_pnl, name) for name in sklearn_pnl.__all__}
    told = eval(list(told_recipes())[number], names)
    tables, wanted = (
        make_classification(30, 6, random_state=0),
        PNLSampler(**PNL_PAPER, random_state=0),
    )
    told.set_params(random_state=0, sampling_strategy={0: 40, 1: 40})
    wanted.set_params(sampling_strategy={0: 40, 1: 40})
    np.testing.assert_array_equal(
        told.fit_resample(*tables)[0], wanted.fit_resample(*tables)[0]
    )
    assert repr(told.reshaper) == repr(wanted.reshaper)


def test_every_printed_figure_has_its_experiment():
    sizes = {(e.name, e.share) for e in experiments()}
    assert {(name, 0.2) for name, _ in printed.table_1()} <= sizes
    assert {(name, size) for name, size, _ in printed.tables_4_to_6()} <= sizes
    assert len(printed.table_1()) == 36 and len(printed.tables_4_to_6()) == 48


def test_images_are_fetched_where_there_is_no_folder(monkeypatch):
    n = 60_010

    def fetch(title, **settings):
        assert title == "mnist_784"
        rows = np.zeros((n, 784))
        rows[:, 1] = np.arange(n) % 251
        return SimpleNamespace(data=rows, target=(np.arange(n) % 10).astype(str))

    monkeypatch.delenv("SKLEARN_PNL_DATA", raising=False)
    monkeypatch.setattr(data, "fetch_openml", fetch)
    arrays = data.load("mnist")
    assert arrays["X_train"].shape == (60_000, 28, 28)
    assert arrays["X_test"].shape == (10, 28, 28)
    assert arrays["X_train"][300, 0, 1] == 300 % 251
    assert arrays["y_test"].tolist() == list(range(10))


@pytest.mark.parametrize("name", ["mnist", "sonar"])
def test_missing_data_end_with_a_message(monkeypatch, tmp_path, name):
    def fetch(title, **settings):
        raise OSError("no network")

    monkeypatch.setenv("SKLEARN_PNL_DATA", str(tmp_path))
    monkeypatch.setattr(data, "fetch_openml", fetch)
    with pytest.raises(SystemExit, match=f"that folder has no {name}.npz"):
        data.load(name)


def test_promises_are_kept_on_a_table_and_each_form_is_tried():
    kinds = ["rows", "constraints", "totals", "frames", "classes"]
    rows = trials("wine", sources(everything=False)["wine"], kinds, seed=0)
    assert {row["kind"] for row in rows} == set(kinds)
    assert len({row["form"] for row in rows}) >= 15
    assert {row["outcome"] for row in rows} == {"kept"}


def broken(rows, word):
    """New rows with one promise broken."""
    rows = rows.copy()
    if word == "whole numbers":
        rows[0, 0] += 0.5
    elif word == "values of column 1":
        rows[:, 1] = 4.0
    elif word == "one of the levels":
        rows[0, 2:5] = 0.0
    elif word == "ranges":
        rows[0, 5] = 100.0
    elif word == "equation":
        rows[0, 6] += 0.001
    elif word == "constraint":
        rows[0, 5] += 1e-6
    elif word == "total":
        rows[0, 7] += 1e-4
    elif word == "type":
        rows = rows.astype(np.float32)
    return rows


@pytest.mark.parametrize(
    "word",
    ["whole numbers", "values of column 1", "one of the levels", "ranges", "equation",
     "constraint", "total", "type"],
)  # fmt: skip
def test_what_rows_miss_of_promises_is_found(word):
    rng = np.random.default_rng(0)
    levels = np.eye(3)[rng.integers(0, 3, 100)]
    X = np.column_stack([rng.integers(0, 999, 100), rng.choice([1.0, 3.0, 9.0], 100),
                         levels, rng.normal(size=(100, 3))])  # fmt: skip
    X[:, 6] = 1 - X[:, 5]
    augmenter = sklearn_pnl.PNLAugmenter().fit(X)
    ask = Ask("it", 50, bounds=[(np.eye(8)[5], 0.0, 0.0)], sums=[(np.eye(8)[7], 3.0)])
    given = {"constraints": sklearn_pnl.ColumnConstraint(5, equal=0.0)}
    rows = augmenter.sample(50, 0, totals={7: 3.0}, **given)
    assert misses(X, rows, {}, [[2, 3, 4]], ask, augmenter) == []
    if word == "ranges":
        ask = Ask("it")
    found = misses(X, broken(rows, word), {}, [[2, 3, 4]], ask, augmenter)
    assert any(told.startswith(word) for told in found), found


def test_the_guard_takes_a_state_from_its_folder_alone(tmp_path, capsys):
    # A state without the module, in an environment that may have it installed.
    (tmp_path / "sklearn_pnl").mkdir()
    (tmp_path / "sklearn_pnl" / "__init__.py").touch()
    row = guard.compare("rake 50 x 50 x 10", (ROOT, tmp_path), 2, 1.0, 1)
    assert "No module named 'sklearn_pnl.geometry'" in capsys.readouterr().err
    assert row["before, s"] > 0 and row["rounds"] == 2
    assert row["after, s"] is row["ratio"] is None
    *_, line = guard.table([row])
    assert line.split("|")[3].strip() == "not there"


def test_the_guard_takes_commits():
    git = ["git", "-C", str(ROOT), "rev-parse", "--verify", "HEAD"]
    if subprocess.run(git, capture_output=True, check=False).returncode:
        pytest.skip("this is no checkout")
    with guard.checkout("HEAD") as folder:
        assert (folder / "sklearn_pnl" / "__init__.py").exists()
    assert not folder.exists()
    with guard.checkout(str(ROOT)) as folder:
        assert folder == ROOT
