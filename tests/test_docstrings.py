"""Public docstrings follow numpydoc; what does not is listed here, with the reason."""

import importlib
import inspect
import re

import pytest

validation = pytest.importorskip("numpydoc.validate", reason="numpydoc is missing")

# Of every object.
LEFT_OUT = {
    "GL01": "docstrings start on the line of their quotes, as everywhere here",
    "GL02": "and end where they end",
    "GL08": "tells of members without a docstring, which ruff does",
    "ES01": "a summary may say all",
    "PR01": "parameters of protocols and of `See :class:` are told once",
    "PR04": "parameters told at another function have no type: `As for`",
    "PR07": "a name and a type may say all",
    "RT01": "so may a summary that names the result",
    "RT02": "results have names",
    "RT03": "which may say all",
    "SS05": "takes nouns such as Rows and Codes for verbs",
    "SS06": "a summary with a formula has two lines",
}
# Of methods and attributes, beside these.
LEFT_OUT_OF_MEMBERS = {
    "EX01": "the class has an example",
    "SA01": "the class says what to see",
}
RETURNED = {"EX01": "the function that returns it has an example"}
TO_DERIVE_FROM = {"EX01": "a base: those derived from it have examples"}
BY_KEYWORD = [
    f"sklearn_pnl.{name}"
    for name in ("BackwardProjector", "PNLSampler", "PNLRegressionSampler")
]
EXCEPTIONS = {
    "sklearn_pnl.draws.Draws": TO_DERIVE_FROM,
    "sklearn_pnl.manifolds.LocalManifold": TO_DERIVE_FROM,
    "sklearn_pnl.geometry.PosetProtocol": TO_DERIVE_FROM,
    **{
        f"sklearn_pnl.geometry.{name}": RETURNED
        for name in ("Completion", "Projection", "LinearProjection", "Raking",
                     "Unmet", "GoodnessOfFit", "InteractionTests")
    },
    "sklearn_pnl.geometry.RakingError": {"EX01": "the example of rake has its text"},
    **dict.fromkeys(BY_KEYWORD, {"PR03": "what matters most is told first"}),
}  # fmt: skip
MODULES = {
    "sklearn_pnl": None,
    "sklearn_pnl.geometry": None,
    "sklearn_pnl.draws": ["Draws", "MixupDraws", "KernelDraws", "DensityDraws"],
    "sklearn_pnl.manifolds": ["LocalManifold", "FiberManifold", "ThetaManifold",
                              "EtaManifold", "MixtureManifold"],
}  # fmt: skip


def public_objects():
    for module, names in MODULES.items():
        for name in names or importlib.import_module(module).__all__:
            if name != "geometry":
                yield f"{module}.{name}", True
                yield from ((member, False) for member in members(module, name))


def members(module, name):
    owner = getattr(importlib.import_module(module), name)
    if not inspect.isclass(owner):
        return
    for member, value in vars(owner).items():
        shown = isinstance(value, property | classmethod | staticmethod)
        if not member.startswith("_") and (shown or inspect.isfunction(value)):
            yield f"{module}.{name}.{member}"


@pytest.mark.parametrize("name, whole", list(public_objects()))
@pytest.mark.filterwarnings("ignore:Unknown section:UserWarning")
def test_docstring(name, whole):
    left_out = LEFT_OUT if whole else LEFT_OUT | LEFT_OUT_OF_MEMBERS
    left_out = left_out | EXCEPTIONS.get(name, {})
    found = validation.validate(name)["errors"]
    assert not [error for error in found if error[0] not in left_out]


@pytest.mark.parametrize("name", [name for name, whole in public_objects() if whole])
def test_what_to_see_is_there(name):
    module, _, short = name.rpartition(".")
    section = inspect.getdoc(getattr(importlib.import_module(module), short))
    section = section.split("See Also\n")[1]
    entries = re.findall(r"^([\w.]+) : \S", section.split("\n\n")[0], re.M)
    assert entries
    for entry in entries:
        where, _, one = entry.rpartition(".")
        known = [where] if where else [module, "sklearn_pnl"]
        assert any(hasattr(importlib.import_module(m), one) for m in known), entry
