"""Validate parameters, rows and codes; messages name the row and the column."""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager
from functools import wraps
from inspect import currentframe
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    validate_parameter_constraints,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from .arrays import is_foreign, namespace, place_of, to_host, widest
from .masked import are_missing, check_plain, is_missing

# Settings of `check_array`: shapes and finite values are checked here, with the place.
LOOSE = {"allow_nd": True, "ensure_all_finite": False}
_TIMES = re.compile("date|time|duration|period", re.IGNORECASE)
# Constraints of numeric parameters.
COUNT = Interval(Integral, 1, None, closed="left")
TWO_OR_MORE = Interval(Integral, 2, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
_ONE_SHAPE = (
    "Cut them to one length, or pad the short ones with NaN, and join them with "
    "np.stack."
)
# This package and the libraries that call it: warnings point at the user's code.
_LIBRARIES = {"sklearn_pnl", "sklearn", "imblearn", "joblib", "contextlib"}


class InstanceWith(HasMethods):
    """Constraint of parameters: an object with some methods, not its class."""

    def is_satisfied_by(self, val: Any) -> bool:
        return not isinstance(val, type) and super().is_satisfied_by(val)


class ObjectsByName:
    """Mixin of estimators with parameters that name an object by a string.

    ``_objects`` has what to write instead of each string, by parameter.
    """

    _objects: ClassVar[dict] = {}

    def set_params(self, **params: Any) -> Self:
        """Set the parameters of the estimator, and those of its objects.

        Parameters
        ----------
        **params
            Parameters by name; ``method__noise`` is the parameter ``noise`` of the
            object ``method``.

        Returns
        -------
        self : estimator
        """
        for name in params:
            owner, is_nested, _ = name.partition("__")
            value = params.get(owner, getattr(self, owner, None))
            if is_nested and isinstance(value, str):
                written = self._objects.get(owner, {}).get(value)
                advice = (
                    f"Pass an object as {owner}"
                    if written is None
                    else (f"Write {owner}={written}")
                )
                raise ValueError(
                    f"{name} cannot be set: {owner}={value!r} is a string, which has "
                    f"no parameters. {advice} first."
                )
        return super().set_params(**params)


def all_or_nothing(fit):
    """Decorate ``fit``: check parameters, and publish all results in one assignment.

    ``fit`` works on a copy of the estimator without the results of an earlier fit. If
    ``fit`` fails, the estimator is as it was before. Threads that share the estimator
    see the results of one fit or of another, but never a part of them.
    """

    @_fit_context(prefer_skip_nested_validation=False)
    @wraps(fit)
    def on_copy(estimator, *args, **kwargs):
        copy = object.__new__(type(estimator))
        for name, value in vars(estimator).copy().items():
            if name.startswith("_") or not name.endswith("_"):
                vars(copy)[name] = value
        result = fit(copy, *args, **kwargs)
        estimator.__dict__ = vars(copy)
        return estimator if result is copy else result

    return on_copy


def check_count(name, value, or_none=False):
    """Validate a number of rows, an integer of at least 1."""
    allowed = [COUNT, None] if or_none else [COUNT]
    validate_parameter_constraints({name: allowed}, {name: value}, "the call")
    return None if value is None else int(value)


def as_random_state(seed):
    """Return a ``RandomState``; it shares the bit generator of a ``Generator``."""
    if isinstance(seed, np.random.Generator):
        return np.random.RandomState(seed.bit_generator)
    return check_random_state(seed)


def check_rows(estimator, X, *, reset, missing=None, advice=None):
    """Validate rows of any shape: numbers, finite, of the shape that was fitted.

    Returns a float array of shape ``(n, *shape)``; sets ``input_shape_`` on reset;
    ``missing`` and ``advice`` as in :func:`check_finite`.
    """
    no_numbers = "holds no numbers. Encode it first, or leave it out."
    if not reset:
        check_is_fitted(estimator)
    X = as_array(X)
    # `check_array` would turn times into counts of microseconds.
    kinds = getattr(X, "dtypes", ()) if hasattr(X, "columns") else [X.dtype]
    for kind in filter(_TIMES.match, map(str, kinds)):
        raise TypeError(
            f"X holds {kind}, and {type(estimator).__name__} takes numbers alone: "
            "pass, for instance, days since a date."
        )
    if any(str(kind).startswith("complex") for kind in kinds):
        raise ValueError(
            "Complex data not supported: X has complex values. Pass the real and the "
            "imaginary parts as columns of their own."
        )
    if not getattr(estimator, "_on_devices", False):
        refuse_device(estimator, X)
    X = validated(estimator, X, no_numbers, reset=reset, dtype=_floats_of(X))
    shape = tuple(X.shape[1:])
    if reset:
        estimator._place, estimator.input_shape_ = place_of(X), shape
    check_place(estimator, X, "transform")
    if shape != estimator.input_shape_:
        raise ValueError(
            f"X has rows of shape {shape}, but {type(estimator).__name__} was fitted "
            f"on rows of shape {estimator.input_shape_}."
        )
    names = getattr(estimator, "feature_names_in_", None)
    check_finite(X, names=names, missing=missing, advice=advice)
    return X


def stays_on_device(X):
    """Return whether array API dispatch of scikit-learn keeps X on its device."""
    return is_foreign(X) and get_config()["array_api_dispatch"]


def refuse_device(estimator, X):
    """Raise a TypeError for arrays on a device if an estimator needs host arrays."""
    if stays_on_device(X):
        raise TypeError(
            f"{type(estimator).__name__} takes rows on the host, as an array of NumPy; "
            f"X is an array {place_of(X)}."
        )


def check_place(estimator, X, method):
    """Raise a ValueError if the namespace or the device differs from ``fit``."""
    here, there = place_of(X), estimator._place
    if here != there and get_config()["array_api_dispatch"]:
        raise ValueError(
            f"Inputs passed to {type(estimator).__name__}.{method}() must use the same "
            f"namespace and the same device as those passed to fit(): these are "
            f"{here}, and those were {there}."
        )


def _floats_of(X):
    """Return the accepted float dtypes in the namespace of an array."""
    if not stays_on_device(X):
        return np.float64, np.float32
    xp = namespace(X)
    return (xp.float32,) if widest(X) == xp.float32 else (xp.float64, xp.float32)


def flat(X):
    """Flatten rows of any shape to (n, D)."""
    return namespace(X).reshape(X, (X.shape[0], -1))


def validated(estimator, X, no_numbers, **settings):
    """Validate rows; ``no_numbers`` is the message for a column without numbers."""
    X = as_array(X)
    if isinstance(X, np.ndarray) and X.dtype == object:
        # NumPy cannot convert the missing values of pandas, NA and NaT, to floats.
        X = np.where(are_missing(X), np.nan, X)
    if _is_list_of_texts(X):
        raise ValueError(
            f"X is a list of {len(X)} strings, not rows with columns; the first is "
            f"{str(next(iter(X)))[:40]!r}. Convert texts to numbers first, by "
            "TfidfVectorizer of scikit-learn. For a column of categories, pass a "
            "data frame."
        )
    try:
        with errors_naming("X"):
            return validate_data(estimator, X, **settings, **LOOSE)
    except (OverflowError, TypeError, ValueError) as error:
        row, *cell = _first_without_number(X) or (0,)
        if not cell:
            raise
        name = f"Cell {tuple(cell)}"
        if len(cell) == 1:
            names = getattr(X, "columns", range(cell[0] + 1))
            name = f"Column {names[cell[0]]!r}"
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name} {no_numbers} Row {row}: {error}") from error


