"""Encoding: ms per row, against one pass over the data and against the textbook."""

from time import perf_counter

import numpy as np

from sklearn_pnl import ManyBodyProjector
from sklearn_pnl.geometry import (
    TensorPoset,
    eta_from_prob,
    mixed_projection,
    order_mask,
)

from ..tables import main
from . import problems
from .scores import score
from .textbook import Textbook
from .timing import interleaved

OFFSET = 1e-5
TEXTBOOKS = {"step 0.1": 0.1, "step 1, Newton": 1.0}


def closed_form(n, dtype, repeats):
    """Measure order 1, which takes a few passes over the data, because sums suffice."""
    X = problems.mnist(n, dtype)
    projector = ManyBodyProjector(1, offset=OFFSET).fit(X)
    taken = interleaved(
        {
            "transform": lambda: projector.transform(X),
            "fit_transform": lambda: projector.fit_transform(X),
            "sum": lambda: X.sum(),
        },
        repeats,
    )
    job = f"MNIST {n} x 784, order 1, {X.dtype}"
    note = f"X.sum() {taken['sum'] * 1e3:.3g} ms"
    limits = {"transform": 10, "fit_transform": None}
    return [
        score(
            job, f"{name}, passes of X.sum()", taken[name] / taken["sum"],
            at_most=limit, note=note,
        )
        for name, limit in limits.items()
    ]  # fmt: skip


def iterative(name, X, order, repeats, at_most):
    """Return seconds per row, and a note on the convergence of the solver."""
    projector = ManyBodyProjector(order, offset=OFFSET).fit(X)
    on_all_cores = ManyBodyProjector(order, offset=OFFSET, n_jobs=-1).fit(X)
    taken = interleaved(
        {
            "ms/row": lambda: projector.transform(X),
            "ms/row, n_jobs=-1": lambda: on_all_cores.transform(X),
        },
        repeats,
    )
    seconds = taken["ms/row"]
    job = f"{name} x {len(X)}, order {order}, {X.dtype}"
    rows = [
        score(job, measure, 1e3 * t / len(X), at_most=at_most)
        for measure, t in taken.items()
    ]
    rows[0]["note"] = how_it_went(X, order)
    return rows, seconds / len(X)


def how_it_went(X, order):
    poset = TensorPoset(X.shape[1:])
    p = distributions(X)
    found = mixed_projection(p, None, order_mask(poset, order), poset)
    return (
        f"residual {found.residual.max():.1e}; Newton steps median "
        f"{np.median(found.n_iter):g}, 95% {np.quantile(found.n_iter, 0.95):g}, "
        f"most {found.n_iter.max()}"
    )


def distributions(X):
    p = X.astype(np.float64) + OFFSET
    return p / p.sum(axis=tuple(range(1, p.ndim)), keepdims=True)


def by_textbook(X, order, variants):
    """Return ms per row of the textbook and a note, for each variant, in float64."""
    poset = TensorPoset(X.shape[1:])
    projector = ManyBodyProjector(order, offset=OFFSET).fit(X)
    ours = projector.inverse_transform(projector.transform(X))
    expected = eta_from_prob(ours, poset).reshape(len(X), -1)
    found = {}
    for variant in variants:
        mask = order_mask(poset, order)
        textbook = Textbook(poset.shape, mask, step=TEXTBOOKS[variant])
        start = perf_counter()
        answers = [textbook.forward(x, OFFSET) for x in X]
        seconds = (perf_counter() - start) / len(X)
        found[variant] = seconds, textbook_note(seconds, answers, expected)
    return found


def against_textbook(job, book, seconds_a_row, at_least=None):
    return [
        score(
            job,
            f"times faster than textbook ({variant})",
            seconds / seconds_a_row,
            at_least=at_least,
            note=note,
        )
        for variant, (seconds, note) in book.items()
    ]


def textbook_note(seconds, answers, expected):
    gap = max(
        np.abs(answer.eta - eta).max()
        for answer, eta in zip(answers, expected, strict=True)
    )
    steps = np.mean([answer.n_iter for answer in answers])
    residual = max(answer.residual for answer in answers)
    return (
        f"textbook {1e3 * seconds:.4g} ms/row over {len(answers)} rows, {steps:.3g} "
        f"steps to {residual:.1e}; max eta difference {gap:.1e}"
    )


def run(quick):
    n, n_cifar, n_mnist, n_book, repeats = (
        (6_000, 42, 84, 1, 1) if quick else (60_000, 1_000, 1_000, 3, 3)
    )
    rows = []
    for dtype in (np.float64, np.float32):
        rows += closed_form(n, dtype, repeats)
    X = problems.cifar10(n_cifar)
    book = by_textbook(X[:n_book], 5, TEXTBOOKS)
    for dtype, at_most in ((np.float64, 3.0), (np.float32, 1.3)):
        measured, seconds = iterative("CIFAR-10", X.astype(dtype), 5, repeats, at_most)
        job = measured[0]["job"]
        rows += measured + against_textbook(job, book, seconds, 1000)
    X = problems.mnist(n_mnist)
    for order in (2, 3, 4):
        # The fixed step takes ten times as long here too: shown once, above.
        book = by_textbook(X[:n_book], order, ["step 1, Newton"])
        measured, seconds = iterative("MNIST", X, order, repeats, 5.0)
        rows += measured + against_textbook(measured[0]["job"], book, seconds)
    return rows


if __name__ == "__main__":
    main(__doc__, run, "speed-forward")
