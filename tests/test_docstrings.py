"""Public docstrings follow numpydoc."""

import importlib
import inspect

import pytest

import sklearn_pnl

validation = pytest.importorskip("numpydoc.validate", reason="numpydoc is missing")

# The checks cover the summary, the order of sections, names and order of parameters,
# and full stops.
CHECKED = {
    "GL06", "GL07", "SS01", "SS03", "PR02", "PR03", "PR05", "PR06", "PR08", "PR09",
    "PR10", "RT04", "RT05", "SA02", "SA03", "SA04",
}  # fmt: skip
# The docstring starts with the most important parameters, which are keywords.
BY_KEYWORD = {"BackwardProjector", "PNLSampler", "PNLRegressionSampler"}
FOLDERS = "", ".control", ".encoding", ".geometry", ".methods"
MODULES = [f"sklearn_pnl{folder}" for folder in FOLDERS]


def public_objects():
    for module in map(importlib.import_module, MODULES):
        for name in getattr(module, "__all__", vars(module)):
            value = getattr(module, name)
            own = getattr(value, "__module__", "").startswith("sklearn_pnl")
            if own and not name.startswith("_"):
                yield f"{module.__name__}.{name}"
                if inspect.isclass(value):
                    yield from members(value, f"{module.__name__}.{name}")


def members(owner, prefix):
    for name, value in vars(owner).items():
        shown = isinstance(value, property | classmethod | staticmethod)
        if not name.startswith("_") and (shown or inspect.isfunction(value)):
            yield f"{prefix}.{name}"


@pytest.mark.parametrize("name", sorted(set(public_objects())))
@pytest.mark.filterwarnings("ignore:Unknown section:UserWarning")
def test_public_docstrings_follow_numpydoc(name):
    checked = CHECKED - ({"PR03"} if name.split(".")[-1] in BY_KEYWORD else set())
    if name.removeprefix("sklearn_pnl.") in sklearn_pnl.__all__:
        checked = checked | {"EX01", "SA01"}
    found = validation.validate(name)["errors"]
    assert not [error for error in found if error[0] in checked]
