"""Pictures of the pages, drawn by the library, all by ``python docs/drawings.py``."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from sklearn.datasets import load_digits, make_moons  # noqa: E402

from sklearn_pnl import (
    BackwardProjector,
    Codes,
    Lines,
    ManyBodyProjector,
    PNLAugmenter,
    PNLSampler,
    PrimeFactorReshaper,
)
from sklearn_pnl.control import ColumnConstraint
from sklearn_pnl.geometry import TensorPoset, boolean_lattice, chain_poset, tree_poset  # noqa: E402

PICTURES = Path(__file__).parent / "_static" / "pictures"
COLORS = ["#4c566a", "#0072b2", "#d55e00", "#009e73", "#cc79a7"]
GREY, BLUE, ORANGE = "#9aa0a6", "#0072b2", "#d55e00"


def draw_all(folder):
    """Draw every picture into a folder."""
    folder.mkdir(exist_ok=True)
    pictures = (new_rows, start, theorems, posets, codes, noise, manifolds, offsets)
    for draw in (*pictures, totals):
        save(draw, folder / f"{draw.__name__}.svg")


def save(draw, path):
    """Draw one picture into a file: the same bytes each time."""
    with plt.rc_context({"svg.hashsalt": "sklearn_pnl", "font.size": 10}):
        figure = draw()
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def new_rows():
    """Draw a minority class with its new rows, and new rows with a required total."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.9), layout="constrained")
    _crescents(left, *_moons())
    left.set_title("new rows of a minority class")
    parts, augmenter, required = _two_parts()
    rows = augmenter.sample(150, random_state=0, constraints=required)
    right.scatter(*parts.T, s=12, color=GREY, label="training rows")
    right.scatter(*rows.T, s=10, color=ORANGE, label="new rows, a + b = 5")
    right.set(title="new rows with a required total", xlabel="a", ylabel="b")
    _bare(left)
    for axis in (left, right):
        _legend_below(axis)
    return figure


def _bare(axes):
    for axis in np.ravel(axes):
        axis.set(xticks=[], yticks=[])


def _legend_below(axis):
    """Place the legend below the axes, where it covers no points."""
    place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.02)}
    if axis.get_xlabel():
        place["bbox_to_anchor"] = (0.5, -0.16)
    axis.legend(**place, ncols=3, fontsize=9, frameon=False, columnspacing=1)


def _moons():
    """Return rows, classes, and new rows of the minority class."""
    X, y = make_moons((200, 20), noise=0.07, random_state=3)
    X_all, _ = PNLSampler(k_neighbors=3, random_state=0).fit_resample(X, y)
    return X, y, X_all[len(X) :]


def _crescents(axis, X, y, new=None):
    """Draw both classes, and the new rows if there are any."""
    axis.scatter(*X[y == 0].T, s=12, color=GREY, label="majority class")
    if new is not None:
        axis.scatter(*new.T, s=12, color=ORANGE, alpha=0.6, label="new rows")
    axis.scatter(*X[y == 1].T, s=26, color=BLUE, label="minority class")


def start():
    """Draw an imbalanced problem before and after over-sampling."""
    X, y, new = _moons()
    figure, axes = plt.subplots(
        1, 2, figsize=(8, 3.5), sharex=True, sharey=True, layout="constrained"
    )
    _crescents(axes[0], X, y)
    _crescents(axes[1], X, y, new)
    axes[0].set_title("220 rows, 20 of the minority class")
    axes[1].set_title(f"with {len(new)} new rows")
    _bare(axes)
    for axis in axes:
        _legend_below(axis)
    return figure


