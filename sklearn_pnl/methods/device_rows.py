"""New rows on a device: Algorithm 2 where the training rows are.

What :class:`PNLAugmenter` does with arrays of other namespaces than NumPy, if
scikit-learn is told to dispatch on them. Codes are encoded, drawn and decoded there;
random numbers are drawn on the host, the same as for arrays of NumPy, and so are
numbers of rows. Rows are floats without types: no equality, order, step or category is
looked for, and no constraint is met.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._utils.arrays import cast, concat, namespace, place_of, reshaped, slices
from .._utils.validation import check_rows, flat
from ..control.constraints import LinearConstraints
from .codes import Codes, CodeSource
from .source import Batch, Request


class DeviceTable:
    """Rows on a device, as codes ask for them: floats without names or types."""

    labels = column_names = row_numbers = None
    owned, data_name, has_missing = False, "X", False

    def __init__(self, X):
        self.shape, self._rows = tuple(X.shape[1:]), flat(X)

    def __len__(self):
        return self._rows.shape[0]

    def numbers(self):
        """The rows (m, D)."""
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
        names = tuple(f"x{k}" for k in range(rows.shape[1]))
        self.public_equalities = LinearConstraints.empty(names)

    def of_rows(self, rows):
        """Return the bounds unchanged: rows on a device are not projected."""
        return self

    @property
    def columns(self):
        """The bounds of the columns."""
        return self


def fit_on_device(augmenter, X, method):
    """Fit a method, which is checked, to the rows of an augmenter.

    Returns
    -------
    relations : DeviceRelations
    rows : DeviceRows
    """
    caller = type(augmenter).__name__
    X = check_rows(augmenter, X, reset=True)
    for name in ("categorical_features", "value_support", "equalities"):
        value = getattr(augmenter, name)
        if not (value is None or isinstance(value, str)):
            raise _refusal(X, f"{name}={value!r} is")
    if not isinstance(method, Codes):
        raise _refusal(X, f"{method!r}, without method=Codes(order=...), is")
    table = DeviceTable(X)
    relations = DeviceRelations(table.numbers(), augmenter.extrapolation)
    source = method.fit(
        table, relations, augmenter.k_neighbors, None, augmenter.n_jobs, caller
    )
    return relations, DeviceRows(source, table.shape, X.dtype)


def _refusal(x, what):
    return ValueError(
        f"{what} for arrays of NumPy, on the host; rows are {place_of(x)}. Leave it "
        "out, or pass X as an array of NumPy."
    )


@dataclass(frozen=True)
class DeviceRows:
    """New rows like those on a device; as ``sampling.FittedRows``.

    Attributes
    ----------
    source : CodeSource
    shape : tuple of int
        Of a row.
    dtype : dtype
        Of the training rows, and of new ones.
    n_samples : int
        Of a row sampler.
    """

    source: CodeSource
    shape: tuple
    dtype: Any
    n_samples: int = 0

    def sample(self, n_samples, rng, constraints=None, totals=None, **settings):
        """New rows as a batch; constraints, totals and reports are refused."""
        if totals is not None or settings.get("reports"):
            raise _refusal(self.source.relations.columns.low, "totals and reports are")
        batches = self.row_sampler(n_samples, constraints).batches(rng, n_samples)
        return Batch(*map(concat, zip(*batches, strict=True))), None

    def row_sampler(self, n_samples, constraints=None, drops=False, advice=""):
        """New rows in batches."""
        if constraints is not None:
            raise _refusal(self.source.relations.columns.low, "constraints are")
        return replace(self, n_samples=n_samples)

    @property
    def n_numbers(self):
        """How many numbers a new row takes while it is drawn."""
        training = self.source.training
        return training.codec.n_params + training.codec.poset.n_elements

    def batches(self, rng, size):
        """Batches of ``size`` new rows, of the same random numbers for every size."""
        source, n = self.source, self.n_samples
        draw = source.draws.start(source.training, Request(n, source.n_neighbors), rng)
        # Rows of arrays of NumPy take theirs from it.
        rng.randint(np.iinfo(np.int32).max)
        for part in slices(n, size):
            new = draw(part)
            numbers = self._decoded(new)
            yield Batch(numbers, new.parents, new.weights, new.parents[:, 0])

    def _decoded(self, new):
        """Algorithm 2, steps 4 and 5: rows (b, D) of new codes, within the limits."""
        source = self.source
        drawn = new.codes, new.parents, source.caller, new.weights
        rows = source.embedding.back(source.training.decode(*drawn))
        # A value beyond a limit is reflected, as `lines.reflect` does.
        columns = source.relations.columns
        xp, low, high = namespace(rows), columns.low, columns.high
        rows = xp.where(rows < low, low + (low - rows), rows)
        rows = xp.where(rows > high, high + (high - rows), rows)
        return xp.where(rows < low, low, xp.where(rows > high, high, rows))

    def restored(self, batch):
        """New rows in the shape, type and place of the training rows."""
        rows = cast(batch.numbers, self.dtype)
        return reshaped(rows, (-1, *self.shape))
