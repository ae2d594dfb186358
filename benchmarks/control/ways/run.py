"""One way to do one job, in a process and a Python of its own.

``python run.py FOLDER FAMILY WAY`` reads ``problem.npz`` in FOLDER, hands its arrays to
the function WAY of FAMILY.py beside this file, and writes ``answer.npz`` and
``took.json``. A way may be a generator: what it does up to its first ``yield`` are
imports, which are not counted. Nothing is imported here that a rival may not have.
"""

import importlib.util
import json
import logging
import resource
import sys
import traceback
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter

import numpy as np


def ways_of(family):
    """The module of a family; its folder is no place to import others from."""
    here = Path(__file__).resolve().parent
    sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != here]
    spec = importlib.util.spec_from_file_location("ways", here / f"{family}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def peak():
    """Most memory that the process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def said(error):
    """A message as one short line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}"


def versions(packages):
    """Of the packages that are installed."""
    found = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def done(way, problem):
    """What a way answers, or why it does not; seconds, MiB and warnings."""
    steps = way(problem)
    next(steps)
    took = {"error": "", "warned": ""}
    before, start = peak(), perf_counter()
    answer = {}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            answer = next(steps)
        except Exception as error:
            traceback.print_exc()
            took["error"] = said(error)
    took |= {"seconds": perf_counter() - start, "MiB": peak() - before}
    # What a library says of its own files and settings is not about the answer.
    loud = [
        w.message for w in told
        if issubclass(w.category, UserWarning) and "save_to_json" not in str(w.message)
    ]  # fmt: skip
    took["warned"] = said(loud[0]) if loud else ""
    return answer, took


def main():
    """Read, do, write."""
    folder, family, name = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    module = ways_of(family)
    with np.load(folder / "problem.npz", allow_pickle=False) as file:
        problem = dict(file)
    logging.disable()
    answer, took = done(getattr(module, name), problem)
    took["versions"] = versions(module.PACKAGES.get(name, ()))
    np.savez(folder / "answer.npz", **answer)
    (folder / "took.json").write_text(json.dumps(took))


if __name__ == "__main__":
    main()
