"""
=======================================
Generate more rows than fit into memory
=======================================

Ten million new rows with 50 columns need 4 GB. If the workers of a cluster write the
rows in parts, each worker needs the memory of the training rows and of one batch:

- Each part has its own seed, so that the bytes of a part do not depend on the number of
  workers or on the worker that writes it.
- A part is first written to a temporary name. An interrupted run continues with the
  missing parts.
- The plan is stored next to the parts. A run with another plan is refused.

All workers must have access to the same folder. Install the dependencies with
``pip install ".[distributed]"`` in a checkout of the repository. For ten million rows,
run ``python rows_beyond_memory.py FOLDER 10_000_000``.
"""

# sphinx_gallery_thumbnail_path = "_static/pictures/start.svg"
# %%
# Write a part
# ------------
import json
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

import joblib
import numpy as np

import sklearn_pnl
from sklearn_pnl import PNLAugmenter

ROWS_PER_PART, ROWS_PER_BATCH = 250_000, 20_000


def seed_of(part, seed):
    """Return an independent stream of random numbers for each part."""
    sequence = np.random.SeedSequence(seed, spawn_key=(part,))
    return np.random.RandomState(np.random.MT19937(sequence))


def path_of(part, folder):
    return Path(folder) / f"part-{part:06d}.npy"


def write_part(part, augmenter, folder, plan):
    """Write the rows of a part in batches, and rename the complete file."""
    n = min(plan["rows_per_part"], plan["rows"] - part * plan["rows_per_part"])
    path = path_of(part, folder)
    header = {"descr": "<f8", "fortran_order": False, "shape": (n, plan["columns"])}
    with tempfile.NamedTemporaryFile(
        dir=folder, prefix=path.stem, suffix=".tmp", delete=False
    ) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for rows in augmenter.iter_samples(
            n, ROWS_PER_BATCH, seed_of(part, plan["seed"])
        ):
            file.write(np.ascontiguousarray(rows, "<f8"))
        file.flush()
        os.fsync(file.fileno())
    os.replace(file.name, path)
    return part


# %%
# The plan and the missing parts
# ------------------------------
def make_plan(augmenter, n_rows, rows_per_part=ROWS_PER_PART, seed=0):
    """Return everything that determines the bytes of the parts."""
    return {
        "rows": n_rows,
        "columns": int(np.prod(augmenter.input_shape_)),
        "rows_per_part": rows_per_part,
        "seed": seed,
        "version": sklearn_pnl.__version__,
        "parameters": joblib.hash(augmenter.get_params()),
        "fitted": joblib.hash(augmenter.sample(9, random_state=0)),
    }


def agree(folder, plan):
    """Store the plan in the folder; refuse a different plan."""
    path = Path(folder) / "plan.json"
    if path.exists():
        kept = json.loads(path.read_text())
        other = [name for name in plan if plan[name] != kept.get(name)]
        if other:
            raise ValueError(
                f"{folder} has parts made with other {', '.join(other)}: finish them "
                "as they were begun, or choose an empty folder."
            )
        return
    written = path.with_suffix(".tmp")
    written.write_text(json.dumps(plan))
    os.replace(written, path)


def missing(folder, plan):
    n_parts = -(-plan["rows"] // plan["rows_per_part"])
    return [part for part in range(n_parts) if not path_of(part, folder).exists()]


def write_parts(augmenter, folder, plan, client=None):
    """Write the missing parts in this process or on the workers of a client."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    agree(folder, plan)
    for left in Path(folder).glob("*.tmp"):
        # Temporary files are from an interrupted run. Do not start two runs at once.
        left.unlink()
    parts = missing(folder, plan)
    if client is None:
        for part in parts:
            write_part(part, augmenter, folder, plan)
        return
    # The training rows are sent to each worker once. If a worker fails, its part
    # starts again on another worker.
    sent = client.scatter(augmenter, broadcast=True, hash=False)
    futures = client.map(
        partial(write_part, folder=str(folder), plan=plan), parts, augmenter=sent,
        retries=3, pure=False,
    )  # fmt: skip
    client.gather(futures)


# %%
# Training rows on disk
# ---------------------
# The training rows can be too many for the memory as well. They stay on disk, and the
# augmenter is fitted to a sample of 20,000 rows.
def fit_on_sample(X, n=20_000, seed=0):
    chosen = np.random.default_rng(seed).choice(len(X), min(n, len(X)), replace=False)
    return PNLAugmenter().fit(X[np.sort(chosen)])


def training_rows(path, n=100_000, n_columns=50):
    """Return correlated columns in a few clusters, as a memory-mapped array."""
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(path, "w+", np.float64, (n, n_columns))
    mixing = rng.normal(size=(n_columns, n_columns)) / np.sqrt(n_columns)
    centres = rng.normal(scale=3, size=(5, n_columns))
    for start in range(0, n, 10_000):
        rows = rng.normal(size=X[start : start + 10_000].shape)
        X[start : start + 10_000] = rows @ mixing + centres[rng.integers(5)]
    X.flush()
    return np.load(path, mmap_mode="r")


# %%
# A cluster
# ---------
def main(folder, n_rows, n_workers=2, rows_per_part=ROWS_PER_PART):
    from distributed import Client, LocalCluster

    augmenter = fit_on_sample(training_rows(Path(folder) / "training.npy"))
    plan = make_plan(augmenter, n_rows, rows_per_part)
    parts = Path(folder) / "parts"
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        write_parts(augmenter, parts, plan, client)
    shapes = [np.load(path, mmap_mode="r").shape for path in parts.glob("part-*.npy")]
    print(f"{sum(n for n, _ in shapes)} rows in {len(shapes)} parts")


# Worker processes import this file and must not start a cluster themselves.
if __name__ == "__main__":
    try:
        import distributed  # noqa: F401
    except ImportError:
        print('this example needs dask: pip install ".[distributed]" in a checkout')
        sys.exit(0)
    if len(sys.argv) > 1:
        main(sys.argv[1], *map(int, sys.argv[2:]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(folder, 100_000, rows_per_part=25_000)
