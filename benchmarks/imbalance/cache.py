"""Finished results on disk: a file for a rival on a table."""

import ast
import inspect
import json
import os
import re
from functools import cache
from importlib.metadata import version
from pathlib import Path

import joblib

import sklearn_pnl

FOLDER = Path(__file__).parent / "cache"


def path_of(table, name, rival, protocol):
    """Where the results lie; all that they depend on is in the name of the file."""
    key = joblib.hash((table.X, table.y, name, _fingerprint(rival), protocol))
    slug = re.sub(r"[^\w.-]+", "-", f"{table.name}--{name}").strip("-")
    return FOLDER / f"{slug}--{key[:12]}.json"


def load(path):
    """Rows of each learner, by its description; empty if there are none."""
    return json.loads(path.read_text()) if path.exists() else {}


def save(path, results):
    """Write as a whole or not at all, so that a run can be broken off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    draft.write_text(json.dumps(results))
    draft.replace(path)


def describe(name, learner):
    return f"{name}: {learner!r}"


def _fingerprint(rival):
    versions = [version(name) for name in ("numpy", "scikit-learn", "imbalanced-learn")]
    adapt = rival.adapt and inspect.getsource(rival.adapt)
    return versions, adapt, rival.threshold, _of_sampler(rival)


def _of_sampler(rival):
    if rival.sampler is None:
        return None
    sampler = rival.sampler(0)
    kind = type(sampler)
    parts = [kind.__qualname__, sampler.get_params(deep=False)]
    if rival.calibrated:
        parts.append("calibrated")
    if kind.__module__.startswith("imblearn.over_sampling"):
        return parts
    # A sampler of this library, or one built around it.
    parts.append(library_code())
    if not kind.__module__.startswith(("sklearn_pnl.", "imblearn.")):
        parts.append(inspect.getsource(kind))
    return parts


@cache
def library_code():
    """Hash of the library's code; comments and docstrings may change."""
    files = sorted(Path(sklearn_pnl.__file__).parent.rglob("*.py"))
    return joblib.hash([_code(file.read_text()) for file in files])


def _code(source):
    tree = ast.parse(source)
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)
