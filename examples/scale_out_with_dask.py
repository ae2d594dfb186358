"""
=======================
Use a cluster with dask
=======================

There are three ways to process more rows. The results have the same bytes as in a
single process:

- ``joblib.parallel_config("dask")`` distributes the blocks of rows of an estimator or
  sampler to the workers of a cluster.
- A fitted projector encodes the chunks of a dask array, for data that do not fit on a
  single machine.
- ``PNLAugmenter.iter_samples`` needs no cluster and returns new rows in batches.

The cluster of this example consists of two processes on this machine. To use another
cluster, pass the address of its scheduler to ``Client``. Install the dependencies in
a checkout with ``pip install ".[distributed]"``.
"""

# sphinx_gallery_thumbnail_path = "_static/pictures/posets.svg"
# %%
# A cluster and imbalanced images
# -------------------------------
import sys
from importlib import import_module
from time import perf_counter

import joblib
import numpy as np
from sklearn.datasets import load_digits

from sklearn_pnl import BackwardProjector, Codes, PNLAugmenter, PNLSampler

try:
    import dask.array as da
    from distributed import Client, LocalCluster
except ImportError:
    print("this example needs dask: pip install '.[distributed]'")
    sys.exit(0)


def main():
    images = load_digits().images
    labels = np.where(np.arange(len(images)) % 10 < 9, "common", "rare")
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c,
        Client(c) as client,
    ):
        # Import the package first, so that the measured time does not include imports.
        client.run(import_module, "sklearn_pnl.sampler")
        over_sample(images, labels)
        encode_chunks(images)
    stream(images)


# %%
# Over-sample on the cluster
# --------------------------
# The images are enlarged to 32 x 32 pixels, which become tensors with ten modes. For
# smaller images a cluster would not be faster.
def over_sample(images, labels):
    images = np.kron(images, np.ones((1, 4, 4)))
    sampler = PNLSampler(method=Codes(3, embedding=None), random_state=0)
    start = perf_counter()
    home = sampler.fit_resample(images, labels)[0]
    seconds = {"here": perf_counter() - start}
    with joblib.parallel_config("dask"):
        start = perf_counter()
        away = sampler.fit_resample(images, labels)[0]
        seconds["on the cluster"] = perf_counter() - start
    for where, taken in seconds.items():
        print(f"{len(home) - len(images)} new images {where}: {taken:.1f} s")
    print(f"the same bytes: {home.tobytes() == away.tobytes()}")


# %%
# Encode the chunks of a dask array
# ---------------------------------
# A projector that was fitted on one machine is sent to the workers. Each chunk contains
# complete rows. dask does not know the shape of a code, which is therefore passed.
def encode_chunks(images):
    projector = BackwardProjector(order=1).fit(images[:200])
    chunked = da.from_array(images, chunks=(500, *images.shape[1:]))
    codes = chunked.map_blocks(
        projector.transform,
        dtype=images.dtype,
        chunks=(chunked.chunks[0], (projector.n_params_,)),
        drop_axis=(2,),
    )
    print(f"codes of shape {codes.shape}, in {codes.numblocks[0]} chunks")
    print(f"their mean norm: {da.linalg.norm(codes, axis=1).mean().compute():.3f}")


# %%
# New rows in batches
# -------------------
def stream(images):
    augmenter = PNLAugmenter(Codes(1, local_manifold="mixture")).fit(images[:200])
    total, n_rows = 0.0, 0
    for batch in augmenter.iter_samples(20_000, batch_size=4_000, random_state=0):
        total += batch.sum()
        n_rows += len(batch)
    print(
        f"{n_rows} new images, {8 * n_rows * batch[0].size / 2**20:.0f} MiB in all, "
        f"{batch.nbytes / 2**20:.0f} MiB at once; mean pixel "
        f"{total / n_rows / batch[0].size:.3f} against {images[:200].mean():.3f}"
    )


# Worker processes import this file and must not start a cluster themselves.
if __name__ == "__main__":
    main()
