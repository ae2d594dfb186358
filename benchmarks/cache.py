"""Finished results on disk, found by all that they depend on."""

import ast
import inspect
import json
import os
import re
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import joblib

import sklearn_pnl

_PACKAGES = ("numpy", "scikit-learn", "imbalanced-learn")


def path_of(folder, problem, seed):
    """Return the file with the results of a problem and a seed."""
    words = "-".join(str(value) for value in problem.head.values())
    slug = re.sub(r"[^\w.-]+", "-", words).strip("-")
    key = joblib.hash((problem.head, problem.key))
    return Path(folder) / f"{slug}-{key[:12]}-{seed}.json"


def load(path):
    """Load cached rows by key; return an empty dict if the file does not exist."""
    return json.loads(path.read_text()) if path.exists() else {}


def save(path, results):
    """Write as a whole or not at all, so that a run can be broken off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    draft.write_text(json.dumps(results))
    draft.replace(path)


def key_of(sampler, baseline, learner, make):
    """Compute the key of a row from everything that the row depends on."""
    fitted = make(0)
    parts = [sampler, learner, versions(), baseline.threshold, baseline.calibrated]
    parts += [_parts(fitted), _parts(baseline.adapted(make(0), 0))]
    if baseline.sampler is not None:
        parts.append(_parts(baseline.sampler(0)))
    return joblib.hash(parts)[:16]


def versions():
    """Return the versions of the libraries that affect the rows."""
    packages = (*_PACKAGES, "torch") if "torch" in sys.modules else _PACKAGES
    return {name: version(name) for name in packages}


@cache
def library_code():
    """Hash of the library's code; comments and docstrings may change."""
    files = sorted(Path(sklearn_pnl.__file__).parent.rglob("*.py"))
    return joblib.hash([_code(file.read_text()) for file in files])


def _parts(estimator):
    """Describe an object by its parameters, and by the code or version of its class."""
    kind, params = type(estimator), estimator.get_params(deep=False)
    parts = [kind.__qualname__, params]
    parts += [_parts(value) for value in params.values() if _is_estimator(value)]
    module = kind.__module__
    package = module.split(".")[0]
    if package in ("imblearn", "sklearn"):
        return parts
    if package not in ("sklearn_pnl", "benchmarks", "tests"):
        return [*parts, _version(package)]
    source = inspect.getsource(sys.modules[module])
    if package != "sklearn_pnl":
        parts.append(_code(source))
    if "sklearn_pnl" in source or package == "sklearn_pnl":
        # A sampler of this library, or one built around it.
        parts.append(library_code())
    return parts


def _is_estimator(value):
    return hasattr(value, "get_params") and not isinstance(value, type)


def _version(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return package


def _code(source):
    tree = ast.parse(source)
    for node in ast.walk(tree):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)
