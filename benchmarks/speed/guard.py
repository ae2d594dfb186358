"""Compare the run time and memory of typical jobs at two commits, in one run.

``python benchmarks/speed/guard.py`` compares the checkout with the commit in
``reference.txt``. Each job runs in two processes, one per commit, which alternate
(before, after, after, before), so that both run under the same load of the machine.
Times are process times of one thread.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from multiprocessing.connection import Client, Listener
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

HERE = Path(__file__).resolve()
ROOT = HERE.parents[2]
RESULTS = HERE.parents[1] / "results"
# Small losses add up unseen if each change is compared with a recent commit.
REFERENCE = HERE.with_name("reference.txt").read_text(encoding="utf-8").strip()
STATUS, RESET_PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")
# Shorter calls are repeated within a measurement.
SHORTEST = 0.1
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def first_of(*names):
    """Return the first of several objects of the package that a state of it has."""
    for name in names:
        module, _, attribute = f"sklearn_pnl.{name}".rpartition(".")
        with suppress(ImportError, AttributeError):
            return getattr(import_module(module), attribute)
    raise ImportError(f"None of {', '.join(names)} is in this state of sklearn_pnl.")


# --- the jobs: each makes its data, and returns a call and perhaps its baseline ----


def with_smote(X, y):
    """Return calls of ``PNLSampler`` and of SMOTE, on rows of any number of axes."""
    from imblearn.over_sampling import SMOTE

    from sklearn_pnl import PNLSampler

    flat = X.reshape(len(X), -1) if X.ndim > 2 else X
    return [
        partial(PNLSampler(random_state=0).fit_resample, X, y),
        partial(SMOTE(random_state=0).fit_resample, flat, y),
    ]


def with_minority(rng, n, share=0.1):
    """Return labels (n,) with a minority class of about a share of the rows."""
    return (rng.uniform(size=n) < share).astype(int)


def reals(n, n_columns, n_redundant=0):
    """Sample normal columns, the last of which are sums of earlier columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, n_columns))
    for column in range(n_columns - n_redundant, n_columns):
        X[:, column] = X[:, 3 * (n_columns - column) :][:, :3].sum(axis=1)
    return with_smote(X, with_minority(rng, n, 0.05))


def integers(n, n_columns):
    """Over-sample counts, in an array of integers."""
    rng = np.random.default_rng(0)
    X = rng.poisson(5.0, (n, n_columns))
    return with_smote(X, with_minority(rng, n, 0.05))


def bits(n, n_columns):
    """Sample fingerprints of molecules: bits, few of which are 1."""
    rng = np.random.default_rng(0)
    X = rng.random((n, n_columns)) < rng.beta(0.3, 6, n_columns)
    return with_smote(X.astype(np.uint8), with_minority(rng, n))


def pictures(n, side):
    """Over-sample smooth images of positive pixels."""
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(n, side, side)).cumsum(axis=1).cumsum(axis=2)
    return with_smote(X, with_minority(rng, n, 0.05))


def cards():
    """Over-sample 492 of 284,807 rows, as in a table of frauds."""
    rng, n = np.random.default_rng(0), 284_807
    X = rng.standard_normal((n, 30))
    return with_smote(X, (rng.permutation(n) < 492).astype(int))


def categories():
    """Over-sample a frame with 8 categories, compared with SMOTENC."""
    import pandas as pd
    from imblearn.over_sampling import SMOTENC

    from sklearn_pnl import PNLSampler

    rng, n = np.random.default_rng(0), 100_000
    X = pd.DataFrame(rng.standard_normal((n, 7))).add_prefix("x")
    for column in range(8):
        X[f"c{column}"] = pd.Categorical.from_codes(
            rng.integers(0, 5, n), list("abcde")
        )
    samplers = [
        kind(categorical_features="auto", random_state=0)
        for kind in (PNLSampler, SMOTENC)
    ]
    y = with_minority(rng, n, 0.05)
    return [partial(sampler.fit_resample, X, y) for sampler in samplers]


