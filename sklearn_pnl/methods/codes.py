"""The method "codes", Algorithm 2 of the paper (appendix B): sample rows in batches.

1. Encode all rows             w_i = Enc(x_i)            `Codes.fit`
2. Draw new codes              w* near the w_i           `Draws.start_codes`, ...
3. Find the neighbours N       nearest, or both parents  `Draws.start`
4. Decode by Algorithm 1       x* = phi^-1(Proj_D(w*))   `Codec.decode`
5. Convert to columns of X                               `Embedding.back`

:class:`Codes` holds the parameters and fits; :class:`CodeSource`, which ``Codes.fit``
returns, contains the encoded rows of one class and yields batches of new rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import starmap
from math import prod
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from joblib import effective_n_jobs
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import StrOptions

from .._utils.arrays import slices
from .._utils.blocks import cut, multiple_of_step
from .._utils.validation import NOT_NEGATIVE, InstanceWith, ObjectsByName
from ..columns.repair import Batch
from ..encoding.codec import Codec, encode_rows, selected_base, unshared
from ..encoding.embedding import Embedding
from ..encoding.forward import ForwardProjection
from ..encoding.k_neighbors import clip_neighbors, default_k_neighbors
from ..encoding.manifolds import (
    LOCAL_MANIFOLD,
    MANIFOLDS_WRITTEN,
    ORDER,
    LocalManifold,
    LocalManifoldLike,
    MixtureManifold,
    as_local_manifold,
)
from ..encoding.neighbors import TrainingRows
from ..frames.categories import one_of
from ..projectors import ManyBodyProjector, as_projector
from ..reshape import PrimeFactorReshaper, modes_of_axes
from .draws import DRAWS, DRAWS_PARAMETER, DrawsLike, KernelDraws, as_draws
from .source import Source

_INVERTIBLE = InstanceWith(["fit", "transform", "inverse_transform"])
# Number of codes that are drawn and searched together. The number is fixed, because
# rounding and the order of near-ties must not depend on the batch size.
DRAWN_AT_ONCE = 2**12
OrderLike: TypeAlias = int | Sequence | ForwardProjection | ManyBodyProjector | None


class Codes(ObjectsByName, BaseEstimator):
    r"""Encode rows by KL projection, draw new codes and decode the new codes.

    This is the method of the paper, and the default for images and other rows with
    several axes. ``fit`` reads rows as positive tensors and encodes each row by
    projection onto a log-linear model, the base. New codes are drawn near the codes of
    the training rows, and decoded to rows that resemble neighbouring training rows.

    Parameters
    ----------
    order : int, list, ForwardProjection, ManyBodyProjector or None, default=None
        Largest number of axes (modes) whose interaction a code keeps, or a list of
        interactions. For example, a code of order 2 keeps the sums over all other axes
        for each pair of axes. A larger order makes the code longer. None keeps the
        complete row. If an order is given, each axis of a row is split into axes whose
        lengths are its prime factors, see ``reshaper``. An integer counts the factors.
        The tuples of a list name axes of the row: ``[(0, 1), (2,)]`` keeps the
        interaction of height and width of an image, and the sums of its channels. A
        :class:`~sklearn_pnl.encoding.ForwardProjection` replaces the KL projection onto
        the base. Pass a :class:`ManyBodyProjector`, which is cloned, to set the base,
        poset, offset, mass and tolerance.

    offset : float, default=1.0
        Value added to every cell after ``embedding`` and before encoding. With
        "minmax", each feature has a range of 1, so the default offset equals this
        range. A larger offset brings new rows closer to straight lines between rows.

    with_mass : bool, default=True
        Whether the code contains the sum of the row. If False, a new row has the
        weighted mean of the sums of its parents.

    local_manifold : str or LocalManifold, default="fiber"
        Set onto which a code is projected to decode it: "fiber", "theta", "eta" or
        "mixture". See :class:`BackwardProjector` for a description of each set.

    draws : {"mixup", "interpolation", "kde"}, Draws or estimator, default="mixup"
        Distribution of the new codes. "mixup" draws codes between neighbouring codes
        with noise (:class:`~sklearn_pnl.methods.MixupDraws`), and "interpolation"
        without noise.
        "kde" uses a kernel density estimate, as in the paper
        (:class:`~sklearn_pnl.methods.KernelDraws`). An estimator with ``fit`` and
        ``sample`` is cloned and fitted to the codes
        (:class:`~sklearn_pnl.methods.DensityDraws`). To search
        ``draws__noise``, pass ``draws=MixupDraws()``: a string has no parameters.

    reshaper : {"auto", "prime"}, transformer or None, default="auto"
        Transformer from rows to tensors, with an inverse. "prime" uses
        :class:`PrimeFactorReshaper` and pads with the mean of the row. None keeps the
        shape of the rows. "auto" uses "prime" if no poset is given and the base or
        the local manifold is reduced: by ``order``, by the order or base of a
        :class:`ManyBodyProjector`, or by ``local_manifold``. Otherwise, "auto" uses
        None.

    embedding : {"minmax", "minmax-table"}, transformer or None, default="minmax"
        Transformer to non-negative values, with an inverse. "minmax" scales each
        feature to [0, 1]. "minmax-table" scales all features by the minimum and the
        maximum of the table. None uses non-negative data (pixels, spectra) without
        scaling. A transformer receives rows flattened to 2-D, and its output is
        encoded. If its ``random_state`` is None, a clone is fitted with the seed 0.

    Attributes
    ----------
    order_ : int, list of tuple of int, ForwardProjection or None
        The order used. A list contains sets of modes of ``poset_``. None if the code
        contains the complete row.

    poset_ : TensorPoset or Poset
        Partial order of the cells.

    base_mask_ : ndarray of bool of shape ``poset_.shape``
        Mask of the elements whose natural parameters form the code; the bottom element
        of the poset is not counted. All True if nothing is reduced.

    embedding_, reshaper_ : transformer or None
        Fitted transformers.

    draws_ : Draws
        Fitted distribution of the new codes.

    codes_ : ndarray of shape (n, n_params_)
        Codes of the training rows.

    n_params_ : int
        Length of a code.

    n_iter_ : int
        Largest number of Newton steps over the training rows. A closed form counts as
        1.

    See Also
    --------
    Lines : Draw rows on straight lines, without codes.
    BackwardProjector : Encode rows and decode codes as a transformer.

    Notes
    -----
    The symbols are the symbols of the paper. :math:`\phi` maps a row x to the
    distribution :math:`p = (x + \text{offset}) / \text{mass}` on the cells. A
    distribution has natural parameters :math:`\theta` and expectations :math:`\eta`.
    The base :math:`B` contains the distributions with :math:`\theta = 0` beyond order
    :math:`\ell`, and the code of a row is :math:`\theta` of

    .. math:: w = \text{Proj}_B(p) = \arg\min_{q \in B} KL(p, q) ,

    which has the same :math:`\eta` as p up to order :math:`\ell`. A new code
    :math:`w^*` with the neighbours N is decoded to
    :math:`\phi^{-1}(\text{Proj}_D(w^*))`, where D is the local sub-manifold of N. For
    ``local_manifold="theta"``, D is the set :math:`M^*_{\ell}(N)` of equation 2.

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
        "order": [*ORDER, ForwardProjection, ManyBodyProjector, None],
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
    # Decoding requires complete training rows, and mixes atoms.
    allows_missing = copies_atoms = False

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
        """Return the method with the settings of the authors' program.

        ``method="paper"`` of the estimators is the same as ``Codes.paper(order=1)``.
        The settings are an offset of 1e-5, a kernel density with bandwidth 0.05, and
        decoding by :class:`~sklearn_pnl.encoding.MixtureManifold` (Hu and Sugiyama,
        ICLR 2026, appendix C.1). If w is the point of a code and r the mean of its
        neighbours, the code is decoded to ``(1 - step) * w + step * r`` with the fixed
        step 0.98. The authors' program follows the same path, but stops at a step that
        depends on the number of neighbours and on the learning rate. To change the
        step, pass for example ``local_manifold=MixtureManifold(step=0.95)``.
        ``Codes.paper(local_manifold="theta")`` decodes by equation 2 of the paper.

        Two settings of the authors' notebooks for tables differ from this method. The
        notebooks scale all features by one minimum and one maximum
        (``embedding="minmax-table"``), and use ascending factors, for
        example (2, 2, 3, 5) for 60 features
        (``reshaper=PrimeFactorReshaper(factor_order="ascending")``).

        Parameters
        ----------
        order : int, list of tuple of int or None, default=1
            Largest order of the interactions in a code.
        **settings
            Other parameters of :class:`Codes`, which replace the settings.

        Returns
        -------
        method : Codes
            Unfitted method.

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
        """Whether negative rows are rejected."""
        return self.embedding is None

    def count_neighbors(self, k_neighbors: Any, m: int, data_name: str) -> int:
        """Return the number of neighbours for a class with m rows."""
        draws = as_draws(self.draws)
        if k_neighbors == "auto":
            # The mean of many rows would be smoother than the data.
            k_neighbors = min(5, m) if draws.looks_up else default_k_neighbors(m)
        return clip_neighbors(k_neighbors, m, not draws.looks_up, data_name)

    def fit(
        self,
        mixable: Any,
        n_neighbors: int,
        n_jobs: int | None = None,
        caller: str = "Codes",
    ) -> CodeSource:
        """Encode training rows (Algorithm 2, step 1).

        The estimators call this method.

        Parameters
        ----------
        mixable : MixableRows
            Training rows, which can be overwritten.
        n_neighbors : int
            Number of neighbours from which the second parent of a row is drawn, or from
            which a code is decoded.
        n_jobs : int, default=None
            Number of parallel jobs.
        caller : str, default="Codes"
            Name of the estimator in warnings and errors.

        Returns
        -------
        source : CodeSource
            Source of new rows.
        """
        draws = as_draws(self.draws)
        training, embedding = self._encode(mixable, draws, caller, n_jobs)
        mixable = replace(mixable, rows=mixable.rows[:0, ...])
        return CodeSource(
            mixable, training, self.draws_, embedding, n_neighbors, caller
        )

    def _encode(self, mixable, draws, caller, n_jobs):
        """Embed, reshape and encode training rows (m, D), and fit the draws.

        Return the training rows, and the embedding from values to cells.
        """
        rows = mixable.rows
        projector = self._projector()
        order, base, poset = projector.order, projector.base, projector.poset
        is_full_row = order is None and base is None and poset is None
        manifold = as_local_manifold(self.local_manifold)
        # Rows have been validated, and transformers must return arrays.
        with config_context(assume_finite=True, transform_output="default"):
            reshaper = self._reshaper(poset, not is_full_row or manifold.reduces)
            embedding = Embedding(self.embedding, reshaper, projector, caller)
            cells = embedding.fit(mixable)
        self.embedding_, self.reshaper_ = embedding.transformer, embedding.reshaper
        if poset is None:
            order = _in_modes(order, self.reshaper_)
        if manifold.poset is None:
            manifold = _in_modes(manifold, self.reshaper_)
        self.order_, self.poset_ = order, embedding.poset
        base = None if is_full_row else selected_base(self.poset_, order, base)
        codec = Codec(self.poset_, base, projector, manifold)
        self.base_mask_ = codec.mask
        # w_i = Enc(x_i).
        encoded = encode_rows(codec, cells, caller, n_jobs)
        # Cells are stored only if decoding needs them.
        if not codec.needs_rows:
            cells = cells[:0, ...]
        elif not mixable.owned:
            cells = unshared(cells, rows)
        training = TrainingRows(codec, cells, encoded, draws.metric, mixable.labels)
        self.codes_, self.n_params_ = training.codes, codec.n_params
        self.n_iter_ = max(1, int(encoded.n_iter.max()))
        self.draws_ = draws.fit(self.codes_)
        return training, embedding

    def _reshaper(self, poset, reduces):
        """Return the unfitted transformer that ``reshaper`` selects."""
        if isinstance(self.reshaper, str):
            wanted = self.reshaper == "prime" or (reduces and poset is None)
            return PrimeFactorReshaper(pad_value="mean") if wanted else None
        return None if self.reshaper is None else clone(self.reshaper)

    def _projector(self):
        """Return the unfitted projector that ``order`` selects."""
        is_given = isinstance(self.order, ManyBodyProjector)
        if is_given and (self.offset, self.with_mass) != (1.0, True):
            raise ValueError(
                f"Codes has offset={self.offset} and with_mass={self.with_mass}, but "
                f"order={self.order!r} also has both parameters. Set them in the "
                "projector, and leave offset and with_mass of Codes at the defaults."
            )
        return as_projector(self.order, offset=self.offset, with_mass=self.with_mass)


def _in_modes(order, reshaper):
    """Replace axes of a row by modes, in an order or in the parameter of an object."""
    if not isinstance(order, ForwardProjection | LocalManifold):
        return modes_of_axes(order, reshaper)
    modes = modes_of_axes(order.order, reshaper)
    return order if modes is order.order else clone(order).set_params(order=modes)


@dataclass(frozen=True)
class SampledCodes:
    """Codes from which new rows were decoded; see :meth:`PNLAugmenter.sample`.

    Attributes
    ----------
    codes : ndarray of shape (n, n_params_)
        New codes w*.
    neighbors : ndarray of int of shape (n, k)
        Indices of the training rows with which each code was decoded, the nearest row
        first. If a constraint replaced a new row by a copy of a training row, the
        indices are the index of the copied row.
    divergences : ndarray of shape (n,)
        ``KL(w*, x*)`` in nats of the point of each code and the decoded row. Both are
        distributions, and the row is the row before it is fitted to the relations,
        constraints and totals of the columns.
    """

    codes: NDArray
    neighbors: NDArray
    divergences: NDArray


@dataclass(frozen=True)
class CodeSource(Source):
    """Encoded rows of one class, near which new codes are drawn and decoded.

    Attributes
    ----------
    mixable : MixableRows
        How the rows may be mixed, without the rows.
    training : TrainingRows
        Training rows with their codes.
    draws : Draws
        Fitted distribution of the new codes.
    embedding : Embedding
        Map from the values of a row to the cells of a poset, with an inverse.
    n_neighbors : int
        Number of neighbours of a new code.
    caller : str
        Name of the estimator in warnings.
    """

    mixable: Any
    training: Any
    draws: Any
    embedding: Any
    n_neighbors: int
    caller: str

    is_affine = False

    @property
    def has_base_rows(self):
        """Whether a new row is drawn from a base row, and not from a density."""
        return not self.draws.looks_up

    @property
    def takes_shares(self):
        """Whether training rows can have unequal frequencies."""
        return self.draws.takes_shares

    @property
    def n_cells(self):
        """Number of computed cells of a new row."""
        return prod(self.mixable.shape)

    @property
    def n_numbers(self):
        """Number of temporary values for each new row."""
        return self.training.codec.n_params + self.n_neighbors

    def training_rows(self):
        """Decode the training rows (m, D) from their codes."""
        return self.embedding.back(self.training.decoded())

    def batches(self, request, rng, size):
        """Yield batches of ``size`` new rows (Algorithm 2, steps 2 to 5)."""
        draw = self.draws.start(self.training, request, rng)
        coins = RandomState(rng.randint(np.iinfo(np.int32).max))

        def new_codes(rows):
            # 2. Draw w* near the codes w_i, and 3. find the neighbours N.
            new = draw(rows)
            return new.codes, new.parents, new.weights, self._donors(new, coins)

        def new_rows(codes, parents, weights, donors):
            # 4. Decode x* = phi^-1(Proj_D(w*)) by Algorithm 1, and 5. convert the cells
            # to columns of X.
            cells = self.training.decode(
                codes, parents, self.caller, weights, request.n_jobs
            )
            drawn = ()
            if request.with_codes:
                drawn = codes, self.training.divergences(codes, cells, request.n_jobs)
            return self.embedding.back(cells), parents, weights, donors, *drawn

        # The batch size must not change new rows. The rounding of a matrix product
        # depends on the rows that it contains. Codes are therefore drawn and decoded
        # in blocks of fixed sizes, which are cut to batches afterwards.
        step = self.training.codec.decoded_at_once
        # A small batch would occupy only one worker.
        most = max(size, step * effective_n_jobs(request.n_jobs))
        at_once = multiple_of_step(most, DRAWN_AT_ONCE if self.draws.looks_up else step)
        codes = map(new_codes, slices(request.n_samples, at_once))
        rows = starmap(new_rows, cut(codes, multiple_of_step(most, step)))
        start = 0
        for parts in cut(rows, size):
            indices = np.arange(start, start + len(parts[1]))
            drawn = dict(zip(("codes", "divergences"), parts[4:], strict=False))
            batch = Batch(*parts[:4], indices=indices, **drawn)
            start += len(batch.indices)
            yield batch

    def _donors(self, new, coins):
        """Choose the parent (b,) from which each new row takes its categories."""
        coin = coins.uniform(size=len(new.parents))
        donors = one_of(new.parents, new.weights, coin)
        if new.mutual is not None:
            base_rows, alike = new.parents[:, 0], self.mixable.alike
            gives = new.mutual
            if alike is not None:
                gives = gives & (alike[donors] == alike[base_rows])
            donors = np.where(gives, donors, base_rows)
        return donors
