"""What comes in is checked here, once, and what is wrong is said here."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache, wraps
from inspect import currentframe, signature
from numbers import Integral, Real
from typing import Any, Self, TypeVar

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import (
    Interval,
    validate_parameter_constraints,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from ..geometry.masks import check_unmasked

_Called = TypeVar("_Called")
_FLOATS = (np.float64, np.float32)
# Shapes and values that are not finite are told of here, with the place.
LOOSE = {"allow_nd": True, "ensure_all_finite": False}
_TIMES = re.compile("date|time|duration|period", re.IGNORECASE)
# What numbers a parameter may have.
COUNT = Interval(Integral, 1, None, closed="left")
TWO_OR_MORE = Interval(Integral, 2, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
# Ours, and those that call us.
_LIBRARIES = {"sklearn_pnl", "sklearn", "imblearn", "joblib", "contextlib"}


def _row(number, numbers=None):
    """What to call a row, whose user may know it by another number."""
    return f"row {number if numbers is None else numbers[number]}"


def all_or_nothing(fit):
    """A fit of checked parameters that starts without the results of an older one.

    If it fails they come back.
    """

    @_fit_context(prefer_skip_nested_validation=False)
    @wraps(fit)
    def restoring(estimator, *args, **kwargs):
        before = vars(estimator).copy()
        for name in before:
            if name.endswith("_") and not name.startswith("_"):
                delattr(estimator, name)
        try:
            return fit(estimator, *args, **kwargs)
        except BaseException:
            vars(estimator).clear()
            vars(estimator).update(before)
            raise

    return restoring


# Parameters that are looked for where rows are to be drawn, and where they are.
ELSEWHERE = {
    "noise": "noise is a parameter of MixupDraws: pass draws=MixupDraws(noise=...)",
    "bandwidth": "bandwidth is a parameter of KernelDraws: pass "
    "draws=KernelDraws(bandwidth=...)",
    "n_neighbors": "the number of near rows is called k_neighbors here",
    "k": "the number of near rows is called k_neighbors here",
    "random_state": "the seed is given where rows are drawn, sample(random_state=...)",
    "constraints": "they are asked where rows are drawn, sample(constraints=...)",
    "n_samples": "samplers for classes have sampling_strategy={class: rows}, and an "
    "augmenter sample(n_samples)",
}


def tells_where(**elsewhere: str) -> Callable[[_Called], _Called]:
    """A function, or a class, that says which parameter was meant by an unknown one.

    ``elsewhere`` says it of parameters that it does not have by any name.
    """

    def decorated(called):
        call = called.__init__ if isinstance(called, type) else called
        own = signature(called).parameters
        known = [name for name in own if name != "self"]

        @wraps(call)
        def telling(*args, **params):
            for name in params.keys() - own.keys():
                near = get_close_matches(name, known, n=1)
                meant = f"did you mean {near[0]!r}" if near else f"it has {known}"
                raise TypeError(
                    f"{called.__qualname__} has no parameter {name!r}: "
                    f"{elsewhere.get(name, meant)}."
                )
            return call(*args, **params)

        if call is called:
            return telling
        called.__init__ = telling
        return called

    return decorated


class NamedObjects(BaseEstimator):
    """An estimator some of whose parameters are objects, or names of some."""

    @classmethod
    @cache
    def _get_param_names(cls):
        # Read from a signature, which takes long.
        return super()._get_param_names()

    def _validate_params(self):
        """Check what was given: a default, which a dataclass has by name, is fine."""
        own, params = type(self), self.get_params(deep=False).items()
        given = {k: v for k, v in params if v is not getattr(own, k, own)}
        validate_parameter_constraints(self._parameter_constraints, given, own.__name__)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, ``draws__noise`` where ``draws`` is an object that has it.

        Parameters
        ----------
        **params : dict
            By name.

        Returns
        -------
        self : estimator
        """
        for name in params:
            outer, _, inner = name.partition("__")
            held = params.get(outer, getattr(self, outer, self))
            if inner and not hasattr(held, "set_params"):
                raise ValueError(
                    f"{name} of {type(self).__name__} cannot be set: {outer}={held!r} "
                    "has no parameters of its own. Pass an object first, such as "
                    f"MixupDraws() for draws; then {name} works."
                )
        return super().set_params(**params)


