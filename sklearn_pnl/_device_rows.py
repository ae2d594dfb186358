"""New rows on a device: Algorithm 2 where the training rows are.

What :class:`PNLAugmenter` does with arrays of other namespaces than NumPy, if
scikit-learn is told to dispatch on them. Codes are encoded, drawn and decoded there;
random numbers are drawn on the host, the same as for arrays of NumPy, and so are
numbers of rows. Rows are floats without types: no equality, order, step or category is
looked for, and no constraint is met.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._runtime.arrays import cast, concat, namespace, place_of, slices
from ._runtime.validation import check_rows, flat
from .codes import Codes
from .constraints.linear import LinearConstraints
from .draws import as_draws
from .parents import Batch, Request

_ON_HOST = "of NumPy, on the host"


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


class NoStructure:
    """What the columns of rows on a device keep: their ranges alone."""

    support, named_orders = None, []

    def __init__(self, n_columns):
        names = tuple(f"x{k}" for k in range(n_columns))
        self.public_equalities = LinearConstraints.empty(names)


def fit_on_device(augmenter, X, method):
    """Encode rows for an augmenter; ``method`` is checked and not fitted.

    Sets what a fitted :class:`PNLAugmenter` tells of its rows.
    """
    caller = type(augmenter).__name__
    X = check_rows(augmenter, X, reset=True)
    for name in ("categorical_features", "value_support", "equalities"):
        value = getattr(augmenter, name)
        if not (value is None or isinstance(value, str)):
            raise ValueError(
                f"{name}={value!r} is for arrays {_ON_HOST}; X is {place_of(X)}. Leave "
                f"it out, or pass X as an array of NumPy."
            )
    if not isinstance(method, Codes):
        raise ValueError(
            f"{caller}: {method!r} is for arrays {_ON_HOST}; X is {place_of(X)}. Pass "
            "method=Codes(order=...), or X as an array of NumPy."
        )
    table, draws = DeviceTable(X), as_draws(method.draws)
    k = method.n_neighbors(augmenter.k_neighbors, draws, len(table), table.data_name)
    training, embed, lay_out = method.encode(
        table, table.numbers(), draws, caller, augmenter.n_jobs
    )
    augmenter.method_, augmenter.n_neighbors_ = method, k
    augmenter.integer_features_ = np.empty(0, int)
    augmenter._structure = NoStructure(table.numbers().shape[1])
    xp, rows, extrapolation = namespace(X), table.numbers(), augmenter.extrapolation
    low, high = xp.min(rows, axis=0), xp.max(rows, axis=0)
    room = np.inf if extrapolation is None else extrapolation * (high - low)
    augmenter._rows = DeviceRows(
        training, method.draws_, embed, lay_out, k, low - room, high + room,
        table.shape, X.dtype, caller,
    )  # fmt: skip


@dataclass(frozen=True)
class DeviceRows:
    """Encoded rows on a device, and new rows like them; as ``engine.FittedRows``.

    Attributes
    ----------
    training : TrainingRows
    draws : Draws
    embed, lay_out : object
        Steps from the numbers of a row to the cells of a poset, and back.
    n_neighbors : int
    low, high : array of shape (D,)
        Ends of the ranges of new values.
    shape : tuple of int
        Of a row.
    dtype : dtype
        Of the training rows, and of new ones.
    caller : str
    """

    training: Any
    draws: Any
    embed: Any
    lay_out: Any
    n_neighbors: int
    low: Any
    high: Any
    shape: tuple
    dtype: Any
    caller: str

    def draw(self, n_samples, rng, constraints=None, totals=None, **settings):
        """New rows as a batch; constraints, totals and reports are refused."""
        if totals is not None or settings.get("reports"):
            raise self._refusal("totals and reports are")
        drawing = self.drawing(n_samples, constraints)
        batches = list(drawing.batches(rng, n_samples))
        return Batch(*map(concat, zip(*batches, strict=True))), None

    def drawing(self, n_samples, constraints=None, drops=False, advice=""):
        """New rows in batches."""
        if constraints is not None:
            raise self._refusal("constraints are")
        return DeviceDrawing(self, n_samples)

    def _refusal(self, what):
        where = place_of(self.low)
        return ValueError(
            f"{self.caller} was fitted on an array {where}, and {what} for arrays "
            f"{_ON_HOST}: fit it on one, or leave them out."
        )

    def decoded(self, new):
        """Algorithm 2, steps 4 and 5: rows (b, D) of new codes, within the limits."""
        cells = self.training.decode(new.codes, new.parents, self.caller, new.weights)
        rows = self.embed.back(self.lay_out.back(cells))
        # A value beyond a limit is reflected, as `lines.reflect` does.
        xp, low, high = namespace(rows), self.low, self.high
        rows = xp.where(rows < low, low + (low - rows), rows)
        rows = xp.where(rows > high, high + (high - rows), rows)
        return xp.where(rows < low, low, xp.where(rows > high, high, rows))

    def restored(self, batch):
        """New rows in the shape, type and place of the training rows."""
        rows = cast(batch.numbers, self.dtype)
        return namespace(rows).reshape(rows, (-1, *self.shape))


class DeviceDrawing:
    """New rows of :class:`DeviceRows`; as ``drawing.Drawing``."""

    def __init__(self, rows, n_samples):
        self._rows, self._n_samples = rows, n_samples

    @property
    def n_numbers(self):
        """How many numbers a new row takes while it is drawn."""
        training = self._rows.training
        return training.codec.n_params + training.codec.poset.n_elements

    def batches(self, rng, size):
        """Batches of ``size`` new rows, of the same random numbers for every size."""
        rows, n = self._rows, self._n_samples
        request = Request(n, rows.n_neighbors)
        draw = rows.draws.start(rows.training, request, rng)
        # Rows of arrays of NumPy take theirs from it.
        rng.randint(np.iinfo(np.int32).max)
        for part in slices(n, size):
            new = draw(part)
            numbers = rows.decoded(new)
            yield Batch(numbers, new.parents, new.weights, new.parents[:, 0])
