"""Decoding: ms per row for each local manifold, and how much of it finds neighbours."""

from functools import partial
from time import perf_counter

import numpy as np

from sklearn_pnl import BackwardProjector, ManyBodyProjector
from sklearn_pnl.geometry import eta_from_prob

from ..tables import main
from . import problems
from .forward import OFFSET, TEXTBOOKS, textbook_note
from .scores import score
from .textbook import Textbook
from .timing import interleaved

K = 8
MANIFOLDS = "theta", "mixture", "fiber", "eta"
# Most ms per row, by local manifold and order.
WANTED = {
    ("fiber", 1): 0.3,
    ("eta", 1): 0.3,
    ("fiber", 2): 5.0,
    ("eta", 2): 5.0,
}


def drawn_codes(projector, n, rng):
    """Draw codes between the code of a training row and that of a neighbour."""
    codes = projector.codes_
    first = rng.integers(len(codes), size=n)
    near = projector.kneighbors(codes[first], K + 1, return_distance=False)
    second = near[np.arange(n), rng.integers(1, K + 1, size=n)]
    t = rng.uniform(size=(n, 1))
    return (1 - t) * codes[first] + t * codes[second]


def decode(projectors, codes, order, repeats):
    """Return rows of the table for all local manifolds, with ms per row."""
    rows, taken = [], {}
    for manifold, projector in projectors.items():
        seconds = interleaved(
            {
                "all": partial(projector.inverse_transform, codes),
                "search": partial(projector.kneighbors, codes, return_distance=False),
            },
            repeats,
        )
        total, search = (1e3 * seconds[part] / len(codes) for part in ("all", "search"))
        job = f"MNIST, order {order}, {manifold}"
        note = f"{len(codes)} codes, {len(projector.rows_)} training rows, k = {K}"
        closed = manifold in ("theta", "mixture")
        limit = WANTED.get((manifold, order))
        rows += [
            score(job, "ms/row", total, at_most=limit, note=note),
            score(job, "ms/row without the search", total - search),
            score(
                job, "share of neighbour search", search / total,
                at_least=0.5 if closed else None,
            ),
        ]  # fmt: skip
        taken[manifold] = total
    return rows, taken


def against_textbook(projector, codes, order, taken):
    """Compare "theta" with natural gradients over all elements beyond the order.

    The authors' program, which "mixture" reproduces, follows natural gradients over all
    elements, which takes slightly longer. It is compared with the same figure.
    """
    poset = projector.poset_
    near = projector.kneighbors(codes, return_distance=False)
    base = ManyBodyProjector(order, offset=OFFSET).fit(projector.rows_[: len(codes)])
    points = base.inverse_transform(codes)
    new = projector.inverse_transform(codes) + OFFSET
    new /= new.sum(axis=tuple(range(1, new.ndim)), keepdims=True)
    expected = eta_from_prob(new, poset).reshape(len(new), -1)
    rows = []
    for variant, step in TEXTBOOKS.items():
        textbook = Textbook(poset.shape, poset.order > order, step=step)
        start = perf_counter()
        answers = [
            textbook.backward_theta(w, projector.rows_[neighbors], OFFSET)
            for w, neighbors in zip(points, near, strict=True)
        ]
        seconds = (perf_counter() - start) / len(codes)
        note = textbook_note(seconds, answers, expected)
        rows += [
            score(
                f"MNIST, order {order}, {manifold}",
                f"times faster than textbook ({variant})",
                1e3 * seconds / taken[manifold],
                at_least=5000,
                note=note,
            )
            for manifold in ("theta", "mixture")
        ]
    return rows


def run(quick):
    n, n_codes, n_book, repeats = (1_000, 300, 1, 3) if quick else (10_000, 2_000, 3, 3)
    X = problems.mnist(n)
    rng = np.random.default_rng(0)
    rows = []
    for order in (1, 2):
        projectors = {
            manifold: BackwardProjector(
                ManyBodyProjector(order, offset=OFFSET),
                local_manifold=manifold,
                k_neighbors=K,
            ).fit(X)
            for manifold in MANIFOLDS
        }
        codes = drawn_codes(projectors["theta"], n_codes, rng)
        measured, taken = decode(projectors, codes, order, repeats)
        rows += measured
        rows += against_textbook(projectors["theta"], codes[:n_book], order, taken)
    return rows


if __name__ == "__main__":
    main(__doc__, run, "speed-backward")
