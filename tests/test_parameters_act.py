"""Every public parameter has an effect or is rejected by name.

Each parameter of each public estimator, method and function gets other values, for
tables and images and for each method and draw. Each value must change the result, or
raise an error that names the parameter. ``idle`` lists the exceptions of a case, each
with its reason.
"""

import inspect
import re
import warnings
from dataclasses import dataclass
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
from sklearn_pnl import control, geometry
from sklearn_pnl.control import ColumnConstraint
from sklearn_pnl.encoding import manifolds
from sklearn_pnl.geometry import TensorPoset, chain_poset
from sklearn_pnl.methods import draws
from sklearn_pnl.methods.draws import KernelDraws

pd = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
# Real numbers, amounts in cents that are 0 in half of the rows, counts, and sums of the
# columns.
TABLE = pd.DataFrame(RNG.gamma(3.0, size=(40, 3)) + 1, columns=["x", "y", "z"])
for name in ("u", "v"):
    TABLE[name] = np.where(RNG.uniform(size=40) < 0.5, 0, RNG.gamma(3.0, size=40))
    TABLE[name] = TABLE[name].round(2)
TABLE["sum"] = TABLE["x"] + TABLE["u"]
for name in ("one", "two", "three"):
    TABLE[name] = RNG.integers(0, 4, size=40)
TABLE["count"] = TABLE["one"] + TABLE["two"]
# Images with zeros; the cells of one pixel are sums of the cells of two pixels.
IMAGES = RNG.gamma(2.0, size=(40, 2, 6)) + 0.1
IMAGES[IMAGES < 0.7] = 0
IMAGES[:, 0, 0] = IMAGES[:, 0, 1] + IMAGES[:, 0, 2]
# The minority rows have the largest numbers.
LABELS = (TABLE["x"] > np.quantile(TABLE["x"], 0.6)).astype(int)
GAPS, HOLES = TABLE.copy(), IMAGES.copy()
GAPS.iloc[::5, 0] = np.nan
HOLES[::3, 1, 2] = HOLES[1::4, 0, 0] = np.nan
COUNTS = RNG.integers(1, 30, size=(1, 2, 3, 2))
NOISY = RNG.permutation(LABELS)
PLAIN, RNG_ROWS = TABLE.to_numpy()[:, :3], RNG.uniform(size=(9, 11))
SUM = ColumnConstraint({"x": 1, "u": 1, "sum": -1}, equal=0.0)
LEAST = ColumnConstraint(0, lower=4.0)
JOBS = {"n_jobs": "how many jobs there are must not change results"}


@dataclass
class Case:
    """A call by keywords, with its current parameters and alternative values."""

    call: Any
    of: Any
    current: dict
    given: list
    others: dict
    idle: dict


CASES = {}
# Parameters of the interface of scikit-learn, or between a method and its callers.
OF_INTERFACES = {"y", "input_features", "transform", "caller"}


def estimator(key, make, use, others, **idle):
    """Add a case for an estimator, with alternative values of all parameters."""
    params = make.get_params(deep=False)
    given = [
        name
        for name, parameter in inspect.signature(type(make)).parameters.items()
        if joblib.hash(params[name]) != joblib.hash(parameter.default)
    ]

    def call(**changed):
        return use(clone(make).set_params(**changed))

    CASES[key] = Case(call, type(make), params, given, others, idle)


def function(key, of, given, others, call=None, **idle):
    """Add a case for a function, with alternative values of parameters with defaults.

    A second case of a function has a comma in its key, and only some parameters.
    """
    current = {
        name: given.get(name, parameter.default)
        for name, parameter in inspect.signature(of).parameters.items()
        if parameter.default is not parameter.empty and name not in OF_INTERFACES
        if "," not in key or name in others
    }

    def called(**changed):
        return (call or of)(**given | changed)

    CASES[key] = Case(called, of, current, list(given), others, idle)


# --- samplers and augmenter ---------------------------------------------------------


def augmented(rows):
    return lambda one: one.fit(rows).sample(30, random_state=0)


def by_method(rows):
    return lambda method: augmented(rows)(pnl.PNLAugmenter(method))


def resampled(rows, y=LABELS):
    return lambda sampler: sampler.fit_resample(rows, y)


