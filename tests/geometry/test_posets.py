"""Posets: fast transforms agree with their definition; invalid input."""

import ast
import copy
import pickle
import re

import numpy as np
import pytest
from _oracles import (
    bottom_slow,
    closure_slow,
    eta_slow,
    is_down_set_slow,
    is_up_set_slow,
    order_slow,
    random_down_set,
    random_poset,
    random_prob,
    random_relations,
    random_up_set,
    tensor_leq,
    tensor_relations,
    zeta_slow,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from sklearn_pnl import (
    ManyBodyProjector,
)
from sklearn_pnl.geometry import (
    Poset,
    PosetProtocol,
    TensorPoset,
    mixed_projection,
)
from sklearn_pnl.geometry.many_body.solvers import mixed_solver

# The shapes cover one mode, modes of length 1, and modes of more than 16 cells, for
# which transforms use cumulative sums.
SHAPES = [(1,), (5,), (20,), (2, 3), (1, 4, 1), (3, 18), (7, 2, 2), (2, 2, 2, 2)]
SEEDS = [0, 1, 2]
TRANSFORMS = ["zeta", "moebius", "eta", "eta_inverse"]


def by_definition(transform, x, leq):
    """Compute a transform of rows (n, D) with the dense zeta matrix."""
    matrix = leq.astype(float)
    return {
        "zeta": lambda: zeta_slow(x, leq),
        "eta": lambda: eta_slow(x, leq),
        "moebius": lambda: np.linalg.solve(matrix.T, x.T).T,
        "eta_inverse": lambda: np.linalg.solve(matrix, x.T).T,
    }[transform]()


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tensor_transform_is_its_definition(shape, transform):
    poset, leq = TensorPoset(shape), tensor_leq(shape)
    x = np.random.default_rng(len(shape)).normal(size=(3, 2, *shape))
    expected = by_definition(transform, x.reshape(6, -1), leq).reshape(x.shape)
    assert_allclose(getattr(poset, transform)(x), expected, atol=1e-10)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("n_elements", [1, 2, 9, 40])
@pytest.mark.parametrize("seed", SEEDS)
def test_poset_transform_is_its_definition(seed, n_elements, transform):
    rng = np.random.default_rng(seed)
    poset, leq = random_poset(rng, n_elements)
    x = rng.normal(size=(3, 2, n_elements))
    expected = by_definition(transform, x.reshape(6, -1), leq).reshape(x.shape)
    # Moebius values of a random poset are alternating sums of many terms.
    scale = max(1.0, np.abs(expected).max())
    assert_allclose(getattr(poset, transform)(x), expected, atol=1e-12 * scale)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["tensor", "poset"])
