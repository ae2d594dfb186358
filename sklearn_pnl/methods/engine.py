"""From rows that were read to new ones, in three calls that all estimators make.

    find_structure   what the columns of all rows keep (`constraints/structure.py`)
    fit_rows         a method makes a source of new rows of some training rows
    FittedRows.draw  new rows of the source, with what is asked of them, checked

`PNLAugmenter._fit_table` makes the second call, also for the samplers.

A *method* (:class:`Lines`, :class:`Codes`) has ``fit(table, structure, k_neighbors,
groups, n_jobs, caller)``, which gives a source, and says whether rows may have missing
cells (``allows_missing``) or be negative (not ``positive_only``). A *source* has
``batches(request, rng, size)`` of new rows, ``training_rows()`` and what each is to
satisfy (``feasible``); ``strata``, ``n_neighbors`` and ``has_donors`` are for the
request; it says whether new rows satisfy equalities as they are drawn
(``keeps_equalities``), whether their categories can be counted (``can_count``) and
training rows weighted (``takes_shares``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from .._utils.arrays import dense
from .._utils.validation import COUNT, NOT_NEGATIVE, ObjectsByName, warn_user
from ..control.audit import report_of
from ..control.calibration import effective_size
from ..control.constraints import (
    CONSTRAINTS,
    Constraint,
    LinearConstraints,
    read_constraints,
)
from ..control.relations import Structure
from ..control.value_support import ValueSupport
from ..frames import read_table, warn_extreme_values
from .codes import Codes
from .drawing import Drawing, joined, sample_set
from .lines import Lines
from .parents import Request

_METHODS = {"lines": Lines, "codes": Codes, "paper": Codes.paper}
MethodLike: TypeAlias = Literal["auto", "lines", "codes", "paper"] | Lines | Codes
EqualitiesLike: TypeAlias = Literal["auto"] | Constraint | Sequence | None


class Augmentation(ObjectsByName, BaseEstimator):
    """Common parameters of augmenter and samplers, and what they tell of the rows."""

    _parameter_constraints: ClassVar[dict] = {
        "method": [StrOptions({"auto", *_METHODS}), Lines, Codes],
        "order": Codes._parameter_constraints["order"],
        "k_neighbors": [COUNT, StrOptions({"auto"})],
        "categorical_features": ["array-like", StrOptions({"auto"}), None],
        "value_support": [StrOptions({"auto"}), None],
        "extrapolation": [NOT_NEGATIVE, None],
        "equalities": [StrOptions({"auto"}), *CONSTRAINTS, None],
        "n_jobs": [Integral, None],
    }
    _objects: ClassVar[dict] = {
        "method": {
            "auto": "Codes() or method=Lines()",
            "lines": "Lines()",
            "codes": "Codes()",
            "paper": "Codes.paper()",
        }
    }
    # What "auto" stands for: for tables, and for codes.
    _auto: ClassVar[tuple] = Lines, Codes
    _structure: Structure
    _rows: FittedRows

    def _validate_params(self):
        """Check each parameter, and refuse an order that would change nothing."""
        super()._validate_params()
        if self.order is not None and self.method not in ("auto", "codes", "paper"):
            raise ValueError(
                f"order={self.order!r} has no effect with method={self.method!r}: set "
                "it in Codes(order=...), or set method='codes'."
            )

    def _read(self, X):
        """Rows of any container as a table of numbers and categories."""
        advice = "Codes take no missing cells; method='lines' does."
        method = self._method()
        is_sparse = isinstance(method, Lines)
        return read_table(self, X, method.allows_missing or advice, is_sparse)

    def _method(self, is_table=True):
        """Return the method for tables, or for rows of more axes, not fitted.

        ``fit`` refuses a method of the wrong kind.
        """
        if isinstance(self.method, BaseEstimator):
            return self.method
        lines, codes = self._auto
        by_name = {"auto": lines if is_table and self.order is None else codes}
        method = (by_name | _METHODS).get(str(self.method), Lines)()
        if self.order is not None and isinstance(method, Codes):
            method.order = self.order
        return method

    def _checked_method(self, table):
        """Return the method for a table, checked and not fitted."""
        # Codes take no missing cells.
        method = clone(self._method(len(table.shape) == 1 or table.has_missing))
        method._validate_params()
        return method

    def _shared(self, method):
        """Return the parameters of an augmenter for the method that was chosen."""
        shared = {
            name: getattr(self, name) for name in Augmentation._parameter_constraints
        }
        # The method has the order.
        return shared | {"method": method, "order": None}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        method = self._method()
        tags.input_tags.positive_only = method.positive_only
        tags.input_tags.allow_nan = method.allows_missing
        return tags

    @property
    def equalities_(self) -> LinearConstraints:
        """Exact linear equalities of the training rows; ``print`` lists them."""
        check_is_fitted(self)
        return self._structure.public_equalities

    @property
    def orders_(self) -> list[tuple[Any, Any]]:
        """Pairs of columns: the first is never greater than the second.

        Columns that are alike in all rows are in no order.
        """
        check_is_fitted(self)
        return self._structure.named_orders

    @property
    def value_support_(self) -> ValueSupport | None:
        """Steps and atoms of the columns; ``print`` lists them."""
        check_is_fitted(self)
        return self._structure.support


def fit_rows(method, table, structure, k_neighbors, groups, n_jobs, caller):
    """Fit a method to rows: all rows, or the rows of a class.

    Parameters
    ----------
    method : Lines or Codes
    table : Table
    structure : Structure
        The structure of the rows of all classes.
    k_neighbors : int or "auto"
    groups : ndarray of shape (m,) or None
        The group of each row; only rows of one group are mixed.
    n_jobs : int or None
    caller : str
        The estimator that messages name.

    Returns
    -------
    rows : FittedRows
    """
    warn_extreme_values(table, structure.least, structure.most)
    if groups is not None and len(groups) > 1 and np.bincount(groups).max() == 1:
        warn_user(
            f"{table.data_name}: each row is a group of its own, and rows of different "
            "groups are not mixed: all new rows are copies."
        )
    source = method.fit(table, structure, k_neighbors, groups, n_jobs, caller)
    return FittedRows(source, table.without_rows(), n_jobs, caller)


@dataclass(frozen=True)
class FittedRows:
    """Training rows that a method was fitted to, and new rows like them.

    Attributes
    ----------
    source : object
        What the method made of them.
    table : Table
        Without its rows.
    n_jobs : int or None
    caller : str
    """

    source: Any
    table: Any
    n_jobs: int | None
    caller: str

    def draw(
        self, n_samples, rng, constraints=None, totals=None, *, drops=False,
        advice="", reports=False, shares=None,
    ):  # fmt: skip
        """``n_samples`` new rows as a batch, and a report if there is one.

        Parameters
        ----------
        n_samples : int
        rng : RandomState
        constraints, totals
            As for :meth:`PNLAugmenter.sample`.
        drops : bool
            Whether infeasible rows are left out.
        advice : str
            Follows the message of an infeasible row.
        reports : bool
            Whether to report on constraints; totals are reported always.
        shares : ndarray of shape (m,) or None
            Relative frequencies of the training rows as seeds.

        Returns
        -------
        batch : Batch
        report : SampleReport or None
        """
        drawing = self.drawing(n_samples, constraints, drops, advice, shares)
        if totals is not None:
            return sample_set(drawing, rng, totals)
        kept = []
        batch = joined(drawing.batches(rng, kept=kept), n_samples)
        if not batch.numbers.shape[0]:
            raise ValueError(
                f"{self.caller}: none of {n_samples} new rows can meet the "
                "constraints, so that nothing is left to return. infeasible='raise' "
                "says why."
            )
        if not reports:
            return batch, None
        n_parents = effective_size(np.bincount(batch.parents[:, 0]))
        feasible = drawing.feasible.take_rows(np.concatenate(kept))
        asked = feasible, dense(batch.numbers), len(self.source)
        return batch, report_of(*asked, n_parents)

    def drawing(self, n_samples, constraints=None, drops=False, advice="", shares=None):
        """A :class:`Drawing` of new rows that satisfy constraints."""
        source, feasible = self.source, self.source.feasible
        if shares is not None and not source.takes_shares:
            raise ValueError(
                f"{self.caller}: weights choose training rows, but new ones are drawn "
                "from a density of all of them. Use draws='mixup', or no weights."
            )
        request = Request(
            n_samples, source.n_neighbors, shares, strata=source.strata,
            mutual=source.has_donors, n_jobs=self.n_jobs,
        )  # fmt: skip
        if constraints is not None:
            wanted = read_constraints(constraints, self.table, n_samples)
            feasible = replace(feasible, constraints=wanted)
        return Drawing(
            source, self.table, feasible, request, drops, self.caller, advice
        )

    def restored(self, batch):
        """New rows in the container of the training rows."""
        return self.table.like(batch.numbers, batch.donors)