def _is_list_of_texts(X):
    """Return whether X has one axis and contains strings."""
    if issparse(X) or len(getattr(X, "shape", ())) != 1 or not len(X):
        return False
    return isinstance(next(iter(X)), str | bytes)


@contextmanager
def errors_naming(name):
    """Add the name of an argument to errors of other libraries that omit it."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if re.search(rf"\b{name}\b", str(error)):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {error}") from error


def as_array(X, name="X", dtype=None, advice=_ONE_SHAPE):
    """Convert to an array; ``dtype`` is for lists, ``advice`` for ragged lists."""
    check_plain(X, name)
    given = X
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1 and len(X):
        # Packages for time series hold rows as an array of objects.
        X = list(X) if isinstance(X[0], np.ndarray | list) else X
    if not hasattr(X, "shape"):
        try:
            X = np.asanyarray(X, dtype=dtype)
        except ValueError:
            shapes = [np.asarray(row, dtype=object).shape for row in X]
            row = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), 0)
            raise ValueError(
                f"{name} must have rows of one shape: row 0 has the shape {shapes[0]}, "
                f"row {row} {shapes[row]}. {advice}"
            ) from None
        check_plain(X, name)
    if getattr(X, "shape", None) == ():
        raise TypeError(
            f"{name} is of the type {type(given).__name__}, which has no rows: pass an "
            "array, a data frame (collect it first), or a list with an entry a row."
        )
    if type(X).__name__ == "RecordBatch":
        raise TypeError(f"{name} is a RecordBatch: pass pyarrow.table({name}).")
    # NumPy's strings of any length have no comparisons with numbers.
    is_text = getattr(getattr(X, "dtype", None), "kind", None) == "T"
    return X.astype(object) if is_text else X


def _first_without_number(X):
    """Return the index of the first cell that is no float, by columns, or None."""
    if issparse(X) or getattr(getattr(X, "dtype", None), "kind", "O") not in "OUS":
        return None
    cells = np.array(X, dtype=object).T
    for where in np.ndindex(cells.shape):
        try:
            is_missing(cells[where]) or float(cells[where])
        except (OverflowError, TypeError, ValueError):
            return where[::-1]
    return None


def check_one_a_row(X, y):
    """Raise an error if X and y have different lengths."""
    if len(X) != len(y):
        raise ValueError(
            f"X has {len(X)} rows, but y has {len(y)} values: give one for each row."
        )


def check_tensors(estimator, X, *, reset, missing=None, advice=None):
    """Validate non-negative rows of any shape; returns them flat, (n, D).

    Later rows may reach down to ``-offset``: decoded rows do, where a cell of the
    distribution holds less than the offset, and must encode to their code again.
    """
    X = check_rows(estimator, X, reset=reset, missing=missing)
    lowest = 0 if reset else -estimator.offset
    check_measures(X, estimator, estimator.offset, lowest, advice=advice)
    rows = flat(X)
    if missing is True and not is_foreign(rows) and np.isnan(rows).any():
        check_observed(rows, estimator.offset)
    return rows


def check_observed(rows, offset):
    """Reject rows (n, D) with NaN whose observed cells have no mass."""
    mass = np.nansum(rows.astype(np.float64) + offset, axis=1)
    check_masses(mass)
    for row in np.flatnonzero(np.isnan(rows).any(axis=1) & (mass == 0)):
        raise ValueError(
            f"Row {row} has no observed cell above {0 - offset:g}: there is nothing to "
            f"fit a model to, with offset={offset:g}. Drop it, or set offset > 0."
        )


def check_finite(X, name="X", names=None, missing=None, advice=None):
    """Refuse NaN and infinity, and say where the first one is.

    ``missing`` is True where NaN is allowed, or the reason why it is not; ``advice`` is
    the end of the message. Returns whether there is any NaN.
    """
    if is_foreign(X):
        if namespace(X).all(namespace(X).isfinite(X)):
            return False
        X = to_host(X)
        if missing is True:
            missing = "On a device no cell may be missing: pass arrays of NumPy."
    values = X.data if issparse(X) else X
    assumed = get_config()["assume_finite"] and missing is not True
    if values.dtype.kind != "f" or assumed or np.isfinite(values).all():
        return False
    bad = np.isinf(values) if missing is True else ~np.isfinite(values)
    if not bad.any():
        return True
    if issparse(X):
        rows, columns = X.tocoo().coords
        where = min(zip(rows[bad].tolist(), columns[bad].tolist(), strict=True))
    else:
        where = tuple(np.argwhere(bad)[0].tolist())
    what, remedy = "infinity", "Make it NaN first, impute it, or drop the row."
    if np.isnan(X[where]):
        imputer = "ManyBodyImputer" if X.ndim > 2 else "SimpleImputer"
        what, remedy = "NaN", f"Drop such rows, or impute them with {imputer}."
        remedy += f" {missing}" * isinstance(missing, str)
    raise ValueError(
        f"{name if advice else f'Input {name}'} contains {what}; the first is at "
        f"{_place(where, names)}. {advice or remedy}"
    )


def check_measures(
    X, caller, offset, lowest=0, *, names=None, numbers=None, advice=None
):
    """Refuse cells without a logarithm, and say where the first one is; not NaN.

    ``caller`` is the estimator that the values were passed to, or the start of the
    message; ``numbers`` are row numbers for the message, ``advice`` is its end.
    """
    if not isinstance(caller, str):
        names = getattr(caller, "feature_names_in_", None)
        caller = f"Negative values in data passed to {type(caller).__name__}"
    least = namespace(X).min(X) if is_foreign(X) else np.fmin.reduce(X, None, initial=1)
    if least >= lowest and (offset is None or least > -offset):
        return
    X = to_host(X)
    if least < lowest:
        where = tuple(np.argwhere(X < lowest)[0].tolist())
        advice = advice or (
            "make the data non-negative, for instance with MinMaxScaler(clip=True), "
            "which also limits test rows"
        )
        raise ValueError(
            f"{caller}; the first is {X[where]:g} at {_place(where, names, numbers)}. "
            f"Cells are read as unnormalised probabilities: {advice}."
        )
    # A row that is nowhere above -offset has no distribution.
    is_empty = X.reshape(len(X), -1) <= -offset
    bad = is_empty & (is_empty.all(axis=1, keepdims=True) | (offset == 0))
    for row, cell in np.argwhere(bad)[:1]:
        raise ValueError(
            f"Cell {cell} of {_place((row,), numbers=numbers)} is {0 - offset:g} and "
            f"offset={offset:g}: its log is infinite. Set offset > 0, or drop the row."
        )


def check_ranges(least, most, names):
    """Reject columns whose range overflows double precision."""
    with np.errstate(over="ignore", invalid="ignore"):
        is_wide = ~np.isfinite(most - least)
    for j in np.flatnonzero(is_wide)[:1]:
        raise ValueError(
            f"The range of column {names[j]!r}, from {least[j]:g} to {most[j]:g}, "
            "overflows float64. Set values that stand for missing ones to NaN, or "
            "divide the column by a constant."
        )


def check_masses(mass):
    """Reject rows whose sum overflows double precision."""
    if not np.isfinite(mass).all():
        raise ValueError("The sum of a row overflows; divide X by a constant first.")


def check_codes(estimator, codes):
    """Validate codes of shape (n, n_params_) for decoding."""
    check_is_fitted(estimator)
    settings = {"ensure_2d": False, "ensure_min_features": 0} | LOOSE
    with errors_naming("codes"):
        codes = as_array(codes, "codes")
        kinds = _floats_of(codes)
        codes = check_array(codes, dtype=kinds, input_name="codes", **settings)
    check_place(estimator, codes, "inverse_transform")
    if codes.ndim != 2 or codes.shape[1] != estimator.n_params_:
        raise ValueError(
            f"Codes for {type(estimator).__name__} have shape (n_rows, "
            f"{estimator.n_params_}); got {codes.shape}."
        )
    check_finite(codes, "codes")
    return codes


def clip_neighbors(n_neighbors, n_rows, of_rows=False, data_name="the training data"):
    """Clip ``n_neighbors`` to the number of rows, with a warning.

    If ``of_rows`` a row is not its own neighbour, unless it is the only one.
    """
    most = n_rows - of_rows
    if most == 0:
        warn_user(f"{data_name} has 1 row: all new rows are copies of it.")
    elif n_neighbors > n_rows:
        warn_user(
            f"{n_neighbors} neighbours were asked for, but {data_name} has {n_rows} "
            f"rows: using {most}."
        )
    return max(1, min(n_neighbors, most))


def warn_unconverged(caller, residual, tol, max_iter):
    """Warn once if projections did not converge to ``tol``."""
    left = ~(residual <= tol)
    if not left.any():
        return
    warn_missed(
        f"{caller}: {left.sum()} of {left.size} projections did not converge in "
        f"max_iter={max_iter} Newton steps: the worst residual max|eta_q - eta*| is "
        f"{residual.max():.1e} > tol={tol:g}. Increase max_iter, tol or offset."
    )


def warn_not_settled(caller, settled, error):
    """Warn once if theta of some rows is not determined to ``error``."""
    left = np.flatnonzero(~settled)
    if len(left):
        warn_missed(
            f"{caller}: theta of {len(left)} of {len(settled)} rows is not determined "
            f"to {error:g} (rows {left[:5].tolist()}), because some of their cells are "
            "nearly empty. Increase offset or max_iter, or keep a lower order."
        )


def warn_not_identified(caller, identified):
    """Warn once if the observed cells of some rows do not determine a code."""
    left = np.flatnonzero(~identified)
    if len(left):
        warn_user(
            f"{caller}: the observed cells of {len(left)} of {len(identified)} rows do "
            f"not determine a code (rows {left[:5].tolist()}): they have that of the "
            "flattest measure that fits. Keep fewer interactions, or leave them out."
        )


def warn_missed(message):
    """Warn that a tolerance or a guarantee for rows is not satisfied."""
    warn_user(message, ConvergenceWarning)


def warn_user(message, category=UserWarning):
    """Warn at the line of the user's code that called the libraries."""
    frame, level = currentframe(), 1
    while frame and frame.f_globals.get("__name__", "").split(".")[0] in _LIBRARIES:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def unheard():
    """Ignore all warnings inside."""
    with warnings.catch_warnings(action="ignore"):
        yield


def _place(where, names=None, numbers=None):
    """Name a row or cell in messages, with the row indices of the user."""
    row = f"row {where[0] if numbers is None else numbers[where[0]]}"
    if len(where) == 2:
        return f"{row}, column {where[1] if names is None else names[where[1]]!r}"
    return f"{row}, cell {tuple(where[1:])}" if where[1:] else row
