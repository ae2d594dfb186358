"""Validate parameters, rows and codes.

Errors of this module state the argument, the first invalid row and column, and a
remedy. ``X`` can be a list, an array of any namespace, a sparse matrix or a data frame.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import wraps
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.base import _fit_context, clone
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    validate_parameter_constraints,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from .arrays import is_foreign, namespace, place_of, to_host, widest
from .masked import are_missing, check_plain, complex_error, is_missing
from .warnings import warn_user

# This module checks shapes and finite values, because its messages name the cell.
LOOSE = {"allow_nd": True, "ensure_all_finite": False}
_TIMES = re.compile("date|time|duration|period", re.IGNORECASE)
# Constraints of numeric parameters.
COUNT = Interval(Integral, 1, None, closed="left")
TWO_OR_MORE = Interval(Integral, 2, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
_ONE_SHAPE = "Cut or pad the rows to one shape, and combine them with np.stack."


class InstanceWith(HasMethods):
    """Constraint on a parameter: an instance with some methods, not its class."""

    def is_satisfied_by(self, val: Any) -> bool:
        return not isinstance(val, type) and super().is_satisfied_by(val)


class ObjectsByName:
    """Mixin of estimators whose parameters can name an object by a string.

    ``_objects`` maps each parameter to a dict from strings to expressions that create
    the object. Error messages show the expressions.
    """

    _objects: ClassVar[dict] = {}

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator, and parameters of its objects.

        Parameters
        ----------
        **params
            Names and values. ``method__noise`` is the parameter ``noise`` of the
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
                new = f"{owner}={written}" if written else f"{owner} to an object"
                raise ValueError(
                    f"{name} cannot be set, because {owner}={value!r} is a string "
                    f"without parameters. Set {new} first."
                )
        return super().set_params(**params)


def all_or_nothing(fit):
    """Decorate ``fit`` to check parameters and to set all fitted attributes at once.

    ``fit`` works on a copy of the estimator without fitted attributes. If ``fit``
    fails, the estimator is unchanged. Threads that share the estimator never see
    fitted attributes of two different fits.
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
    """Validate that a parameter is an integer of at least 1, and return the integer."""
    allowed = [COUNT, None] if or_none else [COUNT]
    validate_parameter_constraints({name: allowed}, {name: value}, "the call")
    return None if value is None else int(value)


def as_random_state(seed):
    """Return a ``RandomState``; a ``Generator`` shares its bit generator with it."""
    if isinstance(seed, np.random.Generator):
        return np.random.RandomState(seed.bit_generator)
    return check_random_state(seed)


def seeded_clone(estimator):
    """Return a clone of ``estimator``, with the seed 0 if ``random_state`` is None.

    Without a seed, two fits of the clone would differ, and new rows would not depend on
    the ``random_state`` of the sampler only.
    """
    estimator = clone(estimator)
    unseeded = [
        name
        for name, value in estimator.get_params().items()
        if name.split("__")[-1] == "random_state" and value is None
    ]
    return estimator.set_params(**dict.fromkeys(unseeded, 0))


def check_rows(estimator, X, *, reset, missing=None, advice=None):
    """Validate rows of any shape, and return floats of shape ``(n, *shape)``.

    With ``reset``, the shape of a row is stored in ``input_shape_``; otherwise, rows
    must have this shape. :func:`check_finite` describes ``missing`` and ``advice``.
    """
    if not reset:
        check_is_fitted(estimator)
    X = as_array(X)
    # `check_array` would convert times to integers without an error.
    kinds = getattr(X, "dtypes", ()) if hasattr(X, "columns") else [X.dtype]
    for kind in filter(_TIMES.match, map(str, kinds)):
        raise TypeError(
            f"X contains values of the type {kind}, but {type(estimator).__name__} "
            "requires numbers. Convert times first, for example to days since a date."
        )
    if any(str(kind).startswith("complex") for kind in kinds):
        raise complex_error("X has complex values")
    if not getattr(estimator, "_on_devices", False):
        X = on_host(X)
    remedy = "Encode the values as numbers, or drop the column."
    X = validated(estimator, X, remedy, reset=reset, dtype=_floats_of(X))
    shape = tuple(X.shape[1:])
    if reset:
        estimator._place, estimator.input_shape_ = place_of(X), shape
    check_place(estimator, X, "transform")
    if shape != estimator.input_shape_:
        raise ValueError(
            f"X has rows of shape {shape}, but {type(estimator).__name__} was fitted "
            f"on rows of shape {estimator.input_shape_}. Pass rows with the columns of "
            "the training rows, or fit again."
        )
    names = getattr(estimator, "feature_names_in_", None)
    check_finite(X, names=names, missing=missing, advice=advice)
    return X


def stays_on_device(X):
    """Return whether X stays on its device, by scikit-learn's array API dispatch."""
    return is_foreign(X) and get_config()["array_api_dispatch"]


