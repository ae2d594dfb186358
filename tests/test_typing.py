"""Public signatures say their types, and a type checker reads them so."""

import inspect
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import sklearn_pnl
from sklearn_pnl import geometry
from sklearn_pnl.geometry import optimize

ROOT = Path(sklearn_pnl.__file__).parent

# What users write. A checker finds something in each line that is marked, only there.
PROGRAM = """\
import numpy as np
from scipy.optimize import LinearConstraint
from sklearn_pnl import (
    BackwardProjector, FiberManifold, KernelDraws, ManyBodyProjector, MixtureManifold,
    MixupDraws, PNLAugmenter, PNLRegressionSampler, PNLSampler, PrimeFactorReshaper,
    ColumnConstraint, compare_samples, find_invariants)
from sklearn_pnl.geometry import (
    InteractionBasis, Poset, TensorPoset, chain_poset, e_geodesic, energy_decomposition,
    kl_divergence, linear_projection, many_body_projection, mixed_projection,
    order_mask, rake, taxonomy_poset, theta_from_prob, tree_poset)

X = np.ones((5, 6))
whole = LinearConstraint(np.ones(6), 6, 6)
augmenter = PNLAugmenter([(0, 1), (2,)], draws=MixupDraws(noise=0.1), poset=None)
rows = augmenter.fit(X).sample(3, random_state=0, constraints=[whole])
for batch, parents in augmenter.iter_samples_with_parents(10, 5):
    print(batch, parents.shape)
PNLAugmenter(None, embedding=None, range_slack=None, draws="kde", reshaper="prime")
PNLSampler(sampling_strategy={0: 3}, local_manifold=FiberManifold(order=1))
PNLSampler(constraints={"a": ColumnConstraint({"x": 1, 2: -1}, upper=3)})
PNLRegressionSampler(n_samples=0.5, row_weights="rarity", random_state=3)
codes = ManyBodyProjector(2, base=[1, 2]).fit_transform(X)
print(codes.astype(int), find_invariants(X, list("abcdef")).descriptions[0].upper())
BackwardProjector(poset=TensorPoset((2, 3))).fit(X).decode_margins({(0,): [[1, 2]]})
poset = tree_poset([-1, 0, 0])
p = many_body_projection([0.2, 0.3, 0.5], poset, order=1).prob
print(theta_from_prob(p, poset).sum(), energy_decomposition(p, poset, [1, [1, 2]]))
print(mixed_projection(p, None, order_mask(poset, 1), poset, route="splice").n_iter)
print(rake(np.ones((2, 2)), {(0,): [1, 2], (): 3}, strict=False).tables.sum())
print(taxonomy_poset([("a", "b")]).base("level 1").size, chain_poset(3).n_modes)
print(linear_projection([[1.0, 2.0]], [[1, 1]], 3, [4]).reasons)
InteractionBasis((2, 3), [(0,), (0, 1)]).analysis(np.ones((2, 3))).reshape(-1)

PNLAugmenter(k_neighbors="five")  # wrong
PNLAugmenter(order=1.5)  # wrong
PNLAugmenter(metric="cosine")  # wrong
PNLAugmenter(poset=[0, 1])  # wrong
PNLSampler(local_manifold="fibre")  # wrong
PNLSampler(sampling_strategy=None)  # wrong
PNLRegressionSampler(row_weights="rare")  # wrong
ManyBodyProjector(order=2.5)  # wrong
BackwardProjector(offset="1e-5")  # wrong
PrimeFactorReshaper(factor_order="up")  # wrong
PrimeFactorReshaper(pad_value="zero")  # wrong
MixtureManifold(step="half")  # wrong
KernelDraws(bandwidth="scott")  # wrong
augmenter.sample("3")  # wrong
augmenter.sample(3, random_state=np.random)  # wrong
ColumnConstraint(1.5, 3)  # wrong
chain_poset("3")  # wrong
TensorPoset(("2", "3"))  # wrong
Poset.from_relations(3, None)  # wrong
kl_divergence(p, p, axis="rows")  # wrong
e_geodesic(p, p, None)  # wrong
mixed_projection(p, None, [1], poset, route="newton")  # wrong
rake([[1]], [(0,), [1]])  # wrong
find_invariants(X, tol="small")  # wrong
find_invariants(X).nothing  # wrong
"""


def public_functions():
    """Functions, methods and properties by their public names."""
    own = [name for name in vars(optimize) if not name.startswith("_")]
    own = [n for n in own if getattr(getattr(optimize, n), "__module__", "") ==
           optimize.__name__]  # fmt: skip
    modules = {sklearn_pnl: sklearn_pnl.__all__, geometry: geometry.__all__,
               optimize: own}  # fmt: skip
    for module, names in modules.items():
        for name in names:
            value = getattr(module, name)
            if inspect.isclass(value):
                yield from methods(value)
            elif inspect.isfunction(value):
                yield f"{module.__name__}.{name}", value


def methods(owner):
    for name, value in vars(owner).items():
        if name.startswith("_") and name != "__init__":
            continue
        for wrapper in ("__func__", "fget", "func"):
            value = getattr(value, wrapper, value)
        if inspect.isfunction(value) and value.__module__ == owner.__module__:
            yield f"{owner.__module__}.{owner.__name__}.{name}", value


FUNCTIONS = dict(public_functions())


def test_there_are_public_functions():
    assert len(FUNCTIONS) > 150
    for name in (
        "PNLAugmenter.sample",
        "PNLSampler.fit_resample",
        "rake",
        "Poset.zeta",
    ):
        assert any(known.endswith("." + name) for known in FUNCTIONS)


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


def test_types_are_announced():
    assert (ROOT / "py.typed").exists()


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """Messages of mypy about the package, and about the program."""
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


def test_a_type_checker_finds_nothing_in_the_package(reported):
    assert reported[0] == []


def test_a_type_checker_finds_the_mistakes_of_users_and_no_others(reported):
    lines = {int(re.search(r"program\.py:(\d+)", line)[1]) for line in reported[1]}
    wrong = {k for k, line in enumerate(PROGRAM.splitlines(), 1) if "# wrong" in line}
    assert lines == wrong, reported[1]
