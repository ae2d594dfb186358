"""Check that workers in other processes return the same bytes as one process.

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
from sklearn_pnl._utils import blocks
from sklearn_pnl.geometry import TensorPoset, boolean_lattice

pytestmark = pytest.mark.starting


ROOT = Path(__file__).parents[1]


# With 512 cells, blocks have 256 rows. 5 blocks form tasks of more than one block.
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
        # The process leaves the socket open with which it searched for a port.
        warnings.filterwarnings("ignore", "unclosed <socket", ResourceWarning)
        with (
            distributed.LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                # Dask would set one thread, which would hide a limit that fails.
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
    """Set a joblib backend in a context; joblib sets its own at once."""
    if request.param == "dask":
        request.getfixturevalue("client")

    @contextlib.contextmanager
    def at_work():
        with joblib.parallel_config(request.param, n_jobs=2):
            yield

    return at_work()


def decoded(projector, rows=X):
    return projector.inverse_transform(projector.transform(rows))


def near(projector):
    return projector.kneighbors(projector.codes_, return_distance=False)


def encoded(projector):
    # A general poset contains matrices.
    return projector.fit(TRAINING.reshape(-1, 512)).transform(X.reshape(-1, 512))


ON_POSET = ManyBodyProjector(2, poset=boolean_lattice(9), tol=1e-4)
USES = {
    "encode": lambda: ManyBodyProjector(1).fit(TRAINING).transform(X),
    "encode on a poset": lambda: encoded(ON_POSET),
    "points": lambda: decoded(ManyBodyProjector(1, with_mass=True).fit(X)),
    "neighbors": lambda: near(BackwardProjector(1).fit(X)),
    "decode": lambda: decoded(BackwardProjector(2).fit(TRAINING)),
    "sample": lambda: PNLAugmenter().fit(TRAINING).sample(600, random_state=0),
    "stream": lambda: np.concatenate(
        list(PNLAugmenter(Codes(1)).fit(TRAINING).iter_samples(600, 77, random_state=0))
    ),
    "resample": lambda: PNLSampler(random_state=0).fit_resample(X, LABELS)[0],
}


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
    # The test runs in a new process, because a fork of a process with the threads of a
    # client can hang.
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


# The second setting is the one that the documentation recommends for workers of dask.
# With the settings of dask, there are 140 page faults per row.
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators")
@pytest.mark.parametrize(
    "trim, mmap, most", [(None, None, 40), (2**26, 2**25, 1)], ids=["default", "dask"]
)
def test_blocks_reuse_memory(trim, mmap, most):
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
    set_here = {"MALLOC_TRIM_THRESHOLD_": trim, "MALLOC_MMAP_THRESHOLD_": mmap}
    settings = {name: v for name, v in os.environ.items() if name not in set_here}
    settings |= {name: str(v) for name, v in set_here.items() if v}
    run = [sys.executable, "-c", code]
    faults = subprocess.check_output(run, env=settings, timeout=120)
    assert float(faults) < most


def test_rows_in_another_memory_layout_give_the_same_bytes(client):
    # Rows in Fortran order reach a worker in C order.
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


def test_workers_process_blocks(client):
    # Blocks of 2 rows, in tasks of three blocks.
    with joblib.parallel_config("dask"):
        rows, processes, threads, lengths = blocks.map_blocks(
            marked, np.arange(79), step=2, task="mark"
        )
    workers = set(client.run(os.getpid).values())
    assert_array_equal(rows, np.arange(79))
    assert set(processes) <= workers
    assert os.getpid() not in workers
    assert max(client.run(blas_threads).values()) == 2
    assert threads.max() == 1
    assert_array_equal(lengths, [2] * 78 + [1])


# --- complete classes -------------------------------------------------------------

FEW = np.random.default_rng(1).integers(0, 4, (360, 4, 6)).astype(float)
FEW[::3] = FEW[1::3]
THREE = np.random.default_rng(2).permutation(np.repeat([0, 1, 2], [110, 120, 130]))


def table_of(rows):
    """Make numbers and a string; the last two numbers have a constant sum."""
    pd = pytest.importorskip("pandas")
    flat = rows.reshape(len(rows), -1)[:, :8]
    frame = pd.DataFrame(flat, columns=[f"x{j}" for j in range(8)])
    frame["rest"] = 5 - frame["x7"]
    frame["word"] = np.where(flat[:, 0] > 1, "high", "low")
    return frame.astype({"x0": int})


WHOLE = LinearConstraint(np.ones((1, 24)), 36.0, 36.0)
CLASSES = {
    "images": lambda: (FEW, {"method": Codes(2)}),
    "single precision": lambda: (FEW.astype(np.float32), {"method": Codes(2)}),
    "sparse": lambda: (csr_array(FEW.reshape(360, -1)), {}),
    "frame": lambda: (table_of(FEW), {}),
    "kernels": lambda: (FEW, {"method": Codes(2, draws="kde", embedding=None)}),
    "constraints": lambda: (FEW.reshape(360, -1), {"constraints": {1: WHOLE}}),
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
def test_classes_give_the_same_bytes_in_workers(kind, backend):
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


def test_warnings_and_errors_of_workers_are_forwarded():
    projector = ManyBodyProjector(2, offset=1e-4, max_iter=1, tol=1e-15)
    with joblib.parallel_config("loky", n_jobs=2):
        with pytest.warns(ConvergenceWarning, match=r"PNLSampler, class \d: "):
            resampled(FEW, {"method": Codes(projector)})
        empty = FEW + 1
        number = np.flatnonzero(THREE == 1)[3]
        empty[number] = 0
        bare = {"method": Codes(1, offset=0, embedding=None)}
        with pytest.raises(ValueError, match=f"(?i)row {number} is 0"):
            resampled(empty, bare)


def test_rows_of_the_dask_recipe_agree_with_each_partition(client):
    recipes = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    found = re.findall(r"```py\n(.*?)```", recipes, re.S)
    (recipe,) = (code for code in found if "dask" in code)
    names = {}
    exec(recipe, names)
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is missing")
    pd = pytest.importorskip("pandas")
    rows, labels = X[:, 0, 0], np.where(np.arange(len(X)) % 7 == 0, "rare", "common")
    labels[600:] = "common"
    frame = pd.DataFrame(rows, columns=list("abcdefgh"))
    frame = dd.from_pandas(frame.assign(label=labels), chunksize=300, sort=False)
    parts = frame.drop(columns="label"), frame["label"]
    share = {"rare": 2.0, "unknown": 1.0}
    new = client.gather(client.compute(names["augment_partitions"](*parts, share)))
    assert [len(part.get("rare", ())) for part in new] == [86, 86, 0, 0]
    # Rows of one partition, with their own seed.
    seed = np.random.SeedSequence(0).generate_state(4).tolist()[1]
    own = rows[300:600][labels[300:600] == "rare"]
    expected = PNLAugmenter().fit(own).sample(86, seed)
    assert_array_equal(np.asarray(new[1]["rare"]), expected)


def test_parts_written_by_workers_have_the_same_bytes(client, tmp_path):
    example = runpy.run_path(ROOT / "examples" / "rows_beyond_memory.py")
    augmenter = PNLAugmenter().fit(TRAINING)
    plan = example["make_plan"](augmenter, 500, 70)
    example["write_parts"](augmenter, tmp_path / "home", plan)
    example["write_parts"](augmenter, tmp_path / "away", plan, client)
    home, away = (
        [part.read_bytes() for part in sorted(tmp_path.glob(f"{folder}/*.npy"))]
        for folder in ("home", "away")
    )
    assert len(home) == 8 and home == away