COMMON = {
    "method": ["codes", pnl.Lines(noise=0.3), "paper"],
    "order": [1, [(0, 1)], pnl.ManyBodyProjector(1)],
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
    "sampling_strategy": [{1: 20}, 0.9],
    "totals": [{1: {0: 45.0}}],
}
REGRESSION = {
    **COMMON,
    **ASKED,
    "n_samples": [7, 0.5],
    "row_weights": ["rarity"],
    "totals": [{0: 170.0}],
}
OF_IMAGES = {"method": ["lines", pnl.Codes(1)], "equalities": [None]}
OF_TABLES = {"value_support": "steps and atoms are those of columns of a table"}
BETWEEN = {"extrapolation": "between two rows all is in limits; see 'requested'"}
LINES = {"noise": [0.0], "n_candidates": [5]}
CODES = {
    "order": [1, [(0, 1)], pnl.ManyBodyProjector(1)],
    "offset": [5.0],
    "with_mass": [False, True],
    "local_manifold": ["theta", "eta", manifolds.MixtureManifold(0.5)],
    "draws": ["interpolation", KernelDraws(0.2), GaussianMixture(2, random_state=0)],
    "reshaper": [None, pnl.PrimeFactorReshaper(factor_order="ascending")],
    "embedding": [None, QuantileTransformer(n_quantiles=10)],
}
CODE_PATHS = {
    "whole": {},
    "whole, kde": {"draws": "kde"},
    "order": {"order": 1},
    "order, kde": {"order": 1, "draws": "kde"},
    "projector": {"order": pnl.ManyBodyProjector(1)},
    "paper": pnl.Codes.paper().get_params(deep=False),
    "theta": {"order": 1, "local_manifold": "theta"},
    "prime": {"order": 1, "reshaper": "prime"},
}
SEEDED = pnl.PNLSampler(random_state=0)
REGRESSOR = pnl.PNLRegressionSampler(random_state=0)
for kind, rows, less, idle in (
    ("table", TABLE, {}, {}),
    ("images", IMAGES, OF_IMAGES, OF_TABLES),
):
    idle = JOBS | idle
    by_sums = resampled(rows, TABLE["sum"])
    estimator(
        f"augmenter, {kind}", pnl.PNLAugmenter(), augmented(rows), COMMON | less, **idle
    )
    estimator(f"sampler, {kind}", SEEDED, resampled(rows), SAMPLER | less, **idle)
    idle = idle | BETWEEN
    estimator(f"regression, {kind}", REGRESSOR, by_sums, REGRESSION | less, **idle)
    for name, params in CODE_PATHS.items():
        whole = {"reshaper": "the code is the whole row, in any layout"}
        estimator(
            f"codes, {kind}, {name}", pnl.Codes(**params), by_method(rows), CODES,
            **whole if name.startswith("whole") else {},
        )  # fmt: skip
estimator(
    "regression, requested",
    clone(REGRESSOR).set_params(totals={0: 170.0}),
    resampled(TABLE, TABLE["sum"]),
    REGRESSION | {"totals": [None], "n_samples": [1.1]},
    **JOBS,
)
for kind, rows in {"table": TABLE, "gaps": GAPS, "images": IMAGES}.items():
    estimator(f"lines, {kind}", pnl.Lines(), by_method(rows), LINES)


# --- projectors, manifolds, draws ---------------------------------------------------


def coded(rows):
    """Return codes of rows, decoded rows, and the neighbours of the rows."""

    def run(projector):
        codes = projector.fit_transform(rows)
        return codes, projector.inverse_transform(codes[::3] * 0.9)

    return run


