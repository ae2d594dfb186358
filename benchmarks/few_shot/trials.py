"""One draw with every sampler and learner, kept in a cache."""

import hashlib
import inspect
import json
import os
import time
import warnings
from functools import lru_cache
from pathlib import Path

import sklearn
from threadpoolctl import threadpool_limits

import sklearn_pnl
from sklearn_pnl import PNLSampler

from . import problems
from .learners import make_learners
from .samplers import make_samplers
from .scores import score

HERE = Path(__file__).parent
CACHE = HERE / "cache"


def run_trial(name, shots, seed):
    """Records of one draw, a sampler and a learner each."""
    problem = problems.make(name)
    X, y, X_test, y_test = problem.draw(shots, seed)
    path = CACHE / f"{name}-{shots}-{seed}.json"
    known, kept = _read(path), {}
    with threadpool_limits(1):
        for label, sampler in make_samplers(problem, y, seed).items():
            key = _key(sampler)
            if key not in known:
                result = _evaluate(sampler, X, y, X_test, y_test, seed)
                known[key] = {"sampler": label, **result}
                _write(path, known)
            kept[key] = known[key]
    if kept.keys() != known.keys():
        _write(path, kept)
    setting = {"problem": name, "shots": shots, "draw": seed}
    return [{**setting, **result} for result in kept.values()]


def _evaluate(sampler, X, y, X_test, y_test, seed):
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        grown = (X, y) if sampler is None else sampler.fit_resample(X, y)
    seconds = time.perf_counter() - start
    scores = {
        name: score(learner.fit(*grown), X_test, y_test)
        for name, learner in make_learners(len(y) / len(grown[1]), seed).items()
    }
    messages = [str(warning.message) for warning in caught]
    return {"seconds": seconds, "warnings": messages, "scores": scores}


def _key(sampler):
    """What a result depends on; the library's source for its own sampler alone."""
    parts = [sklearn.__version__, _hash(HERE)]
    if sampler is not None:
        parameters = sorted(sampler.get_params().items(), key=lambda item: item[0])
        parts += [inspect.getsource(type(sampler)), repr(parameters)]
    if isinstance(sampler, PNLSampler):
        parts.append(_hash(Path(sklearn_pnl.__file__).parent))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@lru_cache
def _hash(folder):
    """Of its sources. Of this folder's, those that only start or show do not count,
    and samplers are in the key one by one.
    """
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        if path.parent != HERE or path.stem in ("problems", "learners", "scores"):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _read(path):
    return json.loads(path.read_text()) if path.exists() else {}


def _write(path, results):
    """Whole or not at all, so that a run may be stopped at any time."""
    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(results))
    os.replace(part, path)
