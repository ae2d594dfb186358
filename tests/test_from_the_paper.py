"""The page from the paper to the code names existing objects."""

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from sklearn_pnl import Codes, PNLAugmenter, PNLSampler

PAGE = Path(__file__).parents[1] / "docs" / "from_the_paper.md"
TEXT = PAGE.read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`(sklearn_pnl(?:\.\w+)+)`", TEXT)))
NUMBERED = [
    "Remark 3.1", "Remark 3.2", "Example 4.1", "Remark 4.2", "Remark 4.3",
    "equation 1", "equation 2", "equation 3", "Example A.1", "Algorithm 1",
    "Algorithm 2", "Remark C.1", "footnote",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_named_objects_exist(name):
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        break
    for attribute in parts[n:]:
        found = getattr(found, attribute)
    assert found.__doc__


def test_page_covers_all_numbered_statements_of_the_paper():
    rows = [line.split("|")[1] for line in TEXT.splitlines() if line.startswith("| ")]
    first = " ".join(rows)
    assert [name for name in NUMBERED if name not in first] == []


@pytest.mark.parametrize("equalities", ["auto", None])
def test_rows_without_bounds_give_no_warning(equalities):
    # Pixels that are constant in the data differ in new rows by the offset.
    X, y = load_digits(return_X_y=True)
    X, y = X[:400].reshape(-1, 8, 8) / 16, y[:400]
    method = Codes.paper(local_manifold="theta", embedding=None)
    settings = {"method": method, "extrapolation": None, "equalities": equalities}
    wanted = dict.fromkeys(range(10), 50)
    sampler = PNLSampler(sampling_strategy=wanted, random_state=0, **settings)
    X_res, _ = sampler.fit_resample(X, y)
    augmenter = PNLAugmenter(**settings).fit(X[y == 3])
    for new in (X_res[len(X) :], augmenter.sample(20, random_state=0)):
        assert 0 < np.ptp(new[:, 0, 0]) < 0.01
