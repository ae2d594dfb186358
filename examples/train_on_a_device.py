"""
======================================
Generate rows on a GPU during training
======================================

A network is trained with PyTorch on few digits, and each step uses new rows that are
generated on the device of the network. The augmenter is fitted to tensors on the
device. Neither codes nor rows are copied to the host. The example uses a GPU if one is
available. Install PyTorch, and set ``SCIPY_ARRAY_API=1`` before Python starts.

The samplers compute on the host. Therefore the example fits one augmenter for each
digit, and the new rows of a digit have its class. The example shows where rows are
generated, not a gain in accuracy.
"""

# sphinx_gallery_thumbnail_path = "_static/pictures/manifolds.svg"
# %%
# Few digits on the device
# ------------------------
import os
import sys

os.environ.setdefault("SCIPY_ARRAY_API", "1")

from sklearn import config_context
from sklearn.datasets import load_digits

from sklearn_pnl import Codes, PNLAugmenter

try:
    import torch
except ImportError:
    print("this example needs PyTorch: pip install torch")
    sys.exit(0)


def digits(device, n_train=100):
    """Return images in [0, 1] and labels, few for training and the rest for tests."""
    data = load_digits()
    X = torch.asarray(data.images / 16, dtype=torch.float32, device=device)
    y = torch.asarray(data.target, device=device)
    order = torch.randperm(len(X), generator=torch.Generator().manual_seed(0))
    train, test = order[:n_train].to(device), order[n_train:].to(device)
    return X[train], y[train], X[test], y[test]


# %%
# One augmenter for each class
# ----------------------------
# An image becomes a tensor of shape (2, 2, 2, 2, 2, 2), and a code of order 2 contains
# the interactions of two modes. The remaining information comes from neighbouring
# images.


def augmenters(X, y):
    method = Codes(order=2, embedding=None)
    return [PNLAugmenter(method).fit(X[y == label]) for label in range(10)]


# %%
# The training loop
# -----------------
# Half of each batch are training rows and half are new rows. Each epoch generates its
# new rows with one call, because a call is more expensive than a row.


def new_rows(fitted, n_each, seed, device):
    """Return new images of each class in random order, and their labels."""
    X = torch.cat([a.sample(n_each, random_state=seed) for a in fitted])
    y = torch.arange(10, device=device).repeat_interleave(n_each)
    order = torch.randperm(len(X), device=device)
    return X[order], y[order]


def train(X, y, fitted=None, n_epochs=10, n_steps=30, size=50, seed=0):
    torch.manual_seed(seed)
    network = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(64, 128), torch.nn.ReLU(),
        torch.nn.Linear(128, 10),
    ).to(X.device)  # fmt: skip
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for epoch in range(n_epochs):
        if fitted is not None:
            X_new, y_new = new_rows(fitted, n_steps * size // 10, epoch, X.device)
        for step in range(n_steps):
            rows = torch.randint(len(X), (size,), device=X.device)
            images, labels = X[rows], y[rows]
            if fitted is not None:
                new = slice(step * size, (step + 1) * size)
                images = torch.cat([images, X_new[new]])
                labels = torch.cat([labels, y_new[new]])
            loss = torch.nn.functional.cross_entropy(network(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return network


def accuracy(network, X, y):
    with torch.no_grad():
        return (network(X).argmax(dim=1) == y).float().mean().item()


def main(n_epochs=10):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    X, y, X_test, y_test = digits(device)
    print(f"{len(X)} digits to train on, {len(X_test)} to test, on {device}")
    with config_context(array_api_dispatch=True):
        fitted = augmenters(X, y)
        for name, used in (("training rows only", None), ("with new rows", fitted)):
            network = train(X, y, used, n_epochs)
            print(f"{name}: accuracy {accuracy(network, X_test, y_test):.3f}")


if __name__ == "__main__":
    main()
