"""New rows on a device (Algorithm 2), next to the training rows.

:class:`PNLAugmenter` uses this module for arrays of other namespaces than NumPy, if
array API dispatch of scikit-learn is enabled. Rows are encoded and codes are drawn and
decoded on the device. Random numbers and indices of rows are drawn on the host, with
the same values as for NumPy arrays. All columns are floats: equalities, orders,
resolutions and categories are not searched for, and constraints are not supported.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._utils.arrays import cast, concat, namespace, place_of, reshaped, slices
from .._utils.validation import check_rows, flat
from ..columns.constraints import LinearConstraints
from .codes import Codes, CodeSource
from .source import Batch, Request


class DeviceTable:
    """Table of floats on a device, without names or types of columns."""

    labels = column_names = row_numbers = None
    owned, data_name, has_missing = False, "X", False

    def __init__(self, X):
        self.shape, self._rows = tuple(X.shape[1:]), flat(X)

    def __len__(self):
        return self._rows.shape[0]

    def numbers(self):
        """Return the rows (m, D)."""
        return self._rows


class DeviceRelations:
    """Bounds of the columns of rows on a device, in place of relations."""

    support, named_orders, binary = None, [], np.empty(0, bool)
    equalities = orders = ()

    def __init__(self, rows, extrapolation):
        xp = namespace(rows)
        low, high = xp.min(rows, axis=0), xp.max(rows, axis=0)
        room = np.inf if extrapolation is None else extrapolation * (high - low)
        self.low, self.high = low - room, high + room
        self.feature_names = tuple(f"x{k}" for k in range(rows.shape[1]))
        self.public_equalities = LinearConstraints.empty(self.feature_names)

    def of_rows(self, rows):
        """Return the bounds unchanged: rows on a device are not projected."""
        return self

    @property
    def columns(self):
        """Bounds and names of the columns."""
        return self

    # `FeasibleSet` reads the names of the columns from the table of the columns.
    table = columns


def fit_on_device(augmenter, X, method):
    """Fit a validated method to the rows of an augmenter.

    Returns
    -------
    relations : DeviceRelations
        Bounds of the columns.
    rows : DeviceRows
        Source of new rows.
    """
    caller = type(augmenter).__name__
    X = check_rows(augmenter, X, reset=True)
    for name in ("categorical_features", "value_support", "equalities"):
        value = getattr(augmenter, name)
        if not (value is None or isinstance(value, str)):
            raise _refusal(X, f"{name}={value!r} is", f"Leave {name} at its default")
    if not isinstance(method, Codes):
        raise _refusal(X, f"method={method!r} is", "Use method='codes'")
    table = DeviceTable(X)
    relations = DeviceRelations(table.numbers(), augmenter.extrapolation)
    source = method.fit(
        table, relations, augmenter.k_neighbors, None, augmenter.n_jobs, caller
    )
    return relations, DeviceRows(source, table.shape, X.dtype)


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
    shape : tuple of int
        Shape of a row.
    dtype : dtype
        Dtype of the training rows and of new rows.
    n_samples : int, default=0
        Number of new rows.
    """

    source: CodeSource
    shape: tuple
    dtype: Any
    n_samples: int = 0

    def sample(self, n_samples, rng, constraints=None, totals=None, **settings):
        """Draw new rows as one batch; constraints, totals and reports are rejected."""
        if totals is not None or settings.get("reports"):
            what, remedy = "totals and reports are", "Omit totals and reports"
            raise _refusal(self.source.relations.columns.low, what, remedy)
        batches = self.row_sampler(n_samples, constraints).batches(rng, n_samples)
        return Batch(*map(concat, zip(*batches, strict=True))), None

    def row_sampler(self, n_samples, constraints=None, drops=False, advice=""):
        """Return a source of ``n_samples`` new rows in batches."""
        if constraints is not None:
            low, remedy = self.source.relations.columns.low, "Omit constraints"
            raise _refusal(low, "constraints are", remedy)
        return replace(self, n_samples=n_samples)

    @property
    def n_numbers(self):
        """Number of temporary values for each new row."""
        training = self.source.training
        return training.codec.n_params + training.codec.poset.n_elements

    def batches(self, rng, size):
        """Yield batches of ``size`` new rows; the rows do not depend on the size."""
        source, n = self.source, self.n_samples
        draw = source.draws.start(source.training, Request(n, source.n_neighbors), rng)
        # NumPy rows draw a seed at this point, so that later random numbers agree.
        rng.randint(np.iinfo(np.int32).max)
        for part in slices(n, size):
            new = draw(part)
            numbers = self._decoded(new)
            yield Batch(numbers, new.parents, new.weights, new.parents[:, 0])

    def _decoded(self, new):
        """Decode new codes to rows (b, D) within the bounds (steps 4 and 5)."""
        source = self.source
        drawn = new.codes, new.parents, source.caller, new.weights
        rows = source.embedding.back(source.training.decode(*drawn))
        # A value outside the bounds is reflected, as in `lines.reflect`.
        columns = source.relations.columns
        xp, low, high = namespace(rows), columns.low, columns.high
        rows = xp.where(rows < low, low + (low - rows), rows)
        rows = xp.where(rows > high, high + (high - rows), rows)
        return xp.where(rows < low, low, xp.where(rows > high, high, rows))

    def restored(self, batch):
        """Convert new rows to the shape and the dtype of the training rows."""
        rows = cast(batch.numbers, self.dtype)
        return reshaped(rows, (-1, *self.shape))