def test_eta_is_the_adjoint_of_zeta(kind, seed):
    # <zeta(theta), p> = <theta, eta(p)>.
    rng = np.random.default_rng(seed)
    poset = TensorPoset((3, 2, 4)) if kind == "tensor" else random_poset(rng, 24)[0]
    theta, p = rng.normal(size=(2, *poset.shape))
    assert_allclose(np.vdot(poset.zeta(theta), p), np.vdot(theta, poset.eta(p)))


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(
    "poset",
    [TensorPoset((3, 4)), Poset.from_relations(12, tensor_relations((3, 4)))],
    ids=["tensor", "poset"],
)
def test_transform_preserves_float32_and_its_input(poset, transform):
    x = np.random.default_rng(0).random((2, *poset.shape))
    for values, dtype in [
        (x, np.float64),
        (x.astype(np.float32), np.float32),
        ((9 * x).astype(int), np.float64),
    ]:
        before = values.copy()
        result = getattr(poset, transform)(values)
        assert result.dtype == dtype
        assert_array_equal(values, before)
        exact = getattr(poset, transform)(values.astype(np.float64))
        assert_allclose(result, exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tensor_given_as_general_poset_is_the_same_poset(shape):
    tensor = TensorPoset(shape)
    general = Poset.from_relations(tensor.n_elements, tensor_relations(shape))
    assert_array_equal(general.zeta_matrix.toarray().T.astype(bool), tensor_leq(shape))
    assert general.bottom == tensor.bottom == 0
    assert general.max_order == tensor.max_order
    assert_array_equal(general.order, tensor.order.ravel())
    x = np.random.default_rng(0).normal(size=(2, *shape))
    for transform in TRANSFORMS:
        assert_allclose(
            getattr(general, transform)(x.reshape(2, -1)),
            getattr(tensor, transform)(x).reshape(2, -1),
            atol=1e-10,
        )


@pytest.mark.parametrize("n_elements", [1, 2, 8, 9, 50])
@pytest.mark.parametrize("density", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_from_relations_closes_transitively(seed, density, n_elements):
    rng = np.random.default_rng(seed)
    pairs = random_relations(rng, n_elements, density)
    poset = Poset.from_relations(n_elements, pairs)
    leq = closure_slow(n_elements, pairs)
    assert_array_equal(poset.zeta_matrix.toarray(), leq.T.astype(float))
    assert poset.bottom == bottom_slow(leq)


@pytest.mark.parametrize("seed", SEEDS)
def test_added_bottom_is_below_all_and_shifts_the_labels(seed):
    rng = np.random.default_rng(seed)
    pairs = random_relations(rng, 12, density=0.3)
    # Without the relations of its bottom, the order has several components.
    bottom = bottom_slow(closure_slow(12, pairs))
    pairs = [(a, b) for a, b in pairs if a != bottom]
    poset = Poset.from_relations(12, pairs, add_bottom=True)
    leq = np.ones((13, 13), bool)
    leq[1:, 0] = False
    leq[1:, 1:] = closure_slow(12, pairs)
    assert_array_equal(poset.zeta_matrix.toarray(), leq.T.astype(float))
    assert (poset.bottom, poset.n_elements, poset.added_bottom) == (0, 13, True)
    assert not Poset.from_relations(1, []).added_bottom


@pytest.mark.parametrize("seed", SEEDS)
def test_order_is_the_number_of_atoms_below(seed):
    poset, leq = random_poset(np.random.default_rng(seed), 30)
    assert_array_equal(poset.order, order_slow(leq))
    assert poset.max_order == order_slow(leq).max() > 1


@pytest.mark.parametrize("kind", ["tensor", "poset"])
@pytest.mark.parametrize("seed", SEEDS)
def test_up_sets_and_down_sets_are_recognised(seed, kind):
    rng = np.random.default_rng(seed)
    if kind == "tensor":
        poset, leq = TensorPoset((3, 2, 3)), tensor_leq((3, 2, 3))
    else:
        poset, leq = random_poset(rng, 18)
    nothing = np.zeros(18, bool)
    masks = [nothing, ~nothing]
    for size in (1, 2, 4):
        masks += [random_up_set(rng, leq, size), random_down_set(rng, leq, size)]
    # Random masks are mostly neither, and one flipped element can break a set.
    masks += [m ^ (np.arange(18) == rng.integers(18)) for m in masks]
    masks += list(rng.random((10, 18)) < 0.5)
    up = [is_up_set_slow(leq, mask) for mask in masks]
    down = [is_down_set_slow(leq, mask) for mask in masks]
    assert {True, False} <= set(up), "masks of both kinds are needed"
    assert {True, False} <= set(down), "masks of both kinds are needed"
    shaped = [mask.reshape(poset.shape) for mask in masks]
    assert [poset.is_up_set(mask) for mask in shaped] == up
    assert [poset.is_down_set(mask) for mask in shaped] == down


# --- invalid input ---------------------------------------------------------------


@pytest.mark.parametrize("length", [2, 3, 7])
@pytest.mark.parametrize("seed", SEEDS)
def test_elements_of_a_cycle_are_named(seed, length):
    rng = np.random.default_rng(seed)
    pairs = random_relations(rng, 15)
    inside = rng.permutation(15)[:length].tolist()
    pairs += list(zip(inside, inside[1:] + inside[:1], strict=True))
    with pytest.raises(ValueError, match="cycle") as error:
        Poset.from_relations(15, pairs)
    named = set(ast.literal_eval(re.search(r"\[.*\]", str(error.value))[0]))
    leq = closure_slow(15, pairs)
    assert set(inside) <= named
    assert leq[np.ix_(list(named), list(named))].all()


@pytest.mark.parametrize(
    ("n_elements", "pairs", "name"),
    [
        (2, [], "add_bottom"),
        (4, [(0, 2), (1, 2), (2, 3)], "add_bottom"),
        (9, [(8, 7)], "add_bottom"),
        (3, [(0, 1), (1, 3)], r"1, \(1, 3\)"),
        (3, [(0, 1), (-1, 2)], r"1, \(-1, 2\)"),
        (3, [(0, 1, 2)], "pairs"),
        (3, [0, 1, 2], "pairs"),
        (3, [(0.0, 1.0), (0.0, 2.0)], "pairs"),
        (3, [("0", "1")], "pairs"),
        (0, [], "n_elements"),
        (-2, [], "n_elements"),
    ],
)
def test_invalid_relations_are_rejected(n_elements, pairs, name):
    with pytest.raises(ValueError, match=name):
        Poset.from_relations(n_elements, pairs)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(
    ("poset", "shape"),
    [
        (TensorPoset((2, 3)), (3, 2)),
        (TensorPoset((2, 3)), (6,)),
        (TensorPoset((2, 3)), ()),
        (TensorPoset((2, 3)), (2, 3, 1)),
        (Poset.from_relations(3, [(0, 1), (0, 2)]), (4,)),
        (Poset.from_relations(3, [(0, 1), (0, 2)]), (3, 2)),
        (Poset.from_relations(3, [(0, 1), (0, 2)]), ()),
    ],
    ids=str,
)
def test_arrays_of_another_shape_are_rejected(poset, shape, transform):
    with pytest.raises(ValueError):
        getattr(poset, transform)(np.ones(shape))


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_complex_arrays_are_rejected(transform):
    with pytest.raises(ValueError, match="complex128"):
        getattr(TensorPoset((2, 3)), transform)(np.full((2, 3), 1j))


# --- the protocol ---------------------------------------------------------------


class Explicit(PosetProtocol):
    """A user's subclass of the protocol, which uses a dense zeta matrix."""

    def __init__(self, leq):
        self._z = leq.T.astype(float)
        self.n_elements = len(leq)
        self.shape = (len(leq),)
        self.bottom = bottom_slow(leq)
        self.order = order_slow(leq)

    def zeta(self, theta):
        return np.asarray(theta) @ self._z.T

    def moebius(self, f):
        return np.linalg.solve(self._z, np.asarray(f)[..., None])[..., 0]

    def eta(self, p):
        return np.asarray(p) @ self._z

    def eta_inverse(self, eta):
        return np.linalg.solve(self._z.T, np.asarray(eta)[..., None])[..., 0]

    def is_down_set(self, mask):
        mask = np.asarray(mask, bool)
        return not np.any((self._z @ ~mask)[mask])


@pytest.mark.parametrize("missing", [*TRANSFORMS, "is_down_set"])
def test_a_class_without_a_required_method_is_rejected(missing):
    methods = {k: v for k, v in vars(Explicit).items() if k != missing}
    unfinished = type("Unfinished", (PosetProtocol,), methods)
    with pytest.raises(TypeError):
        unfinished(np.eye(1, dtype=bool))


@pytest.mark.parametrize("kind", ["down", "up", "order", "any"])
@pytest.mark.parametrize("seed", SEEDS)
def test_custom_posets_can_be_projected(seed, kind):
    rng = np.random.default_rng(seed)
    poset, leq = random_poset(rng, 12)
    matched = {
        "down": lambda: random_down_set(rng, leq, 3),
        "up": lambda: random_up_set(rng, leq, 3),
        "order": lambda: poset.order_mask(1),
        "any": lambda: rng.random(12) < 0.5,
    }[kind]()
    target, reference = random_prob(rng, (12,), 2)
    found = mixed_projection(target, reference, matched, Explicit(leq), tol=1e-11)
    expected = mixed_projection(target, reference, matched, poset, tol=1e-11)
    assert found.converged
    assert_allclose(found.prob, expected.prob, atol=1e-9)


@pytest.mark.parametrize(
    "poset", [TensorPoset((2, 3, 2)), TensorPoset((12,)), "random"], ids=str
)
def test_default_methods_agree_with_fast_methods(poset):
    rng = np.random.default_rng(0)
    if isinstance(poset, str):
        poset, _ = random_poset(rng, 12)
    own = Explicit(poset.zeta_matrix.toarray().T.astype(bool))
    p = random_prob(rng, poset.shape, 2)
    flat, elements = p.reshape(2, -1), np.array([1, 4, 7])
    v = rng.normal(size=(2, 3))
    assert isinstance(poset, PosetProtocol)
    assert poset.max_order == own.max_order
    assert_array_equal(poset.order.ravel(), own.order)
    assert_array_equal(poset.order_mask(1).ravel(), own.order_mask(1))
    assert_array_equal(poset.level_mask(0).ravel(), own.level_mask(0))
    assert_allclose(poset.fisher_gram(p, elements), own.fisher_gram(flat, elements))
    assert_array_equal(poset.zeta_matrix.toarray(), own.zeta_matrix.toarray())
    for operation, x in [("synthesis", v), ("analysis", flat)]:
        fast = getattr(poset.columns(elements), operation)(x)
        assert_allclose(fast, getattr(own.columns(elements), operation)(x))
    mask = rng.random(poset.shape) < 0.5
    assert poset.is_up_set(mask) == own.is_up_set(mask.ravel())


@pytest.mark.parametrize("seed", SEEDS)
def test_greatest_below_follows_its_definition(seed):
    rng = np.random.default_rng(seed)
    found = []
    for poset in (random_poset(rng, 10, 0.3)[0], TensorPoset((10,))):
        leq = poset.zeta_matrix.toarray().T.astype(bool)
        for _ in range(30):
            elements = np.flatnonzero(rng.random(10) < 0.3)
            expected = []
            for x in range(10):
                below = [k for k, y in enumerate(elements) if leq[y, x]]
                inside = leq[np.ix_(elements[below], elements[below])]
                greatest = np.flatnonzero(inside.all(axis=0))
                none = None if below else -1
                expected.append(below[greatest[0]] if len(greatest) else none)
            given = poset.greatest_below(elements)
            found.append(given is None)
            if given is None:
                assert None in expected
            else:
                assert_array_equal(given, expected)
    assert len(set(found)) == 2


# --- copies ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), None]
)
def test_used_posets_can_be_copied(copied):
    poset, _ = random_poset(np.random.default_rng(0), 12)
    f = np.random.default_rng(1).normal(size=(2, 12))
    expected = poset.moebius(f), poset.eta_inverse(f)
    if copied is None:
        X = np.random.default_rng(2).uniform(size=(4, 12))
        projector = ManyBodyProjector(poset=poset).fit(X)
        twin = clone(projector)
        assert_array_equal(twin.fit_transform(X), projector.transform(X))
        again = twin.poset
    else:
        again = copied(poset)
    assert again is not poset
    assert_array_equal(again.moebius(f), expected[0])
    assert_array_equal(again.eta_inverse(f), expected[1])
    assert_array_equal(again.order, poset.order)


def test_used_solvers_can_be_pickled():
    poset = TensorPoset((20, 20))
    rng = np.random.default_rng(0)
    matched = rng.random((20, 20)) < 0.8
    p = random_prob(rng, (20, 20), 2)
    solver = mixed_solver(poset, matched)
    before = solver.project(p)
    after = pickle.loads(pickle.dumps(solver)).project(p)
    assert before.route == "general"
    assert_array_equal(after.prob, before.prob)


# --- checks of a given matrix -----------------------------------------------------

CHAIN = np.tril(np.ones((4, 4)))


@pytest.mark.parametrize("seed", SEEDS)
def test_constructor_accepts_each_zeta_matrix(seed):
    poset, leq = random_poset(np.random.default_rng(seed), 20)
    again = Poset(leq.T)
    assert_array_equal(again.zeta_matrix.toarray(), poset.zeta_matrix.toarray())
    assert again.bottom == poset.bottom


@pytest.mark.parametrize("seed", SEEDS)
def test_constructor_accepts_only_transitive_matrices(seed):
    rng = np.random.default_rng(seed)
    below = random_poset(rng, 12)[1].T
    n_refused = 0
    for upper, lower in np.argwhere(below & ~np.eye(12, dtype=bool)):
        changed = below.copy()
        changed[upper, lower] = False
        is_transitive = np.array_equal((changed.astype(int) @ changed) > 0, changed)
        has_bottom = changed.all(axis=0).any()
        if is_transitive and has_bottom:
            assert Poset(changed).zeta_matrix.nnz == changed.sum()
        else:
            n_refused += 1
            with pytest.raises(ValueError, match="transitive|bottom"):
                Poset(changed)
    assert n_refused > 0


@pytest.mark.parametrize(
    "below, message",
    [
        (np.eye(4) + np.eye(4, k=-1), r"transitive; element 0 .* entry \(2, 0\)"),
        (np.tril(np.ones((4, 4)), k=-1), r"reflexive.* entry \(0, 0\) is 0"),
        (np.ones((3, 3)), r"a cycle of the elements \[0, 1, 2\]"),
        (2 * CHAIN, r"entries 0 and 1; got shape \(4, 4\) and the entries \[2.0\]"),
        (CHAIN[:, :3], r"square matrix .* got shape \(4, 3\)"),
        (np.eye(2), "a bottom; 2 elements"),
    ],
)
def test_matrices_that_are_no_order_are_rejected_by_name(below, message):
    with pytest.raises(ValueError, match=message):
        Poset(below)


def test_relations_without_a_bottom_or_with_a_cycle_are_rejected():
    with pytest.raises(ValueError):
        Poset.from_relations(3, [(0, 2), (1, 2)])
    with pytest.raises(ValueError, match=r"\[1, 2, 3\]"):
        Poset.from_relations(4, [(0, 1), (1, 2), (2, 3), (3, 1)])
