"""Blocks of rows in other processes: the bytes of one process.

The cluster is a real one: two worker processes and a scheduler on this machine.
"""

import contextlib
import gc
import os
import platform
import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from _projectors import backward
from numpy.testing import assert_array_equal
from scipy.optimize import LinearConstraint
from scipy.sparse import csr_array, issparse
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info

from sklearn_pnl import (
    BackwardProjector,
    Codes,
    ManyBodyProjector,
    PNLAugmenter,
    PNLSampler,
)
from sklearn_pnl._runtime import blocks
from sklearn_pnl.geometry import TensorPoset, boolean_lattice

pytestmark = pytest.mark.starting


ROOT = Path(__file__).parents[1]


# 512 cells make blocks of 256 rows: 5 of them, in tasks of more than one.
X = np.random.default_rng(0).gamma(1.0, size=(1100, 8, 8, 8)) + 0.1


LABELS = np.repeat([0, 1, 2], [700, 300, 100])


TRAINING = X[:200]


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed", reason="distributed is missing")
    pytest.importorskip("dask.array", reason="dask.array is missing")
    with warnings.catch_warnings():
        # Two test processes may both start a cluster, and one gets the port.
        warnings.filterwarnings("ignore", "Port .* is already in use", UserWarning)
        # And it leaves open the socket with which it looked for one.
        warnings.filterwarnings("ignore", "unclosed <socket", ResourceWarning)
        with (
            distributed.LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                # Dask would leave one thread, and a limit that fails were not seen.
                env={"OPENBLAS_NUM_THREADS": "2"},
                dashboard_address=None,
                silence_logs="ERROR",
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            gc.collect()
            yield client


@pytest.fixture(params=["dask", "loky", "threading"])
def backend(request):
    """At work within, and not before: joblib's own is at once."""
    if request.param == "dask":
        request.getfixturevalue("client")

    @contextlib.contextmanager
    def at_work():
        with joblib.parallel_config(request.param, n_jobs=2):
            yield

    return at_work()


# A general poset carries matrices.
LATTICE = {"poset": boolean_lattice(9), "tol": 1e-4}


USES = {
    "encode, one body": lambda: ManyBodyProjector(1).fit(TRAINING).transform(X),
    "encode": lambda: ManyBodyProjector(2).fit(TRAINING).transform(X),
    "encode on a poset": lambda: (
        ManyBodyProjector(2, **LATTICE)
        .fit(TRAINING.reshape(-1, 512))
        .transform(X.reshape(-1, 512))
    ),
    "points": lambda: points(ManyBodyProjector(1, with_mass=True).fit(X)),
    "neighbors": lambda: near(BackwardProjector(1).fit(X)),
    "decode": lambda: decoded(BackwardProjector(2).fit(TRAINING)),
    "decode, theta": lambda: decoded(
        BackwardProjector(1, local_manifold="theta").fit(TRAINING)
    ),
    "sample": lambda: PNLAugmenter(Codes(1)).fit(TRAINING).sample(600, random_state=0),
    "sample, whole": lambda: PNLAugmenter().fit(TRAINING).sample(600, random_state=0),
    "stream": lambda: np.concatenate(
        list(PNLAugmenter(Codes(1)).fit(TRAINING).iter_samples(600, 77, random_state=0))
    ),
    "resample": lambda: PNLSampler(random_state=0).fit_resample(X, LABELS)[0],
}


def near(projector):
    return projector.kneighbors(projector.codes_, return_distance=False)


def points(projector):
    return projector.inverse_transform(projector.transform(X))


def decoded(projector, rows=X):
    return projector.inverse_transform(projector.transform(rows))


@pytest.fixture(scope="module")
def at_home():
    return {use: run() for use, run in USES.items()}


@pytest.mark.parametrize("use", USES)
def test_workers_give_the_same_bytes(use, backend, at_home):
    with backend:
        away = USES[use]()
    assert away.dtype == at_home[use].dtype
    assert away.tobytes() == at_home[use].tobytes()


def test_forked_workers_give_the_same_bytes():
    # In a process of its own: a fork of one with the threads of a client may hang.
    code = """
import joblib, numpy as np
from sklearn_pnl import BackwardProjector
X = np.random.default_rng(0).gamma(1.0, size=(1100, 8, 8, 8)) + 0.1
projector = BackwardProjector(1).fit(X[:200])
home = projector.inverse_transform(projector.transform(X))
with joblib.parallel_config("multiprocessing", n_jobs=2):
    away = projector.inverse_transform(projector.transform(X))
assert away.tobytes() == home.tobytes()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators")
@pytest.mark.parametrize("settings", [{}, {"MALLOC_TRIM_THRESHOLD_": "65536"}])
def test_blocks_map_no_memory_anew(settings):
    # The second setting is that of workers of dask: 180 page faults a row in them.
    code = """
import numpy as np
from resource import RUSAGE_SELF, getrusage
from sklearn_pnl import ManyBodyProjector
X = np.random.default_rng(0).gamma(1.0, size=(600, 7, 2, 2, 7, 2, 2))
projector = ManyBodyProjector(2, offset=0.1).fit(X)
projector.transform(X)
before = getrusage(RUSAGE_SELF).ru_minflt
projector.transform(X)
print((getrusage(RUSAGE_SELF).ru_minflt - before) / len(X))
"""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    run = [sys.executable, "-c", code]
    faults = subprocess.check_output(run, env=kept | settings, timeout=120)
    assert float(faults) < 10


def test_rows_in_another_memory_layout_give_the_same_bytes(client):
    # Such rows of a table reach a worker in C order.
    flat = X.reshape(-1, 512)
    projector = backward(1, poset=TensorPoset((8, 8, 8)))
    projector.fit(np.asfortranarray(flat[:200]))
    home = decoded(projector, np.asfortranarray(flat))
    with joblib.parallel_config("dask"):
        away = decoded(projector, np.asfortranarray(flat))
    assert away.tobytes() == home.tobytes() == decoded(projector, flat).tobytes()


def blas_threads():
    return max(p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas")


def marked(rows):
    n = len(rows)
    said = os.getpid(), blas_threads(), n
    return rows, *(np.full(n, value) for value in said)


def test_work_is_done_by_the_workers_block_by_block(client):
    # Blocks of 2 rows, in tasks of three blocks.
    with joblib.parallel_config("dask"):
        rows, processes, threads, lengths = blocks.map_blocks(
            marked, np.arange(79), step=2
        )
    workers = set(client.run(os.getpid).values())
    assert_array_equal(rows, np.arange(79))
    assert set(processes) <= workers
    assert os.getpid() not in workers
    assert max(client.run(blas_threads).values()) == 2
    assert threads.max() == 1
    assert_array_equal(lengths, [2] * 78 + [1])


# --- whole classes --------------------------------------------------------------

FEW = np.random.default_rng(1).integers(0, 4, (360, 4, 6)).astype(float)


FEW[::3] = FEW[1::3]


THREE = np.random.default_rng(2).permutation(np.repeat([0, 1, 2], [110, 120, 130]))


def table_of(rows):
    """Numbers and a word; the last two of the numbers have one sum."""
    pd = pytest.importorskip("pandas")
    flat = rows.reshape(len(rows), -1)[:, :8]
    frame = pd.DataFrame(flat, columns=[f"x{j}" for j in range(8)])
    frame["rest"] = 5 - frame["x7"]
    frame["word"] = np.where(flat[:, 0] > 1, "high", "low")
    return frame.astype({"x0": int})


FLAT = FEW.reshape(360, -1)


WHOLE = LinearConstraint(np.ones((1, 24)), 36.0, 36.0)


CLASSES = {
    "images": lambda: (FEW, {"method": Codes(2)}),
    "single precision": lambda: (FEW.astype(np.float32), {"method": Codes(2)}),
    "flat": lambda: (FLAT, {}),
    "sparse": lambda: (csr_array(FLAT), {}),
    "frame": lambda: (table_of(FEW), {}),
    "frame, order": lambda: (table_of(FEW), {"method": Codes(1)}),
    "kernels": lambda: (FEW, {"method": Codes(2, draws="kde", embedding=None)}),
    "constraints": lambda: (FLAT, {"constraints": {1: WHOLE}}),
}


def resampled(X, params):
    wanted = dict.fromkeys(range(3), 180)
    sampler = PNLSampler(sampling_strategy=wanted, random_state=0, **params)
    return sampler, sampler.fit_resample(X, THREE)


def bytes_of(X):
    if hasattr(X, "to_csv"):
        return X.to_csv()
    return (X.toarray() if issparse(X) else X).tobytes()


@pytest.mark.parametrize("kind", CLASSES)
def test_classes_are_the_bytes_of_home(kind, backend):
    X, params = CLASSES[kind]()
    home, (X_home, y_home) = resampled(X, params)
    with backend:
        away, (X_away, y_away) = resampled(X, params)
    assert bytes_of(X_away) == bytes_of(X_home)
    assert_array_equal(y_away, y_home)
    assert_array_equal(away.parent_indices_, home.parent_indices_)
    for label, augmenter in home.augmenters_.items():
        more = [
            a.sample(7, random_state=1) for a in (away.augmenters_[label], augmenter)
        ]
        assert bytes_of(more[0]) == bytes_of(more[1])


def test_what_workers_meet_is_said_here():
    projector = ManyBodyProjector(2, offset=1e-4, max_iter=1, tol=1e-15)
    with joblib.parallel_config("loky", n_jobs=2):
        with pytest.warns(ConvergenceWarning, match=r"Sampler, class \d: .* converge"):
            resampled(FEW, {"method": Codes(projector)})
        empty = FEW + 1
        number = np.flatnonzero(THREE == 1)[3]
        empty[number] = 0
        bare = {"method": Codes(1, offset=0, embedding=None)}
        with pytest.raises(ValueError, match=f"(?i)row {number} is 0"):
            resampled(empty, bare)


def test_parts_are_the_same_bytes_whoever_writes_them(client, tmp_path):
    example = runpy.run_path(ROOT / "examples" / "rows_beyond_memory.py")
    augmenter = PNLAugmenter().fit(TRAINING)
    plan = example["make_plan"](augmenter, 500, 70)
    homes, away = tmp_path / "home", tmp_path / "away"
    example["write_parts"](augmenter, homes, plan)
    example["write_parts"](augmenter, away, plan, client)
    parts = sorted(path.name for path in homes.glob("*.npy"))
    assert len(parts) == 8
    assert parts == sorted(path.name for path in away.glob("*.npy"))
    for part in parts:
        assert (homes / part).read_bytes() == (away / part).read_bytes()


@pytest.mark.parametrize("kind", ["array", "dataframe"])
def test_rows_of_the_recipe_are_those_of_each_partition(kind, client):
    recipes = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    found = re.findall(r"```py\n(.*?)```", recipes, re.S)
    (recipe,) = (code for code in found if "dask" in code)
    names = {}
    exec(recipe, names)
    rows, labels = X[:, 0, 0], np.where(np.arange(len(X)) % 7 == 0, "rare", "common")
    labels[600:] = "common"
    if kind == "array":
        da = pytest.importorskip("dask.array")
        parts = [da.from_array(a, chunks=(300, *a.shape[1:])) for a in (rows, labels)]
    else:
        dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is missing")
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(rows, columns=list("abcdefgh"))
        frame = dd.from_pandas(frame.assign(label=labels), chunksize=300, sort=False)
        parts = frame.drop(columns="label"), frame["label"]
    share = {"rare": 2.0, "unknown": 1.0}
    new = client.gather(client.compute(names["augment_partitions"](*parts, share)))
    counts = [np.sum(labels[k : k + 300] == "rare") for k in range(0, 1100, 300)]
    assert [len(part.get("rare", ())) for part in new] == [2 * n for n in counts]
    assert counts[2:] == [0, 0]
    # Rows of one partition, by a seed of its own.
    seed = np.random.SeedSequence(0).generate_state(4).tolist()[1]
    own = rows[300:600][labels[300:600] == "rare"]
    expected = PNLAugmenter().fit(own).sample(2 * counts[1], seed)
    assert_array_equal(np.asarray(new[1]["rare"]), expected)


@pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler:UserWarning")
def test_projectors_map_over_the_chunks_of_a_dask_array(client):
    import dask.array as da

    projector = backward(1).fit(TRAINING)
    chunked = da.from_array(X, chunks=(512, 8, 8, 8))
    codes = chunked.map_blocks(
        projector.transform,
        dtype=X.dtype,
        chunks=(chunked.chunks[0], (projector.n_params_,)),
        drop_axis=(2, 3),
    )
    rows = codes.map_blocks(
        projector.inverse_transform,
        dtype=X.dtype,
        chunks=(chunked.chunks[0], (8,), (8,), (8,)),
        new_axis=(2, 3),
    )
    home = projector.transform(X)
    assert codes.compute().tobytes() == home.tobytes()
    # Rows are decoded 512 at a time: in chunks of 512 they are the same.
    assert rows.compute().tobytes() == projector.inverse_transform(home).tobytes()
    # Threads of one process, which share the limit on BLAS.
    assert rows.compute(scheduler="threads").tobytes() == rows.compute().tobytes()