def check_count(name, value, or_none=False):
    """A whole number of rows, at least 1."""
    if or_none and value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        known = "an integer >= 1" + " or None" * or_none
        raise ValueError(f"{name} must be {known}; got {value!r}.")
    return int(value)


def as_random_state(seed):
    """What scikit-learn makes of a seed; a ``Generator`` lends its bits."""
    if isinstance(seed, np.random.Generator):
        return np.random.RandomState(seed.bit_generator)
    return check_random_state(seed)


def check_rows(estimator, X, *, reset, missing=None, dtype=_FLOATS):
    """Validate rows of any shape: numbers, finite, of the shape that was fitted.

    Returns a float array of shape ``(n, *shape)``; sets ``input_shape_`` on reset;
    ``missing`` as in :func:`check_finite`.
    """
    advice = (
        "{} holds no numbers. Encode it first, for instance with OneHotEncoder, or "
        "leave it out."
    )
    if not reset:
        check_is_fitted(estimator)
    _check_no_times(estimator, X)
    X = validated(estimator, X, advice.format, reset=reset, dtype=dtype)
    if reset:
        estimator.input_shape_ = X.shape[1:]
    check_shape(estimator, X)
    check_finite(X, names=feature_names(estimator), missing=missing)
    return X


def _check_no_times(estimator, X):
    """Refuse dates and times, which would else be counts of microseconds."""
    kinds = [("X", getattr(X, "dtype", ""))]
    if hasattr(X, "columns"):
        kinds = zip(X.columns, getattr(X, "dtypes", ()), strict=False)
    times = [name for name, kind in kinds if _TIMES.match(str(kind))]
    if times:
        raise TypeError(
            f"{type(estimator).__name__} takes numbers alone: pass dates and times as "
            f"such, for instance days since a date. Times: {times}."
        )


def validated(estimator, X, no_numbers, **settings):
    """Rows of any shape; ``no_numbers`` says what to say of a column of words."""
    try:
        return validate_data(estimator, as_array(X), **settings, **LOOSE)
    except ValueError as error:
        column = _first_of_words(X)
        if column is None:
            raise
        name = X.columns[column] if hasattr(X, "columns") else column
        told = str(error).rstrip(".")
        raise ValueError(f"{told}. {no_numbers(f'Column {name!r}')}") from error


def as_array(X, name="X"):
    """Rows with a type: None, fractions and decimals in lists become numbers by it."""
    check_unmasked(X, name)
    return X if hasattr(X, "shape") else np.asanyarray(X)


def _first_of_words(X):
    """The first column that holds a string."""
    if issparse(X) or getattr(X, "dtype", np.dtype(object)).kind not in "OUS":
        return None
    X = np.array(X, dtype=object)
    if X.ndim != 2:
        return None
    words = [any(isinstance(v, str | bytes) for v in column) for column in X.T]
    return words.index(True) if any(words) else None


def check_one_a_row(X, y):
    """Refuse targets that are not one a row."""
    if len(X) != len(y):
        raise ValueError(
            f"X has {len(X)} rows, but y has {len(y)} values: there must be one for "
            "each row, in the same order. Drop from one what was dropped from the "
            "other."
        )


def feature_names(estimator):
    """Names of the features of an estimator, if rows are as long as these."""
    names = getattr(estimator, "feature_names_in_", None)
    return names if len(estimator.input_shape_) == 1 else None


def check_shape(estimator, X):
    """Compare the shape of rows with that of ``fit``."""
    shape, fitted = X.shape[1:], estimator.input_shape_
    if shape != fitted:
        raise ValueError(
            f"X has rows of shape {shape}, but {type(estimator).__name__} was fitted "
            f"on rows of shape {fitted}."
        )


def check_tensors(estimator, X, *, reset, missing=None):
    """Validate non-negative rows of any shape; returns them flat, (n, D).

    Later rows may reach down to ``-offset``: decoded rows do, where a cell of the
    distribution holds less than the offset, and must encode to their code again.
    """
    asked = {"reset": reset, "missing": missing}
    return check_cells(estimator, check_rows(estimator, X, **asked), **asked)


def check_cells(estimator, X, *, reset=False, missing=None):
    """What :func:`check_tensors` asks of the values and shape of an array."""
    check_shape(estimator, X)
    rows, has_gaps = X.reshape(len(X), -1), check_finite(X, missing=missing)
    lowest = 0 if reset else -estimator.offset
    if has_gaps:
        # Of any value that is fine.
        X = np.where(np.isnan(X), 1, X)
    check_measures(X, estimator, estimator.offset, lowest)
    if has_gaps:
        check_observed(rows, estimator.offset)
    return rows


