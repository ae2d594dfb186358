"""
===========================
MNIST: four local manifolds
===========================

One code and eight neighbouring training images are decoded into four new images. The
local manifold determines which coordinates are taken from the code and which from the
neighbours. Base and local manifolds have order 1 on tensors of shape (7, 2, 2, 7, 2,
2), as in the paper.

- "fiber" has all sums of ink of the code in each mode, and otherwise the strokes of the
  neighbours' mean. Encoding the image gives back the code.
- "theta", the equation of the paper, has theta of the neighbours up to order 1 and the
  expectations of the code beyond. The expectations determine all pixels except 17. The
  image is therefore nearly the point of the code, which has no strokes.
- "eta" has the sums of the neighbours' mean and no interactions. It has no strokes
  either.
- "mixture", the path of the authors' program, is a weighted mean of the point of the
  code and the neighbours' mean, which is blurred where the neighbours differ.

Images of digits, as in the paper, lie on the path of the program, and not on the set of
the equation. The example requires MNIST.
"""

# %%
# The same codes for all
# ----------------------
import matplotlib.pyplot as plt
import numpy as np
from paper_images import closest, load_images, show_rows, tell

from sklearn_pnl import BackwardProjector, ManyBodyProjector
from sklearn_pnl.encoding import MixtureManifold
from sklearn_pnl.geometry import TensorPoset

SHAPE, N_TRAIN, N_NEW, K = (7, 2, 2, 7, 2, 2), 2000, 20, 8
X, y = load_images("mnist")
PROGRAM = "mixture,\nstep 0.98"
manifolds = {
    "fiber": "fiber",
    "theta": "theta",
    "eta": "eta",
    "mixture,\nstep 0.5": MixtureManifold(step=0.5),
    PROGRAM: MixtureManifold(step=0.98),
}
rng = np.random.default_rng(0)


def decode_all(images):
    """Return images of the same codes by manifold, with codes and neighbours."""
    tensors, found = images.reshape(-1, *SHAPE), {}
    base = ManyBodyProjector(1).fit(tensors)
    kept = base.transform(tensors[rng.choice(N_TRAIN, N_NEW, replace=False)])
    codes = kept + 0.05 * rng.standard_normal(kept.shape)
    for name, manifold in manifolds.items():
        projector = BackwardProjector(base, local_manifold=manifold, k_neighbors=K)
        found[name] = projector.fit(tensors).inverse_transform(codes)
    mean = tensors[projector.kneighbors(codes, return_distance=False)].mean(axis=1)
    mass = mean.sum(axis=tuple(range(1, 7)), keepdims=True)
    points = {"point of\nthe code": mass * base.inverse_transform(codes)}
    return points | {f"mean of {K}\nneighbours": mean} | found


each = [decode_all(X[y == digit][:N_TRAIN]) for digit in range(10)]
shown = {name: np.stack([found[name] for found in each]) for name in each[0]}

# %%
# Coordinates of code and neighbours
# ----------------------------------
# For the code: the share of the ink that lies in other parts of a mode than in the
# code. For the neighbours: the correlation of the pixels with the mean of the
# neighbours. For the class: whether the closest training image of all classes has the
# same class.
known = np.concatenate([X[y == digit][:N_TRAIN] for digit in range(10)])
classes = np.repeat(np.arange(10), N_TRAIN)


def shares_of_ink(tensors):
    """Return images with a sum of 1."""
    return tensors / tensors.sum(axis=tuple(range(-6, 0)), keepdims=True)


def moved(tensors, points):
    """Return the largest share of ink that the code has in other parts of a mode."""
    p, q = shares_of_ink(tensors), shares_of_ink(points)
    gaps = []
    for mode in range(-6, 0):
        others = tuple(k for k in range(-6, 0) if k != mode)
        gaps.append(np.abs((p - q).sum(axis=others)).sum(axis=-1) / 2)
    return np.mean(np.max(gaps, axis=0))


def likeness(tensors, others):
    """Return the mean correlation of the pixels of images."""
    a, b = (t.reshape(-1, 784) - t.reshape(-1, 784).mean(axis=1, keepdims=True)
            for t in (tensors, others))  # fmt: skip
    return np.mean((a * b).sum(axis=1) / np.sqrt((a**2).sum(1) * (b**2).sum(1)))


points, mean, *_ = shown.values()
print(f"{'':22} ink moved  like neighbours  like code  of its class")
right = {}
for name, tensors in shown.items():
    near = closest(known, tensors.reshape(-1, 784))[1].reshape(10, -1)
    right[name] = np.mean(classes[near] == np.arange(10)[:, None])
    print(
        f"{' '.join(name.split()):22} {moved(tensors, points):9.2%}"
        f" {likeness(tensors, mean):15.2f} {likeness(tensors, points):10.2f}"
        f" {right[name]:13.1%}"
    )
beyond = TensorPoset(SHAPE).order > 1
p, q = (shares_of_ink(t)[..., beyond] for t in (shown["theta"], points))
print(
    f"\ntheta: {beyond.sum()} of {beyond.size} pixels are those of the point of the "
    f"code, to {np.abs(p - q).max() / q.max():.0e} of the largest"
)

tell(
    "shape is preserved (local manifold of the paper's equation)",
    f"the nearest training image has the same class for {right['theta']:.1%}",
    right["theta"] > 0.95,
)
tell(
    "shape is preserved (path of the authors' program)",
    f"the nearest training image has the same class for {right[PROGRAM]:.1%}",
    right[PROGRAM] > 0.95,
)

# %%
# The picture
# -----------
# The upper images are the two sources of a new image: the point of its code, which
# contains the ink of blocks of rows and columns, and the mean of its neighbours.
firsts = {name: tensors[:, 0].reshape(10, 28, 28) for name, tensors in shown.items()}
show_rows(firsts, "The same codes through four local manifolds")
plt.show()
