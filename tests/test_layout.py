"""The direction of the imports, and the public names."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sklearn_pnl

ROOT = Path(sklearn_pnl.__file__).parent
SAMPLERS = {"sklearn_pnl.sampler", "sklearn_pnl.regression"}


def module_name(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def nodes_that_run(tree):
    """Return all nodes except those that only type checkers read."""
    yield tree
    for node in ast.iter_child_nodes(tree):
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield from nodes_that_run(node)


def imported_modules(path):
    """Return the modules that a file imports, by absolute names.

    Imports inside functions count. ``from . import x`` counts as the module ``x`` if it
    exists, and otherwise as the package.
    """
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    imported = set()
    for node in nodes_that_run(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                imported.add(full if full in MODULES else base)
    return imported


PATHS = sorted(ROOT.rglob("*.py"))
MODULES = {module_name(path) for path in PATHS}
IMPORTS = {module_name(path): imported_modules(path) for path in PATHS}


def part_of(name):
    """Return the first package or module below the top: geometry, frames, sampler."""
    return name.split(".")[1] if name.count(".") else ""


def in_part(part):
    return sorted(name for name in MODULES if part_of(name) == part)


def imported_parts(part):
    """Return the parts of the package that modules of a part import."""
    imported = set().union(*(IMPORTS[name] & MODULES for name in in_part(part)))
    return {part_of(name) for name in imported} - {part}


def libraries(name):
    return {imported.split(".")[0] for imported in IMPORTS[name]} - {"sklearn_pnl"}


@pytest.mark.parametrize("name", in_part("geometry"))
def test_geometry_imports_only_numpy_and_scipy(name):
    ours = {each for each in IMPORTS[name] & MODULES if part_of(each) != "geometry"}
    assert ours <= {"sklearn_pnl._utils.masked", "sklearn_pnl._utils.arrays"}
    others = libraries(name) - set(sys.stdlib_module_names)
    assert others <= {"numpy", "scipy"}
    # It issues no warnings and draws no random numbers.
    assert not {"warnings", "logging", "random"} & libraries(name)


# Each part imports only parts that come before it. ``geometry`` needs few of them.
ORDER = [
    "_utils",
    "geometry",
    "frames",
    "compare",
    "columns",
    "control",
    "encoding",
    "reshape",
    "projectors",
    "methods",
    "filling",
    "imputer",
    "loglinear",
    "prior_correction",
    "augmenter",
    "sampler",
    "regression",
]


def test_the_import_order_contains_every_part():
    assert sorted(ORDER) == sorted({part_of(name) for name in MODULES} - {""})


@pytest.mark.parametrize("part", ORDER)
def test_parts_import_only_preceding_parts(part):
    assert imported_parts(part) <= set(ORDER[: ORDER.index(part)])


def test_the_top_level_is_small():
    top = {path.stem for path in ROOT.glob("*.py")} - {"__init__"}
    assert len(top) <= 12
    assert len(sklearn_pnl.__all__) <= 14


@pytest.mark.parametrize("name", sklearn_pnl.__all__)
def test_public_objects_name_a_module_that_can_be_imported(name):
    value = getattr(sklearn_pnl, name)
    module = getattr(value, "__module__", value.__name__)
    assert module in MODULES and "._" not in module


def test_there_are_no_cycles():
    # A package runs its __init__ first, but its modules do not need the imports of
    # __init__.
    packages = {module_name(path) for path in PATHS if path.name == "__init__.py"}
    left = {
        name: (imported & MODULES) - {name} - packages
        for name, imported in IMPORTS.items()
    }
    done = set()
    while left:
        free = {name for name, imported in left.items() if imported <= done}
        assert free, f"import cycle among {sorted(left)}"
        done |= free
        left = {name: imported for name, imported in left.items() if name not in free}


def test_only_samplers_import_imbalanced_learn():
    assert {name for name in MODULES if "imblearn" in libraries(name)} <= SAMPLERS
    for name in MODULES - {"sklearn_pnl"} - SAMPLERS:
        assert not SAMPLERS & IMPORTS[name], name


def test_no_module_calls_functions_of_c():
    assert not [name for name in MODULES if {"ctypes", "cffi"} & libraries(name)]


def test_algorithms_of_scikit_learn_are_public():
    # Only its utilities, such as the validation of parameters, have no public module.
    imported = {each for name in MODULES for each in IMPORTS[name]}
    private = {each for each in imported if re.match(r"sklearn\..*\._", each)}
    assert {each.rpartition(".")[0] for each in private} <= {"sklearn.utils"}


def test_the_package_works_without_imbalanced_learn_and_matplotlib():
    code = """
import sys
sys.modules["imblearn"] = sys.modules["matplotlib"] = None
import numpy as np, sklearn_pnl
X = np.random.default_rng(0).uniform(size=(20, 3))
assert sklearn_pnl.PNLAugmenter().fit(X).sample(3, 0).shape == (3, 3)
for name in sklearn_pnl.__all__:
    if not name.endswith("Sampler"):
        getattr(sklearn_pnl, name)
try:
    sklearn_pnl.PNLSampler
except ImportError:
    sys.exit(0)
sys.exit(1)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- public names ---------------------------------------------------------------
