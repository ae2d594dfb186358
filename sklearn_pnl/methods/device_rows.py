"""New rows on a device (Algorithm 2), next to the training rows.

:class:`PNLAugmenter` uses this module for arrays of other namespaces than NumPy, if
array API dispatch of scikit-learn is enabled. Rows are encoded and codes are drawn and
decoded on the device. Random numbers and indices of rows are drawn on the host, with
the same values as for NumPy arrays. All columns are floats: equalities, inequalities,
resolutions and categories are not searched for, and constraints are not supported.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._utils.arrays import cast, concat, namespace, place_of, reshaped
from .._utils.validation import check_rows, flat
from ..columns.mixing import MixableRows
from ..columns.repair import Batch
from .codes import CodeSource
from .source import Request


def fit_on_device(augmenter, X, method):
    """Fit validated :class:`Codes` to the rows of an augmenter.

    Returns
    -------
    rows : DeviceRows
        Source of new rows.
    """
    caller = type(augmenter).__name__
    X = check_rows(augmenter, X, reset=True)
    for name in ("categorical_features", "value_support", "equalities"):
        value = getattr(augmenter, name)
        if not (value is None or isinstance(value, str)):
            raise _refusal(X, f"{name}={value!r} is", f"Leave {name} at its default")
    rows, xp = flat(X), namespace(X)
    k = method.count_neighbors(augmenter.k_neighbors, rows.shape[0], "X")
    low, high = xp.min(rows, axis=0), xp.max(rows, axis=0)
    share = augmenter.extrapolation
    room = np.inf if share is None else share * (high - low)
    mixable = MixableRows(rows, tuple(X.shape[1:]), data_name="X")
    source = method.fit(mixable, k, augmenter.n_jobs, caller)
    return DeviceRows(source, low - room, high + room, X.dtype)


def _refusal(x, what, remedy):
    return ValueError(
        f"{what} supported only for NumPy arrays, but X is an array {place_of(x)}. "
        f"{remedy}, or pass X as a NumPy array."
    )


@dataclass(frozen=True)
class DeviceRows:
    """Source of new rows on a device, with the interface of ``sampling.FittedRows``.

    Attributes
    ----------
    source : CodeSource
        Encoded training rows.
    low, high : array of shape (D,)
        Bounds of new rows, on the device.
    dtype : dtype
        Dtype of the training rows and of new rows.
    n_samples : int, default=0
        Number of new rows.
    """

    source: CodeSource
    low: Any
    high: Any
    dtype: Any
    n_samples: int = 0

    def sample(self, n_samples, rng, constraints=None, totals=None, **settings):
        """Draw new rows as one batch; constraints, reports and codes are rejected."""
        if settings.get("codes"):
            raise _refusal(self.low, "return_codes=True is", "Encode the new rows")
        if totals is not None or settings.get("reports"):
            what, remedy = "totals and reports are", "Omit totals and reports"
            raise _refusal(self.low, what, remedy)
        batches = self.row_sampler(n_samples, constraints).batches(rng, n_samples)
        parts = zip(*(batch[:4] for batch in batches), strict=True)
        return Batch(*map(concat, parts)), None

    def row_sampler(self, n_samples, constraints=None, drops=False, advice=""):
        """Return a source of ``n_samples`` new rows in batches."""
        if constraints is not None:
            raise _refusal(self.low, "constraints are", "Omit constraints")
        return replace(self, n_samples=n_samples)

    @property
    def n_numbers(self):
        """Number of temporary values for each new row."""
        return self.source.n_numbers + self.source.n_cells

    def batches(self, rng, size):
        """Yield batches of ``size`` new rows within the bounds of the columns."""
        request = Request(self.n_samples, self.source.n_neighbors)
        for batch in self.source.batches(request, rng, size):
            yield batch._replace(values=self._within(batch.values))

    def _within(self, rows):
        """Reflect values that exceed the bounds of their column."""
        xp, low, high = namespace(rows), self.low, self.high
        rows = xp.where(rows < low, low + (low - rows), rows)
        rows = xp.where(rows > high, high + (high - rows), rows)
        return xp.where(rows < low, low, xp.where(rows > high, high, rows))

    def restored(self, batch):
        """Convert new rows to the shape and the dtype of the training rows."""
        rows = cast(batch.values, self.dtype)
        return reshaped(rows, (-1, *self.source.mixable.shape))
