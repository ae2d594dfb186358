"""Everything that can be set acts, or is refused by name.

Each parameter of each public estimator gets other values on each path: kinds of rows,
methods, ways to draw. Each must change the result, or be refused by an error that names
the parameter. The same for parameters of methods and public functions that have
defaults. ``idle`` of a path is what need not, each with its reason.
"""

import inspect
import re
import warnings
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import QuantileTransformer

import sklearn_pnl as pnl
from sklearn_pnl import ColumnConstraint, draws, geometry, manifolds
from sklearn_pnl.draws import KernelDraws
from sklearn_pnl.geometry import TensorPoset, chain_poset

pd = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
# Any numbers, amounts in cents that are 0 in half of the rows, counts; sums of them.
TABLE = pd.DataFrame(RNG.gamma(3.0, size=(40, 3)) + 1, columns=["x", "y", "z"])
for name in ("u", "v"):
    TABLE[name] = np.where(RNG.uniform(size=40) < 0.5, 0, RNG.gamma(3.0, size=40))
    TABLE[name] = TABLE[name].round(2)
TABLE["sum"] = TABLE["x"] + TABLE["u"]
for name in ("one", "two", "three"):
    TABLE[name] = RNG.integers(0, 4, size=40)
TABLE["count"] = TABLE["one"] + TABLE["two"]
# Images with zeros; the cells of one pixel are sums of those of two others.
IMAGES = RNG.gamma(2.0, size=(40, 2, 6)) + 0.1
IMAGES[IMAGES < 0.7] = 0
IMAGES[:, 0, 0] = IMAGES[:, 0, 1] + IMAGES[:, 0, 2]
# The rare rows have the largest numbers.
LABELS = (TABLE["x"] > np.quantile(TABLE["x"], 0.6)).astype(int)
GAPS, HOLES = TABLE.copy(), IMAGES.copy()
GAPS.iloc[::5, 0] = np.nan
HOLES[::3, 1, 2] = HOLES[1::4, 0, 0] = np.nan
COUNTS = RNG.integers(1, 30, size=(1, 2, 3, 2))
NOISY = RNG.permutation(LABELS)
PLAIN, RNG_ROWS = TABLE.to_numpy()[:, :3], RNG.uniform(size=(9, 11))
SUM = ColumnConstraint({"x": 1, "u": 1, "sum": -1}, equal=0.0)
LEAST = ColumnConstraint(0, lower=4.0)
NO_JOBS = "how many jobs there are must not change results"


@dataclass
class Path:
    """An estimator on rows of a kind: what it makes of them, and other parameters."""

    make: Any
    run: Any
    others: dict
    idle: dict = field(default_factory=dict)


# --- samplers and augmenter ---------------------------------------------------------


def augmented(rows):
    return lambda estimator: estimator.fit(rows).sample(30, random_state=0)


def resampled(rows, y=LABELS):
    return lambda estimator: estimator.fit_resample(rows, y)


