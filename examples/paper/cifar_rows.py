"""
=====================================
CIFAR-10: what a new image is made of
=====================================

The settings of the paper: images of 32 x 32 pixels in three colours as tensors with ten
modes of length 2 and one of length 3, a base of order 5, codes from a kernel density
estimate of bandwidth 0.05, three nearest training images, and a local sub-manifold of
order 4.

Noise of 0.05 in each of 1,409 coordinates adds up along the modes. So the way of
decoding decides what is seen: the picture has that of the authors' program, that of the
paper's equation, and the latter without noise, all on the same codes. Needs CIFAR-10.
"""

# %%
# Ten codes of each class, decoded in two ways
# --------------------------------------------
# "theta" takes eta beyond order 4 from the code and theta up to order 4 from the near
# images, as the paper's equation has it. "mixture" goes 98% of the way from the code to
# the mean of the near images, as the program does.
import matplotlib.pyplot as plt
import numpy as np
from paper_images import CIFAR_NAMES, closest, load_images, show_rows, tell

from sklearn_pnl import BackwardProjector, ManyBodyProjector, PrimeFactorReshaper
from sklearn_pnl.encoding import MixtureManifold, ThetaManifold

N_TRAIN, N_NEW = 200, 10
X, y = load_images("cifar10")
images = {label: X[y == label][:N_TRAIN] for label in range(10)}
reshaper = PrimeFactorReshaper().fit(X[:1])
rng = np.random.default_rng(0)


def decode(rows, manifold, *noises):
    """Images of the codes of the first images, with each of several noises."""
    projector = BackwardProjector(
        ManyBodyProjector(5), local_manifold=manifold, k_neighbors=3
    ).fit(reshaper.transform(rows))
    return [
        reshaper.inverse_transform(
            projector.inverse_transform(projector.codes_[:N_NEW] + noise)
        )
        for noise in noises
    ]


def project(rows):
    """Images projected on the base."""
    projector = ManyBodyProjector(5, offset=1e-5, with_mass=True)
    codes = projector.fit_transform(reshaper.transform(rows))
    return reshaper.inverse_transform(projector.inverse_transform(codes)), projector


found = []
for rows in images.values():
    projected, base = project(rows[:N_NEW])
    noise = 0.05 * rng.standard_normal((N_NEW, base.n_params_ - 1))
    (mixture,) = decode(rows, MixtureManifold(step=0.98), noise)
    theta, exact = decode(rows, ThetaManifold(order=4), noise, 0)
    found.append(
        {
            "training images": rows[:N_NEW],
            "projections": projected,
            "new, mixture": mixture,
            "new, theta": theta,
            "theta,\nwithout noise": exact,
            "closest to\nmixture": rows[closest(rows, mixture)[1]],
        }
    )
shown = {name: np.stack([each[name] for each in found]) for name in found[0]}
dim_b, order = base.n_params_, base.poset_.order
dim_d = int((order > 4).sum())
print(f"tensor {base.poset_.shape}: B of {dim_b} dimensions, D of {dim_d}")

# %%
# Fine and crude
# --------------
# What is crude of an image are the means of its blocks of 8 x 8 pixels; the rest is
# fine. Both are held against the training image that the code was drawn from.


def crude(rows):
    """Means of blocks, as images."""
    blocks = rows.reshape(*rows.shape[:-3], 4, 8, 4, 8, 3).mean(axis=(-4, -2))
    return np.kron(blocks, np.ones((8, 8, 1)))


def likeness(rows, others):
    """Mean correlations of the crude and of the fine parts."""
    parts = ((crude(r), r - crude(r)) for r in (rows, others))
    pairs = zip(*(map(flat, pair) for pair in parts), strict=True)
    return [np.mean((a * b).sum(axis=1)) for a, b in pairs]


def flat(rows):
    """A row an image, with mean 0 and length 1."""
    rows = rows.reshape(-1, rows[0, 0].size)
    rows = rows - rows.mean(axis=1, keepdims=True)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


same = {name: likeness(r, shown["training images"]) for name, r in shown.items()}
print(f"\n{'correlation with the training image':36} crude  fine")
for name, values in same.items():
    print(f"{' '.join(name.split()):36}", *(f"{v:6.2f}" for v in values))

tell("dimensions: B 1,410, D 2,334", f"{dim_b:,}, {dim_d:,}", dim_b == 1410,
     dim_d == 2334)  # fmt: skip
for name in ("new, mixture", "new, theta"):
    tell(
        f"fine shape is preserved, crude background colours shift ({name[5:]})",
        f"correlation with the training image {same[name][1]:.2f} of the fine part, "
        f"{same[name][0]:.2f} of the crude part",
        same[name][1] > 0.5,
        same[name][0] < 0.9,
    )

# %%
# The picture
# -----------
# "mixture" is nearly the mean of three images: colours blend, and shapes are shadows on
# each other. It hides the noise, 2% of which is in it. "theta" can be read off:
# expectations beyond order 4 fix the 2,334 values that have such an order, so that
# these are those of the point of the code, with its noise, which adds up to a plaid;
# the other 738 come from the near images. Without noise only these change, as dots.
firsts = {name: rows[:, 0] for name, rows in shown.items()}
show_rows(firsts, "CIFAR-10 with the settings of the paper", CIFAR_NAMES)
plt.show()
