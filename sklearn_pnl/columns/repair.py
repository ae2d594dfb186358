"""Repair sampled rows: the steps that make a sampled row a valid row.

A method samples a :class:`Batch` of rows. Each of :data:`STEPS` takes the batch and the
:class:`TrainingContext` and returns the batch:

1. ``copy_cells`` copies missing cells and atoms from the donor of a row.
2. ``shorten_noise`` shortens the noise of a row until its columns in relations satisfy
   their bounds and inequalities.
3. ``add_noise`` adds the noise, and reflects values at the bounds of their columns.
4. ``copy_flags`` copies binary columns from neighbouring rows.
5. ``round_values`` rounds values to the resolution of their columns.
6. ``restore_equalities`` computes the columns that depend on changed columns.
7. ``reset_rows`` replaces rows that still violate a relation by their base rows.
8. ``convert_precision`` rounds values to the dtypes of the returned columns.
9. ``settle_inequalities`` makes columns equal if only rounding violates their order.
10. ``audit`` checks the rows, and warns or raises an error.

Codes are projected onto relations after step 4, and all rows onto the requests of a
user after step 7; see :func:`steps_with`. No other module repairs rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, issparse

from .._utils.arrays import (
    assign_columns,
    dense,
    nonzero_cells,
    slices,
    some_columns,
    take_cells,
)
from .audit import audit_relations
from .constraints import EPS
from .rounding import (
    clip_to_order,
    follow,
    off_resolution,
    reset_together,
    restore,
    round_in_order,
)

# Factors of noise stay this far below the bound, so that rounding cannot exceed it.
_WITHIN = 1 - 1e-12
# Number of roundings of the largest value of a column that noise must exceed.
_ROUNDINGS = 64


class Batch(NamedTuple):
    """New rows (b, D) with their parents.

    Attributes
    ----------
    values : ndarray or sparse matrix of shape (b, D)
    parents : ndarray of int of shape (b, k)
        Indices of training rows, the base row first.
    weights : ndarray of shape (b, k)
        Weights of the parents.
    donors : ndarray of int of shape (b,)
        Training rows that give the categories, and the cells that are not mixed.
    noise : ndarray or sparse matrix of shape (b, D) or None
        Noise that is not yet added to the values.
    givers : ndarray of int of shape (b, n_blocks) or None
        Training rows that give the blocks of binary columns. None copies all blocks
        from the donor.
    indices : ndarray of int of shape (b,) or None
        Positions of the rows among all requested rows.
    exact : ndarray of shape (b, D) or None
        The values before single cells were reflected, copied and rounded. They satisfy
        near equalities as closely as the training rows do.
    codes : ndarray of shape (b, n_params) or None
        Codes from which the rows were decoded, if the request asks for codes.
    divergences : ndarray of shape (b,) or None
        Divergence of each decoded row from the point of its code.
    """

    values: Any
    parents: Any
    weights: Any
    donors: Any
    noise: Any = None
    givers: Any = None
    indices: Any = None
    exact: Any = None
    codes: Any = None
    divergences: Any = None

    def take_rows(self, rows):
        """Select rows of the batch."""
        return Batch(*[None if part is None else part[rows, ...] for part in self])


@dataclass(frozen=True)
class TrainingContext:
    """The training rows of a class, and what each new row of the class must satisfy.

    Attributes
    ----------
    relations : ColumnRelations
        Relations of the rows of all classes.
    rows : ndarray or sparse matrix of shape (m, D) or None
        Training rows; None if no step needs the rows.
    absent : ndarray of bool of shape (m, D) or None
        Cells of the training rows that are not mixed.
    blocks : ndarray of int of shape (n_binary,)
        Block of each binary column.
    side : ndarray of int of shape (m,) or None
        The number of the bounds of each training row.
    sides : ndarray of shape (2, n_sides, D) or None
        Bounds of the new rows whose donor is on a side. None stands for the bounds of
        the columns.
    caller : str
        The estimator that messages name.
    """

    relations: Any
    rows: Any
    absent: NDArray | None
    blocks: Any
    side: NDArray | None
    sides: NDArray | None
    caller: str

    def bounds(self, donors):
        """Return the lower and the upper bounds of new rows with some donors (b,)."""
        if self.sides is None:
            return self.relations.columns.low, self.relations.columns.high
        return self.sides[:, self.side[donors]]


def repair(batch, context, steps):
    """Apply steps to a batch."""
    for step in steps:
        batch = step(batch, context)
    return batch


# --- cells of parents ---------------------------------------------------------------


def copy_cells(batch, context):
    """Copy the cells that are not mixed from the donor.

    A row that is mixed with rows on another side of a threshold can cross it. Then the
    cell is copied, too. A copied cell can be on the wrong side of a mixed cell. Then
    all columns in relations are copied.
    """
    values, donors, relations = batch.values, batch.donors, context.relations
    absent = context.absent
    if absent is None and context.sides is None:
        return batch
    is_copied, is_beyond = np.zeros((2, *values.shape), bool)
    if absent is not None:
        for parents in batch.parents.T:
            is_copied |= absent[parents]
    if context.sides is not None:
        low, high = context.bounds(donors)
        is_beyond = (values < low) | (values > high)
        is_copied |= is_beyond & ~relations.tied
    given = context.rows[donors]
    np.copyto(values, given, where=is_copied)
    tied = np.flatnonzero(relations.tied)
    if len(tied):
        disorders = relations.disorders(values, room=relations.rounding_of_inequalities)
        is_broken = is_beyond[:, tied].any(axis=1)
        is_broken |= disorders[:, relations.is_ordered].any(axis=1)
        broken = np.flatnonzero(is_broken)
        values[np.ix_(broken, tied)] = given[np.ix_(broken, tied)]
    return batch


def copy_flags(batch, context):
    """Copy each block of binary columns from one training row."""
    binary = np.flatnonzero(context.relations.columns.binary)
    if not len(binary):
        return batch
    givers, blocks, values = batch.givers, context.blocks, batch.values
    if givers is None:
        givers, blocks = batch.donors[:, None], np.zeros(len(binary), int)
    if issparse(values):
        values = _with_sparse_flags(values, context, givers, blocks)
    else:
        givers = some_columns(givers, blocks)
        assign_columns(values, binary, take_cells(context.rows, givers, binary))
    return batch._replace(values=values, givers=None)


def _with_sparse_flags(values, context, givers, blocks):
    """Return sparse values (b, D) with the binary columns of the givers."""
    binary, values = context.relations.columns.binary, values.copy()
    block_of = np.zeros(values.shape[1], int)
    block_of[binary] = blocks
    values.data[binary[values.indices]] = 0
    # A row has few givers, each of several blocks.
    m, b = context.rows.shape[0], len(givers)
    row, giver = np.divmod(np.unique(givers + m * np.arange(b)[:, None]), m)
    flags = context.rows[giver]
    pair, column = np.repeat(np.arange(len(row)), np.diff(flags.indptr)), flags.indices
    is_given = givers[row[pair], block_of[column]] == giver[pair]
    cells = np.flatnonzero(is_given & binary[column])
    places = row[pair[cells]], column[cells]
    values = (values + coo_array((flags.data[cells], places), values.shape)).tocsr()
    values.eliminate_zeros()
    values.sort_indices()
    return values


# --- noise and bounds ---------------------------------------------------------------


def shorten_noise(batch, context):
    """Shorten the noise of a row until columns in relations are within their bounds.

    Columns in inequalities satisfy the inequalities, too.

    All columns in relations have one factor, so that equalities are preserved. Without
    bounds, all columns of the row have this factor: the new row is then an affine
    combination of training rows.
    """
    relations, tied = context.relations, context.relations.tied
    if batch.noise is None or not tied.any():
        return batch
    noise, columns = batch.noise, relations.columns
    # Rounding errors of columns in which all neighbours agree would look like noise.
    size = np.maximum(np.abs(columns.least), np.abs(columns.most))
    noise[np.abs(noise) <= _ROUNDINGS * EPS * size] = 0
    low, high = context.bounds(batch.donors)
    factors = folded(
        np.minimum(
            _factors_within(batch.values, noise, low, high, tied),
            _factors_within_inequalities(batch.values, noise, relations),
        )
    )
    # A mixed value is 0 if both parents have 0, and then stays 0.
    is_zero = (batch.values == 0) & (noise != 0) & relations.in_equality
    factors[is_zero.any(axis=1)] = 0
    shorter = np.flatnonzero(factors < 1)
    linked = relations.linked if columns.has_bounds else np.ones(len(tied), bool)
    scaled = np.flatnonzero(linked)
    noise[np.ix_(shorter, scaled)] *= factors[shorter, None]
    return batch


def add_noise(batch, context):
    """Add the noise, and reflect values that exceed the bounds of their column."""
    values, noise = batch.values, batch.noise
    low, high = context.bounds(batch.donors)
    if issparse(values):
        if noise is not None:
            values = (values + noise).tocsr()
        reflect(values.data, low[values.indices], high[values.indices])
        return batch._replace(values=values, noise=None)
    if noise is not None:
        values += noise
    # Reflection changes single columns, but none of a near equality except for flags.
    exact = values.copy() if context.relations.near else None
    reflect(values, low, high)
    return batch._replace(noise=None, exact=exact)


def folded(s):
    """Return where a step of length 1 ends that is reflected in [0, s]."""
    with np.errstate(invalid="ignore", divide="ignore"):
        at = np.mod(1.0, 2 * s)
    inside = np.where(s > 0, np.minimum(at, 2 * s - at), 0.0) * _WITHIN
    return np.where(s >= 1, 1.0, inside)


def _factors_within(rows, step, low, high, tied):
    """Compute the largest factors (n,) of steps within the bounds of tied columns."""
    factors, end = np.full(len(rows), np.inf), rows + step
    # Only steps that leave the bounds have a factor below 1.
    row, column = nonzero_cells(((end < low) | (end > high)) & tied)
    x, d = rows[row, column], step[row, column]
    low, high = (
        np.broadcast_to(bound, rows.shape)[row, column] for bound in (low, high)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(d != 0, (np.where(d > 0, high, low) - x) / d, np.inf)
    np.minimum.at(factors, row, ratio)
    return np.maximum(factors, 0)


def _factors_within_inequalities(rows, step, relations):
    """Compute the largest factors (n,) of steps that keep columns in order."""
    factors, inequalities = np.full(len(rows), np.inf), relations.ordered
    distances = relations.distances[relations.is_ordered]
    for part in slices(len(inequalities), 64):
        p, q = inequalities[part].T
        closing = step[:, p] - step[:, q]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = (rows[:, q] - rows[:, p] - distances[part]) / closing
        ratio = np.where(closing > 0, ratio, np.inf)
        factors = np.minimum(factors, np.nanmin(ratio, axis=1, initial=np.inf))
    return np.maximum(factors, 0)


def reflect(values, low, high):
    """Reflect values once at the bound that they exceed, then clip, in place.

    Clipping without reflection would collect values on the bound, where a tree
    separates them from the other rows.
    """
    where = nonzero_cells((values < low) | (values > high))
    if not len(where[0]):
        return
    low = np.broadcast_to(low, values.shape)[where]
    high = np.broadcast_to(high, values.shape)[where]
    x = values[where]
    with np.errstate(over="ignore"):
        x = np.where(x < low, low + (low - x), x)
        x = np.where(x > high, high + (high - x), x)
    values[where] = np.clip(x, low, high)


# --- rounding -----------------------------------------------------------------------


def round_values(batch, context):
    """Round values to the resolution of their columns, except for atoms."""
    values, columns = batch.values, context.relations.columns
    rounded = (columns.steps > 0) & ~columns.binary
    c = np.flatnonzero(rounded)
    if not len(c):
        return batch
    if issparse(values):
        cells = np.flatnonzero(rounded[values.indices])
        c = values.indices[cells]
        x = columns.rounded(values.data[cells], c)
        values.data[cells] = np.clip(x, columns.low[c], columns.high[c])
        return batch
    given = some_columns(values, c)
    x = np.clip(columns.rounded(given, c), columns.low[c], columns.high[c])
    # Writing single columns takes longer than the comparison.
    if not np.array_equal(x, given):
        assign_columns(values, c, x)
    round_in_order(values, context.relations)
    if context.absent is not None:
        # Atoms may be on no multiple of a resolution.
        is_copied = context.absent[batch.donors]
        np.copyto(values, context.rows[batch.donors], where=is_copied)
    return batch


def restore_equalities(batch, context):
    """Compute the columns that depend on copied and rounded columns."""
    if context.relations.near:
        follow(batch.values, batch.exact, context.relations)
    if len(context.relations.equalities):
        restore(batch.values, context.relations)
    return batch._replace(exact=None)


def convert_precision(batch, context):
    """Round values to the precision of the returned columns.

    If all columns are in single precision, the values are, too.
    """
    values = _as_returned(batch.values, context.relations.columns.table.precision)
    return batch._replace(values=values)


def _as_returned(values, precision):
    is_single = precision > EPS
    if not is_single.any():
        return values
    most = float(np.finfo(np.float32).max)
    if is_single.all():
        if issparse(values):
            values.data = _as_returned(values.data, precision)
            return values
        return np.clip(values, -most, most).astype(np.float32, copy=False)
    within = np.clip(values[:, is_single], -most, most)
    values[:, is_single] = within.astype(np.float32)
    return values


# --- rows that violate a relation ---------------------------------------------------


def reset_rows(batch, context):
    """Replace the cells of rows that violate a relation by cells of their base rows.

    All columns of a relation are reset, since the base rows satisfy it.
    """
    values, relations = batch.values, context.relations
    if issparse(values):
        return batch
    broken = relations.breaks(values, rounding=True)
    broken |= off_resolution(values, relations)
    broken = np.flatnonzero(broken)
    if len(broken):
        donors, base_rows = batch.donors.copy(), batch.parents[broken, 0]
        columns = np.flatnonzero(reset_together(relations))
        values[np.ix_(broken, columns)] = dense(context.rows[base_rows])[:, columns]
        donors[broken] = base_rows
        batch = batch._replace(donors=donors)
        if context.absent is not None:
            is_copied = np.zeros(values.shape, bool)
            is_copied[broken] = context.absent[base_rows]
            np.copyto(values, context.rows[donors], where=is_copied)
    return batch


def settle_inequalities(batch, context):
    """Make columns equal if they violate an order only by rounding."""
    if len(context.relations.ordered):
        clip_to_order(batch.values, context.relations)
    return batch


def audit(batch, context):
    """Check new rows in the precision in which each column is returned."""
    audit_relations(batch.values, context.relations, context.caller)
    return batch


STEPS = (
    copy_cells,
    shorten_noise,
    add_noise,
    copy_flags,
    round_values,
    restore_equalities,
    reset_rows,
    convert_precision,
    settle_inequalities,
    audit,
)
# The steps that run once after the totals of all new rows.
LAST_STEPS = STEPS[-3:-1]


def steps_with(*, relations=None, requests=None, check=None):
    """Return the steps with projections onto relations or requests.

    Parameters
    ----------
    relations : callable, default=None
        Step that projects rows of a method that does not preserve relations.
    requests : callable, default=None
        Step that projects rows onto the requests of a user.
    check : callable, default=None
        Last step; None for ``audit``.
    """
    first, second = STEPS.index(round_values), STEPS.index(convert_precision)
    steps = [*STEPS[:first], relations, *STEPS[first:second], requests]
    return tuple(s for s in (*steps, *LAST_STEPS, check or STEPS[-1]) if s is not None)
