"""The direction of the imports, read from the sources, and the public names."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import sklearn_pnl

ROOT = Path(sklearn_pnl.__file__).parent
GEOMETRY = "sklearn_pnl.geometry"


def module_name(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(path):
    """Every module that a file imports, with absolute names, also inside functions.

    ``from . import x`` counts as the module ``x`` if there is one, else as the
    package.
    """
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                found.add(full if full in MODULES else base)
    return found


PATHS = sorted(ROOT.rglob("*.py"))
MODULES = {module_name(path) for path in PATHS}
IMPORTS = {module_name(path): imported_modules(path) for path in PATHS}
OURS = {name: found & MODULES for name, found in IMPORTS.items()}
OPTIMIZE, SAMPLER = f"{GEOMETRY}.optimize", "sklearn_pnl.over_sampling"
WORKSPACE = "sklearn_pnl._runtime.workspace"
SAMPLERS = {SAMPLER, "sklearn_pnl.regression"}
IN_GEOMETRY = sorted(name for name in MODULES if name.startswith(GEOMETRY))
ESTIMATORS = sorted(MODULES - {"sklearn_pnl", WORKSPACE, *IN_GEOMETRY})


def top_level(name):
    return {imported.split(".")[0] for imported in IMPORTS[name]}


def test_the_modules_of_the_design_are_there():
    # Also shows that the reading of sources above finds anything at all.
    layers = [
        "_runtime.validation",
        "_runtime.blocks",
        "_drawing.coding",
        "_drawing.rows",
        "_drawing.steps",
    ]
    layers += ["tables.table", "control.keeping", "draws", "embedding", "manifolds"]
    layers += ["reshape", "many_body", "backward", "augment"]
    parts = ["posets", "coordinates", "divergences", "interactions", "projections"]
    assert {OPTIMIZE, GEOMETRY, SAMPLER} <= MODULES
    assert {f"sklearn_pnl.{name}" for name in layers} <= MODULES
    assert {f"{GEOMETRY}.{name}" for name in parts} <= MODULES
    assert "sklearn_pnl.backward" in OURS["sklearn_pnl.augment"]
    assert "sklearn_pnl._drawing.coding" in OURS["sklearn_pnl.backward"]
    assert f"{GEOMETRY}.codec" in OURS["sklearn_pnl._drawing.coding"]
    assert f"{GEOMETRY}.solvers" in OURS[f"{GEOMETRY}.codec"]
    assert f"{GEOMETRY}.solvers" in OURS[f"{GEOMETRY}.projections"]
    assert OPTIMIZE in OURS[f"{GEOMETRY}.solvers"]


def test_optimize_and_its_memory_are_leaves():
    assert OURS[WORKSPACE] == set()
    assert top_level(WORKSPACE) <= {"contextlib", "math", "numpy", "threading",
                                    "weakref"}  # fmt: skip
    assert OURS[OPTIMIZE] <= {WORKSPACE}
    assert top_level(OPTIMIZE) <= {"__future__", "dataclasses", "functools", "math",
                                   "numpy", "scipy", "sklearn_pnl",
                                   "typing"}  # fmt: skip


@pytest.mark.parametrize("name", IN_GEOMETRY)
def test_geometry_imports_itself_alone(name):
    assert OURS[name] <= {WORKSPACE, *IN_GEOMETRY}


@pytest.mark.parametrize("name", IN_GEOMETRY)
def test_geometry_is_numpy_and_scipy_alone(name):
    standard = {"__future__", "abc", "collections", "dataclasses", "functools",
                "itertools", "math", "numbers", "operator", "typing"}  # fmt: skip
    assert top_level(name) <= {"numpy", "scipy", "sklearn_pnl", *standard}


@pytest.mark.parametrize("name", IN_GEOMETRY)
def test_geometry_neither_prints_nor_warns_nor_draws(name):
    path = next(path for path in PATHS if module_name(path) == name)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    attributes = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    assert not {"print", "open", "input", "warnings", "random"} & names
    assert not {"warn", "random", "default_rng", "RandomState"} & attributes


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_do_not_import_optimize(name):
    assert OPTIMIZE not in OURS[name]


def test_codes_are_known_in_one_place():
    # What a code is, the codec says; one module uses it, and hands estimators the rest.
    knowing = {name for name in MODULES if f"{GEOMETRY}.codec" in OURS[name]}
    assert knowing <= {GEOMETRY, f"{GEOMETRY}.nearness", "sklearn_pnl._drawing.coding"}
    solving = {name for name in ESTIMATORS if f"{GEOMETRY}.solvers" in OURS[name]}
    assert solving == set()


@pytest.mark.parametrize("name", sorted(MODULES - {"sklearn_pnl"}))
def test_only_the_package_imports_the_samplers(name):
    assert not SAMPLERS & OURS[name]


@pytest.mark.parametrize("name", sorted(MODULES - SAMPLERS))
def test_only_samplers_import_imbalanced_learn(name):
    assert "imblearn" not in top_level(name)


def test_only_validation_warns():
    warning = {name for name in MODULES if "warnings" in top_level(name)}
    assert warning == {"sklearn_pnl._runtime.validation"}


def test_nothing_travels_by_context_variables():
    assert not {name for name in MODULES if "contextvars" in top_level(name)}


def test_there_are_no_cycles():
    # Packages run their __init__ first, but its imports are not those of a module.
    inside = {
        name: {other for other in found if other != name}
        for name, found in OURS.items()
        if name not in ("sklearn_pnl", GEOMETRY)
    }
    done = {"sklearn_pnl", GEOMETRY}
    # geometry as a package is reached only from outside of it.
    assert not any(GEOMETRY in inside[n] for n in IN_GEOMETRY if n in inside)
    assert not any("sklearn_pnl" in found for found in inside.values())
    while inside:
        free = {name for name, found in inside.items() if found <= done}
        assert free, f"import cycle among {sorted(inside)}"
        done |= free
        inside = {name: found for name, found in inside.items() if name not in free}


@pytest.mark.parametrize("name", sorted(MODULES))
def test_every_module_says_what_it_is_for(name):
    assert importlib.import_module(name).__doc__


def test_importing_the_package_does_not_import_matplotlib():
    # It is an extra, and only the displays need it.
    code = "import sys, sklearn_pnl; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- public names ---------------------------------------------------------------


ESTIMATOR_NAMES = [
    "BackwardProjector",
    "DensityDraws",
    "Draws",
    "EtaManifold",
    "FiberManifold",
    "KernelDraws",
    "LocalManifold",
    "ManyBodyProjector",
    "MixtureManifold",
    "MixupDraws",
    "PNLAugmenter",
    "PNLRegressionSampler",
    "PNLSampler",
    "PrimeFactorReshaper",
    "ThetaManifold",
]
GEOMETRY_NAMES = [
    "Poset",
    "TensorPoset",
    "e_geodesic",
    "eta_from_prob",
    "fisher_information",
    "kl_divergence",
    "linear_projection",
    "m_geodesic",
    "mixed_projection",
    "prob_from_theta",
    "rake",
    "round_to_margins",
    "theta_from_prob",
]


@pytest.mark.parametrize("name", [*ESTIMATOR_NAMES, "geometry"])
def test_estimators_are_public(name):
    assert name in sklearn_pnl.__all__
    assert hasattr(sklearn_pnl, name)


@pytest.mark.parametrize("name", GEOMETRY_NAMES)
def test_geometry_is_public(name):
    assert name in sklearn_pnl.geometry.__all__
    assert callable(getattr(sklearn_pnl.geometry, name))


@pytest.mark.parametrize("module", [sklearn_pnl, sklearn_pnl.geometry])
def test_every_name_announced_exists_and_is_described(module):
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert getattr(module, name).__doc__


def test_the_version_is_known():
    assert sklearn_pnl.__version__[0].isdigit()
