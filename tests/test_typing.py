"""Public signatures have types that a type checker accepts."""

import inspect
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import sklearn_pnl
from sklearn_pnl import compare, control, encoding, geometry, methods

ROOT = Path(sklearn_pnl.__file__).parent

# Code that users write. A type checker reports exactly the marked lines.
PROGRAM = """\
import numpy as np
from scipy.optimize import LinearConstraint
from sklearn_pnl import (
    Codes, Lines, ManyBodyProjector, PNLAugmenter, PNLRegressionSampler, PNLSampler)
from sklearn_pnl.control import ColumnConstraint, find_equalities
from sklearn_pnl.methods import MixupDraws
from sklearn_pnl.encoding import FiberManifold
from sklearn_pnl.geometry import (
    TensorPoset, energy_decomposition, linear_projection, many_body_projection,
    mixed_projection, order_mask, rake_array, theta_from_prob, tree_poset)

X = np.ones((5, 6))
whole = LinearConstraint(np.ones(6), 6, 6)
augmenter = PNLAugmenter(Codes([(0, 1), (2,)], draws=MixupDraws(noise=0.1)))
rows = augmenter.fit(X).sample(3, random_state=0, constraints=[whole])
for batch, parents in augmenter.iter_samples(10, 5, return_parents=True):
    print(batch, parents.shape)
PNLAugmenter(Codes(ManyBodyProjector(2, poset=TensorPoset((2, 3)), offset=0.5)))
PNLSampler(sampling_strategy={0: 3}, method=Codes(local_manifold=FiberManifold(1)))
PNLSampler(constraints={"a": ColumnConstraint({"x": 1, 2: -1}, upper=3)})
PNLSampler(method="paper").fit_resample(X, [0, 0, 0, 1, 1], sample_weight=np.ones(5))
codes = ManyBodyProjector(2, base=[1, 2]).fit_transform(X)
print(codes.astype(int), find_equalities(X).descriptions[0].upper())
poset = tree_poset([-1, 0, 0])
p = many_body_projection([0.2, 0.3, 0.5], poset, order=1).prob
print(theta_from_prob(p, poset).sum(), energy_decomposition(p, poset, [1, [1, 2]]))
print(mixed_projection(p, None, order_mask(poset, 1), poset).n_iter)
print(rake_array(np.ones((2, 2)), {(0,): [1, 2], (): 3}, strict=False).tables.sum())
print(linear_projection([[1.0, 2.0]], [[1, 1]], 3, [4]).reasons)

PNLAugmenter(k_neighbors="five")  # wrong
Codes(order=1.5)  # wrong
PNLAugmenter(offset=1.5)  # wrong
Codes(local_manifold="fibre")  # wrong
PNLSampler(sampling_strategy=None)  # wrong
PNLRegressionSampler(row_weights="rare")  # wrong
ManyBodyProjector(order=2.5)  # wrong
Lines(noise="straight")  # wrong
augmenter.sample("3")  # wrong
augmenter.sample(3, infeasible="skip")  # wrong
ColumnConstraint(1.5, 3)  # wrong
TensorPoset(("2", "3"))  # wrong
mixed_projection(p, None, [1], poset, tol="small")  # wrong
rake_array([[1]], [(0,), [1]])  # wrong
find_equalities(X).nothing  # wrong
"""


def public_functions():
    """Return functions, methods and properties by their public names."""
    for module in (sklearn_pnl, geometry, methods, encoding, control, compare):
        public = [name for name in vars(module) if name[0].isupper()]
        for name in getattr(module, "__all__", public):
            value = getattr(module, name)
            if inspect.isclass(value) and value.__module__.startswith("sklearn_pnl"):
                yield from methods_of(value)
            elif inspect.isfunction(value):
                yield f"{module.__name__}.{name}", value


def methods_of(owner):
    for name, value in vars(owner).items():
        if name.startswith("_") and name != "__init__":
            continue
        for wrapper in ("__func__", "fget", "func"):
            value = getattr(value, wrapper, value)
        if inspect.isfunction(value) and value.__module__ == owner.__module__:
            yield f"{owner.__module__}.{owner.__name__}.{name}", value


FUNCTIONS = dict(public_functions())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_and_result_has_a_type(name):
    signature = inspect.signature(FUNCTIONS[name])
    bare = [
        p.name
        for p in signature.parameters.values()
        if p.annotation is p.empty and p.name not in ("self", "cls")
    ]
    assert not bare
    assert signature.return_annotation is not signature.empty


def test_the_package_has_a_py_typed_marker():
    assert (ROOT / "py.typed").exists()


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """Return the messages of mypy about the package and the program."""
    if find_spec("mypy") is None:
        pytest.skip("mypy is missing")
    folder = tmp_path_factory.mktemp("typing")
    program = folder / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--cache-dir", folder / "cache", ROOT]
    found = subprocess.run(
        [*command, program],
        capture_output=True,
        text=True,
        cwd=ROOT.parent,
        check=False,
    )
    assert "error" not in found.stderr
    errors = [line for line in found.stdout.splitlines() if ": error:" in line]
    own = [line for line in errors if "program.py" in line]
    return [line for line in errors if line not in own], own


def test_the_package_has_no_type_errors(reported):
    assert reported[0] == []


def test_type_checker_reports_exactly_the_wrong_calls(reported):
    lines = {int(re.search(r"program\.py:(\d+)", line)[1]) for line in reported[1]}
    wrong = {k for k, line in enumerate(PROGRAM.splitlines(), 1) if "# wrong" in line}
    assert lines == wrong, reported[1]
