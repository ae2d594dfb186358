"""Draw new rows from one set of rows: embed, encode, draw codes, decode, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Integral
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from ._drawing.coding import TrainingRows, encode_rows, free_mask, make_codec
from ._drawing.rows import Source
from ._drawing.sets import sample_set
from ._drawing.steps import Embed, LayOut
from ._filling.matching import matched
from ._runtime.blocks import ends_of
from ._runtime.typing import Rows, Seed
from ._runtime.validation import (
    COUNT,
    ELSEWHERE,
    NOT_NEGATIVE,
    NamedObjects,
    all_or_nothing,
    as_random_state,
    check_count,
    check_measures,
    clip_neighbors,
    tells_where,
    warn_user,
)
from .backward import METRIC
from .control import CONSTRAINTS, Constraint, LinearSystem
from .control.copies import Originals
from .control.marks import resolve_marks
from .control.promises import keeper_of, resolve_invariants
from .control.steps import Steps
from .control.taken import Taken
from .draws import AUGMENT, DrawsLike, MixupDraws, as_draws
from .embedding import limits
from .geometry import PosetProtocol
from .manifolds import LOCAL_MANIFOLD, ORDER, LocalManifoldLike, as_local_manifold
from .many_body import CODEC_CONSTRAINTS
from .tables import read_table

# Rows were checked at the door; arrays are what is worked on.
_UNCHECKED = {"assume_finite": True, "transform_output": "default"}
Invariants: TypeAlias = Literal["auto"] | LinearSystem | Constraint | Sequence | None
# Rows that shape the noise of sets with totals.
_OF_SETS = 2
_INVERTIBLE = HasMethods(["fit", "transform", "inverse_transform"])


@dataclass(eq=False, repr=False, kw_only=True)
class Recipe(NamedObjects):
    """The parameters that augmenter and samplers share, as that one tells of them."""

    order: Literal["auto"] | int | Sequence | None = "auto"
    base: ArrayLike | None = None
    local_manifold: LocalManifoldLike = "fiber"
    k_neighbors: int | Literal["auto"] = "auto"
    draws: DrawsLike = "auto"
    metric: Literal["kl", "euclidean"] = "kl"
    poset: PosetProtocol | None = None
    reshaper: Literal["auto", "prime"] | Any = "auto"
    embedding: Literal["minmax"] | Any = "minmax"
    categorical_features: Literal["auto"] | ArrayLike | None = "auto"
    marks: Literal["auto", "zeros"] | None = "auto"
    offset: float = 1.0
    with_mass: bool = True
    range_slack: float | None = 0.1
    invariants: Invariants = "auto"
    tol: float = 1e-6
    max_iter: int = 100
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict] = {
        **CODEC_CONSTRAINTS,
        "order": [StrOptions({"auto"}), *ORDER, None],
        "local_manifold": LOCAL_MANIFOLD,
        "k_neighbors": [COUNT, StrOptions({"auto"})],
        "draws": AUGMENT,
        "metric": METRIC,
        "reshaper": [StrOptions({"auto", "prime"}), _INVERTIBLE, None],
        "embedding": [StrOptions({"minmax"}), _INVERTIBLE, None],
        "range_slack": [NOT_NEGATIVE, None],
        "categorical_features": ["array-like", StrOptions({"auto"}), None],
        "marks": [StrOptions({"auto", "zeros"}), None],
        "invariants": [StrOptions({"auto"}), *CONSTRAINTS, None],
    }

    def _augmenter(self):
        """An augmenter with these parameters."""
        return PNLAugmenter(**{f.name: getattr(self, f.name) for f in fields(Recipe)})

    def _resolved(self, table):
        """Equations and marks of rows that were read."""
        steps = Steps(table)
        system = resolve_invariants(self.invariants, table, steps)
        marks = resolve_marks(self.marks, table, system, is_cellwise(self), steps)
        return system, marks

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.embedding is None
        tags.input_tags.allow_nan = is_cellwise(self)
        return tags


@tells_where(**ELSEWHERE)
@dataclass(eq=False, repr=False, kw_only=True)
class PNLAugmenter(Recipe):
    """Pseudo-nonlinear data augmentation of one set of rows.

    ``fit`` maps the rows to non-negative values (``embedding``), lays them out as
    tensors where their structure is known, and encodes them on a flat base.
    ``sample`` draws codes near those of the training rows, decodes each through the
    local sub-manifold of training rows near it (:class:`BackwardProjector` says how),
    and undoes the layout and the embedding: new rows have the units, types and
    container of the training rows. No labels are needed: use it for one class, for
    unlabelled data, or for rows with the target as one more feature.

    Parameters
    ----------
    order : "auto", int, list of tuple of int or None, default="auto"
        Order ell of the base: the interactions between modes that a code keeps, or
        those listed. For rows of one axis modes are the prime factors of their length:
        ``reshaper_`` tells the tensor that is made. None keeps all: the code is the
        whole row, in log coordinates, and neither the order of the columns nor their
        number matters. "auto" is 1 where a ``poset`` is given, else None: nothing is
        reduced unless that is wished for.

    base : array-like, default=None
        The free coordinates given directly, instead of ``order``; as in
        :class:`ManyBodyProjector`. Elements are those of ``poset``, or of the tensor
        that the reshaper makes.

    local_manifold : {"fiber", "theta", "eta", "mixture"} or LocalManifold, \
            default="fiber"
        How codes are decoded; see :class:`BackwardProjector`.

    k_neighbors : int or "auto", default="auto"
        Rows among which "mixup" looks for a partner, or else that a new row is decoded
        from; fewer rows are all used, with a warning. "auto" is 10 partners, or 5 rows
        to decode from, or as many as there are: new rows of one row are copies, with a
        warning, and those of two lie on the e-geodesic through both.

    draws : {"auto", "mixup", "interpolation", "kde"}, Draws or estimator, \
            default="auto"
        How codes are drawn: between near rows with noise (:class:`MixupDraws`) or
        without ("interpolation", ``MixupDraws(noise=0)``), from a kernel
        density estimate as in the paper (:class:`KernelDraws`), or from an estimator
        with ``fit`` and ``sample``, which is cloned (:class:`DensityDraws`). "auto" is
        "mixup", but ``sample(totals=...)`` draws as ``MixupDraws(noise_neighbors=2)``:
        a set is looked at, where rows that balance classes are learnt from.
        Objects have parameters, names none: ``draws__noise`` in a grid needs
        ``draws=MixupDraws()``.

    metric : {"kl", "euclidean"}, default="kl"
        Nearness of codes.

    poset : TensorPoset or Poset, default=None
        Order between the features of a row, an element each. None is the tensor that
        the reshaper makes.

    reshaper : {"auto", "prime"}, transformer or None, default="auto"
        From rows to tensors and back. "prime" is :class:`PrimeFactorReshaper`, padding
        with the mean of the row; None keeps the shape of the rows. "auto" is "prime"
        where codes are reduced without a poset, else None.

    embedding : {"minmax"}, transformer or None, default="minmax"
        From values to non-negative values and back. "minmax" maps each feature to
        [0, 1]; None leaves non-negative data, such as pixels or spectra, as they are. A
        transformer gets rows flattened to 2-D.

    categorical_features : "auto", array-like or None, default="auto"
        Columns that hold categories: their numbers, their names or a mask. "auto" is
        all columns of a data frame that hold neither numbers nor times: strings,
        objects, and the categorical types of pandas, polars and pyarrow; Booleans are
        the numbers 0 and 1. Of arrays it is none, as None is: all are numbers. A new
        row takes all its categories from one of its parents, so that they go together
        as somewhere in the data. What is missing is a category too. For nearness a
        difference in one of them counts as much as the typical deviation of a number,
        as in SMOTE-NC. The geometry, equations and constraints are about the other
        columns.

    marks : {"auto", "zeros"} or None, default="auto"
        What the values of a column are marks of, found in plain rows of at most 200
        features and kept: whole numbers, decimals and other whole multiples of a step,
        also after a scaler; few values, at most half as many as rows, of which a new
        one is the nearest; and spikes, values that many rows share beside others, which
        a new row takes from its parents: columns whose spikes and missing cells go
        together, or with a category, from one, others each from one of their own; cells
        that are missing by chance are so as often as in all rows. Columns of two values
        that say which cells of others are shared or missing go with these. Of
        columns of two values that no row has on together, a new row has one on at most.
        What is asked for goes first, then equations, then marks.
        "zeros" keeps, instead of spikes, cells that are zero in all parents of a new
        row. Without an embedding the others take over what they had, and what falls
        below zero is taken from them, so that the row keeps its sum. For compositions,
        rows of one sum, ``PNLAugmenter(embedding=None, with_mass=False,
        range_slack=None, marks="zeros")`` is closed whether ``invariants`` find the
        sum or not; for counts it is ``PNLAugmenter(embedding=None, marks="zeros")``.
        None keeps what the types of columns say.

    offset : float, default=1.0
        Added to every cell after the embedding, in its units. The larger, the more an
        e-geodesic between two rows is like the straight line between them.

    with_mass : bool, default=True
        Whether codes carry the mass of a row (its sum after embedding and offset);
        else new rows get the mean mass of the rows that they are decoded from.

    range_slack : float or None, default=0.1
        How far new values may lie beyond the range of a feature, as a share of its
        length; what is farther is reflected. An end that several rows share is taken
        for a bound and not passed, and no feature changes its sign. 0 keeps every
        range, None sets no limit, and lets signs change too.

    invariants : "auto", constraints or None, default="auto"
        Linear equations that new rows keep, to 1e-9 of the features' ranges: totals,
        shares, copies, one-hot groups. "auto" is those that all training rows satisfy
        and that chance would not make (:func:`find_invariants`), for rows of at most
        200 features; also given as what that function found, or as equations in the
        forms that :meth:`PNLAugmenter.sample` has ``constraints`` in.

    tol : float, default=1e-6
        Wanted residual of the projections.

    max_iter : int, default=100
        Most Newton steps of a projection.

    n_jobs : int, default=None
        Blocks of rows at work at once.

    Attributes
    ----------
    order_ : int, list of tuple of int or None
        The order taken; ``base`` goes before it.

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

    n_neighbors_ : int
        ``k_neighbors``, at most the number of training rows, for "mixup" of others.

    invariants_ : LinearSystem
        The equations kept; printed, they are told in words.

    marks_ : Marks
        What columns keep beside, and what gave way; printed, it is told in words.

    integer_features_ : ndarray of int
        Columns that hold integers or booleans, where new values are rounded.

    input_shape_ : tuple of int
        Shape of a row.

    n_features_in_ : int
        Length of the first axis of a row.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, if all are strings.

    See Also
    --------
    PNLSampler : An augmenter a class, for imbalanced problems.
    PNLRegressionSampler : Rows with numbers as targets.
    BackwardProjector : Encoding and decoding.
    compare_samples : New rows against real ones.

    References
    ----------
    P. Hu, M. Sugiyama, "Pseudo-nonlinear data augmentation: a constrained energy
    minimization viewpoint", ICLR 2026, Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import PNLAugmenter
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> PNLAugmenter().fit(X).sample(3, random_state=0).shape
    (3, 4)
    """

    order: Literal["auto"] | int | Sequence | None = field(
        default="auto", kw_only=False
    )

    @all_or_nothing
    def fit(self, X: Rows, y: Any = None) -> Self:
        """Encode the rows, and fit the density of their codes if there is one.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, *shape)
            Rows.
        y : None
            Not used; a warning names the samplers whose new rows have targets.

        Returns
        -------
        self : PNLAugmenter
        """
        if y is not None:
            # scikit-learn's tools hand targets to every fit.
            warn_user(
                "PNLAugmenter does not use y: new rows have no targets. Use PNLSampler "
                "for classes, PNLRegressionSampler for numbers as targets, or make the "
                "target one more feature; else leave y out."
            )
        table = read_table(self, X, missing=is_cellwise(self))
        self._fit(table, type(self).__name__)
        return self

    def _fit(self, table, whom, resolved=None):
        """Fit rows that were read: those of ``fit``, or a class of a sampler.

        Messages are those of ``whom``; ``resolved`` are equations and marks of all
        classes.
        """
        table.describe(self)
        rows, draws = table.numbers(), as_draws(self.draws)
        self.integer_features_ = table.integer_features
        self.n_neighbors_ = clip_neighbors(
            self.k_neighbors, len(rows), not draws.looks_up, table.whose
        )
        self.invariants_, self.marks_ = resolved or self._resolved(table)
        taken = Taken.of(self.marks_, rows, table.labels)
        rows, missing = taken.hidden(rows), taken.missing()
        if missing is not None:
            rows = matched(rows, missing, table.labels)
        ends = ends_of(rows)
        keeper, inner, originals = self._promise(table, rows, ends, taken)
        with config_context(**_UNCHECKED):
            path, cells = self._laid_out(table, rows, ends, whom)
        mine = table.owned or not np.may_share_memory(cells, rows)
        training = self._encode(table, cells, mine, whom)
        self.draws_ = draws.fit(self.codes_)
        of_two = keeper.of_two(ends) if is_cellwise(self) else ()
        self._source = Source(
            table.without_rows(),
            training,
            self.draws_,
            path,
            keeper,
            inner,
            taken,
            originals,
            self.range_slack is not None,
            self.n_neighbors_,
            whom,
            of_two if len(of_two) else None,
        )

    def _promise(self, table, rows, ends, taken):
        """What new rows keep, its limits without shared values, and rows not to copy.

        What it takes from equations and marks is noted there.
        """
        slacks = self.range_slack, None
        allowed = [limits(rows, ends, slack) for slack in slacks]
        scaled = self.embedding is not None
        promised = self.invariants_, table, ends, allowed, scaled
        keeper = keeper_of(*promised, self.offset, self.marks_)
        inner, originals = (keeper.low, keeper.high), None
        if len(taken.columns):
            zeros = self.marks_.zeros
            keeper = replace(keeper, shared=taken.shared_ends, keeps_zeros=zeros)
        marked = keeper.discrete | (keeper.low == keeper.high) | taken.is_any
        if self.marks_.searched and marked.all():
            # Noise does not part them from training rows.
            self.marks_ = self.marks_.noted(
                "Rows may hold no number of any size: one that would copy a row that "
                "the data do not repeat has the next value of a column."
            )
            known = keeper.cast(rows.astype(np.float64))
            originals = Originals(taken.shown(known, np.nan), table.labels)
        found = self.invariants_
        known = found.part(found.rounding > 0).descriptions
        if rounded := [told for told in keeper.up_to_rounding if told not in known]:
            self.invariants_ = found.noted(
                f"Up to the rounding of their columns: {', '.join(rounded)}."
            )
        return keeper, inner, originals

    def _laid_out(self, table, rows, ends, whom):
        """Steps from numbers to cells, and the cells (n, D) of rows."""
        embed = Embed(self.embedding, self.offset, whom)
        embedded = embed.fit(table, rows, ends)
        self.order_ = self.order
        if isinstance(self.order, str):
            # Nothing is reduced unless that is wished for.
            self.order_ = None if self.poset is None and self.base is None else 1
        manifold = as_local_manifold(self.local_manifold)
        whole = self.order_ is None and self.base is None
        lay_out = LayOut(
            self.reshaper, self.poset, embed.shape, not whole or manifold.reduces
        )
        cells = lay_out.fit(embedded)
        self._check_order(embed.shape, lay_out)
        self.embedding_, self.reshaper_ = embed.transformer, lay_out.reshaper
        self.poset_ = lay_out.poset
        base = None if whole else free_mask(self.poset_, self.order_, self.base)
        self.base_mask_ = np.ones(self.poset_.shape, bool) if whole else base
        self._codec = make_codec(self, self.poset_, base, manifold)
        return (embed, lay_out), cells

    def _check_order(self, shape, lay_out):
        """Refuse an order that rows of one axis have too few prime factors for."""
        d = len(getattr(lay_out.poset, "shape", ()))
        made = lay_out.reshaper is not None and len(shape) == 1 and self.base is None
        if made and isinstance(self.order_, Integral) and self.order_ > d:
            raise ValueError(
                f"order={self.order_} is outside 1 to {d}: the {shape[0]} columns of X "
                f"are laid out by their prime factors, as a tensor of shape "
                f"{lay_out.poset.shape} with {d} modes. order=None keeps all "
                "interactions, without a tensor."
            )

    def _encode(self, table, cells, mine, whom):
        """Training rows of cells (n, D), which are kept if decoding needs them."""
        codec = self._codec
        if codec.needs_rows and not mine and cells.flags.writeable:
            # A later change of X is nothing to them; rows on disk stay there.
            cells = cells.copy()
        # Frames that an embedding gives lend their memory to be read alone.
        overwrite = mine and cells.flags.writeable and not codec.needs_rows
        numbers = table.row_numbers
        encoded = encode_rows(
            codec, cells, whom, self.n_jobs, overwrite=overwrite, numbers=numbers
        )
        kept = cells if codec.needs_rows else np.empty_like(cells[:0])
        labels = table.labels
        training = TrainingRows(codec, kept, encoded, self.metric, labels)
        self.codes_ = training.codes
        self.n_params_ = codec.n_params
        self.n_iter_ = max(1, int(encoded.n_iter.max()))
        return training

    def to_measures(self, X: Rows) -> NDArray:
        """The measures that rows are read as, after embedding, layout and offset.

        Parameters
        ----------
        X : array-like of shape (n, *input_shape_)
            Rows. A missing cell has the middle value of its column here; those of
            training rows have the value of a like row in ``codes_``.

        Returns
        -------
        measures : ndarray of shape (n, *poset_.shape)
        """
        check_is_fitted(self)
        numbers = self._source.table.read(X)
        if hasattr(self, "feature_names_in_"):
            _check_feature_names(self, X, reset=False)
        embed, lay_out = self._source.path
        embedded = embed.forward(self._source.taken.hidden(numbers))
        check_measures(
            embedded.reshape(-1, *embed.shape),
            "Values below -offset after the embedding",
            self.offset,
            # New rows reach down to there, beyond the range of the training rows.
            lowest=-self.offset,
            advice="a larger offset has room for them",
        )
        cells = self._codec.cells(lay_out.forward(embedded))
        return cells.reshape(-1, *self.poset_.shape)

    @tells_where()
    def sample(
        self,
        n_samples: int = 1,
        random_state: Seed = None,
        *,
        constraints: Constraint | Sequence | None = None,
        totals: object = None,
        on_unmet: Literal["raise", "drop"] = "raise",
        return_parents: bool = False,
        return_report: bool = False,
    ) -> Any:
        """New rows.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState, Generator or None, default=None
            Seed. The same seed gives the same bytes for every ``n_jobs``.
        constraints : constraint or list of them, default=None
            What is asked of the new rows, in the units of ``X``:
            :class:`scipy.optimize.LinearConstraint`, or :class:`ColumnConstraint` for
            columns by name and for a value a row. "mixup" draws pairs of rows between
            which it is met, and a projection meets it to 1e-9 of the range.
        totals : dict, ColumnTotal, list of them or array-like, default=None
            What is asked of all new rows together, in the forms of
            :func:`~sklearn_pnl.calibrate`: sums by column, counts by level of a column
            or of several, and by :func:`~sklearn_pnl.column_total` means, tolerances,
            sums of several columns. Training rows are weighed to have them (minimum
            KL), and are drawn from by these weights; then all rows are moved together,
            as little as possible (chi-square), to all of it and to all that each row
            keeps. Sums are met to 1e-9 of their absolute terms, or as far as one value
            of a column in single precision rounds, counts and sums of whole numbers
            exactly.
        on_unmet : {"raise", "drop"}, default="raise"
            What becomes of a row that cannot have what is asked for: an error that says
            why, or it is left out, which totals do not allow.
        return_parents : bool, default=False
            Whether to return the training rows too that each was decoded from.
        return_report : bool, default=False
            Whether to return a :class:`SampleReport` too, of what was asked, what was
            met, and how far rows moved for it.

        Returns
        -------
        rows : array-like of shape (n_samples, *input_shape_)
            In the units, types and container of the training rows.
        parents : ndarray of int of shape (n_samples, 2) or (n_samples, k_neighbors)
            If asked for. Rows of the training data: the two that "mixup" mixed, or else
            the nearest ones, the nearest first.
        report : SampleReport
            If asked for.

        Raises
        ------
        ValueError
            If a constraint cannot be met within the limits of the features, or totals
            contradict each other or the rows: which, and the range that can be reached.
        """
        rows, parents, _, report = self._sample(
            n_samples, random_state, constraints, totals, on_unmet=on_unmet,
            is_looked_at=totals is not None, is_told=return_report,
        )  # fmt: skip
        asked = (rows, *[parents] * return_parents, *[report] * return_report)
        return asked if len(asked) > 1 else rows

    @tells_where(totals="they need all rows at once: sample(n, totals=...)")
    def iter_samples(
        self,
        n_samples: int,
        batch_size: int | None = None,
        random_state: Seed = None,
        *,
        constraints: Constraint | Sequence | None = None,
        on_unmet: Literal["raise", "drop"] = "raise",
        return_parents: bool = False,
    ) -> Iterator[Any]:
        """New rows in batches: more of them than fit in memory.

        One after the other, the batches are the same bytes as :meth:`sample` of all
        rows, for every ``batch_size`` and ``n_jobs``.

        Parameters
        ----------
        n_samples : int
            How many in all.
        batch_size : int, default=None
            Rows in a batch; the last may have fewer. None is as many as fit
            ``working_memory`` of :func:`sklearn.set_config`.
        random_state : int, RandomState, Generator or None, default=None
            Seed. An instance must not be used for anything else before the last batch:
            noise is drawn from it batch by batch.
        constraints, on_unmet, return_parents
            As for :meth:`sample`.

        Returns
        -------
        batches : generator of array-like of shape (batch_size, *input_shape_)
            Or of tuples of them and their parents.

        Notes
        -----
        Beyond one batch, what is held grows by 24 bytes a row for "mixup" and by 8 for
        "kde". An estimator draws all codes at once. Totals are of all rows, which must
        be there at once: :meth:`sample` has them. Several calls of it may each have
        their share of them.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_pnl import PNLAugmenter
        >>> X = np.random.default_rng(0).uniform(size=(30, 4, 5))
        >>> augmenter = PNLAugmenter().fit(X)
        >>> [len(rows) for rows in augmenter.iter_samples(250, 100, random_state=0)]
        [100, 100, 50]
        """
        batch_size = check_count("batch_size", batch_size, or_none=True)
        n_samples, seed, drops = self._checked(n_samples, random_state, on_unmet)
        drawing = self._source.drawing(
            n_samples, seed, self.n_jobs, constraints, None, drops
        )
        size = min(batch_size or drawing.rows_in_memory(), n_samples)
        finished = (drawing.finished(batch) for batch in drawing.batches(size))
        return (each[:2] if return_parents else each[0] for each in finished)

    def _sample(
        self, n_samples, random_state, constraints, totals=None, *, on_unmet="raise",
        is_looked_at=False, **settings,
    ):  # fmt: skip
        """New rows, parents, weights of these and a report, as :func:`sample_set`.

        Of a set that is looked at few rows shape the noise, which so breaks less of
        what holds in most rows.
        """
        n_samples, seed, drops = self._checked(n_samples, random_state, on_unmet)
        source = self._source
        if is_looked_at and isinstance(self.draws, str) and self.draws == "auto":
            source = replace(source, draws=MixupDraws(noise_neighbors=_OF_SETS))
        asked = constraints, drops, totals
        return sample_set(source, n_samples, seed, self.n_jobs, *asked, **settings)

    def _checked(self, n_samples, random_state, on_unmet):
        """How many rows, their seed, and whether some may be left out."""
        check_is_fitted(self)
        if on_unmet not in ("raise", "drop"):
            raise ValueError(f"on_unmet must be 'raise' or 'drop'; got {on_unmet!r}.")
        n_samples = check_count("n_samples", n_samples)
        return n_samples, as_random_state(random_state), on_unmet == "drop"


def is_cellwise(estimator):
    """Whether the code of a plain row is the whole row, a number for each column."""
    whole = estimator.order is None or isinstance(estimator.order, str)
    whole &= estimator.base is None and estimator.poset is None
    whole &= estimator.reshaper is None or estimator.reshaper in ("auto",)
    whole &= estimator.embedding is None or isinstance(estimator.embedding, str)
    return bool(whole and not getattr(estimator.local_manifold, "reduces", False))