def theorems():
    """What straight lines keep: an equality, and an order of two columns."""
    rng = np.random.default_rng(0)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.0), layout="constrained")
    a = rng.uniform(2, 8, 60)
    X = np.column_stack([a, 10 - a, rng.normal(size=60)])
    plain = X + 0.6 * rng.normal(size=X.shape)
    new = PNLAugmenter().fit(X).sample(150, random_state=0)
    left.scatter(*plain[:, :2].T, s=12, color=GREY, label="independent noise")
    left.scatter(*new[:, :2].T, s=12, color=ORANGE, label="new rows")
    left.scatter(*X[:, :2].T, s=16, color=BLUE, label="training rows")
    left.set(title="an equality, a + b = 10", xlabel="a", ylabel="b")
    low = rng.uniform(0, 10, 60)
    Z = np.column_stack([low, low + rng.exponential(0.5, 60)])
    new = PNLAugmenter().fit(Z).sample(200, random_state=0)
    crossed = Z + 0.6 * rng.normal(size=Z.shape)
    crossed = crossed[crossed[:, 0] > crossed[:, 1]]
    right.scatter(*crossed.T, s=14, marker="x", color=GREY, label="independent noise")
    right.scatter(*new.T, s=12, color=ORANGE, label="new rows")
    right.scatter(*Z.T, s=16, color=BLUE, label="training rows")
    right.plot([0, 11], [0, 11], color="black", linewidth=0.8)
    right.set(title="an order, low <= high", xlabel="low", ylabel="high")
    for axis in (left, right):
        _legend_below(axis)
    return figure


def posets():
    """Hasse diagrams: lines go up from an element to those directly above it."""
    grid = TensorPoset((3, 3))
    places = {
        "chain_poset(4)": (chain_poset(4), None),
        "TensorPoset((3, 3))": (grid, [(j - i, i + j) for i, j in np.ndindex(3, 3)]),
        "boolean_lattice(3)": (boolean_lattice(3), None),
        "tree_poset([-1, 0, 0, 1, 1])": (
            tree_poset([-1, 0, 0, 1, 1]),
            [(0, 0), (-1, 1), (1, 1), (-1.7, 2), (-0.3, 2)],
        ),
    }
    figure, axes = plt.subplots(1, 4, figsize=(10, 3.4), layout="constrained")
    for axis, (name, (poset, at)) in zip(axes, places.items(), strict=True):
        _hasse(axis, poset, at)
        axis.set_title(name, fontsize=9, family="monospace")
    _bare(axes)
    return figure


def _hasse(axis, poset, at=None):
    """One diagram; the colour of an element is its order."""
    n = poset.n_elements
    below = poset.zeta(np.eye(n).reshape(n, *poset.shape)).reshape(n, n) > 0
    strict = below & ~np.eye(n, dtype=bool)
    covers = strict & ~((strict.astype(int) @ strict) > 0)
    level = _levels(strict)
    if at is None:
        at = np.zeros((n, 2))
        for height in range(level.max() + 1):
            row = np.flatnonzero(level == height)
            at[row] = [[x - (len(row) - 1) / 2, height] for x in range(len(row))]
    at = np.asarray(at, float)
    for low, high in np.argwhere(covers):
        axis.plot(*at[[low, high]].T, color=GREY, linewidth=1, zorder=1)
    order = poset.order.ravel()
    for element, (x, y) in enumerate(at):
        axis.scatter(x, y, s=330, color=COLORS[order[element]], zorder=2)
        axis.text(x, y, str(order[element]), color="white", ha="center", va="center")
    axis.margins(0.25)
    axis.set_frame_on(False)


def _levels(strict):
    """Length of the longest chain below each element."""
    level, n = np.zeros(len(strict), int), len(strict)
    for _ in range(n):
        below = np.where(strict, level[:, None] + 1, 0).max(axis=0)
        level = np.maximum(level, below)
    return level


def codes():
    """A digit and what codes of several orders keep of it."""
    images = load_digits().images[[3, 8, 0]]
    tensors = PrimeFactorReshaper().fit(images)
    orders = (1, 2, 3, 4)
    figure, axes = plt.subplots(3, 5, figsize=(7, 4.2), layout="constrained")
    for line, image in zip(axes, images, strict=True):
        line[0].imshow(image, cmap="gray_r", vmin=0, vmax=16)
    for column, order in zip(axes.T[1:], orders, strict=True):
        projector = ManyBodyProjector(order=order, offset=0.1, with_mass=True)
        given = tensors.transform(images)
        back = projector.inverse_transform(projector.fit_transform(given)) - 0.1
        shown = tensors.inverse_transform(back)
        for axis, image in zip(column, shown, strict=True):
            axis.imshow(image, cmap="gray_r", vmin=0, vmax=16)
        column[0].set_title(f"order {order}\n{projector.n_params_} numbers", fontsize=9)
    axes[0, 0].set_title("row\n64 pixels", fontsize=9)
    _bare(axes)
    return figure