COMMON = {
    "method": ["codes", pnl.Lines(noise=0.3), "paper"],
    "k_neighbors": [2],
    "categorical_features": [[8]],
    "value_support": [None],
    "extrapolation": [0.5, None],
    "equalities": [None, SUM],
    "n_jobs": [2],
}
ASKED = {"constraints": [LEAST], "random_state": [1]}
SAMPLER = {
    **COMMON,
    **ASKED,
    "value_support": ["auto"],
    "sampling_strategy": [{1: 20}, 0.9],
    "totals": [{1: {0: 45.0}}],
}
REGRESSION = {
    **COMMON,
    **ASKED,
    "value_support": ["auto"],
    "n_samples": [7, 0.5],
    "row_weights": ["rarity"],
    "totals": [{0: 170.0}],
}
OF_IMAGES = {
    "method": ["lines", pnl.Codes(1)],
    "equalities": [None],
}
OF_TABLES = {"value_support": "steps and atoms are those of columns of a table"}
BETWEEN = {
    "extrapolation": "rows between two others are within all limits; see 'asked'"
}
WHOLE = {"reshaper": "the code is the whole row, in any layout"}
LINES = {"noise": [0.0], "agreed_cells": [False], "n_candidates": [5]}
CODES = {
    "order": [1, [(0, 1)], pnl.ManyBodyProjector(1)],
    "offset": [5.0],
    "with_mass": [False, True],
    "local_manifold": ["theta", "eta", manifolds.MixtureManifold(0.5)],
    "draws": ["interpolation", KernelDraws(0.2), GaussianMixture(2, random_state=0)],
    "reshaper": [None, pnl.PrimeFactorReshaper(factor_order="ascending")],
    "embedding": [None, QuantileTransformer(n_quantiles=10)],
}
JOBS = {"n_jobs": NO_JOBS}
PATHS = {
    "augmenter, table": Path(pnl.PNLAugmenter(), augmented(TABLE), COMMON, JOBS),
    "augmenter, images": Path(
        pnl.PNLAugmenter(), augmented(IMAGES), COMMON | OF_IMAGES, JOBS | OF_TABLES
    ),
    "sampler, table": Path(
        pnl.PNLSampler(random_state=0), resampled(TABLE), SAMPLER, JOBS
    ),
    "sampler, images": Path(
        pnl.PNLSampler(random_state=0),
        resampled(IMAGES),
        SAMPLER | OF_IMAGES,
        JOBS | OF_TABLES,
    ),
    "regression, table": Path(
        pnl.PNLRegressionSampler(random_state=0),
        resampled(TABLE, TABLE["sum"]),
        REGRESSION,
        JOBS | BETWEEN,
    ),
    "regression, images": Path(
        pnl.PNLRegressionSampler(random_state=0),
        resampled(IMAGES, TABLE["sum"]),
        REGRESSION | OF_IMAGES,
        JOBS | BETWEEN | OF_TABLES,
    ),
    "regression, asked": Path(
        pnl.PNLRegressionSampler(totals={0: 170.0}, random_state=0),
        resampled(TABLE, TABLE["sum"]),
        REGRESSION | {"totals": [None], "n_samples": [1.1]},
        JOBS,
    ),
}
for kind, rows in {"table": TABLE, "gaps": GAPS, "images": IMAGES}.items():
    PATHS[f"lines, {kind}"] = Path(
        pnl.Lines(), lambda m, r=rows: augmented(r)(pnl.PNLAugmenter(m)), LINES
    )
for kind, rows in {"table": TABLE, "images": IMAGES}.items():
    for name, params in {
        "whole": {},
        "whole, kde": {"draws": "kde"},
        "order": {"order": 1},
        "order, kde": {"order": 1, "draws": "kde"},
        "projector": {"order": pnl.ManyBodyProjector(1)},
        "paper": {**pnl.Codes.paper().get_params(deep=False)},
        "theta": {"order": 1, "local_manifold": "theta"},
        "prime": {"order": 1, "reshaper": "prime"},
    }.items():
        PATHS[f"codes, {kind}, {name}"] = Path(
            pnl.Codes(**params),
            lambda m, r=rows: augmented(r)(pnl.PNLAugmenter(m)),
            CODES,
            WHOLE if name.startswith("whole") else {},
        )


# --- projectors, manifolds, draws ---------------------------------------------------


def coded(rows):
    """Codes of rows, what they decode to, and what is found of the rows."""

    def run(estimator):
        codes = estimator.fit_transform(rows)
        return codes, estimator.inverse_transform(codes[::3] * 0.9)

    return run