def check_observed(rows, offset):
    """Refuse rows (n, D) with missing cells, NaN, whose others hold no mass."""
    missing = np.isnan(rows)
    mass = np.where(missing, 0.0, rows.astype(np.float64) + offset).sum(axis=1)
    check_masses(mass)
    for row in np.flatnonzero(missing.any(axis=1) & (mass == 0)):
        why, advice = "no observed cell", "."
        if not missing[row].all():
            why = f"observed cells that are all {0 - offset:g}, and offset={offset:g}"
            advice = ", or set offset > 0." if offset == 0 else "."
        raise ValueError(
            f"Row {row} has {why}: there is nothing to fit a model to. Drop the row"
            f"{advice}"
        )


def as_numbers(X, **settings):
    """Rows of any shape as floats, whatever their columns are called."""
    if type(X) is np.ndarray and X.dtype in _FLOATS and X.ndim and X.size:
        return X
    return check_array(X, dtype=_FLOATS, ensure_2d=False, **settings, **LOOSE)


def check_finite(X, name="X", names=None, missing=None):
    """Refuse NaN and infinity, and say where the first one is.

    With ``missing``, why NaN cannot be had, or True if it can. Returns whether there is
    any.
    """
    values = X.data if issparse(X) else X
    assumed = get_config()["assume_finite"] and missing is not True
    if values.dtype.kind != "f" or assumed:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return False
    bad = np.isinf(values) if missing is True else ~np.isfinite(values)
    if not bad.any():
        return bool(np.isnan(values).any())
    if issparse(X):
        # Not as a whole, which need not fit.
        cells = X.tocsr().tocoo()
        bad = ~np.isfinite(cells.data)
        where = min(zip(cells.row[bad].tolist(), cells.col[bad].tolist(), strict=True))
    else:
        where = _first(bad)
    what = "NaN" if np.isnan(X[where]) else "infinity"
    imputer = "ManyBodyImputer" if X.ndim > 2 else "SimpleImputer of sklearn.impute"
    advice = (
        f"Impute or drop such values before this step, for instance with {imputer}."
    )
    if what == "infinity":
        advice = (
            "Imputers refuse it too: make it NaN first, np.where(np.isinf(X), np.nan, "
            "X), which plain tables may hold; else impute it, or drop the row."
        )
    elif isinstance(missing, str):
        advice += f" {missing}"
    if name == "y":
        advice = "Drop the rows without a target: new rows mix those of real ones."
    place = _place(where, names)
    raise ValueError(f"Input {name} contains {what}; the first is at {place}. {advice}")


def check_measures(X, whom, offset, lowest=0, *, names=None, numbers=None, advice=None):
    """Refuse cells without a logarithm, and say where the first one is.

    ``whom`` says what holds the negative values, or is the estimator that they were
    passed to; ``numbers`` says what its rows are known by, ``advice`` what to do.
    """
    if not isinstance(whom, str):
        names = feature_names(whom)
        whom = f"Negative values in data passed to {type(whom).__name__}"
    least = X.min(initial=1)
    if least >= lowest:
        if offset is not None and least <= -offset:
            _check_mass(X, offset, numbers)
        return
    where = _first(X < lowest)
    if advice is None:
        advice = (
            "shift or scale the data to be non-negative first, for instance with "
            "MinMaxScaler"
        )
    raise ValueError(
        f"{whom}; the first is {X[where]:g} at {_place(where, names, numbers)}. Cells "
        f"are read as unnormalised probabilities: {advice}."
    )


def check_made(values, whose, names=None):
    """Refuse what a transformer of the user makes of finite rows that is no number."""
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    where = _first(bad)
    what = "NaN" if np.isnan(values[where]) else "infinity"
    raise ValueError(
        f"{whose} gives {what} for finite rows; the first is at "
        f"{_place(where, names)}. Such values have no place in a distribution, nor in "
        "a row: choose one that is finite on all rows, there and back."
    )


