"""Reshape rows to tensors whose modes are prime factors, and back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain, count, pairwise
from math import isqrt, prod
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from ._utils.arrays import concat, filled, namespace, reshaped, to_host
from ._utils.validation import (
    all_or_nothing,
    as_array,
    check_rows,
    flat,
    stays_on_device,
)
from .geometry import TensorPoset, order_mask


# Data frames cannot contain tensors. With `auto_wrap_output_keys=None` the output stays
# an array if the global configuration of scikit-learn selects data frames.
class PrimeFactorReshaper(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):
    """Reshape rows to tensors with one mode for each prime factor of each axis.

    A vector of 60 features becomes a tensor of shape (5, 3, 2, 2). An image of
    28 x 28 pixels becomes a tensor of shape (7, 2, 2, 7, 2, 2). Interactions
    between a few modes (axes of the tensor) then describe a row at several scales.

    A single mode has no interactions. If a row has one axis and the length of the
    axis is prime, the row is padded at its end to the next composite length (11 to
    12). If a row has several axes, an axis of prime length stays one mode (for
    example the 3 colours of an image).

    Parameters
    ----------
    input_shape : tuple of int, default=None
        Shape of a row, for example (28, 28), if ``X`` contains flat vectors. None
        uses the shape of the rows of ``X``.

    factor_order : {"descending", "ascending"}, default="descending"
        Order of the prime factors within each axis.

    pad_value : float or "mean", default=0.0
        Value of padded cells. "mean" uses the mean of each row.

    Attributes
    ----------
    tensor_shape_ : tuple of int
        Shape of a transformed row.

    axes_ : tuple of int
        Lengths of the axes of a row: ``input_shape``, or the shape of the
        rows if ``input_shape`` is None.

    axis_modes_ : tuple of tuple of int
        Modes of a tensor that are the factors of each axis. An axis of length 1 has no
        modes.

    input_shape_ : tuple of int
        Shape of a row of the array passed to ``fit``.

    n_features_in_ : int
        Length of the first axis of a row.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, if all are strings.

    See Also
    --------
    PNLAugmenter : Augment a set of rows without classes.
    ManyBodyProjector : Encode rows without drawing new rows.
    sklearn_pnl.geometry.TensorPoset : The componentwise order of a tensor.

    References
    ----------
    P. Hu, M. Sugiyama, "Pseudo-nonlinear data augmentation: a constrained energy
    minimization viewpoint", ICLR 2026 (the reshaping of its experiments).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import PrimeFactorReshaper
    >>> reshaper = PrimeFactorReshaper().fit(np.ones((4, 60)))
    >>> reshaper.tensor_shape_
    (5, 3, 2, 2)
    >>> reshaper = PrimeFactorReshaper((28, 28)).fit(np.ones((4, 784)))
    >>> reshaper.tensor_shape_
    (7, 2, 2, 7, 2, 2)
    >>> reshaper.axis_modes_
    ((0, 1, 2), (3, 4, 5))
    """

    _parameter_constraints: ClassVar[dict] = {
        "input_shape": [tuple, list, Integral, None],
        "factor_order": [StrOptions({"descending", "ascending"})],
        "pad_value": [
            Interval(Real, None, None, closed="neither"),
            StrOptions({"mean"}),
        ],
    }

    # The rows may stay on an accelerator.
    _on_devices = True

    def __init__(
        self,
        input_shape: int | Sequence[int] | None = None,
        *,
        factor_order: Literal["descending", "ascending"] = "descending",
        pad_value: float | Literal["mean"] = 0.0,
    ) -> None:
        self.input_shape = input_shape
        self.factor_order = factor_order
        self.pad_value = pad_value

    @all_or_nothing
    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Compute the shape of the tensors from the shape of the rows.

        Parameters
        ----------
        X : array-like of shape (n, ...)
            Rows. Only the shape of the rows is used.
        y : None
            Ignored.

        Returns
        -------
        self : PrimeFactorReshaper
        """
        check_rows(self, X, reset=True)
        self.axes_ = axes = self._row_axes()
        if len(axes) == 1:
            axes = (next(n for n in count(*axes) if len(prime_factors(n)) > 1),)
        step = -1 if self.factor_order == "descending" else 1
        factors = [prime_factors(length)[::step] for length in axes]
        self.tensor_shape_ = tuple(chain(*factors)) or (1,)
        ends = list(accumulate(map(len, factors), initial=0))
        self.axis_modes_ = tuple(tuple(range(a, b)) for a, b in pairwise(ends))
        return self

    def transform(self, X: ArrayLike) -> NDArray:
        """Reshape rows to tensors.

        Parameters
        ----------
        X : array-like of shape (n, *input_shape_)

        Returns
        -------
        tensors : ndarray of shape (n, *tensor_shape_)
        """
        X = check_rows(self, X, reset=False)
        rows, xp = flat(X), namespace(X)
        n_padded = prod(self.tensor_shape_) - rows.shape[1]
        if n_padded:
            value = self.pad_value
            if value == "mean":
                value = xp.mean(rows, axis=1, keepdims=True)
            fill = filled(1.0, (rows.shape[0], n_padded), rows) * value
            rows = concat([rows, fill], axis=1)
        return reshaped(rows, (-1, *self.tensor_shape_))

    def inverse_transform(self, X: ArrayLike) -> NDArray:
        """Reshape tensors to rows and drop the padding.

        Parameters
        ----------
        X : array-like of shape (n, *tensor_shape_)

        Returns
        -------
        rows : ndarray of shape (n, *input_shape_)
        """
        check_is_fitted(self)
        X = as_array(X)
        X = X if stays_on_device(X) else to_host(X)
        shape = tuple(X.shape[1:])
        if shape != self.tensor_shape_:
            raise ValueError(
                f"X must contain tensors of shape {self.tensor_shape_}; got {shape}. "
                "Pass tensors in the form that transform returns."
            )
        rows = flat(X)[:, : prod(self.axes_)]
        return reshaped(rows, (-1, *self.input_shape_))

    def set_output(self, *, transform: str | None = None) -> Self:
        """Ignore the output container, because tensors are always arrays.

        The method exists so that a pipeline can call ``set_output`` on all its steps.

        Parameters
        ----------
        transform : str or None, default=None
            Ignored.

        Returns
        -------
        self : PrimeFactorReshaper
        """
        return self

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Return the names of the cells of a tensor, in the order of ``ravel``.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the cells of a row, or the names seen in ``fit``. The names are
            validated and not used otherwise.

        Returns
        -------
        names : ndarray of str objects of shape (prod(tensor_shape_),)
        """
        check_is_fitted(self)
        names_of_cells(self, input_features)
        cells = np.ndindex(*self.tensor_shape_)
        return np.array(["_".join(map(str, cell)) for cell in cells], dtype=object)

    def _row_axes(self):
        if self.input_shape is None:
            return self.input_shape_
        axes = tuple(np.atleast_1d(self.input_shape).tolist())
        is_valid = all(isinstance(length, int) and length > 0 for length in axes)
        if not is_valid or prod(axes) != prod(self.input_shape_):
            raise ValueError(
                f"input_shape={self.input_shape!r} does not fit rows of shape "
                f"{self.input_shape_}. The lengths must be positive integers with the "
                f"product {prod(self.input_shape_)}."
            )
        return axes

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.array_api_support = True
        return tags


def modes_of_axes(order, reshaper):
    """Replace the axes of a row in ``order`` by their factors, the modes of a tensor.

    Other orders than lists, and interactions of rows that no
    :class:`PrimeFactorReshaper` reshapes, are returned without a change.
    """
    if not np.iterable(order) or not isinstance(reshaper, PrimeFactorReshaper):
        return order
    lengths = reshaper.axes_
    try:
        order_mask(TensorPoset(lengths), order)
    except ValueError:
        raise ValueError(
            f"order={order!r} must be a list of tuples of distinct axes of a row of "
            f"shape {lengths}, from 0 to {len(lengths) - 1}. Each axis is split into "
            "its prime factors. To name interactions of factors, reshape the rows by "
            "PrimeFactorReshaper before and set reshaper=None, or set the poset "
            f"TensorPoset({reshaper.tensor_shape_}) in a ManyBodyProjector."
        ) from None
    modes = reshaper.axis_modes_
    expanded = [tuple(chain(*(modes[axis] for axis in axes))) for axes in order]
    return [interaction for interaction in expanded if interaction]


def names_of_cells(estimator, input_features=None):
    """Return a name for each cell of a row.

    A name comes from ``input_features``, from the names seen in ``fit``, or from the
    indices of the cell.
    """
    shape, given = estimator.input_shape_, input_features
    if len(shape) > 1 and given is not None and len(given) == prod(shape):
        # scikit-learn accepts one name per element of the first axis only, but an
        # earlier step of a pipeline names every cell.
        return list(given)
    names = list(_check_feature_names_in(estimator, input_features))
    if len(shape) > 1:
        names = ["_".join(map(str, cell)) for cell in np.ndindex(shape)]
    return names


def prime_factors(number):
    """Return the prime factors in ascending order, with repetition.

    The number 1 has no prime factors.

    Examples
    --------
    >>> prime_factors(60)
    [2, 2, 3, 5]
    """
    factors = []
    for divisor in range(2, isqrt(number) + 1):
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
    return factors + [number] if number > 1 else factors
