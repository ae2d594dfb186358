"""
====================================
CIFAR-10: composition of a new image
====================================

The settings of the paper: images of 32 x 32 pixels in three colours are tensors with
ten modes of length 2 and one mode of length 3. The base has order 5, codes come from a
kernel density estimate with bandwidth 0.05, and each code is decoded with the three
nearest training images on a local sub-manifold of order 4.

Noise of 0.05 in each of 1,409 coordinates accumulates along the modes, so that the
decoding determines the result. The picture shows the decoding of the authors' program,
the decoding of the equation in the paper, and the latter without noise, for the same
codes. The example requires CIFAR-10.
"""

# %%
# Ten codes of each class
# -----------------------
# "theta" takes eta beyond order 4 from the code and theta up to order 4 from the
# neighbours, as in the equation of the paper. "mixture" covers 98% of the path from the
# code to the mean of the neighbours, as the authors' program does.
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
    """Return images from the codes of the first images, for each noise."""
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
    """Return images that are projected onto the base."""
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
# Fine and coarse parts
# ---------------------
# The coarse part of an image consists of the means of its blocks of 8 x 8 pixels, and
# the fine part is the rest. Both are compared with the training image of the code.


def crude(rows):
    """Return the means of blocks, as images."""
    blocks = rows.reshape(*rows.shape[:-3], 4, 8, 4, 8, 3).mean(axis=(-4, -2))
    return np.kron(blocks, np.ones((8, 8, 1)))


def likeness(rows, others):
    """Return the mean correlations of the coarse and of the fine parts."""
    parts = ((crude(r), r - crude(r)) for r in (rows, others))
    pairs = zip(*(map(flat, pair) for pair in parts), strict=True)
    return [np.mean((a * b).sum(axis=1)) for a, b in pairs]


def flat(rows):
    """Return one row per image, with mean 0 and length 1."""
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
        f"correlation with the training image: {same[name][1]:.2f} for the fine part, "
        f"{same[name][0]:.2f} for the crude part",
        same[name][1] > 0.5,
        same[name][0] < 0.9,
    )

# %%
# The picture
# -----------
# "mixture" is nearly the mean of three images: colours blend, and shapes overlap. It
# contains only 2% of the noise. For "theta", the expectations beyond order 4 determine
# 2,334 values, which are the values of the code with its noise, a plaid pattern. The
# other 738 values come from the neighbours. Without noise only the latter change.
firsts = {name: rows[:, 0] for name, rows in shown.items()}
show_rows(firsts, "CIFAR-10 with the settings of the paper", CIFAR_NAMES)
plt.show()
