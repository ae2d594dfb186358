"""Draw new rows from one set of rows: embed, encode, draw codes, decode, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted

from ._runtime.threads import limited, one_blas_thread
from ._runtime.typing import Rows, Seed
from ._runtime.validation import (
    COUNT,
    NOT_NEGATIVE,
    all_or_nothing,
    as_random_state,
    check_count,
    clip_neighbors,
    warn_user,
)
from .codec import encode_rows, free_mask, make_codec, unshared
from .constraints.equalities import echelon_of
from .constraints.feasible_set import resolve_equalities
from .constraints.linear import (
    CONSTRAINTS,
    Constraint,
    LinearConstraints,
    read_constraints,
)
from .constraints.relations import MOST_DENSE, find_relations, limits_alone
from .constraints.structure import Structure
from .constraints.value_support import ValueSupport, find_value_support
from .draws import DRAWS_PARAMETER, DrawsLike, MixupDraws, Start, as_draws
from .embedding import Embed, LayOut
from .frames import read_table, warn_extreme_values
from .geometry import TensorPoset
from .lines import LineDraw
from .manifolds import LOCAL_MANIFOLD, ORDER, LocalManifoldLike, as_local_manifold
from .neighbors import TrainingRows
from .parents import RowSearch, strata_of
from .projectors import ManyBodyProjector, checked_projector
from .sampling import CodeSource, Drawing, LineSource, joined
from .sets import report_of, sample_set

_INVERTIBLE = HasMethods(["fit", "transform", "inverse_transform"])
EqualitiesLike: TypeAlias = Literal["auto"] | Constraint | Sequence | None
OrderLike: TypeAlias = int | Sequence | ManyBodyProjector | None


class Augmentation(BaseEstimator):
    """Common parameters of augmenter and samplers, and their validation."""

    _parameter_constraints: ClassVar[dict] = {
        "order": [*ORDER, ManyBodyProjector, None],
        "local_manifold": LOCAL_MANIFOLD,
        "k_neighbors": [COUNT, StrOptions({"auto"})],
        "draws": DRAWS_PARAMETER,
        "reshaper": [StrOptions({"auto", "prime"}), _INVERTIBLE, None],
        "embedding": [StrOptions({"minmax"}), _INVERTIBLE, None],
        "categorical_features": ["array-like", StrOptions({"auto"}), None],
        "value_support": [StrOptions({"auto"}), None],
        "extrapolation": [NOT_NEGATIVE, None],
        "equalities": [StrOptions({"auto"}), *CONSTRAINTS, None],
        "n_jobs": [Integral, None],
    }

    def _augmenter(self):
        """An augmenter with the parameters of this estimator."""
        names = Augmentation._parameter_constraints
        return PNLAugmenter(**{name: getattr(self, name) for name in names})

    def _read(self, X):
        """Rows of any container as a table of numbers and categories."""
        return read_table(self, X, keeps_whole_rows(self))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.embedding is None
        tags.input_tags.allow_nan = keeps_whole_rows(self)
        return tags


class StructureAttributes:
    """Structure of the training rows: equalities, orders and value support."""

    _structure: Structure

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
        return self._structure.orders

    @property
    def value_support_(self) -> ValueSupport | None:
        """Steps and atoms of the columns; ``print`` lists them."""
        check_is_fitted(self)
        return self._structure.support


class PNLAugmenter(Augmentation, StructureAttributes):
    """Pseudo-nonlinear data augmentation of one set of rows.

    New rows of a table lie on straight lines between near rows, with local noise
    (:class:`~sklearn_pnl.draws.MixupDraws`): they keep the linear equalities of the
    training rows (``equalities``), the orders of their columns, ranges and types. Where
    a base is named (``order``), rows become positive tensors, that is points of a
    log-linear model: ``fit`` encodes them by KL projection on the base, ``sample``
    draws codes near theirs and decodes each by projection on a local sub-manifold of
    near rows (:class:`BackwardProjector` says how). No labels are needed: use it for
    one class, for unlabelled data, or for rows with the target as one more feature.

    Parameters
    ----------
    order : int, list of tuple of int, ManyBodyProjector or None, default=None
        The base: order ell of the interactions between modes that a code keeps, or
        those listed. None keeps all: the code is the whole row. A
        :class:`ManyBodyProjector`, which is cloned, says with which base, poset,
        offset, mass and tolerance rows are encoded; a number or list stands for
        ``ManyBodyProjector(order, offset=1.0, with_mass=True)``. For rows of one axis
        modes are the prime factors of their length.

    local_manifold : {"fiber", "theta", "eta", "mixture"} or LocalManifold, \
            default="fiber"
        How codes are decoded; see :class:`BackwardProjector`.

    k_neighbors : int or "auto", default="auto"
        Rows among which "mixup" looks for a partner, or else that a new row is decoded
        from; fewer rows are all used, with a warning. "auto" is a third of
        the rows as partners, at least 4 and at most 10, or 5 rows to decode from, or as
        many as there are: new rows of one row are copies, with a warning.

    draws : {"mixup", "interpolation", "kde"}, Draws or estimator, default="mixup"
        How codes are drawn: between near rows with noise
        (:class:`~sklearn_pnl.draws.MixupDraws`) or without ("interpolation",
        ``MixupDraws(noise=0)``), from a kernel density estimate as in the paper
        (:class:`~sklearn_pnl.draws.KernelDraws`), or from an estimator with ``fit`` and
        ``sample``, which is cloned (:class:`~sklearn_pnl.draws.DensityDraws`). A grid
        over ``draws__noise`` needs an object, ``draws=MixupDraws()``.

    reshaper : {"auto", "prime"}, transformer or None, default="auto"
        From rows to tensors and back. "prime" is :class:`PrimeFactorReshaper`, padding
        with the mean of the row; None keeps the shape of the rows. "auto" is "prime"
        where codes are reduced without a poset, else None.

    embedding : {"minmax"}, transformer or None, default="minmax"
        From values to non-negative values and back, where rows are encoded. "minmax"
        maps each feature to [0, 1]; None leaves non-negative data, such as pixels or
        spectra, as they are. A transformer gets rows flattened to 2-D, and codes are
        those of its output.

    categorical_features : "auto", array-like or None, default="auto"
        Columns that hold categories: their numbers, their names or a mask. "auto" is
        all columns of a data frame that hold neither numbers nor times. A new row takes
        all its categories from one of its parents. What is missing is a category too,
        one for all marks of missing cells in a column.
        For nearness a difference in one of them counts as much as the typical deviation
        of a number, as in SMOTE-NC.

    value_support : "auto" or None, default="auto"
        Restriction of new values to those of a column: "auto" rounds to whole numbers
        or to up to four decimals where all training values are so, and copies atoms,
        values that many rows share (such as 0), from a parent. None rounds by types
        alone, the default of the samplers: it ranks better, and looks less natural.

    extrapolation : float or None, default=0.0
        How far new values may lie beyond the range of a feature, as a share of its
        length. In a sampler the range is that of all classes, so that a row of adults
        may be 17 if children are another class. Values beyond are reflected. None sets
        no limit. Whole numbers and two-valued columns stay within the training range.
        0 keeps latitudes, shares and pixels within their bounds.

    equalities : "auto", constraints or None, default="auto"
        Linear equalities between columns that new rows keep. "auto" finds columns that
        are linear functions of others, exactly or nearly, and draws them together, so
        that exact equalities hold to rounding and others as nearly as in the data.
        Equalities may also be given, as :func:`find_equalities` returns them or in the
        forms of ``constraints``; all training rows must satisfy them. None keeps none.
        With fewer rows than columns plus two, or more than 1,000 columns, only sums of
        neighbouring columns that are constant or equal to another column are found; in
        sparse rows of more than 2 ** 24 cells nothing is searched.

    n_jobs : int, default=None
        Number of blocks of rows in parallel.

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
        Codes of the training rows; on straight lines the rows themselves.

    n_params_ : int
        Length of a code.

    n_iter_ : int
        Most Newton steps that encoding a row took; at least 1.

    n_neighbors_ : int
        ``k_neighbors``, at most the number of training rows, for "mixup" of others.

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

    _parameter_constraints: ClassVar[dict] = {**Augmentation._parameter_constraints}

    def __init__(
        self,
        order: OrderLike = None,
        *,
        local_manifold: LocalManifoldLike = "fiber",
        k_neighbors: int | Literal["auto"] = "auto",
        draws: DrawsLike = "mixup",
        reshaper: Literal["auto", "prime"] | Any = "auto",
        embedding: Literal["minmax"] | Any = "minmax",
        categorical_features: Literal["auto"] | ArrayLike | None = "auto",
        value_support: Literal["auto"] | None = "auto",
        extrapolation: float | None = 0.0,
        equalities: EqualitiesLike = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.order = order
        self.local_manifold = local_manifold
        self.k_neighbors = k_neighbors
        self.draws = draws
        self.reshaper = reshaper
        self.embedding = embedding
        self.categorical_features = categorical_features
        self.value_support = value_support
        self.extrapolation = extrapolation
        self.equalities = equalities
        self.n_jobs = n_jobs

    @all_or_nothing
    @one_blas_thread()
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
            # Tools of scikit-learn pass targets to every fit.
            warn_user(
                "PNLAugmenter does not use y: new rows have no targets. Use PNLSampler "
                "for classes, PNLRegressionSampler for numbers as targets, or make the "
                "target one more feature; else leave y out."
            )
        table = self._read(X)
        return self._fit(table, type(self).__name__, self._find_structure(table))

    def _fit(self, table, caller, structure, groups=None):
        """Fit rows that were read: those of ``fit``, or a class of a sampler.

        ``structure`` is that of the rows of all classes; ``groups`` (n,)
        are mixed each within itself.
        """
        table.describe(self)
        warn_extreme_values(table, structure.relations.least, structure.relations.most)
        self.integer_features_ = table.integer_features
        self._structure, self._caller = structure, caller
        self.draws_ = as_draws(self.draws)
        self.n_neighbors_ = clip_neighbors(
            self.k_neighbors, len(table), not self.draws_.looks_up, table.data_name
        )
        if draws_lines(self, table):
            self._source = self._line_source(table, groups)
        else:
            self._source = self._code_source(table, groups)
        self._feasible_set = None
        self._table = table.without_rows()
        return self

    def _find_structure(self, table):
        """Find limits, equalities, orders and steps of the rows."""
        support, steps = None, table.steps
        sparse = table.sparse_rows
        if sparse is not None and np.prod(sparse.shape) > MOST_DENSE:
            relations = limits_alone(sparse, steps, self.extrapolation)
            return Structure(table.without_rows(), relations, support)
        numbers = table.numbers().astype(np.float64, copy=False)
        if self.value_support is not None and len(table.shape) == 1:
            support = find_value_support(numbers, table)
            steps = support.steps
        equalities = None
        if not isinstance(self.equalities, str):
            equalities = echelon_of(resolve_equalities(self.equalities, table))
        relations = find_relations(
            numbers, steps, shape=None if len(table.shape) == 1 else table.shape,
            extrapolation=self.extrapolation, given=equalities, times=table.times,
            precision=table.precision,
        )  # fmt: skip
        return Structure(table.without_rows(), relations, support)

    # --- whole rows ---------------------------------------------------------------

    def _line_source(self, table, groups):
        cells = table.numbers().astype(np.float64, copy=not table.owned)
        relations, draws, labels = self._structure.relations, self.draws_, table.labels
        strata = strata_of(cells, relations.tied, self.n_neighbors_, groups)
        lines = LineDraw.of_rows(cells, labels, self._structure, draws, strata)
        rows, absent = lines.rows, lines.absent
        has_donors = labels is not None or relations.binary.any() or absent is not None
        self.order_, self.embedding_, self.reshaper_ = None, None, None
        self.codes_, self.n_params_, self.n_iter_ = rows, rows.shape[1], 1
        self.poset_ = TensorPoset(table.shape)
        self.base_mask_ = np.ones(table.shape, bool)
        search = RowSearch(rows, labels)
        return LineSource(lines, search, strata, draws.n_candidates, has_donors)

    # --- codes --------------------------------------------------------------------

    def _code_source(self, table, groups):
        """Algorithm 2, step 1: the rows as cells, and their codes w_i = Enc(x_i)."""
        rows, feasible = table.numbers(), None
        relations, labels = self._structure.relations, table.labels
        # Before rows are embedded, which may write over them.
        if len(relations.equations) or len(relations.orders):
            feasible = self._structure.feasible_set(table, rows)
        projector = encoding_projector(self.order)
        manifold, whole = as_local_manifold(self.local_manifold), is_whole(self.order)
        # Rows are validated already, and transformers must return arrays.
        with config_context(assume_finite=True, transform_output="default"):
            embed = Embed(self.embedding, projector.offset, self._caller)
            embedded = embed.fit(table, rows)
            reduced = not whole or manifold.reduces
            lay_out = LayOut(self.reshaper, projector.poset, embed.shape, reduced)
            cells = lay_out.fit(embedded)
        self.order_ = None if whole else projector.order
        self.poset_ = lay_out.poset
        self.embedding_, self.reshaper_ = embed.transformer, lay_out.reshaper
        base, self.base_mask_ = None, np.ones(self.poset_.shape, bool)
        if not whole:
            base = free_mask(self.poset_, projector.order, projector.base)
            self.base_mask_ = base
        codec = make_codec(projector, self.poset_, base, manifold)
        # w_i = Enc(x_i).
        training = self._encode(codec, table, cells, rows)
        self.draws_ = self.draws_.fit(self.codes_)
        has_donors = labels is not None or relations.binary.any()
        return CodeSource(
            training, self.draws_, embed, lay_out, relations, feasible,
            strata_of_groups(groups, self.draws_), has_donors, self._caller,
        )  # fmt: skip

    def _encode(self, codec, table, cells, rows):
        """Training rows of cells (n, D), which are kept if decoding needs them."""
        numbers = table.row_numbers
        encoded = encode_rows(codec, cells, self._caller, self.n_jobs, numbers=numbers)
        if not codec.needs_rows:
            cells = np.empty_like(cells[:0])
        elif not table.owned:
            cells = unshared(cells, rows)
        training = TrainingRows(codec, cells, encoded, self.draws_.metric, table.labels)
        self.codes_ = training.codes
        self.n_params_ = codec.n_params
        self.n_iter_ = max(1, int(encoded.n_iter.max()))
        return training

    # --- new rows -----------------------------------------------------------------

    @one_blas_thread()
    def sample(
        self,
        n_samples: int = 1,
        random_state: Seed = None,
        *,
        constraints: Constraint | Sequence | None = None,
        totals: object = None,
        infeasible: Literal["raise", "drop"] = "raise",
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
            Constraints on each new row, in the units of ``X``:
            :class:`scipy.optimize.LinearConstraint`, or :class:`ColumnConstraint` for
            columns by name and for a value a row. "mixup" draws seeds near them, and a
            projection satisfies them to 1e-9 of the range. A row that no projection
            leaves with the relations of its columns is a copy of the nearest training
            row that satisfies them, which is then its parent. Float columns that a
            projection moves need not keep their decimals.
        totals : dict, ColumnTotal, list of them or array-like, default=None
            Totals of all new rows, in the forms of :func:`~sklearn_pnl.calibrate`: sums
            by column, counts by level of a column or of several, and by
            :func:`~sklearn_pnl.column_total` means, tolerances, sums of several
            columns. Parents are drawn with calibrated weights (minimum KL); the sample
            is then projected onto the totals and the constraints of each row
            (chi-square). Sums hold to 1e-9 of their absolute terms, or to the rounding
            of one value of a column in single precision; counts, which "mixup" alone
            takes, and sums of whole numbers are exact. Cents may go where they do not
            have the sums.
        infeasible : {"raise", "drop"}, default="raise"
            Action for infeasible rows: raise an error that names the constraint, or
            leave them out, which totals do not allow.
        return_parents : bool, default=False
            Whether to return the training rows too that each was decoded from.
        return_report : bool, default=False
            Whether to return a :class:`SampleReport` too: constraints, achieved values,
            and how far rows moved.

        Returns
        -------
        rows : array-like of shape (n_samples, *input_shape_)
            In the units, types and container of the training rows.
        parents : ndarray of int of shape (n_samples, 2) or (n_samples, k_neighbors)
            With ``return_parents``. Rows of the training data: the two that "mixup"
            mixed, or else the nearest ones, the nearest first.
        report : SampleReport
            With ``return_report``.

        Raises
        ------
        ValueError
            If a constraint is infeasible, or totals contradict each other or the rows.
            The message names it, and its range within the limits of the features.
        """
        rows, parents, _, report = self._sample(
            n_samples, random_state, constraints, totals, infeasible=infeasible,
            reports=return_report,
        )  # fmt: skip
        results = (rows, *[parents] * return_parents, *[report] * return_report)
        return results if len(results) > 1 else rows

    def iter_samples(
        self,
        n_samples: int,
        batch_size: int | None = None,
        random_state: Seed = None,
        *,
        constraints: Constraint | Sequence | None = None,
        infeasible: Literal["raise", "drop"] = "raise",
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
        constraints, infeasible, return_parents
            As for :meth:`sample`.

        Returns
        -------
        batches : generator of array-like of shape (batch_size, *input_shape_)
            Or of tuples of them and their parents.

        Notes
        -----
        Beyond one batch, memory grows by 24 bytes a row for "mixup" and by 8 for
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
        drawing, rng = self._drawing(n_samples, random_state, constraints, infeasible)
        if batch_size is None:
            # Two batches fit in memory: the caller keeps one.
            numbers = len(self._table.columns) + self.n_params_ + self.n_neighbors_
            free = get_config()["working_memory"] * 2**20
            batch_size = max(1, int(free // (2 * 8 * numbers)))
        batches = drawing.batches(rng, min(batch_size, n_samples))
        return limited(self._returned(batch, return_parents) for batch in batches)

    def _returned(self, batch, with_parents):
        rows = self._table.like(batch.numbers, batch.donors)
        return (rows, batch.parents) if with_parents else rows

    def _drawing(
        self, n_samples, random_state, constraints=None, infeasible="raise", shares=None
    ):
        """A :class:`Drawing` of new rows with constraints, and its generator."""
        check_is_fitted(self)
        if infeasible not in ("raise", "drop"):
            raise ValueError(
                f"infeasible must be 'raise' or 'drop'; got {infeasible!r}."
            )
        n_samples = check_count("n_samples", n_samples)
        source = self._source
        start = Start(
            n_samples, self.n_neighbors_, shares=shares, strata=source.strata,
            mutual=source.has_donors, n_jobs=self.n_jobs,
        )  # fmt: skip
        feasible = self._with_constraints(constraints, n_samples)
        drops = infeasible == "drop"
        drawing = Drawing(source, self._table, feasible, start, drops, self._caller)
        return drawing, as_random_state(random_state)

    def _with_constraints(self, constraints, n_samples):
        """Feasible set of new rows."""
        if self._feasible_set is None:
            numbers = self._source.numbers
            self._feasible_set = self._structure.feasible_set(self._table, numbers)
        feasible = self._feasible_set
        if constraints is None:
            return feasible
        wanted = read_constraints(constraints, self._table, n_samples)
        wanted = replace(wanted, ranges=feasible.ranges)
        return replace(feasible, constraints=wanted)

    def _sample(
        self, n_samples, random_state, constraints=None, totals=None, *,
        infeasible="raise", reports=False, shares=None,
    ):  # fmt: skip
        """New rows in their container, parents, weights of these and a report."""
        drawing, rng = self._drawing(
            n_samples, random_state, constraints, infeasible, shares
        )
        if totals is not None:
            batch, report = sample_set(drawing, rng, totals)
        else:
            batch = joined(drawing.batches(rng))
            report = report_of(drawing, batch) if reports else None
        if not len(batch.numbers):
            raise ValueError(
                f"{self._caller}: none of {n_samples} new rows can meet the "
                "constraints, so that nothing is left to return. infeasible='raise' "
                "says why."
            )
        return *self._returned(batch, True), batch.weights, report


def strata_of_groups(groups, draws):
    """Rows of each group, which are mixed with each other alone."""
    if groups is None:
        return None
    if not isinstance(draws, MixupDraws):
        raise ValueError(
            f"groups keeps the rows of a group together, but {draws!r} draws from a "
            "density of all rows: use draws='mixup'."
        )
    members = (np.flatnonzero(groups == group) for group in np.unique(groups))
    return [(rows, rows) for rows in members]


def keeps_whole_rows(estimator):
    """Whether the code of a row is the row itself, in its own units."""
    return (
        is_whole(estimator.order)
        and isinstance(estimator.reshaper, str | None)
        and estimator.reshaper != "prime"
        and isinstance(estimator.embedding, str | None)
        and not getattr(estimator.local_manifold, "reduces", False)
    )


def draws_lines(augmenter, table):
    """Whether new rows lie on straight lines: m-geodesics between whole rows."""
    draws = augmenter.draws_
    whole = isinstance(draws, MixupDraws) and keeps_whole_rows(augmenter)
    geodesic = getattr(draws, "geodesic", "e")
    if geodesic == "m" and not whole:
        raise ValueError(
            "geodesic='m' draws straight lines between whole rows: leave out order, "
            "reshaper, an embedding of your own and what reduces a local_manifold."
        )
    if geodesic == "auto":
        return whole and (len(table.shape) == 1 or table.has_missing)
    return geodesic == "m"


def is_whole(order):
    """Whether the base is all of S."""
    if isinstance(order, ManyBodyProjector):
        return order.order is None and order.base is None and order.poset is None
    return order is None


def encoding_projector(order):
    """The projector that a parameter ``order`` stands for, not fitted."""
    if isinstance(order, ManyBodyProjector):
        return checked_projector(order)
    return ManyBodyProjector(order, offset=1.0, with_mass=True)
