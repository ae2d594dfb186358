"""Algorithm 2 of the paper (appendix B): from training rows to new ones, in batches.

1. encode all rows         w_i = Enc(x_i)            `Codes.fit`
2. draw new codes          w* near the w_i           `KernelDraws._start`, ...
3. neighbours of each      N, nearest or mixed       `Draws.start`
4. decode by Algorithm 1   x* = phi^-1(Proj_D(w*))   `Codec.decode`
5. back to columns of X                              `Embedding.back`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from joblib import effective_n_jobs
from numpy.random import RandomState
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import StrOptions

from .._utils.arrays import slices
from .._utils.blocks import cut, whole_steps
from .._utils.validation import (
    NOT_NEGATIVE,
    InstanceWith,
    ObjectsByName,
    clip_neighbors,
)
from ..control.feasible_set import FeasibleSet
from ..control.projection import project_rows
from ..control.rounding import discretize, mend
from ..encoding.codec import Codec, encode_rows, free_mask, unshared
from ..encoding.embedding import Embedding
from ..encoding.manifolds import (
    LOCAL_MANIFOLD,
    MANIFOLDS_WRITTEN,
    ORDER,
    LocalManifoldLike,
    MixtureManifold,
    as_local_manifold,
)
from ..encoding.neighbors import TrainingRows
from ..encoding.table_neighbors import n_partners, strata_of
from ..frames.categories import one_of
from ..projectors import ManyBodyProjector, as_projector
from ..reshape import PrimeFactorReshaper
from .draws import DRAWS, DRAWS_PARAMETER, DrawsLike, KernelDraws, as_draws
from .lines import reflect
from .source import Batch, Source

_INVERTIBLE = InstanceWith(["fit", "transform", "inverse_transform"])
# Codes drawn and looked up at once: rounding and the order of near-ties must not depend
# on the sizes of batches.
DRAWN_AT_ONCE = 2**12
OrderLike: TypeAlias = int | Sequence | ManyBodyProjector | None


class Codes(ObjectsByName, BaseEstimator):
    """Encode rows by KL projection, draw codes near theirs, and decode these.

    The method of the paper, and of rows of more axes: :class:`PNLAugmenter` with
    ``method="codes"``. Rows become positive tensors, that is points of a log-linear
    model. ``fit`` encodes them by projection on the base, new codes are drawn near
    theirs, and each is decoded by projection on a local sub-manifold of near rows
    (:class:`BackwardProjector` says how).

    Parameters
    ----------
    order : int, list of tuple of int, ManyBodyProjector or None, default=None
        The base: order ell of the interactions between modes that a code keeps, or
        those listed. None keeps all: the code is the whole row. A
        :class:`ManyBodyProjector`, which is cloned, says with which base, poset,
        offset, mass and tolerance rows are encoded; else these are ``offset`` and
        ``with_mass``, and the defaults. For rows of one axis modes are the prime
        factors of their length.

    offset : float, default=1.0
        Added to all cells before rows are encoded.

    with_mass : bool, default=True
        Whether codes carry the sum of the row; else a new row has the mean sum of its
        parents.

    local_manifold : {"fiber", "theta", "eta", "mixture"} or LocalManifold, \
            default="fiber"
        How codes are decoded; see :class:`BackwardProjector`.

    draws : {"mixup", "interpolation", "kde"}, Draws or estimator, default="mixup"
        How codes are drawn: between near rows with noise
        (:class:`~sklearn_pnl.methods.MixupDraws`) or without ("interpolation",
        ``MixupDraws(noise=0)``), from a kernel density estimate as in the paper
        (:class:`~sklearn_pnl.methods.KernelDraws`), or from an estimator with ``fit``
        and ``sample``, which is cloned (:class:`~sklearn_pnl.methods.DensityDraws`). A
        grid over ``draws__noise`` needs an object, ``draws=MixupDraws()``.

    reshaper : {"auto", "prime"}, transformer or None, default="auto"
        From rows to tensors and back. "prime" is :class:`PrimeFactorReshaper`, padding
        with the mean of the row; None keeps the shape of the rows. "auto" is "prime"
        where codes are reduced without a poset, else None.

    embedding : {"minmax", "minmax-table"}, transformer or None, default="minmax"
        From values to non-negative values and back. "minmax" maps each feature to
        [0, 1]; "minmax-table" maps all features by one minimum and one maximum of the
        whole table. None leaves non-negative data, such as pixels or spectra, as they
        are. A transformer gets rows flattened to 2-D, and codes are those of its
        output.

    Attributes
    ----------
    order_ : int, list of tuple of int or None
        The order used; None where the code is the whole row.

    poset_ : TensorPoset or Poset
        The order between the cells that rows were laid out on.

    base_mask_ : ndarray of bool of shape ``poset_.shape``
        Elements whose theta makes up the code, without the bottom; all of them where
        nothing is reduced.

    embedding_, reshaper_ : transformer or None
        Fitted, where there are any.

    draws_ : Draws
        Fitted.

    codes_ : ndarray of shape (n, n_params_)
        Codes of the training rows.

    n_params_ : int
        Length of a code.

    n_iter_ : int
        Most Newton steps that encoding a row took; at least 1.

    See Also
    --------
    Lines : Rows on straight lines, without codes.
    BackwardProjector : Encoding and decoding.

    References
    ----------
    P. Hu, M. Sugiyama, "Pseudo-nonlinear data augmentation: a constrained energy
    minimization viewpoint", ICLR 2026, Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import Codes, PNLAugmenter
    >>> X = np.random.default_rng(0).uniform(size=(30, 4, 4))
    >>> augmenter = PNLAugmenter(Codes(order=1)).fit(X)
    >>> augmenter.method_.codes_.shape
    (30, 5)
    >>> augmenter.sample(3, random_state=0).shape
    (3, 4, 4)
    """

    _parameter_constraints: ClassVar[dict] = {
        "order": [*ORDER, ManyBodyProjector, None],
        "offset": [NOT_NEGATIVE],
        "with_mass": ["boolean"],
        "local_manifold": LOCAL_MANIFOLD,
        "draws": DRAWS_PARAMETER,
        "reshaper": [StrOptions({"auto", "prime"}), _INVERTIBLE, None],
        "embedding": [StrOptions({"minmax", "minmax-table"}), _INVERTIBLE, None],
    }
    _objects: ClassVar[dict] = {
        "draws": {name: repr(make()) for name, make in DRAWS.items()},
        "local_manifold": MANIFOLDS_WRITTEN,
        "reshaper": dict.fromkeys(["auto", "prime"], "PrimeFactorReshaper()"),
    }
    # Whether rows may have missing cells.
    allows_missing = False

    def __init__(
        self,
        order: OrderLike = None,
        *,
        offset: float = 1.0,
        with_mass: bool = True,
        local_manifold: LocalManifoldLike = "fiber",
        draws: DrawsLike = "mixup",
        reshaper: Literal["auto", "prime"] | Any = "auto",
        embedding: Literal["minmax", "minmax-table"] | Any = "minmax",
    ) -> None:
        self.order = order
        self.offset = offset
        self.with_mass = with_mass
        self.local_manifold = local_manifold
        self.draws = draws
        self.reshaper = reshaper
        self.embedding = embedding

    @classmethod
    def paper(cls, order: OrderLike = 1, **settings: Any) -> Self:
        """The settings of the authors' program; ``method="paper"`` is this at order 1.

        The offset 1e-5 of its embedding, kernel density of bandwidth .05, and the point
        of the m-geodesic from the code to the mean of its neighbours at which its
        natural gradient stops (Hu and Sugiyama, ICLR 2026, appendix C.1). That point
        depends on the number of neighbours and on the learning rate:
        :class:`~sklearn_pnl.encoding.MixtureManifold` has a table, and
        ``Codes.paper(local_manifold=MixtureManifold(step=0.95))`` sets it.
        ``Codes.paper(local_manifold="theta")`` decodes on the set that equation 2
        prints.

        Two settings of the authors' notebooks for tables are not among these: one
        minimum and one maximum of the whole table, ``embedding="minmax-table"``, and
        ascending factors, such as (2, 2, 3, 5) for 60 features,
        ``reshaper=PrimeFactorReshaper(factor_order="ascending")``. The settings here
        scale each feature by its own range, and lay 60 features out as (5, 3, 2, 2).

        Parameters
        ----------
        order : int, list of tuple of int or None, default=1
            The base.
        **settings
            Parameters that differ from these, by name.

        Returns
        -------
        method : Codes

        Examples
        --------
        >>> from sklearn_pnl import Codes
        >>> Codes.paper()
        Codes(draws=KernelDraws(), local_manifold=MixtureManifold(), offset=1e-05,
              order=1, reshaper=PrimeFactorReshaper(), with_mass=False)
        """
        theirs = {
            "offset": 1e-5,
            "with_mass": False,
            "local_manifold": MixtureManifold(),
            "draws": KernelDraws(),
            "reshaper": PrimeFactorReshaper(),
        }
        return cls(order, **theirs | settings)

    @property
    def positive_only(self) -> bool:
        """Whether rows may not be negative."""
        return self.embedding is None

    def fit(
        self,
        table: Any,
        relations: Any,
        k_neighbors: Any = "auto",
        groups: Any = None,
        n_jobs: int | None = None,
        caller: str = "Codes",
    ) -> CodeSource:
        """Algorithm 2, step 1: the source of new rows like those of a table.

        Parameters
        ----------
        table : Table
            Rows of any container, as they were read.
        relations : ColumnRelations
            Equalities, orders, limits and steps of the columns.
        k_neighbors : int or "auto", default="auto"
            Partners, as in :class:`Lines`, or 5 rows to decode from.
        groups : ndarray of shape (m,), default=None
            Rows of a group are mixed with each other alone.
        n_jobs : int, default=None
        caller : str
            For messages.

        Returns
        -------
        source : CodeSource
        """
        draws = as_draws(self.draws)
        if k_neighbors == "auto":
            # A mean of more rows is smoother than the data.
            m = len(table)
            k_neighbors = min(5, m) if draws.looks_up else n_partners(m)
        k = clip_neighbors(k_neighbors, len(table), not draws.looks_up, table.data_name)
        if groups is not None and draws.looks_up:
            raise ValueError(
                f"groups keeps the rows of a group together, but {draws!r} draws from "
                "a density of all rows: use draws='mixup'."
            )
        rows = table.numbers()
        strata = None if groups is None else strata_of(rows, relations.tied, k, groups)
        # Before rows are embedded, which may write over them.
        feasible = FeasibleSet.without_constraints(relations.of_rows(rows))
        training, embedding = self._encode(table, rows, draws, caller, n_jobs)
        has_donors = table.labels is not None or relations.columns.binary.any()
        return CodeSource(
            training,
            self.draws_,
            embedding,
            relations,
            feasible,
            k,
            strata,
            has_donors,
            caller,
        )

    def _encode(self, table, rows, draws, caller, n_jobs):
        """Embed, lay out and encode the rows (m, D) of a table, and fit the draws.

        Returns the training rows, and the way from numbers to cells and back.
        """
        projector = self._projector()
        order, base, poset = projector.order, projector.base, projector.poset
        whole = order is None and base is None and poset is None
        manifold = as_local_manifold(self.local_manifold)
        # Rows are validated already, and transformers must return arrays.
        with config_context(assume_finite=True, transform_output="default"):
            reshaper = self._reshaper(poset, not whole or manifold.reduces)
            embedding = Embedding(self.embedding, reshaper, projector, caller)
            cells = embedding.fit(table, rows)
        self.order_, self.poset_ = order, embedding.poset
        self.embedding_, self.reshaper_ = embedding.transformer, embedding.reshaper
        mask = None if whole else free_mask(self.poset_, order, base)
        codec = Codec(self.poset_, mask, projector, manifold)
        self.base_mask_ = codec.mask
        # w_i = Enc(x_i).
        encoded = encode_rows(codec, cells, caller, n_jobs)
        # Cells are kept if decoding needs them.
        if not codec.needs_rows:
            cells = cells[:0, ...]
        elif not table.owned:
            cells = unshared(cells, rows)
        training = TrainingRows(codec, cells, encoded, draws.metric, table.labels)
        self.codes_, self.n_params_ = training.codes, codec.n_params
        self.n_iter_ = max(1, int(encoded.n_iter.max()))
        self.draws_ = draws.fit(self.codes_)
        return training, embedding

    def _reshaper(self, poset, reduces):
        """The reshaper that ``reshaper`` stands for, not fitted."""
        if isinstance(self.reshaper, str):
            wanted = self.reshaper == "prime" or (reduces and poset is None)
            return PrimeFactorReshaper(pad_value="mean") if wanted else None
        return None if self.reshaper is None else clone(self.reshaper)

    def _projector(self):
        """The projector that ``order`` stands for, not fitted."""
        is_given = isinstance(self.order, ManyBodyProjector)
        if is_given and (self.offset, self.with_mass) != (1.0, True):
            raise ValueError(
                f"Codes has offset={self.offset} and with_mass={self.with_mass} beside"
                f" order={self.order!r}, which has its own: set them there alone."
            )
        return as_projector(self.order, offset=self.offset, with_mass=self.with_mass)


@dataclass(frozen=True)
class CodeSource(Source):
    """Encoded rows of a class; new codes are drawn near them and decoded.

    Attributes
    ----------
    training : TrainingRows
    draws : Draws
    embedding : Embedding
        From the numbers of a row to the cells of a poset, and back. It is before phi,
        which makes a distribution of the cells.
    relations : ColumnRelations
    feasible : FeasibleSet
        The same in the units of the training rows.
    n_neighbors : int
    strata : list or None
        Rows that are mixed with each other alone.
    has_donors : bool
        Whether some cells come from one parent, as categories do.
    caller : str
    """

    training: Any
    draws: Any
    embedding: Any
    relations: Any
    feasible: Any
    n_neighbors: int
    strata: list | None
    has_donors: bool
    caller: str

    # Projections on other constraints move rows off their equalities.
    keeps_equalities = False

    def __len__(self):
        return len(self.training.codes)

    @property
    def can_count(self):
        """Whether categories are those of a row that a new one starts from."""
        return not self.draws.looks_up

    @property
    def takes_shares(self):
        """Whether training rows can have unequal shares of the new ones."""
        return self.draws.takes_shares

    @property
    def n_cells(self):
        """How many cells of a new row are computed."""
        return len(self.relations.columns.steps)

    @property
    def n_numbers(self):
        """How many other numbers a new row takes while it is drawn."""
        return self.training.codec.n_params + self.n_neighbors

    def training_rows(self):
        """The training rows (m, D), as they are decoded from their own codes."""
        numbers = self.embedding.back(self.training.decoded())
        return np.clip(numbers, self.relations.columns.low, self.relations.columns.high)

    def batches(self, request, rng, size):
        """The loop of Algorithm 2, steps 2 to 5, ``size`` new rows at a time."""
        draw = self.draws.start(self.training, request, rng)
        coins = RandomState(rng.randint(np.iinfo(np.int32).max))
        needs_cells = self.has_donors or self.relations.reset_together.any()
        cells = self.training_rows() if needs_cells else None

        def new_codes(rows):
            # 2. w* near the codes w_i, and 3. its neighbours N.
            new = draw(rows)
            return new.codes, new.parents, new.weights, self._donors(new, coins)

        def new_rows(codes, neighbors, weights, donors):
            # 4. x* = phi^-1(Proj_D(w*)) by Algorithm 1, and 5. back to columns of X.
            numbers = self._decoded(codes, neighbors, weights, request.n_jobs)
            self._complete(numbers, neighbors[:, 0], donors, cells)
            return Batch(numbers, neighbors, weights, donors)

        # The size does not change the bytes. Rounding depends on which rows a matrix
        # product is over, so codes are drawn with their neighbours, and decoded, in
        # whole blocks of either, and cut anew between.
        step = self.training.codec.decoded_at_once
        # Small batches would occupy only one worker.
        most = max(size, step * effective_n_jobs(request.n_jobs))
        at_once = whole_steps(most, DRAWN_AT_ONCE if self.draws.looks_up else step)
        codes = map(new_codes, slices(request.n_samples, at_once))
        rows = starmap(new_rows, cut(codes, whole_steps(most, step)))
        return starmap(Batch, cut(rows, size))

    def _donors(self, new, coins):
        """The row (b,) that gives each new one its categories: one of its parents."""
        coin = coins.uniform(size=len(new.codes))
        donors = one_of(new.parents, new.weights, coin)
        if new.mutual is not None:
            donors = np.where(new.mutual, donors, new.parents[:, 0])
        return donors

    def _decoded(self, codes, parents, weights, n_jobs):
        """Decode codes to numbers, and project them onto limits and equalities."""
        # x* = phi^-1(Proj_D(w*)), as cells.
        cells = self.training.decode(codes, parents, self.caller, weights, n_jobs)
        numbers = self.embedding.back(cells)
        # Not in the paper: limits and equalities of the columns.
        reflect(numbers, self.relations.columns.low, self.relations.columns.high)
        relations = self.feasible.relations
        if len(relations.equalities) or len(relations.orders):
            numbers, _ = project_rows(numbers, self.feasible)
        return numbers

    def _complete(self, numbers, seeds, donors, cells):
        """Copy two-valued columns of the donor, and round values to steps, in place."""
        is_binary = self.relations.columns.binary
        if cells is None:
            discretize(numbers, numbers[:, is_binary], self.relations)
        else:
            discretize(numbers, cells[donors][:, is_binary], self.relations)
            mend(numbers, donors, seeds, cells, self.relations)