FREE = np.zeros((2, 6), bool)
FREE[0, 1:4] = True
PROJECTOR = {
    "order": [2, [(0,)]],
    "base": [FREE],
    "poset": [chain_poset(12)],
    "offset": [0.5],
    "with_mass": [True],
    "tol": [1e-300],
    "max_iter": [1],
    "n_jobs": [2],
    "handle_missing": ["ignore", "error"],
}
NEWTON = {"tol": "a closed form", "max_iter": "a closed form"}
COMPLETE = {"handle_missing": "no cell is missing"}
PATHS["projector, order 1"] = Path(
    pnl.ManyBodyProjector(), coded(IMAGES), PROJECTOR, JOBS | NEWTON | COMPLETE
)
PATHS["projector, base"] = Path(
    pnl.ManyBodyProjector(base=FREE, offset=0.1),
    coded(IMAGES),
    PROJECTOR | {"base": [None]},
    JOBS | COMPLETE,
)
PATHS["projector, holes"] = Path(
    pnl.ManyBodyProjector(handle_missing="ignore", offset=0.1),
    coded(HOLES),
    PROJECTOR,
    JOBS,
)
BACKWARD = {
    "order": [2, pnl.ManyBodyProjector(1, offset=0.5)],
    "local_manifold": CODES["local_manifold"],
    "k_neighbors": [2],
    "metric": ["euclidean"],
    "n_jobs": [2],
}
PATHS["backward projector"] = Path(
    pnl.BackwardProjector(), coded(IMAGES), BACKWARD, JOBS
)
PATHS["reshaper"] = Path(
    pnl.PrimeFactorReshaper(),
    lambda reshaper: reshaper.fit_transform(RNG_ROWS),
    {
        "input_shape": [6, (2, 3), (6,)],
        "factor_order": ["ascending"],
        "pad_value": ["mean", 1.0],
    },
)
OF_MANIFOLD = {
    "order": [2],
    "base": [FREE],
    # Elements beyond the base are no up-set there.
    "poset": [geometry.tree_poset([-1, *range(2, 12), 0])],
    "step": [0.5],
}
for name in ("Fiber", "Theta", "Eta", "Mixture"):
    PATHS[f"manifold {name}"] = Path(
        getattr(manifolds, f"{name}Manifold")(),
        lambda one: coded(IMAGES)(pnl.BackwardProjector(local_manifold=one)),
        OF_MANIFOLD,
    )
OF_DRAWS = {
    "noise": [0.1],
    "n_candidates": [5],
    "metric": ["euclidean"],
    "bandwidth": [0.5],
    "estimator": [KernelDensity(bandwidth=0.5)],
}
for one in (
    draws.MixupDraws(),
    draws.KernelDraws(),
    draws.DensityDraws(GaussianMixture(2, random_state=0)),
):
    PATHS[f"draws {type(one).__name__}"] = Path(
        one,
        lambda one: augmented(IMAGES)(pnl.PNLAugmenter(pnl.Codes(1, draws=one))),
        OF_DRAWS,
    )

# --- imputer, models, classifier ----------------------------------------------------

IMPUTER = {
    "order": [2, None],
    "base": [FREE],
    "poset": [chain_poset(12)],
    "reshaper": [pnl.PrimeFactorReshaper()],
    "n_neighbors": [2],
    "imputer": [SimpleImputer()],
    "equalities": [None],
    "constraints": [LEAST],
    "offset": [0.5],
    "alpha": [0.5],
    "ordered_modes": [[1]],
    "tol": [1e-300],
    "max_iter": [1],
    "n_jobs": [2],
}


def filled(rows):
    return lambda imputer: imputer.fit_transform(rows)


PATHS["imputer, table"] = Path(
    pnl.ManyBodyImputer(),
    filled(GAPS),
    IMPUTER | {"order": [2], "base": [[1, 2, 3]], "poset": [chain_poset(10)]},
    JOBS,
)
PATHS["imputer, table, another"] = Path(
    pnl.ManyBodyImputer(imputer=SimpleImputer()),
    filled(GAPS),
    IMPUTER | {"order": [2], "base": [[1, 2, 3]], "imputer": [None]},
    JOBS,
)
PATHS["imputer, images"] = Path(pnl.ManyBodyImputer(), filled(HOLES), IMPUTER, JOBS)
LOGLINEAR = {
    "order": [2, [(0,)]],
    "base": [FREE.reshape(2, 3, 2)],
    "poset": [chain_poset(12)],
    "reference": [np.arange(1.0, 13).reshape(2, 3, 2)],
    "offset": [0.5],
    "tol": [1e-300],
    "max_iter": [1],
}
for order in (1, 2):
    PATHS[f"log-linear model, order {order}"] = Path(
        pnl.LogLinearModel(order),
        lambda model: model.fit(COUNTS).to_frame("cell"),
        LOGLINEAR | {"order": [3 - order, [(0,)]]},
        {"max_iter": "a closed form"} if order == 1 else {},
    )