def dummies():
    """Over-sample a table that consists mainly of dummies without first levels."""
    rng, n = np.random.default_rng(0), 5_000
    levels = rng.integers(0, 6, (n, 10, 1)) == np.arange(1, 6)
    X = np.hstack([rng.standard_normal((n, 5)), levels.reshape(n, -1)])
    return with_smote(X, with_minority(rng, n))


def embeddings(n, n_columns, n_rare):
    """Over-sample embeddings in single precision: 50 latent columns and noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 50)) @ rng.standard_normal((50, n_columns))
    X += 0.5 * rng.standard_normal(X.shape)
    y = (rng.permutation(n) < n_rare).astype(int)
    return with_smote(X.astype(np.float32), y)


def encoding(n, shape, order, against_sum=False):
    """Encode tensors, perhaps compared with ``X.sum()``."""
    from sklearn_pnl import ManyBodyProjector

    X = np.random.default_rng(0).gamma(1.0, size=(n, *shape))
    projector = ManyBodyProjector(order).fit(X)
    return [partial(projector.transform, X), *([X.sum] if against_sum else [])]


def long_rows():
    """Sample rows of 16,000 cells at order 2, which require much memory."""
    from sklearn_pnl import Codes, PNLAugmenter

    X = np.random.default_rng(0).standard_normal((60, 16_000)).cumsum(axis=1)
    augmenter = PNLAugmenter(Codes(order=2))
    return [lambda: augmenter.fit(X).sample(12, random_state=0)]


def one_row(encode):
    """Encode or decode one row of (4, 4, 4): the cost of a call besides arithmetic."""
    from sklearn_pnl import BackwardProjector

    X = np.random.default_rng(0).gamma(1.0, size=(200, 4, 4, 4))
    projector = BackwardProjector(order=2, local_manifold="fiber").fit(X)
    codes = projector.transform(X[:1])
    return [
        partial(projector.transform, X[:1])
        if encode
        else partial(projector.inverse_transform, codes)
    ]


def raking():
    """Rake a table of 50 x 50 x 10 to its three two-way margins."""
    rake = first_of("geometry.rake_array", "geometry.rake")
    rng = np.random.default_rng(0)
    tables = rng.gamma(1.0, size=(2, 50, 50, 10))
    seed, wanted = tables / tables.sum(axis=(1, 2, 3), keepdims=True)
    margins = {(0, 1): wanted.sum(axis=2), (0, 2): wanted.sum(axis=1)}
    return [partial(rake, seed, margins | {(1, 2): wanted.sum(axis=0)})]


def mixed_frame():
    """Over-sample a data frame with a total, integers, categories and a date."""
    import pandas as pd

    from sklearn_pnl import PNLSampler

    rng, n = np.random.default_rng(0), 2_000
    X = pd.DataFrame(rng.gamma(2.0, size=(n, 3)), columns=["a", "b", "c"])
    X["total"] = X["a"] + X["b"] + X["c"]
    X["count"] = rng.poisson(3, n)
    X["kind"] = rng.choice(["x", "y", "z"], n)
    X["grade"] = pd.Categorical(rng.choice(["low", "high"], n))
    X["day"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 99, n), "D")
    sampler = PNLSampler(categorical_features="auto", random_state=0)
    return [partial(sampler.fit_resample, X, with_minority(rng, n))]


def holes():
    """Over-sample a table with a tenth of its cells missing."""
    from sklearn_pnl import PNLSampler

    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 20)) @ rng.standard_normal((20, 20))
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    y = (rng.uniform(size=len(X)) < 0.3).astype(int)
    return [partial(PNLSampler(random_state=0).fit_resample, X, y)]


def words():
    """Sample sparse rows with 30 cells that are not 0, like texts."""
    from scipy.sparse import random

    X = random(5_000, 3_000, 0.01, format="csr", random_state=0)
    return with_smote(X, with_minority(np.random.default_rng(0), 5_000))


def many_words():
    """Over-sample sparse rows with 60 cells that are not 0."""
    from scipy.sparse import random

    X = random(5_000, 6_000, 0.01, format="csr", random_state=0)
    return with_smote(X, with_minority(np.random.default_rng(0), 5_000))


def wide_frame():
    """Over-sample a data frame of 500 numeric columns."""
    import pandas as pd

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((500, 500))).add_prefix("x")
    return with_smote(X, with_minority(rng, 500))


def equalities():
    """Search for equalities in 60 columns, of which three are totals."""
    find_equalities = first_of("control.find_equalities", "find_equalities")
    X = np.random.default_rng(0).gamma(1.0, size=(2_000, 60))
    for total in (0, 20, 40):
        X[:, total] = X[:, total + 1 : total + 20].sum(axis=1)
    return [partial(find_equalities, X)]


def constrained():
    """Sample rows with a constraint on one column."""
    from sklearn_pnl import PNLAugmenter

    ColumnConstraint = first_of("control.ColumnConstraint", "ColumnConstraint")
    X = np.random.default_rng(0).gamma(2.0, size=(1_000, 10))
    X[:, 0] = X[:, 1:].sum(axis=1)
    asked = ColumnConstraint(0, equal=20.0)
    augmenter = PNLAugmenter().fit(X)
    return [partial(augmenter.sample, 2_000, random_state=0, constraints=asked)]


def cents():
    """Sample rows of amounts in cents with a constraint on their total."""
    from sklearn_pnl import PNLAugmenter

    ColumnConstraint = first_of("control.ColumnConstraint", "ColumnConstraint")
    parts = np.random.default_rng(0).integers(100, 30_000, (500, 4))
    X = np.column_stack([parts, parts.sum(axis=1)]) / 100
    asked = ColumnConstraint(4, equal=400.01)
    augmenter = PNLAugmenter().fit(X)
    return [partial(augmenter.sample, 1_000, random_state=0, constraints=asked)]


def comparing():
    """Compare new rows with real rows."""
    from sklearn_pnl import compare_samples

    rows = np.random.default_rng(0).standard_normal((2, 1_000, 10))
    return [partial(compare_samples, *rows, random_state=0)]


def images():
    """Over-sample a class of images of 8 x 8."""
    from sklearn.datasets import load_digits

    from sklearn_pnl import Codes, PNLSampler

    digits = load_digits()
    kept = (digits.target != 8) | (np.arange(len(digits.target)) % 4 == 0)
    sampler = PNLSampler(method=Codes(embedding=None), random_state=0)
    X, y = digits.images[kept], digits.target[kept]
    return [partial(sampler.fit_resample, X, y)]


SHAPES = ((1_000, 20), (5_000, 20), (5_000, 200), (20_000, 50), (100_000, 20))
JOBS = (
    {f"sampler, {n:,} x {d}": partial(reals, n, d) for n, d in SHAPES}
    | {
        f"sampler, {n:,} x {d}, two redundant": partial(reals, n, d, 2)
        for n, d in ((5_000, 200), (20_000, 50))
    }
    | {
        "sampler, 20,000 x 20 integers": partial(integers, 20_000, 20),
        "sampler, 10,000 x 2,048 bits": partial(bits, 10_000, 2_048),
        "sampler, 284,807 x 30, 492 rare": cards,
        "sampler, frame 100,000 x 15, 8 categories": categories,
        "sampler, images 20,000 x 16 x 16": partial(pictures, 20_000, 16),
    }
    | {
        f"sampler of embeddings, {n:,} x {d}, {rare:,} rare": partial(
            embeddings, n, d, rare
        )
        for n, d, rare in ((6_000, 768, 600), (6_000, 768, 40), (20_000, 384, 2_000))
    }
    | {
        "encode order 1, 60,000 x 784": partial(encoding, 60_000, (28, 28), 1, True),
        "encode order 2, 1,000 x 100": partial(encoding, 1_000, (5, 2, 5, 2), 2),
        "encode order 3, 1,000 x 28 x 28": partial(encoding, 1_000, (7, 2, 2) * 2, 3),
        "order 2, 60 rows of 16,000": long_rows,
        "encode one (4, 4, 4)": partial(one_row, True),
        "decode one (4, 4, 4), fiber": partial(one_row, False),
        "rake 50 x 50 x 10": raking,
        "dummies, 5,000 x 55": dummies,
        "mixed frame of 2,000 rows": mixed_frame,
        "frame of 500 x 500": wide_frame,
        "sparse rows, 5,000 x 3,000": words,
        "sparse 5,000 x 6,000, 60 nonzero cells": many_words,
        "20,000 x 20, cells missing": holes,
        "find equalities, 2,000 x 60": equalities,
        "2,000 rows with a column given": constrained,
        "1,000 rows in cents, a total given": cents,
        "compare samples, 1,000 x 10": comparing,
        "images of 8 x 8": images,
    }
)


# --- the process of one commit, which runs a job as often as it is asked -----------


def serve(address, job):
    """Make the data of a job, and time its calls for each number of repetitions."""
    # An editable installation would provide modules that the commit does not have.
    sys.meta_path[:] = [
        finder
        for finder in sys.meta_path
        if not getattr(finder, "__module__", "").startswith("__editable__")
    ]
    with Client(address, family="AF_UNIX") as line:
        try:
            import sklearn_pnl

            line.send(str(Path(sklearn_pnl.__file__).resolve().parents[1]))
            functions = JOBS[job]()
            resident = _status("VmRSS")
            if RESET_PEAK.exists():
                RESET_PEAK.write_text("5")
            first = [_seconds(function, 1) for function in functions[:1]]
            peak = (_status("VmHWM") - resident) / 2**20
            first += [_seconds(function, 1) for function in functions[1:]]
            line.send({"first": first, "MiB": peak})
            while (loops := line.recv()) is not None:
                line.send(
                    [_seconds(*each) for each in zip(functions, loops, strict=True)]
                )
        except Exception as error:  # The process that compares reports the error.
            lines = f"{type(error).__name__}: {error}".splitlines()
            line.send({"failure": lines[0]})


def _seconds(function, loops):
    start = process_time()
    for _ in range(loops):
        function()
    return (process_time() - start) / loops


def _status(field):
    """Return a number of bytes that Linux reports; NaN on other systems."""
    if not STATUS.exists():
        return float("nan")
    lines = STATUS.read_text().splitlines()
    return 1024 * int(next(x for x in lines if x.startswith(field)).split()[1])


class State:
    """A process that runs a job at one commit."""

    def __init__(self, folder, job, stack):
        self.failure, self.taken = "", []
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()), "line")
        listener = stack.enter_context(Listener(str(place), family="AF_UNIX"))
        environment = os.environ | {"PYTHONPATH": str(folder)}
        environment |= dict.fromkeys(THREADS, "1")
        # -P: nothing is imported from the folder of this script.
        command = [sys.executable, "-P", str(HERE), "--serve", str(place), job]
        process = subprocess.Popen(command, env=environment, cwd=tempfile.gettempdir())
        stack.callback(process.wait)
        self.line = stack.enter_context(listener.accept())
        found = self.hear()
        if not self.failure and found != str(folder):
            sys.exit(f"{folder} was wanted, and {found} imported.")
        stack.callback(self._end)

    def _end(self):
        if not self.failure:
            self.line.send(None)

    def hear(self):
        """Return the next result of the process; None if the job failed."""
        found = self.line.recv()
        if isinstance(found, dict) and "failure" in found:
            self.failure = found["failure"]
            return None
        return found

    def run(self, loops):
        self.line.send(loops)
        self.taken.append(self.hear())


def compare(job, folders, rounds, budget):
    """Return one line of the table."""
    with ExitStack() as stack:
        states = [State(folder, job, stack) for folder in folders]
        # One process after the other, so that they do not share the cores.
        first = [None if state.failure else state.hear() for state in states]
        for state in states:
            if state.failure:
                print(f"{job}: {state.failure}", file=sys.stderr)
        there = [state for state in states if not state.failure]
        known = [found for found in first if found]
        if known:
            slowest = [
                max(each) for each in zip(*(f["first"] for f in known), strict=True)
            ]
            loops = [max(1, int(SHORTEST / max(taken, 1e-9))) for taken in slowest]
            cost = sum(max(SHORTEST, taken) for taken in slowest) * len(there)
            for turn in range(max(2, min(rounds, int(budget / cost)))):
                for state in there[:: -1 if turn % 2 else 1]:
                    state.run(loops)
    return _line(job, states, first)


def _line(job, states, first):
    row = {"job": job}
    least = []
    for name, state, found in zip(("before", "after"), states, first, strict=True):
        taken = list(zip(*state.taken, strict=True)) if not state.failure else []
        least.append(min(taken[0]) if taken else None)
        beside = (
            taken[0] and median(own / other for own, other in zip(*taken, strict=True))
            if len(taken) > 1
            else None
        )
        row |= {
            f"{name}, s": least[-1],
            f"{name} / baseline": beside,
            f"{name}, MiB": found["MiB"] if found else None,
        }
    row["ratio"] = least[1] / least[0] if None not in least else None
    pairs = [
        after[0] / before[0]
        for before, after in zip(*(state.taken for state in states), strict=False)
        if before and after
    ]
    row["of pairs"] = _quartiles(pairs) if pairs else None
    row["rounds"] = max(len(state.taken) for state in states)
    return row


def _quartiles(values):
    """Return the first and third quartile, which differ much on a busy machine."""
    low, high = np.quantile(values, [0.25, 0.75])
    return f"{low:.2f} to {high:.2f}"


# --- the command -------------------------------------------------------------------


@contextmanager
def checkout(name):
    """Provide the folder of a checkout, or a temporary work tree of a commit."""
    if Path(name).is_dir():
        yield Path(name).resolve()
        return
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as above:
        folder = Path(above).resolve() / "checkout"
        subprocess.run(
            [*git, "add", "--quiet", "--detach", str(folder), name], check=True
        )
        try:
            yield folder
        finally:
            subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def _shown(value):
    if isinstance(value, str):
        return value
    return "not there" if value is None else f"{value:.3g}"


COLUMNS = ("job", "before, s", "after, s", "ratio", "of pairs", "before, MiB",
           "after, MiB", "before / baseline", "after / baseline",
           "rounds")  # fmt: skip


def table(rows):
    """Yield the lines of a Markdown table."""
    yield "| " + " | ".join(COLUMNS[:-1]) + " |"
    yield "|---" + "|--:" * (len(COLUMNS) - 2) + "|"
    for row in rows:
        cells = [
            "" if row[name] is None and ", s" not in name else _shown(row[name])
            for name in COLUMNS[:-1]
        ]
        yield "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", nargs="?", default=REFERENCE,
                        help="a commit, or the folder of a checkout; default: the "
                             "commit in reference.txt")  # fmt: skip
    parser.add_argument("after", nargs="?", default=str(ROOT),
                        help="another one; default: this checkout")  # fmt: skip
    parser.add_argument("--only", default="", help="jobs whose name contains this text")
    parser.add_argument("--rounds", type=int, default=25, help="most runs per commit")
    parser.add_argument(
        "--budget", type=float, default=20.0, help="seconds per job, approximately"
    )
    parser.add_argument("--csv", type=Path, help="default: results/speed-guard.csv")
    given = parser.parse_args()
    with checkout(given.before) as before, checkout(given.after) as after:
        rows = []
        for job in JOBS:
            if given.only in job:
                rows.append(compare(job, (before, after), given.rounds, given.budget))
                print(
                    f"{job}: {_shown(rows[-1]['ratio'])}", file=sys.stderr, flush=True
                )
    if not rows:
        sys.exit(f"No job has {given.only!r} in its name.")
    print("\n".join(table(rows)))
    # The results of some jobs do not replace the results of all jobs.
    path = given.csv or (None if given.only else RESULTS / "speed-guard.csv")
    if path is None:
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
    else:
        main()
