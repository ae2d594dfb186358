"""Find the values that a column can have: steps, resolution and atoms."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from .._utils.arrays import slices, with_errstate

# Largest probability that unrelated values are on every second, third, ... step.
CHANCE = 1e-3
# Units of time in the printed form. Months and years have no fixed number of days.
_UNITS = {
    "day": np.timedelta64(1, "D"),
    "hour": np.timedelta64(1, "h"),
    "minute": np.timedelta64(1, "m"),
    "second": np.timedelta64(1, "s"),
}
_CALENDAR_UNITS = {"year": np.timedelta64(12, "M"), "month": np.timedelta64(1, "M")}
# Number of rows that rule out most columns before all rows are used.
FEW_ROWS = 1024
# Number of decimals of the finest step.
_MOST_DECIMALS = 4
# All months have this number of days.
_DAYS_OF_MONTH = 28


@dataclass(frozen=True, repr=False)
class ValueSupport:
    """Steps, resolution and atoms of the columns of a table.

    The values of column j are ``(origins[j] + k * widths[j]) * steps[j]`` with an
    integer k, the dates in ``calendars[j]``, or atoms. New rows have values of this
    form. Rows that a constraint or a total moves have values of this form if the
    request allows it, and multiples of the steps otherwise. The printed form lists the
    support of each column.

    Parameters
    ----------
    names : tuple of str of length D
        Names of the columns.
    steps : ndarray of shape (D,)
        Values are multiples of the step: 1 for integers, 0.01 for cents. The step 0
        stands for arbitrary values.
    atoms : dict of int to ndarray
        Atoms of each column: values that many rows share, 0 first.
    widths, origins : ndarray of shape (D,), default=None
        The resolution in steps: the distance between neighbouring values, and the least
        value. None uses 1 and 0.
    scales : dict of int to tuple, default={}
        For columns of times or large integers, the value that 0 stands for, and the
        unit.
    calendars : dict of int to tuple, default={}
        For columns with one date every few months, the number of months, and all dates
        in the range of the column as numeric values.

    See Also
    --------
    PNLAugmenter : Generate new rows that preserve the value support.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.columns.value_support import ValueSupport
    >>> print(ValueSupport(("price", "rooms"), np.array([0.01, 1]), {0: np.zeros(1)}))
    value support of 2 of 2 columns
      price: multiples of 0.01; often 0
      rooms: integers
    """

    names: tuple
    steps: NDArray
    atoms: dict = field(default_factory=dict)
    widths: NDArray | None = None
    origins: NDArray | None = None
    scales: dict = field(default_factory=dict)
    calendars: dict = field(default_factory=dict)

    def __post_init__(self):
        if self.widths is None:
            object.__setattr__(self, "widths", np.ones(len(self.steps)))
            object.__setattr__(self, "origins", np.zeros(len(self.steps)))

    def __repr__(self):
        lines = []
        for j, name in enumerate(self.names):
            words = [self._words_of(j)] if self.steps[j] else []
            if j in self.atoms:
                atoms = (self._value_of(j, atom) for atom in self.atoms[j])
                words.append("often " + ", ".join(map(_in_words, atoms)))
            if words:
                lines.append(f"  {name}: {'; '.join(words)}")
        head = f"value support of {len(lines)} of {len(self.names)} columns"
        return "\n".join([head, *lines])

    def spacings(self, sizes: NDArray) -> NDArray:
        """Return ``sizes`` (D,) with the least distance of dates that have a calendar.

        ``sizes`` are the distances of neighbouring values of the other columns.
        """
        spacings = sizes.copy()
        for j, (_, dates) in self.calendars.items():
            spacings[j] = np.diff(dates).min()
        return spacings

    def are_atoms(self, rows: NDArray) -> NDArray:
        """Return the mask of cells of rows (n, D) that are atoms of their columns."""
        are_atoms = np.zeros(rows.shape, bool)
        for j, values in self.atoms.items():
            are_atoms[:, j] = np.isin(rows[:, j], values)
        return are_atoms

    @property
    def is_coarse(self) -> bool:
        """Whether the resolution of a column is coarser than its steps."""
        return bool(self.calendars) or bool((self.widths > 1).any())

    def _value_of(self, j, number):
        """Return the value of column j that a number stands for."""
        if j not in self.scales:
            return number
        zero, unit = self.scales[j]
        return zero + int(number) * unit

    def _words_of(self, j):
        """Describe the distance of values of column j, and a start other than 0."""
        if j in self.calendars:
            months, dates = self.calendars[j]
            step = np.timedelta64(months, "M")
            first = _in_words(self._value_of(j, dates[0]))
            return f"multiples of {_in_words(step)}, from {first}"
        step, first = self.widths[j] * self.steps[j], self.origins[j] * self.steps[j]
        at_zero = self.origins[j] % self.widths[j] == 0
        if j in self.scales:
            first, step = self._value_of(j, first), int(step) * self.scales[j][1]
            is_date = isinstance(first, np.datetime64)
            at_zero = not (first - np.datetime64(0, "D") if is_date else first) % step
            # Only steps that divide a day have the same times on all days.
            at_zero &= not (is_date and np.timedelta64(1, "D") % step)
        if j not in self.scales and step == 1:
            return "integers"
        begin = "" if at_zero else f", from {_in_words(first)}"
        return f"multiples of {_in_words(step)}{begin}"


def _in_words(value):
    """Format a number, a date in UTC, or a duration."""
    if isinstance(value, np.datetime64):
        return np.datetime_as_string(value, unit="auto").replace("T", " ")
    if not isinstance(value, np.timedelta64):
        return f"{value:.12g}" if isinstance(value, float) else str(value)
    is_calendar = np.datetime_data(value)[0] == "M"
    for name, unit in (_CALENDAR_UNITS if is_calendar else _UNITS).items():
        count, rest = divmod(value, unit)
        if count and not rest:
            return f"{count} {name}{'' if count == 1 else 's'}"
    return str(value) if value else "0"


def find_value_support(numbers, table):
    """Search the columns of a table for steps.

    Parameters
    ----------
    numbers : ndarray of shape (n, D)
        Numeric values of the training rows; NaN if a cell is missing.
    table : Table
        Types of the columns.

    Returns
    -------
    support : ValueSupport
    """
    steps = table.steps.astype(np.float64)
    c = np.flatnonzero(steps == 0)
    steps[c] = decimal_steps(numbers, c, table.precision)
    scales = {j: table.time_scale(j) for j in np.flatnonzero(table.times).tolist()}
    for j in np.flatnonzero(table.starts).tolist():
        scales[j] = int(table.starts[j]), 1
    return ValueSupport(table.feature_names, steps, scales=scales)


def find_resolution(support, numbers, columns, has_atoms):
    """Search columns with steps for a resolution that is coarser than the steps.

    Parameters
    ----------
    support : ValueSupport
    numbers : ndarray of shape (n, D)
        Numeric values of the training rows; NaN if a cell is missing.
    columns : ndarray of int of shape (c,)
        Columns that are searched.
    has_atoms : ndarray of bool of shape (D,)
        Columns whose atoms new rows copy, so that atoms need no resolution.

    Returns
    -------
    support : ValueSupport
    """
    widths, origins = np.ones(len(support.steps)), np.zeros(len(support.steps))
    calendars = {}
    for j in _may_be_coarse(support, numbers, columns[support.steps[columns] > 0]):
        atoms = support.atoms.get(j, ()) if has_atoms[j] else ()
        values = np.unique(numbers[:, j])
        values = values[~(np.isnan(values) | np.isin(values, atoms))]
        width, first = _width_of(values, support.steps[j])
        calendar = _calendar_of(values, *support.scales.get(j, (None, None)))
        if not _is_chance(width, len(values)):
            widths[j], origins[j] = width, first
        if calendar is None or _is_chance(calendar[0] * _DAYS_OF_MONTH, len(values)):
            continue
        n_multiples = (values[-1] - values[0]) / (widths[j] * support.steps[j]) + 1
        if len(calendar[1]) <= n_multiples:
            calendars[j], widths[j], origins[j] = calendar, 1.0, 0.0
    return replace(support, widths=widths, origins=origins, calendars=calendars)


def _may_be_coarse(support, numbers, columns):
    """Return the columns whose resolution a few rows do not rule out."""
    places = np.random.default_rng(0).integers(len(numbers), size=64)
    few = numbers[np.ix_(places, columns)]
    with np.errstate(over="ignore"):
        steps = (few - np.fmin.reduce(few, axis=0)) / support.steps[columns]
    steps = np.rint(np.clip(np.nan_to_num(steps), 0, 2.0**53)).astype(np.int64)
    may_be = np.gcd.reduce(steps, axis=0) != 1
    special = [*support.atoms, *support.scales]
    return columns[may_be | np.isin(columns, special)].tolist()


def _is_chance(width, n_values):
    """Whether different values may be on every ``width``-th step by chance."""
    return n_values < 3 or float(width) ** (1 - n_values) > CHANCE


def _width_of(values, step):
    """Return the largest distance that divides those of values, and the first value.

    Both are in steps. ``values`` are sorted. The distance is 0 if there are fewer than
    two values.
    """
    counts = np.rint(values / step)
    if np.abs(counts).max(initial=0) >= 2.0**53:
        return 1, 0.0
    first = counts[0] if len(counts) else 0.0
    return int(np.gcd.reduce((counts - first).astype(np.int64))), first


def _calendar_of(values, zero, unit):
    """Search a day of the month, every few months, that all dates have.

    The day is counted from the start of the month (the 15th), or from its end.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Different dates as sorted numeric values.
    zero, unit : datetime64 and timedelta64
        Origin and unit of dates; values of other types have no calendar.

    Returns
    -------
    calendar : tuple or None
        The number of months, and all dates in the range of the values as numeric
        values. None if there is no such day.
    """
    if not isinstance(zero, np.datetime64) or len(values) < 2:
        return None
    # Centuries in nanoseconds would overflow.
    start, step = zero.astype("M8[s]"), unit.astype("m8[s]")
    if start != zero or step != unit:
        return None
    dates = start + values.astype(np.int64) * step
    # Numbers of months, because NumPy deprecates sums of dates and integers.
    months = dates.astype("M8[M]").astype(np.int64)
    for turn in (0, 1):
        # The distance from the start of the month, or of the next month.
        days = dates - (months + turn).astype("M8[M]").astype(dates.dtype)
        if (days == days[0]).all() and days[0] < np.timedelta64(_DAYS_OF_MONTH, "D"):
            width = np.gcd.reduce(months - months[0])
            every = np.arange(months[0], months[-1] + 1, width) + turn
            every = every.astype("M8[M]").astype(dates.dtype) + days[0]
            return int(width), ((every - start) / step).astype(np.float64)
    return None


def decimal_steps(rows, columns, precision):
    """Find the powers of ten (c,), 1 to 0.0001, that divide all values of columns.

    The step is 0 for other columns, and for columns without values.
    """
    rng, n, may_be = np.random.default_rng(0), len(rows), np.arange(len(columns))
    # A few rows rule out most columns; columns with many zeros need more rows.
    for size in (8, 256) if n > FEW_ROWS else (8,):
        cells = rows[np.ix_(rng.integers(n, size=size), columns[may_be])]
        may_be = may_be[_divisors(cells, precision[columns[may_be]]) > 0]
    steps = np.zeros(len(columns))
    for k in may_be:
        values = rows[:, [columns[k]]]
        has_values = not np.isnan(values).all()
        steps[k] = _divisors(values, precision[columns[[k]]])[0] if has_values else 0
    return steps


@with_errstate(over="ignore", invalid="ignore")
def single_precision_steps(rows, columns):
    """Return the spacing (c,) of the largest values of columns in single precision.

    Many files contain values that were computed in single precision, with 15 digits.
    The spacing of columns with other values is 0.
    """
    values = rows[:, columns]
    single = values.astype(np.float32)
    is_single = (np.abs(single - values) <= 1e-14 * np.abs(values)).all(axis=0)
    spacing = np.spacing(np.abs(single).max(axis=0, initial=0)).astype(np.float64)
    return np.where(is_single, spacing, 0.0)


def _divisors(rows, precision):
    """Find the powers of ten (D,) that divide all values of rows; else 0."""
    rows, steps = rows.astype(np.float64), np.zeros(rows.shape[1])
    room = 2 * precision * np.abs(rows)
    # Steps as fine as the rounding of the type are not evidence of a resolution.
    finest = 8 * np.fmax.reduce(room, axis=0, initial=0.0)
    # Most columns are not on the finest step, and then on no other step.
    is_rounded = _are_multiples(rows, _MOST_DECIMALS, room)
    for decimals in range(1 + _MOST_DECIMALS):
        unknown = is_rounded & (steps == 0)
        if not unknown.any():
            break
        step = 10.0**-decimals
        are_multiples = _are_multiples(rows, decimals, room)
        steps[unknown & are_multiples & (step >= finest)] = step
    return steps


def _are_multiples(rows, decimals, room):
    """Return the mask of columns (D,) whose known values have so many decimals."""
    with np.errstate(over="ignore", invalid="ignore"):
        return ~(np.abs(rows - np.round(rows, decimals)) > room).any(axis=0)


def find_atoms(numbers, columns):
    """Find the atoms of columns: up to three values that many more rows share.

    An atom has at least 3% of the values, five rows, and four times the rows of the
    fourth most frequent value. A column with fewer than five values has no atom.

    Parameters
    ----------
    numbers : ndarray of shape (n, D)
        Numeric values; NaN if a cell is missing.
    columns : ndarray of int of shape (c,)
        Columns that are searched.

    Returns
    -------
    atoms : dict of int to ndarray
        Atoms of each column, 0 first. Columns without atoms are left out.
    """
    n, atoms, few = len(numbers), {}, numbers
    if n > 2 * FEW_ROWS:
        few = numbers[np.random.default_rng(0).integers(n, size=FEW_ROWS)]
    for part in slices(len(columns), 256):
        # NaN is sorted last, and equals no other value.
        ordered = np.sort(few[:, columns[part]].astype(np.float64), axis=0)
        lacks = np.isnan(ordered[len(few) // 2])
        is_shared = (ordered[4:] == ordered[:-4]).any(axis=0)
        for j in np.flatnonzero(is_shared | lacks).tolist():
            column, x = int(columns[part][j]), ordered[:, j]
            if few is not numbers:
                # A few rows with values rule out most columns.
                if not (lacks[j] or len(_frequent(x, 0.01, 1.25))):
                    continue
                x = numbers[:, column].astype(np.float64)
            found = _frequent(x, 0.03, 4)
            if len(found):
                atoms[column] = found
    return atoms


def _frequent(values, share, factor):
    """Return up to three values that a share of all values has, 0 first.

    Each of them is also ``factor`` times as frequent as the fourth most frequent value.
    """
    values = values[~np.isnan(values)]
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) < 5:
        return distinct[:0]
    fourth = np.sort(counts)[-4]
    found = distinct[counts >= max(5, share * len(values), factor * fourth)]
    return found[np.argsort(found != 0, kind="stable")]