def _check_mass(X, offset, numbers):
    """Refuse rows that are ``-offset`` throughout, and single cells if that is 0."""
    flat = X.reshape(len(X), -1)
    for row in np.flatnonzero(flat.max(axis=1) <= -offset):
        why = (
            f"is -offset={-offset:g} in all cells: nothing of it is left as a "
            "distribution. Drop the row."
        )
        if offset == 0:
            why = "is all zero and offset=0: it has no distribution. Drop the row or "
            why += "set offset > 0."
        raise ValueError(f"{_row(row, numbers).capitalize()} {why}")
    if offset == 0:
        row, cell = _first(flat == 0)
        raise ValueError(
            f"Cell {cell} of {_row(row, numbers)} is zero and offset=0: its log is "
            "infinite. Set offset > 0."
        )


def check_masses(mass, numbers=None):
    """Refuse rows whose sum is not a number of double precision."""
    for row in np.flatnonzero(~np.isfinite(mass)):
        raise ValueError(
            f"The sum of {_row(row, numbers)} overflows; divide X by a constant first."
        )


def check_codes(estimator, codes):
    """Validate codes of shape (n, n_params_) for decoding."""
    check_is_fitted(estimator)
    codes = as_numbers(codes, input_name="codes", ensure_min_features=0)
    if codes.ndim != 2 or codes.shape[1] != estimator.n_params_:
        raise ValueError(
            f"Codes for {type(estimator).__name__} have shape (n_rows, "
            f"{estimator.n_params_}); got {codes.shape}."
        )
    check_finite(codes, "codes")
    return codes


def clip_neighbors(n_neighbors, n_rows, of_rows=False, whose="the training data"):
    """``n_neighbors``, at most as many as there are; a warning says so, but for "auto".

    Those of a row among the others if ``of_rows``, where a row that is alone is its own
    partner; else among all.
    """
    there = n_rows - of_rows
    if n_neighbors == "auto":
        # Partners to choose from; or rows that a new one is decoded from, which more
        # of them would blur.
        n_neighbors = max(1, min(10 if of_rows else 5, there)) + (there == 0)
    if n_neighbors <= n_rows:
        return max(1, min(n_neighbors, there))
    rows = f"{whose} has {n_rows} row{'s' * (n_rows != 1)}"
    near = f", {there} near each" * of_rows
    told = f"{n_neighbors} neighbours were asked for, but {rows}{near}: using {there}."
    if there == 0:
        told = f"Neighbours were asked for, but {rows}: all new rows are copies of it."
    else:
        told += " Ask for fewer if this is meant."
    warn_user(told)
    return max(1, there)


def warn_unconverged(whom, residual, tol, max_iter):
    """Say once, in figures, that some projections did not reach ``tol``."""
    left = ~(residual <= tol)
    if not left.any():
        return
    warn_missed(
        f"{whom}: {left.sum()} of {left.size} projections did not "
        f"converge in max_iter={max_iter} Newton steps: the worst residual "
        f"max|eta_q - eta*| is {residual.max():.1e} > tol={tol:g}. Increase max_iter "
        "or tol, or increase offset: cells that are nearly empty are what makes a "
        "projection hard."
    )


def warn_not_identified(whom, identified):
    """Say once of which rows the observed cells do not determine the code."""
    left = np.flatnonzero(~identified)
    if not len(left):
        return
    first = ", ".join(map(str, left[:5])) + ", .." * (len(left) > 5)
    warn_user(
        f"{whom}: the observed cells of {len(left)} of {len(identified)} rows do not "
        f"determine a code (row numbers {first}). They have that of the flattest "
        "measure that fits. Keep fewer interactions, or leave such rows out."
    )


def warn_missed(message):
    """Say what was not reached: by new rows, of what they should keep; by steps."""
    warn_user(message, ConvergenceWarning)


def warn_user(message, category=UserWarning):
    """Warn at the line that is not in a library: there it can be mended."""
    frame, level = currentframe(), 1
    while frame and frame.f_globals.get("__name__", "").split(".")[0] in _LIBRARIES:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def unheard():
    """Nothing is warned of inside."""
    with warnings.catch_warnings(action="ignore"):
        yield


def _first(mask):
    return tuple(int(i) for i in np.unravel_index(np.argmax(mask), mask.shape))


def _place(where, names=None, numbers=None):
    row = _row(where[0], numbers)
    if len(where) == 2:
        column = where[1] if names is None else names[where[1]]
        return f"{row}, column {column!r}"
    return f"{row}, cell {tuple(where[1:])}" if where[1:] else row