PATHS["prior-corrected classifier"] = Path(
    pnl.PriorCorrectedClassifier(pnl.PNLSampler(random_state=0), LogisticRegression()),
    lambda one: (one.fit(PLAIN, NOISY).predict(PLAIN), one.predict_proba(PLAIN)),
    {
        "sampler": [pnl.PNLSampler(random_state=1)],
        "estimator": [GaussianNB()],
        "decision": ["balanced"],
    },
)


def outcome(call):
    """A digest of what a call gives and warns of, or its error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
        except Exception as error:
            return error
    return joblib.hash((result, [str(warning.message) for warning in caught]))


def fault(before, call, names):
    """What is wrong with a call where a parameter has another value; None if it acts.

    An error names the parameter, or one that it contradicts.
    """
    after = outcome(call)
    if isinstance(after, Exception):
        known = isinstance(after, (RuntimeError, TypeError, ValueError))
        named = re.search(rf"\b({'|'.join(names)})\b", str(after))
        return None if known and named else f"{type(after).__name__}: {after}"
    return None if after != before else "gives the same as without it"


def check(before, calls, names, reason):
    """Check that a parameter acts with each value; that one with a reason does not."""
    assert isinstance(before, str), before
    faults = {key: fault(before, call, names) for key, call in calls.items()}
    if reason is not None:
        assert any(faults.values()), f"{names[0]} acts: it is no exception"
        return
    assert calls
    assert not any(faults.values()), faults


def set_params(make):
    """Names of the parameters of an estimator that are not at their defaults."""
    given = inspect.signature(type(make)).parameters
    params = make.get_params(deep=False)
    return [
        n for n, v in params.items() if joblib.hash(v) != joblib.hash(given[n].default)
    ]


@cache
def base_of(path):
    return outcome(lambda: PATHS[path].run(clone(PATHS[path].make)))


ENTRIES = [
    (path, name) for path, one in PATHS.items() for name in one.make.get_params(False)
]


@pytest.mark.parametrize("path, name", ENTRIES)
def test_parameters_of_estimators_act_or_are_refused(path, name):
    one = PATHS[path]
    current = joblib.hash(one.make.get_params(False)[name])
    calls = {
        str(value): lambda value=value: one.run(
            clone(one.make).set_params(**{name: value})
        )
        for value in one.others[name]
        if joblib.hash(value) != current
    }
    check(base_of(path), calls, [name, *set_params(one.make)], one.idle.get(name))


def test_all_public_estimators_have_a_path():
    public = [getattr(pnl, name) for name in pnl.__all__]
    for module in (draws, manifolds):
        public += [one for one in vars(module).values() if one.__class__ is type]
    estimators = {
        one
        for one in public
        if isinstance(one, type)
        and issubclass(one, BaseEstimator)
        and not one.__name__.startswith("_")
        and one.__module__.startswith("sklearn_pnl")
    }
    bases = {draws.Draws, manifolds.LocalManifold}
    assert {type(path.make) for path in PATHS.values()} == estimators - bases


# --- functions and methods ----------------------------------------------------------


@dataclass
class Call:
    """A function, what it is given, and other values of what has a default."""

    function: Any
    given: dict
    others: dict
    idle: dict = field(default_factory=dict)


P, Q = RNG.gamma(1.0, size=(2, 2, 3, 2)) + 0.1
P, Q = P / P.sum(), Q / Q.sum()
PARTS, TOTAL = {"x": 1, "y": 1, "z": 1}, TABLE[["x", "y", "z"]].sum(axis=1)
LEVELS = pd.DataFrame(RNG.integers(0, 4, size=(400, 4)), columns=list("abcd"))
MARGINS = {
    name: dict(enumerate(np.bincount(RNG.integers(0, 4, size=300)).astype(float)))
    for name in LEVELS
}
FITTED = pnl.PNLAugmenter().fit(TABLE)


def drawn(method):
    """A method of a fitted augmenter that gives rows, as lists of them."""

    def call(**given):
        result = getattr(FITTED, method)(**given)
        return list(result) if method == "iter_samples" else result

    call.__signature__ = inspect.signature(getattr(FITTED, method))
    return call


DRAW = {
    "random_state": [1],
    "constraints": [LEAST],
    "infeasible": ["drop"],
    "return_parents": [True],
}
HARD = {"infeasible": "all rows are feasible here; see 'infeasible'"}
SOLVER = {"tol": [1e-300], "max_iter": [1], "strict": [False]}
CALLS = {
    "sample": Call(
        drawn("sample"),
        {"random_state": 0},
        DRAW | {"n_samples": [7], "totals": [{0: 5.0}], "return_report": [True]},
        HARD,
    ),
    "iter_samples": Call(
        drawn("iter_samples"),
        {"n_samples": 9, "random_state": 0},
        DRAW | {"batch_size": [2]},
        HARD,
    ),
    "sample, infeasible": Call(
        drawn("sample"),
        {
            "n_samples": 2,
            "random_state": 0,
            "constraints": ColumnConstraint("x", equal=[3.0, 1e9]),
            "infeasible": "drop",
        },
        {"infeasible": ["raise"]},
    ),
    "adjust": Call(
        pnl.adjust,
        {"X": TABLE, "constraints": ColumnConstraint(PARTS, equal=1.02 * TOTAL)},
        {
            "constraints": [LEAST],
            "totals": [{0: 240.0}],
            "equalities": [None],
            "extrapolation": [0.0],
            "offset": [9.0],
        },
    ),
    "calibrate": Call(
        pnl.calibrate,
        {"X": TABLE, "totals": {0: 1.05 * TABLE["x"].sum()}},
        SOLVER
        | {
            "design_weights": [np.arange(1.0, 41)],
            "bounds": [(0.98, 1.06)],
            "integer": [True],
            "time_limit": [2.0],
            "return_report": [True],
        },
        {
            "strict": "the totals are reached; see 'contradictions'",
        },
    ),
    "calibrate, whole numbers": Call(
        pnl.calibrate,
        {"X": LEVELS, "totals": MARGINS, "integer": True, "strict": False},
        {"time_limit": [1e-9]},
    ),
    "calibrate, contradictions": Call(
        pnl.calibrate,
        {"X": TABLE, "totals": {0: -1.0}, "strict": False},
        {"strict": [True]},
    ),
    "rake": Call(
        pnl.rake,
        {"table": P[..., 0], "margins": {(0,): [3.0, 4.0], (1,): [2.0, 4.0, 1.0]}},
        SOLVER | {"values": ["count"]},
        {"strict": "the margins are reached; see 'contradictions'"},
    ),
    "rake, contradictions": Call(
        pnl.rake,
        {
            "table": P[..., 0],
            "margins": {(0,): [3.0, 4.0], (1,): [9.0, 4.0, 1.0]},
            "strict": False,
        },
        {"strict": [True]},
    ),
    "column_total": Call(
        pnl.column_total,
        {"of": "x", "equal": 45.0},
        {
            "equal": [46.0],
            "lower": [1.0],
            "upper": [50.0],
            "rtol": [0.1],
            "mean": [True],
        },
    ),
    "compare_samples": Call(
        pnl.compare_samples,
        {"X": TABLE, "X_new": TABLE[::2] * 1.01, "random_state": 0},
        {
            "X_test": [TABLE[1::2]],
            "classifier": [LogisticRegression()],
            "cv": [2],
            "max_samples": [8],
            "random_state": [1],
            "n_jobs": [2],
        },
        JOBS,
    ),
}

TENSOR, PAIRS = TensorPoset((2, 3, 2)), geometry.order_mask(TensorPoset((2, 3, 2)), 2)
FITS = {"tol": [1e-300], "max_iter": [1]}
REFERENCE = {"reference": [np.arange(1.0, 13).reshape(2, 3, 2)]}
OBSERVED = np.arange(12).reshape(2, 3, 2) > 1
ON_TENSOR = {"p": P, "poset": TENSOR}
CALLS |= {
    "complete": Call(
        geometry.complete,
        {"measures": P, "poset": TENSOR, "matched": PAIRS},
        FITS
        | REFERENCE
        | {"observed": [OBSERVED], "ridge": [1.0], "ordered_modes": [[1]]},
    ),
    "complete with a ridge": Call(
        geometry.complete,
        {"measures": P, "poset": TENSOR, "matched": PAIRS, "ridge": 1.0},
        FITS
        | REFERENCE
        | {"observed": [OBSERVED], "ridge": [0.1], "ordered_modes": [[1]]},
    ),
    "deviance_tests": Call(
        geometry.deviance_tests,
        {"counts": COUNTS[0], "poset": TENSOR},
        FITS | REFERENCE | {"levels": ["orders", [1, 3]]},
    ),
    "e_geodesic": Call(
        geometry.e_geodesic, {"p": P, "q": Q, "t": 0.3}, {"axis": [0, (1, 2)]}
    ),
    "kl_divergence": Call(
        geometry.kl_divergence, {"p": P, "q": Q}, {"axis": [0, (1, 2)]}
    ),
    "energy_decomposition": Call(
        geometry.energy_decomposition, ON_TENSOR, FITS | REFERENCE | {"levels": [[1]]}
    ),
    "fisher_information": Call(
        geometry.fisher_information, ON_TENSOR, {"elements": [PAIRS]}
    ),
    "geodesic_energy": Call(
        geometry.geodesic_energy,
        {"p": P, "q": Q, "t": 0.3, "poset": TENSOR, "order": 2},
        FITS | {"order": [1]},
    ),
    "goodness_of_fit": Call(
        geometry.goodness_of_fit,
        {"counts": COUNTS[0], "poset": TENSOR, "order": 2},
        FITS | REFERENCE | {"order": [1]},
    ),
    "interaction_energy": Call(
        geometry.interaction_energy,
        {**ON_TENSOR, "order": 2},
        FITS | {"order": [1], "upper": [PAIRS]},
    ),
    "linear_projection": Call(
        geometry.linear_projection,
        {
            "measures": P.reshape(1, -1),
            "coefficients": np.arange(12.0)[None],
            "lower": 7.0,
            "upper": 8.0,
        },
        FITS | {"floor": [0.05], "ceiling": [0.15], "divergence": ["chi2"]},
    ),
    "many_body_projection": Call(
        geometry.many_body_projection, {**ON_TENSOR, "order": 2}, FITS | {"order": [1]}
    ),
    "mixed_projection": Call(
        geometry.mixed_projection,
        {"target": P, "reference": Q, "matched": PAIRS, "poset": TENSOR},
        FITS,
    ),
    "rake of arrays": Call(
        geometry.rake,
        {"tables": P[:, :2, 0], "margins": {(0,): np.array([3.0, 4.0])}},
        SOLVER | {"n_modes": [2]},
        {"strict": "the margins are reached", "tol": "one margin is met exactly"},
    ),
    "theta_with_errors": Call(
        geometry.theta_with_errors,
        {**ON_TENSOR, "total": 100.0, "order": 2},
        {"order": [1]} | REFERENCE,
    ),
    "tree_poset": Call(
        geometry.tree_poset, {"parents": [-1, 0, 0]}, {"add_bottom": [True]}
    ),
}

BACK = pnl.BackwardProjector().fit(IMAGES)
MODEL = pnl.LogLinearModel(2).fit(COUNTS)
HALVES = np.arange(40) % 2


def resampled_by(**given):
    sampler = pnl.PNLSampler(random_state=0)
    return sampler.fit_resample(TABLE, LABELS, **given)


def corrected_by(**given):
    one = clone(PATHS["prior-corrected classifier"].make)
    return one.fit(PLAIN, NOISY, **given).predict_proba(PLAIN)


def paper(**given):
    return pnl.Codes.paper(**given).get_params()


for function, method in (
    (resampled_by, pnl.PNLSampler.fit_resample),
    (corrected_by, pnl.PriorCorrectedClassifier.fit),
    (paper, pnl.Codes.paper),
):
    function.__signature__ = inspect.signature(method)
BY_ROW = {"groups": [HALVES], "sample_weight": [1.0 + HALVES]}
METHODS = {
    "PNLAugmenter.sample": None,
    "PNLAugmenter.iter_samples": None,
    "PNLSampler.fit_resample": Call(resampled_by, {}, BY_ROW),
    "PriorCorrectedClassifier.fit": Call(corrected_by, {}, BY_ROW),
    "BackwardProjector.kneighbors": Call(
        BACK.kneighbors,
        {"X": BACK.codes_[:5]},
        {"n_neighbors": [2], "return_distance": [False]},
    ),
    "BackwardProjector.decode_margins": Call(
        BACK.decode_margins, {"margins": {(0,): [[6.0, 7.0]]}}, {"tol": [1e-300]}
    ),
    "LogLinearModel.deviance_tests": Call(
        MODEL.deviance_tests, {}, {"levels": ["orders", [1, 3]]}
    ),
    "LogLinearModel.to_frame": Call(MODEL.to_frame, {}, {"by": ["cell"]}),
    "Codes.paper": Call(paper, {}, {"order": [2]}),
}
CALLS |= {key: call for key, call in METHODS.items() if call is not None}
# Of scikit-learn's interface, or between a method and those who call it.
OF_INTERFACES = {"y", "input_features", "transform", "caller"}
METHODS_OF_METHODS = {"Lines.fit", "Codes.fit"}

CALL_ENTRIES = [
    (key, name)
    for key, one in CALLS.items()
    for name, parameter in inspect.signature(one.function).parameters.items()
    if parameter.default is not parameter.empty
    and name not in OF_INTERFACES
    and ("," not in key or name in one.others)
]


@cache
def result_of(key):
    return outcome(lambda: CALLS[key].function(**CALLS[key].given))


@pytest.mark.parametrize("key, name", CALL_ENTRIES)
def test_parameters_of_functions_act_or_are_refused(key, name):
    one = CALLS[key]
    calls = {
        str(value): lambda value=value: one.function(**one.given | {name: value})
        for value in one.others[name]
    }
    names = [name, *one.given, *["asks for"] * (name in ("strict", "infeasible"))]
    check(result_of(key), calls, names, one.idle.get(name))


def test_all_public_functions_with_defaults_are_called():
    called = {one.function for one in CALLS.values()}
    public = [getattr(pnl, name) for name in pnl.__all__]
    public += [getattr(geometry, name) for name in geometry.__all__]
    for one in public:
        if inspect.isroutine(one):
            values = inspect.signature(one).parameters.values()
            has_defaults = any(v.default is not v.empty for v in values)
            assert one in called or not has_defaults, one


def test_all_public_methods_with_defaults_are_called():
    with_defaults = set()
    for one in {type(path.make) for path in PATHS.values()}:
        for name, method in inspect.getmembers(one, inspect.isroutine):
            module = getattr(inspect.unwrap(method), "__module__", None) or ""
            if name.startswith("_") or not module.startswith("sklearn_pnl"):
                continue
            parameters = inspect.signature(method).parameters.items()
            given = {k for k, v in parameters if v.default is not v.empty}
            if given - OF_INTERFACES:
                with_defaults.add(f"{one.__name__}.{name}")
    assert with_defaults - METHODS_OF_METHODS == set(METHODS)