FREE = np.zeros((2, 6), bool)
FREE[0, 1:4] = True
PROJECTOR = {
    "order": [2, [(0,)]],
    "base": [FREE, None],
    "poset": [chain_poset(12)],
    "offset": [0.5],
    "with_mass": [True],
    "tol": [1e-300],
    "max_iter": [1],
    "n_jobs": [2],
    "handle_missing": ["ignore", "error"],
}
NEWTON = {"tol": "a closed form", "max_iter": "a closed form"}
COMPLETE = JOBS | {"handle_missing": "no cell is missing"}
estimator(
    "projector, order 1", pnl.ManyBodyProjector(), coded(IMAGES), PROJECTOR,
    **COMPLETE | NEWTON,
)  # fmt: skip
based = pnl.ManyBodyProjector(base=FREE, offset=0.1)
estimator("projector, base", based, coded(IMAGES), PROJECTOR, **COMPLETE)
holes = pnl.ManyBodyProjector(handle_missing="ignore", offset=0.1)
estimator("projector, holes", holes, coded(HOLES), PROJECTOR, **JOBS)
BACKWARD = {
    "order": [2, pnl.ManyBodyProjector(1, offset=0.5)],
    "local_manifold": CODES["local_manifold"],
    "k_neighbors": [2],
    "metric": ["euclidean"],
    "n_jobs": [2],
}
estimator(
    "backward projector", pnl.BackwardProjector(), coded(IMAGES), BACKWARD, **JOBS
)
estimator(
    "reshaper",
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
    # The elements beyond the base are no up-set.
    "poset": [geometry.tree_poset([-1, *range(2, 12), 0])],
    "step": [0.5],
}
for name in ("Fiber", "Theta", "Eta", "Mixture"):
    estimator(
        f"manifold {name}",
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
    estimator(
        f"draws {type(one).__name__}",
        one,
        lambda one: by_method(IMAGES)(pnl.Codes(1, draws=one)),
        OF_DRAWS,
    )

# --- imputer, models, classifier ----------------------------------------------------

IMPUTER = {
    "order": [2, None],
    "base": [FREE],
    "poset": [chain_poset(12)],
    "n_neighbors": [2],
    "n_candidates": [3],
    "imputer": [SimpleImputer(), None],
    "equalities": [None],
    "constraints": [LEAST],
    "offset": [0.5],
    "alpha": [0.5],
    "ordered_modes": [[1]],
    "tol": [1e-300],
    "max_iter": [1],
    "n_jobs": [2],
}
IN_TABLE = {"order": [2], "base": [[1, 2, 3]], "poset": [chain_poset(10)]}
for key, make, rows, others in (
    ("table", pnl.ManyBodyImputer(), GAPS, IN_TABLE),
    ("table, another", pnl.ManyBodyImputer(imputer=SimpleImputer()), GAPS, IN_TABLE),
    ("images", pnl.ManyBodyImputer(), HOLES, {}),
):
    estimator(
        f"imputer, {key}",
        make,
        lambda imputer, rows=rows: imputer.fit_transform(rows),
        IMPUTER | others,
        **JOBS,
    )
for order in (1, 2):
    estimator(
        f"log-linear model, order {order}",
        pnl.LogLinearModel(order),
        lambda model: model.fit(COUNTS).to_frame("cell"),
        {
            "order": [3 - order, [(0,)]],
            "base": [FREE.reshape(2, 3, 2)],
            "poset": [chain_poset(12)],
            "reference": [np.arange(1.0, 13).reshape(2, 3, 2)],
            "offset": [0.5],
            "tol": [1e-300],
            "max_iter": [1],
        },
        **{"max_iter": "a closed form"} if order == 1 else {},
    )
CORRECTED = pnl.PriorCorrectedClassifier(SEEDED, LogisticRegression())
estimator(
    "prior-corrected classifier",
    CORRECTED,
    lambda one: (one.fit(PLAIN, NOISY).predict(PLAIN), one.predict_proba(PLAIN)),
    {
        "sampler": [pnl.PNLSampler(random_state=1)],
        "estimator": [GaussianNB()],
        "decision": ["balanced"],
    },
)

# --- functions and methods ----------------------------------------------------------

P, Q = RNG.gamma(1.0, size=(2, 2, 3, 2)) + 0.1
P, Q = P / P.sum(), Q / Q.sum()
PARTS, TOTAL = {"x": 1, "y": 1, "z": 1}, TABLE[["x", "y", "z"]].sum(axis=1)
LEVELS = pd.DataFrame(RNG.integers(0, 4, size=(400, 4)), columns=list("abcd"))
MARGINS = {
    name: dict(enumerate(np.bincount(RNG.integers(0, 4, size=300)).astype(float)))
    for name in LEVELS
}
FITTED = pnl.PNLAugmenter().fit(TABLE)
DRAW = {
    "random_state": [1],
    "constraints": [LEAST],
    "infeasible": ["drop"],
    "return_parents": [True],
}
HARD = {"infeasible": "all rows are feasible here; see 'infeasible'"}
SOLVER = {"tol": [1e-300], "max_iter": [1], "strict": [True, False]}
REACHED = {"strict": "the totals are reached; see 'contradictions'"}
function(
    "sample",
    FITTED.sample,
    {"random_state": 0},
    DRAW
    | {
        "n_samples": [7],
        "totals": [{0: 5.0}],
        "return_report": [True],
        "return_codes": [True],
    },
    **HARD,
)
function(
    "iter_samples",
    FITTED.iter_samples,
    {"n_samples": 9, "random_state": 0},
    DRAW | {"batch_size": [2]},
    lambda **given: list(FITTED.iter_samples(**given)),
    **HARD,
)
UNMET = ColumnConstraint("x", equal=[3.0, 1e9])
function(
    "sample, infeasible",
    FITTED.sample,
    {"n_samples": 2, "random_state": 0, "constraints": UNMET, "infeasible": "drop"},
    {"infeasible": ["raise"]},
)
function(
    "adjust",
    control.adjust,
    {"X": TABLE, "constraints": ColumnConstraint(PARTS, equal=1.02 * TOTAL)},
    {
        "constraints": [LEAST],
        "totals": [{0: 240.0}],
        "equalities": [None],
        "extrapolation": [0.0],
        "offset": [9.0],
        "reliability": [{0: 50.0}],
        "by": [0],
    },
)
function(
    "calibrate",
    control.calibrate,
    {"X": TABLE, "totals": {0: 1.05 * TABLE["x"].sum()}},
    SOLVER
    | {
        "design_weights": [np.arange(1.0, 41)],
        "bounds": [(0.98, 1.06)],
        "integer": [True],
        "time_limit": [2.0],
        "return_report": [True],
    },
    **REACHED,
)
function(
    "calibrate, whole numbers",
    control.calibrate,
    {"X": LEVELS, "totals": MARGINS, "integer": True, "strict": False},
    {"time_limit": [1e-9]},
)
function(
    "calibrate, contradictions",
    control.calibrate,
    {"X": TABLE, "totals": {0: -1.0}, "strict": False},
    {"strict": [True]},
)
TABLE_OF_P = {"table": P[..., 0]}
MARGINS_OF_P = {(0,): [3.0, 4.0], (1,): [2.0, 4.0, 1.0]}
function(
    "rake",
    control.rake,
    TABLE_OF_P | {"margins": MARGINS_OF_P},
    SOLVER | {"values": ["count"]},
    **REACHED,
)
function(
    "rake, contradictions",
    control.rake,
    TABLE_OF_P | {"margins": MARGINS_OF_P | {(1,): [9.0, 4.0, 1.0]}, "strict": False},
    {"strict": [True]},
)
function(
    "column_total",
    control.column_total,
    {"of": "x", "equal": 45.0},
    {"equal": [46.0], "lower": [1.0], "upper": [50.0], "rtol": [0.1], "mean": [True]},
)
function(
    "compare_samples",
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
    **JOBS,
)

TENSOR, PAIRS = TensorPoset((2, 3, 2)), geometry.order_mask(TensorPoset((2, 3, 2)), 2)
FITS = {"tol": [1e-300], "max_iter": [1]}
REFERENCE = {"reference": [np.arange(1.0, 13).reshape(2, 3, 2)]}
OBSERVED = np.arange(12).reshape(2, 3, 2) > 1
ON_TENSOR, OF_COUNTS = {"p": P, "poset": TENSOR}, {"counts": COUNTS[0], "poset": TENSOR}
COMPLETED = {"measures": P, "poset": TENSOR, "matched": PAIRS}
LINEAR = {"measures": P.reshape(1, -1), "coefficients": np.arange(12.0)[None]}
AXES = {"axis": [0, (1, 2)]}
FILL = {"observed": [OBSERVED], "ridge": [0.1], "ordered_modes": [[1]]}
for key, given, others in (
    ("complete", COMPLETED, FITS | REFERENCE | FILL),
    ("complete, ridge", COMPLETED | {"ridge": 1.0}, FITS | REFERENCE | FILL),
    ("deviance_tests", OF_COUNTS, FITS | REFERENCE | {"levels": ["orders", [1, 3]]}),
    (
        "select_interactions",
        {"X": COUNTS},
        FITS | REFERENCE | {"max_order": [1], "criterion": ["aic"]},
    ),
    ("e_geodesic", {"p": P, "q": Q, "t": 0.3}, AXES),
    ("kl_divergence", {"p": P, "q": Q}, AXES),
    ("energy_decomposition", ON_TENSOR, FITS | REFERENCE | {"levels": [[1]]}),
    ("fisher_information", ON_TENSOR, {"elements": [PAIRS]}),
    (
        "geodesic_energy",
        {"p": P, "q": Q, "t": 0.3, "poset": TENSOR, "order": 2},
        FITS | {"order": [1]},
    ),
    ("goodness_of_fit", OF_COUNTS | {"order": 2}, FITS | REFERENCE | {"order": [1]}),
    (
        "interaction_energy",
        ON_TENSOR | {"order": 2},
        FITS | {"order": [1], "upper": [PAIRS]},
    ),
    (
        "linear_projection",
        LINEAR | {"lower": 7.0, "upper": 8.0},
        FITS | {"floor": [0.05], "ceiling": [0.15], "divergence": ["chi2"]},
    ),
    ("many_body_projection", ON_TENSOR | {"order": 2}, FITS | {"order": [1]}),
    (
        "mixed_projection",
        {"target": P, "reference": Q, "matched": PAIRS, "poset": TENSOR},
        FITS,
    ),
    (
        "theta_with_errors",
        ON_TENSOR | {"total": 100.0, "order": 2},
        REFERENCE | {"order": [1]},
    ),
    ("tree_poset", {"parents": [-1, 0, 0]}, {"add_bottom": [True]}),
):
    function(key, getattr(geometry, key.split(",")[0]), given, others)
function(
    "rake of arrays",
    geometry.rake_array,
    {"tables": P[:, :2, 0], "margins": {(0,): np.array([3.0, 4.0])}},
    SOLVER | {"n_modes": [2]},
    **REACHED,
    tol="one margin is met exactly",
)

BACK = pnl.BackwardProjector().fit(IMAGES)
MODEL = pnl.LogLinearModel(2).fit(COUNTS)
BY_ROW = {"groups": [np.arange(40) % 2], "sample_weight": [1.0 + np.arange(40) % 2]}
function(
    "fit_resample",
    pnl.PNLSampler.fit_resample,
    {},
    BY_ROW,
    lambda **given: clone(SEEDED).fit_resample(TABLE, LABELS, **given),
)
function(
    "fit of the classifier",
    pnl.PriorCorrectedClassifier.fit,
    {},
    BY_ROW,
    lambda **given: clone(CORRECTED).fit(PLAIN, NOISY, **given).predict_proba(PLAIN),
)
function(
    "fit_resample of the regression sampler",
    pnl.PNLRegressionSampler.fit_resample,
    {},
    {"groups": BY_ROW["groups"]},
    lambda **given: clone(REGRESSOR).fit_resample(TABLE, TABLE["sum"], **given),
)
NEAR = {"n_neighbors": [2], "return_distance": [False]}
function("kneighbors", BACK.kneighbors, {"X": BACK.codes_[:5]}, NEAR)
ONE_MARGIN = {"margins": {(0,): [[6.0, 7.0]]}}
function("decode_margins", BACK.decode_margins, ONE_MARGIN, {"tol": [1e-300]})
LAYERS = {"levels": ["orders", [1, 3]]}
function("deviance_tests of a model", MODEL.deviance_tests, {}, LAYERS)
function("to_frame", MODEL.to_frame, {}, {"by": ["cell"]})
function(
    "paper",
    pnl.Codes.paper,
    {},
    {"order": [2]},
    lambda **given: pnl.Codes.paper(**given).get_params(),
)

# --- all of them --------------------------------------------------------------------


def outcome(call):
    """Return a digest of the result and the warnings of a call, or its error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
        except Exception as error:
            return error
    return joblib.hash((result, [str(warning.message) for warning in caught]))


def fault(before, call, names):
    """Describe the fault of a call with another value; return None if it acts.

    An error must name the parameter, or a parameter that it contradicts.
    """
    after = outcome(call)
    if isinstance(after, Exception):
        known = isinstance(after, (RuntimeError, TypeError, ValueError))
        named = re.search(rf"\b({'|'.join(names)})\b", str(after))
        return None if known and named else f"{type(after).__name__}: {after}"
    return None if after != before else "gives the same as without it"


@cache
def outcome_of(key):
    return outcome(CASES[key].call)


ENTRIES = [(key, name) for key, case in CASES.items() for name in case.current]


@pytest.mark.parametrize("key, name", ENTRIES)
def test_parameters_have_an_effect_or_are_rejected(key, name):
    case, before = CASES[key], outcome_of(key)
    assert isinstance(before, str), before
    names = [name, *case.given, *["must be"] * (name in ("strict", "infeasible"))]
    current = joblib.hash(case.current[name])
    values = [v for v in case.others[name] if joblib.hash(v) != current]
    faults = {
        str(value): fault(before, lambda v=value: case.call(**{name: v}), names)
        for value in values
    }
    if name in case.idle:
        assert any(faults.values()), f"{name} acts: it is no exception"
    else:
        assert values and not any(faults.values()), faults


MAKES_ROWS = {
    "augmenter": (pnl.PNLAugmenter(), augmented),
    "sampler": (SEEDED, resampled),
    "regression": (REGRESSOR, lambda rows: resampled(rows, TABLE["sum"])),
}
METHODS = ["auto", "codes", "paper", "lines", pnl.Codes(), pnl.Codes(1), pnl.Lines()]


@pytest.mark.parametrize("rows", [TABLE, IMAGES], ids=["table", "images"])
@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("key", MAKES_ROWS)
def test_order_has_an_effect_or_is_rejected_for_every_method(key, method, rows):
    estimator, use = MAKES_ROWS[key]
    one = clone(estimator).set_params(method=method, order=2)
    if method not in ("auto", "codes", "paper"):
        with pytest.raises(ValueError, match="order=2"):
            use(rows)(one)
        return
    default = clone(one).set_params(order=None)
    assert outcome(lambda: use(rows)(one)) != outcome(lambda: use(rows)(default))
    by_object = {"paper": pnl.Codes.paper(2), "codes": pnl.Codes(2)}.get(method)
    if by_object is None:
        draws = "interpolation" if key == "regression" else "mixup"
        by_object = pnl.Codes(2, draws=draws)
    same = clone(estimator).set_params(method=by_object)
    assert outcome(lambda: use(rows)(one)) == outcome(lambda: use(rows)(same))


def own(one):
    """Return the original function of a method, or of a function with a limit."""
    return inspect.unwrap(getattr(one, "__func__", one))


def test_every_public_parameter_has_a_case():
    called = {own(case.of) for case in CASES.values()}
    # A parameter between a method and its callers.
    called |= {own(pnl.Lines.fit), own(pnl.Codes.fit)}
    public = [getattr(pnl, name) for name in pnl.__all__]
    public += [getattr(geometry, name) for name in geometry.__all__]
    public += [getattr(control, name) for name in control.__all__]
    for module in (draws, manifolds):
        public += filter(inspect.isclass, vars(module).values())
    estimators = {
        one
        for one in public
        if inspect.isclass(one) and issubclass(one, BaseEstimator)
        if one.__module__.startswith("sklearn_pnl") and not one.__name__.startswith("_")
    }
    assert estimators - {draws.Draws, manifolds.LocalManifold} <= called
    for one in estimators:
        members = inspect.getmembers(one, inspect.isroutine)
        public += [method for name, method in members if not name.startswith("_")]
    for one in filter(inspect.isroutine, public):
        if own(one).__module__.startswith("sklearn_pnl"):
            parameters = inspect.signature(one).parameters.items()
            free = {k for k, v in parameters if v.default is not v.empty}
            assert own(one) in called or free <= OF_INTERFACES, one
