"""Validate parameters, rows and codes; messages name the row and the column."""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager
from functools import cache, wraps
from inspect import currentframe, signature
from numbers import Integral, Real

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

from .masked import check_unmasked
from .messages import first_without_number, strings_message, unequal_rows

_FLOATS = (np.float64, np.float32)
# Settings of `check_array`: shapes and finite values are checked here, with the place.
LOOSE = {"allow_nd": True, "ensure_all_finite": False}
_TIMES = re.compile("date|time|duration|period", re.IGNORECASE)
# Constraints of numeric parameters.
COUNT = Interval(Integral, 1, None, closed="left")
TWO_OR_MORE = Interval(Integral, 2, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
# A range of 1e9 interquartile ranges leaves 7 of the 16 digits of float64 to the middle
# half. Quartiles are those of up to 2048 rows, fewer with more than 256 columns.
_EXTREME, _SPREAD_ROWS = 1e9, 2048
# This package and the libraries that call it: warnings point at the user's code.
_LIBRARIES = {"sklearn_pnl", "sklearn", "imblearn", "joblib", "contextlib"}


def _row(number, numbers=None):
    """Name of a row in messages, by its number in the rows of the user."""
    return f"row {number if numbers is None else numbers[number]}"


def all_or_nothing(fit):
    """Decorate ``fit``: check parameters and drop the results of an earlier fit.

    If ``fit`` fails, the earlier results are restored.
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


class NamedObjects(BaseEstimator):
    """Estimator with parameters that are objects, or names of objects."""

    def _validate_params(self):
        """Check the parameters that differ from their defaults."""
        defaults, params = _defaults(type(self)), self.get_params(deep=False)
        changed = {k: v for k, v in params.items() if v is not defaults[k].default}
        name = type(self).__name__
        validate_parameter_constraints(self._parameter_constraints, changed, name)


@cache
def _defaults(cls):
    return signature(cls).parameters


def check_count(name, value, or_none=False):
    """A whole number of rows, at least 1."""
    if or_none and value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        allowed = "an integer >= 1" + " or None" * or_none
        raise ValueError(f"{name} must be {allowed}; got {value!r}.")
    return int(value)


def as_random_state(seed):
    """``check_random_state``; a ``RandomState`` on the bits of a ``Generator``."""
    if isinstance(seed, np.random.Generator):
        return np.random.RandomState(seed.bit_generator)
    return check_random_state(seed)


def check_rows(estimator, X, *, reset, missing=None, dtype=_FLOATS):
    """Validate rows of any shape: numbers, finite, of the shape that was fitted.

    Returns a float array of shape ``(n, *shape)``; sets ``input_shape_`` on reset;
    ``missing`` as in :func:`check_finite`.
    """
    advice = "{} holds no numbers. Encode it first, or leave it out."
    if not reset:
        check_is_fitted(estimator)
    # `check_array` would turn times into counts of microseconds.
    if any(
        _TIMES.match(str(k)) for k in getattr(X, "dtypes", [getattr(X, "dtype", "")])
    ):
        raise TypeError(
            f"{type(estimator).__name__} takes numbers alone: pass dates and times as "
            "such, for instance days since a date."
        )
    X = validated(estimator, X, advice.format, reset=reset, dtype=dtype)
    if reset:
        estimator.input_shape_ = X.shape[1:]
    check_shape(estimator, X)
    check_finite(X, names=feature_names(estimator), missing=missing)
    return X


def validated(estimator, X, no_numbers, **settings):
    """Rows of any shape; ``no_numbers`` gives the message of a column without any."""
    X = as_array(X)
    kind = getattr(getattr(X, "dtype", None), "kind", "O")
    if kind in "OSUV" and len(X.shape) == 1 and len(X):
        raise ValueError(
            f"X has one axis, of values such as {np.asarray(X)[0]!r}: pass a data "
            "frame, such as pandas.DataFrame(X), or an array (n, n_features)."
        )
    if kind in "SU":
        raise ValueError(strings_message(X, no_numbers))
    if kind == "O" and isinstance(X, np.ndarray):
        # NumPy cannot convert the missing values of pandas, NA and NaT, to floats.
        missing_types = ("NAType", "NaTType")
        is_missing = np.array(
            [type(value).__name__ in missing_types for value in X.flat]
        )
        X = np.where(is_missing.reshape(X.shape), np.nan, X)
    try:
        return validate_data(estimator, X, **settings, **LOOSE)
    except (OverflowError, TypeError, ValueError) as error:
        where = first_without_number(X)
        if where is None:
            raise
        name = f"Cell {where[1:]} of row {where[0]}"
        if len(where) == 2:
            names = getattr(X, "columns", range(where[1] + 1))
            name = f"Column {names[where[1]]!r}"
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{str(error).rstrip('.')}. {no_numbers(name)}") from error


def as_array(X, name="X", dtype=None):
    """Rows as an array; ``dtype`` applies to lists."""
    check_unmasked(X, name)
    array = X
    if not hasattr(X, "shape"):
        try:
            array = np.asanyarray(X, dtype=dtype)
        except ValueError:
            raise ValueError(unequal_rows(X, name)) from None
        if array.ndim == 0:
            raise ValueError(
                f"{name} is of type {type(X).__name__}: pass an array, a list, a data "
                "frame or a series, with a value for each row."
            )
    kind = getattr(getattr(array, "dtype", None), "kind", None)
    if kind == "O" and array.ndim == 1 and len(array):
        rows = np.asarray(array)
        if isinstance(rows[0], list | tuple | np.ndarray):
            raise ValueError(unequal_rows(rows, name))
    if kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} is an array of {array.dtype}. Pass "
            f"{name}.real and {name}.imag as numbers of their own."
        )
    return array


def check_one_a_row(X, y):
    """Refuse targets that are not one a row."""
    if len(X) != len(y):
        raise ValueError(
            f"X has {len(X)} rows, but y has {len(y)} values: give one for each row."
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
        # Missing cells pass the checks as any valid value.
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
        raise ValueError(
            f"Row {row} has no observed cell above {0 - offset:g}, with offset="
            f"{offset:g}: there is nothing to fit a model to. Drop the row, or set "
            "offset > 0."
        )


def as_numbers(X, **settings):
    """Rows of any shape as floats, whatever their columns are called."""
    if type(X) is np.ndarray and X.dtype in _FLOATS and X.ndim and X.size:
        return X
    return check_array(X, dtype=_FLOATS, ensure_2d=False, **settings, **LOOSE)


def check_finite(X, name="X", names=None, missing=None):
    """Refuse NaN and infinity, and say where the first one is.

    ``missing`` is True where NaN is allowed, or the reason why it is not. Returns
    whether there is any NaN.
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
        # A dense copy of a sparse matrix may not fit in memory.
        cells = X.tocsr().tocoo()
        bad = ~np.isfinite(cells.data)
        where = min(zip(cells.row[bad].tolist(), cells.col[bad].tolist(), strict=True))
    else:
        where = _first(bad)
    what, imputer = "infinity", "ManyBodyImputer" if X.ndim > 2 else "SimpleImputer"
    advice = "Make it NaN first, impute it, or drop the row."
    if np.isnan(X[where]):
        what, advice = "NaN", f"Drop such rows, or impute them with {imputer}."
        advice += f" {missing}" * isinstance(missing, str)
    place = _place(where, names)
    raise ValueError(f"Input {name} contains {what}; the first is at {place}. {advice}")


def check_measures(
    X, caller, offset, lowest=0, *, names=None, numbers=None, advice=None
):
    """Refuse cells without a logarithm, and say where the first one is.

    ``caller`` is the estimator that the values were passed to, or the start of the
    message; ``numbers`` are row numbers for the message, ``advice`` is its end.
    """
    if not isinstance(caller, str):
        names = feature_names(caller)
        caller = f"Negative values in data passed to {type(caller).__name__}"
    least = X.min(initial=1)
    if least < lowest:
        where = _first(X < lowest)
        advice = advice or "make the data non-negative, for instance with MinMaxScaler"
        raise ValueError(
            f"{caller}; the first is {X[where]:g} at {_place(where, names, numbers)}. "
            f"Cells are read as unnormalised probabilities: {advice}."
        )
    if offset is not None and least <= -offset:
        _check_mass(X, offset, numbers)


def check_made(values, transformer, names=None):
    """Refuse NaN and infinity that a user's transformer returns for finite rows."""
    bad = ~np.isfinite(values)
    if bad.any():
        where = _first(bad)
        what = "NaN" if np.isnan(values[where]) else "infinity"
        raise ValueError(
            f"{transformer} gives {what} for finite rows; the first is at "
            f"{_place(where, names)}. Choose one that is finite there and back."
        )


def _check_mass(X, offset, numbers):
    """Refuse rows that are ``-offset`` throughout, and single cells if that is 0."""
    flat = X.reshape(len(X), -1)
    for row in np.flatnonzero(flat.max(axis=1) <= -offset):
        raise ValueError(
            f"{_row(row, numbers).capitalize()} is {0 - offset:g} in all cells, with "
            f"offset={offset:g}: it has no distribution. Drop it, or set offset > 0."
        )
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


def clip_neighbors(n_neighbors, n_rows, of_rows=False, data_name="the training data"):
    """Clip ``n_neighbors`` to the number of rows, with a warning unless it is "auto".

    If ``of_rows`` a row is not its own neighbour, unless it is the only one.
    """
    most = n_rows - of_rows
    if n_neighbors == "auto":
        # 10 partners to choose from; 5 rows to decode from, since a mean of more rows
        # is smoother than the data.
        n_neighbors = max(1, min(10 if of_rows else 5, most)) + (most == 0)
    if n_neighbors <= n_rows:
        return max(1, min(n_neighbors, most))
    warn_user(
        f"{n_neighbors} neighbours were asked for, but {data_name} has {n_rows} rows: "
        + (f"using {most}." if most else "all new rows are copies of it.")
    )
    return max(1, most)


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


def warn_not_identified(caller, identified):
    """Warn once if the observed cells of some rows do not determine a code."""
    left = np.flatnonzero(~identified)
    if len(left):
        warn_user(
            f"{caller}: the observed cells of {len(left)} of {len(identified)} rows do "
            f"not determine a code (rows {left[:5].tolist()}): they have that of the "
            "flattest measure that fits. Keep fewer interactions, or leave them out."
        )


def warn_extreme_values(numbers, low, high, names, caller):
    """Warn of columns whose range is a billion times the spread of most values.

    Parameters
    ----------
    numbers : ndarray of shape (n, D)
        NaN for missing ones. Of the middle half some thousand rows are looked at.
    low, high : ndarray of shape (D,)
        Least and largest value of each column.
    names : sequence of length D
        Of the columns.
    caller : str
        Who reads them, for the message.
    """
    n, d = numbers.shape
    step = -(-n // min(_SPREAD_ROWS, max(2**19 // max(d, 1), 16))) or 1
    sample = np.sort(numbers[::step].astype(np.float64), axis=0)
    count = np.count_nonzero(~np.isnan(sample), axis=0)
    quarters = np.array([count // 4, np.maximum(3 * count // 4, 1) - 1])
    first, third = np.take_along_axis(sample, quarters, axis=0)
    with np.errstate(over="ignore"):
        wide = high - low > _EXTREME * (third - first)
    for j in np.flatnonzero(wide & (third > first))[:1]:
        value = high[j] if high[j] - third[j] > first[j] - low[j] else low[j]
        warn_user(
            f"{caller}: {value:g} in column {names[j]!r} is more than a billion times "
            f"as far out as most of it, {first[j]:g} to {third[j]:g}. Set what stands "
            "for missing values to NaN first; else drop such rows."
        )


def warn_missed(message):
    """Warn of an iteration that did not converge."""
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


def _first(mask):
    return tuple(int(i) for i in np.unravel_index(np.argmax(mask), mask.shape))


def _place(where, names=None, numbers=None):
    row = _row(where[0], numbers)
    if len(where) == 2:
        column = where[1] if names is None else names[where[1]]
        return f"{row}, column {column!r}"
    return f"{row}, cell {tuple(where[1:])}" if where[1:] else row