def on_host(X, name="X"):
    """Return rows; convert an array of another namespace to NumPy, with a warning."""
    if not is_foreign(X):
        return X
    warn_user(
        f"{name} is an array {place_of(X)}, and is converted to an array of NumPy, "
        "because only PrimeFactorReshaper, the projectors, and PNLAugmenter with Codes "
        "compute on a device, if array_api_dispatch is enabled. To avoid this warning, "
        f"convert {name} to NumPy before the call."
    )
    return to_host(X)


def check_place(estimator, X, method):
    """Raise a ValueError if the namespace or the device differs from ``fit``."""
    here, there = place_of(X), estimator._place
    if here != there and get_config()["array_api_dispatch"]:
        raise ValueError(
            f"Inputs passed to {type(estimator).__name__}.{method}() must use the same "
            f"namespace and the same device as those passed to fit(). The inputs are "
            f"arrays {here}, but fit() received arrays {there}."
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


def validated(estimator, X, remedy, **settings):
    """Validate rows; ``remedy`` is the advice for a column that is not numeric."""
    X = as_array(X)
    if isinstance(X, np.ndarray) and X.dtype == object:
        # NumPy cannot convert the missing values NA and NaT of pandas to floats.
        X = np.where(are_missing(X), np.nan, X)
    if _is_list_of_texts(X):
        raise ValueError(
            f"X is a list of {len(X)} strings, but must have rows and columns; the "
            f"first string is {str(next(iter(X)))[:40]!r}. Convert texts to numbers "
            "first, for example with TfidfVectorizer of scikit-learn."
        )
    try:
        with errors_naming("X"):
            return validate_data(estimator, X, **settings, **LOOSE)
    except (OverflowError, TypeError, ValueError) as error:
        (row, *cell), value = _first_without_number(X) or ((0,), None)
        if not cell:
            raise
        name = f"Cell {tuple(cell)}"
        if len(cell) == 1:
            names = getattr(X, "columns", range(cell[0] + 1))
            name = f"Column {names[cell[0]]!r}"
        kind = TypeError if isinstance(error, TypeError) else ValueError
        detail = f": row {row} contains {value!r:.40}"
        if kind is TypeError:
            # scikit-learn checks that the message of NumPy is kept.
            detail += f" ({error})"
        raise kind(not_numeric(f"{name} of X", remedy, detail)) from error


def not_numeric(column, remedy, detail=""):
    """Return the message for a column that is not numeric."""
    return f"{column} is not numeric{detail}. {remedy}"


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
    """Convert a container to an array, and raise an error for scalars.

    ``dtype`` is the dtype of lists, and ``advice`` the remedy for ragged lists.
    """
    check_plain(X, name)
    given = X
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1 and len(X):
        # Packages for time series store rows in an array of objects.
        X = list(X) if isinstance(X[0], np.ndarray | list) else X
    if not hasattr(X, "shape"):
        try:
            rows, X = X, np.asanyarray(X, dtype=dtype)
        except ValueError:
            raise ValueError(f"{_shapes_of(X, name)}. {advice}") from None
        if dtype is object and X.ndim == 1 and isinstance(next(iter(X), None), list):
            # With other dtypes, NumPy rejects ragged lists.
            raise ValueError(f"{_shapes_of(rows, name)}. {advice}")
        check_plain(X, name)
    if getattr(X, "shape", None) == ():
        raise TypeError(
            f"{name} must be an array, a data frame or a list with one entry per row; "
            f"got {type(given).__name__}. If {name} is a lazy frame, collect it first."
        )
    if type(X).__name__ == "RecordBatch":
        raise TypeError(
            f"{name} is a RecordBatch. Pass pyarrow.Table.from_batches([{name}])."
        )
    # Strings of variable length in NumPy cannot be compared with numbers.
    is_text = getattr(getattr(X, "dtype", None), "kind", None) == "T"
    return X.astype(object) if is_text else X


def _shapes_of(X, name):
    """Describe why the rows of a list do not form an array."""
    shapes = [np.asarray(row, dtype=object).shape for row in X]
    for row, shape in enumerate(shapes):
        if shape != shapes[0]:
            return (
                f"Rows of {name} must have one shape, but row 0 has the shape "
                f"{shapes[0]} and row {row} has the shape {shape}"
            )
    return f"Row 0 of {name} contains lists of different lengths"


def _first_without_number(X):
    """Return index and value of the first cell, by columns, that is no number."""
    if issparse(X) or getattr(getattr(X, "dtype", None), "kind", "O") not in "OUS":
        return None
    cells = np.array(X, dtype=object).T
    for where in np.ndindex(cells.shape):
        try:
            is_missing(cells[where]) or float(cells[where])
        except (OverflowError, TypeError, ValueError):
            return where[::-1], cells[where]
    return None


def check_one_a_row(X, y):
    """Raise an error if X and y have different lengths."""
    if len(X) != len(y):
        raise ValueError(
            f"X has {len(X)} rows, but y has {len(y)} values. Pass one value per row."
        )


def check_tensors(
    estimator, X, *, reset, missing=None, advice=None, find_undefined=None
):
    """Validate non-negative rows of any shape, and return rows of shape (n, D).

    Without ``reset``, cells can be as low as ``-offset``. Decoded rows have negative
    cells if a probability is below the offset, and must be encoded to the same code.
    See :func:`check_measures` for ``find_undefined``.
    """
    X = check_rows(estimator, X, reset=reset, missing=missing)
    lowest = 0 if reset else -estimator.offset
    check_measures(
        X,
        estimator,
        estimator.offset,
        lowest,
        advice=advice,
        find_undefined=find_undefined,
    )
    rows = flat(X)
    if missing is True and not is_foreign(rows) and np.isnan(rows).any():
        check_observed(rows, estimator.offset)
    return rows


def check_observed(rows, offset):
    """Raise a ValueError for rows (n, D) with NaN whose observed cells have no mass."""
    mass = np.nansum(rows.astype(np.float64) + offset, axis=1)
    check_masses(mass)
    for row in np.flatnonzero(np.isnan(rows).any(axis=1) & (mass == 0)):
        raise ValueError(
            f"Row {row} has no observed cell above {0 - offset:g}, which offset="
            f"{offset:g} requires. Drop the row, or increase offset if the row has "
            "observed cells."
        )


def check_finite(X, name="X", names=None, missing=None, advice=None):
    """Raise a ValueError for NaN and infinity, and return whether X contains NaN.

    ``missing`` is True if NaN is allowed, or a sentence for the message about NaN.
    ``advice`` replaces the remedy in the message.
    """
    if is_foreign(X):
        if namespace(X).all(namespace(X).isfinite(X)):
            return False
        X = to_host(X)
        if missing is True:
            missing = "Missing cells require arrays of NumPy."
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
    what, remedy = "infinity", "Replace infinity by NaN and impute, or drop the row."
    if np.isnan(X[where]):
        imputer = "ManyBodyImputer" if X.ndim > 2 else "SimpleImputer"
        what, remedy = "NaN", f"Drop rows with NaN, or impute them with {imputer}."
        if isinstance(missing, str):
            remedy += f" {missing}"
    raise ValueError(
        f"{name if advice else f'Input {name}'} contains {what}; the first is at "
        f"{_place(where, names)}. {advice or remedy}"
    )


def check_measures(
    X,
    caller,
    offset,
    lowest=0,
    *,
    names=None,
    numbers=None,
    advice=None,
    find_undefined=None,
):
    """Raise a ValueError for cells whose logarithm does not exist; ignore NaN.

    ``caller`` is the estimator that received X, or the start of the message.
    ``numbers`` are the row numbers in the message, and ``advice`` is its remedy.
    ``find_undefined`` returns the empty cells with which a row has no code, from masks
    (n, D) of empty and of missing cells; None stands for all empty cells.
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
            "make the data non-negative, for example with MinMaxScaler(clip=True), "
            "which also clips test rows"
        )
        raise ValueError(
            f"{caller}; the first is {X[where]:g} at {_place(where, names, numbers)}. "
            f"Cells are read as unnormalised probabilities: {advice}."
        )
    # A row without a cell above -offset has no distribution.
    is_empty = X.reshape(len(X), -1) <= -offset
    bad = is_empty & is_empty.all(axis=1, keepdims=True)
    if offset == 0:
        bad |= find_undefined(is_empty, np.isnan(X)) if find_undefined else is_empty
    for row, cell in np.argwhere(bad)[:1]:
        raise ValueError(
            f"Cell {cell} of {_place((row,), numbers=numbers)} is {0 - offset:g}, and "
            f"its logarithm is infinite with offset={offset:g}. Increase offset, or "
            "drop the row."
        )


def check_ranges(least, most, names):
    """Raise a ValueError for a column whose range overflows double precision."""
    with np.errstate(over="ignore", invalid="ignore"):
        is_wide = ~np.isfinite(most - least)
    for j in np.flatnonzero(is_wide)[:1]:
        raise ValueError(
            f"The range of column {names[j]!r}, from {least[j]:g} to {most[j]:g}, "
            "overflows float64. Replace codes for missing values by NaN, or divide the "
            "column by a constant."
        )


def check_masses(mass):
    """Raise a ValueError if the sum of a row overflows double precision."""
    if not np.isfinite(mass).all():
        raise ValueError("The sum of a row of X overflows. Divide X by a constant.")


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
            f"codes must have the shape (n_rows, {estimator.n_params_}) for "
            f"{type(estimator).__name__}; got {codes.shape}. Pass the output of "
            "transform."
        )
    check_finite(codes, "codes")
    return codes


def _place(where, names=None, numbers=None):
    """Describe a row or a cell in messages; ``numbers`` are the rows of the user."""
    row = f"row {where[0] if numbers is None else numbers[where[0]]}"
    if len(where) == 2:
        return f"{row}, column {where[1] if names is None else names[where[1]]!r}"
    return f"{row}, cell {tuple(where[1:])}" if where[1:] else row
