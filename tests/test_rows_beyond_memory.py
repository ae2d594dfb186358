"""The example that writes new rows in parts can be interrupted and resumed."""

import json
import runpy
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

EXAMPLE = Path(__file__).parents[1] / "examples" / "rows_beyond_memory.py"


N_ROWS, ROWS_PER_PART = 2_300, 500


@pytest.fixture
def example():
    return runpy.run_path(EXAMPLE)


@pytest.fixture
def augmenter(example, tmp_path):
    rows = example["training_rows"](tmp_path / "training.npy", n=400, n_columns=6)
    return example["fit_on_sample"](rows, n=150)


def parts_in(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*.npy"))}


def whole(example, augmenter, folder):
    plan = example["make_plan"](augmenter, N_ROWS, ROWS_PER_PART)
    example["write_parts"](augmenter, folder, plan)
    return plan


def test_parts_are_samples_from_their_own_seeds(example, augmenter, tmp_path):
    whole(example, augmenter, tmp_path / "parts")
    parts = [np.load(path) for path in sorted((tmp_path / "parts").glob("*.npy"))]
    assert [len(part) for part in parts] == [500] * 4 + [300]
    for k, part in enumerate(parts):
        seed = example["seed_of"](k, 0)
        assert_array_equal(part, augmenter.sample(len(part), seed))
    assert len(np.unique(np.vstack(parts), axis=0)) == N_ROWS


def test_a_killed_run_is_resumed(example, augmenter, tmp_path):
    folder = tmp_path / "parts"
    code = f"""
import runpy, numpy as np
from pathlib import Path
example = runpy.run_path({str(EXAMPLE)!r})
rows = np.load({str(tmp_path / "training.npy")!r}, mmap_mode="r")
augmenter = example["fit_on_sample"](rows, n=150)
plan = example["make_plan"](augmenter, 40_000, 1_000)
example["write_parts"](augmenter, Path({str(folder)!r}), plan)
"""
    run = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 60
    while len(parts_in(folder)) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    run.kill()
    run.wait()
    before = parts_in(folder)
    assert before
    plan = example["make_plan"](augmenter, 40_000, 1_000)
    example["write_parts"](augmenter, folder, plan)
    example["write_parts"](augmenter, tmp_path / "whole", plan)
    assert before.items() <= parts_in(folder).items()
    assert parts_in(folder) == parts_in(tmp_path / "whole")


@pytest.mark.parametrize("change", ["rows", "seed", "parameters", "fitted", "version"])
def test_changed_parameters_are_rejected_on_resume(
    change, example, augmenter, tmp_path
):
    plan = whole(example, augmenter, tmp_path / "parts")
    before = parts_in(tmp_path / "parts")
    other = json.loads(json.dumps(plan))
    other[change] = 1 if change == "seed" else plan[change] * 2
    with pytest.raises(ValueError, match=rf"\b{change}:"):
        example["write_parts"](augmenter, tmp_path / "parts", other)
    assert parts_in(tmp_path / "parts") == before