def noise():
    """Where new rows fall: local noise, and the kernel of the paper."""
    rng = np.random.default_rng(0)
    angle = np.array([[1.0, 0.9], [0.0, 0.3]])
    X = np.concatenate(
        [rng.normal(size=(25, 2)) @ angle, [9, 6] + rng.normal(size=(25, 2))]
    )
    ways = {
        "Lines(noise=0)": Lines(noise=0),
        "Lines()": Lines(),
        "Lines(noise=1)": Lines(noise=1),
        'Codes(draws="kde")': Codes(draws="kde"),
    }
    figure, axes = plt.subplots(
        1, 4, figsize=(10, 2.9), sharex=True, sharey=True, layout="constrained"
    )
    for axis, (name, way) in zip(axes, ways.items(), strict=True):
        augmenter = PNLAugmenter(way, extrapolation=None).fit(X)
        new = augmenter.sample(300, random_state=0)
        axis.scatter(*new.T, s=6, color=ORANGE, alpha=0.6)
        axis.scatter(*X.T, s=14, color=BLUE)
        axis.set_title(name, fontsize=9, family="monospace")
    _bare(axes)
    return figure


def manifolds():
    """One new code decoded through the four local manifolds."""
    digits = load_digits()
    images = digits.images[digits.target == 3] / 16
    code_of = ManyBodyProjector(order=1, offset=0.05, with_mass=True).fit(images)
    codes = code_of.transform(images)
    middle = (codes[0] + codes[1]) / 2
    shown = {"code": code_of.inverse_transform(middle[None])[0] - 0.05}
    for name in ("fiber", "theta", "eta", "mixture"):
        projector = BackwardProjector(code_of, local_manifold=name, k_neighbors=4)
        projector.fit(images)
        if len(shown) == 1:
            near = projector.kneighbors(middle[None], return_distance=False)[0]
            shown["mean of its\n4 near rows"] = images[near].mean(axis=0)
        shown[f'"{name}"'] = projector.inverse_transform(middle[None])[0]
    figure, axes = plt.subplots(1, 6, figsize=(9, 2.2), layout="constrained")
    for axis, (name, image) in zip(axes, shown.items(), strict=True):
        axis.imshow(image, cmap="gray_r", vmin=0, vmax=1)
        axis.set_title(name, fontsize=10)
    _bare(axes)
    return figure


def offsets():
    """Paths between two rows in log coordinates, with several offsets."""
    a, b = np.array([0.02, 0.9]), np.array([0.95, 0.1])
    figure, axis = plt.subplots(figsize=(4.6, 3.6), layout="constrained")
    at = np.linspace(0, 1, 60)
    for color, offset in zip(COLORS, (0.01, 0.1, 1.0, 10.0), strict=False):
        logs = [(1 - t) * np.log(a + offset) + t * np.log(b + offset) for t in at]
        axis.plot(*(np.exp(logs) - offset).T, color=color, label=f"offset={offset:g}")
    axis.scatter(*np.array([a, b]).T, color="black", zorder=3)
    axis.set(xlabel="feature 1, scaled to [0, 1]", ylabel="feature 2")
    axis.legend()
    return figure


def _two_parts():
    """Return rows of two parts, an augmenter, and a constraint on the total."""
    parts = np.random.default_rng(0).gamma(2.0, size=(200, 2))
    required = ColumnConstraint({0: 1, 1: 1}, equal=5)
    return parts, PNLAugmenter().fit(parts), required


def totals():
    """Draw new rows without a constraint, and new rows with a required total."""
    parts, augmenter, required = _two_parts()
    constrained = augmenter.sample(150, random_state=0, constraints=required)
    new = {
        "sample(150)": augmenter.sample(150, random_state=0),
        "constraint x0 + x1 = 5": constrained,
    }
    figure, axes = plt.subplots(
        1, 2, figsize=(7.5, 3.6), sharex=True, sharey=True, layout="constrained"
    )
    for axis, (name, rows) in zip(axes, new.items(), strict=True):
        axis.scatter(*parts.T, s=12, color=GREY, label="training rows")
        axis.scatter(*rows.T, s=10, color=ORANGE, label="new rows")
        axis.set(title=name, xlabel="x0")
        _legend_below(axis)
    axes[0].set_ylabel("x1")
    return figure


if __name__ == "__main__":
    draw_all(PICTURES)
