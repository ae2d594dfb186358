"""Rivals beside each other: each way runs in a process and a Python of its own.

``SKLEARN_PNL_RIVALS`` names a folder with a virtual environment for each rival, as
``python -m venv`` makes them. What is not there is said, and left out. The scripts
themselves import no rival.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
RUN = Path(__file__).parent / "ways" / "run.py"
LIMIT = 240.0


@dataclass(frozen=True)
class Answer:
    """Arrays of an answer, none if there is none, and what was said and used."""

    arrays: dict = field(default_factory=dict)
    error: str = ""
    warned: str = ""
    seconds: float = np.nan
    mib: float = np.nan
    versions: dict = field(default_factory=dict)


def python_of(environment):
    """The Python of a rival, ours for None; None where it is not installed."""
    if environment is None:
        return sys.executable
    folder = os.environ.get("SKLEARN_PNL_RIVALS")
    python = Path(folder or "") / environment / "bin" / "python"
    return str(python) if folder and python.exists() else None


def ask(environment, family, way, problem):
    """The answer of one way to a problem, a dict of arrays."""
    python = python_of(environment)
    if python is None:
        return Answer(error="not installed")
    settings = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if environment is None:
        settings["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), *sys.path]))
    with TemporaryDirectory() as folder:
        np.savez(Path(folder) / "problem.npz", **problem)
        try:
            ended = subprocess.run(
                [python, RUN, folder, family, way], cwd=folder, timeout=LIMIT,
                env=os.environ | settings, capture_output=True, text=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Answer(error=f"no answer in {LIMIT:g} s", seconds=LIMIT)
        took = Path(folder) / "took.json"
        if not took.exists():
            last = (ended.stderr.strip().splitlines() or ["no word"])[-1]
            return Answer(error=f"ended by {ended.returncode}: {last[:160]}")
        took = json.loads(took.read_text())
        with np.load(Path(folder) / "answer.npz", allow_pickle=False) as file:
            arrays = dict(file)
    said = {name: took[name] for name in ("error", "warned", "seconds", "versions")}
    return Answer(arrays, mib=took["MiB"], **said)


def row(job, name, answer, **measures):
    """One line of a table: measures are of the answer, and nan where there is none."""
    versions = ", ".join(f"{k} {v}" for k, v in answer.versions.items())
    return {
        "job": job, "way": name, **measures,
        "s": answer.seconds, "MiB": answer.mib,
        "says": answer.error or answer.warned, "versions": versions,
    }  # fmt: skip
