"""Transformers that encode rows as codes, and decode codes to rows.

:class:`ManyBodyProjector` is the forward projection of section 4.2 of the paper: it
reads a row as a distribution and projects the distribution onto a log-linear model, the
base. :class:`BackwardProjector` adds Algorithm 1: it decodes a code by a projection
onto a sub-manifold that the nearest training rows determine. Both classes validate
``X`` and leave the computation to :class:`sklearn_pnl.encoding.codec.Codec`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ._utils.arrays import cast, like, reshaped, to_host
from ._utils.blocks import map_blocks
from ._utils.threads import one_blas_thread
from ._utils.validation import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    ObjectsByName,
    all_or_nothing,
    as_array,
    check_codes,
    check_count,
    check_measures,
    check_tensors,
)
from .encoding.codec import Codec, encode_rows, lay_out, selected_base, unshared
from .encoding.forward import ForwardProjection
from .encoding.held_out import held_out_likelihood
from .encoding.k_neighbors import clip_neighbors
from .encoding.manifolds import (
    LOCAL_MANIFOLD,
    MANIFOLDS_WRITTEN,
    ORDER,
    LocalManifoldLike,
    as_local_manifold,
)
from .encoding.neighbors import METRIC, TrainingRows
from .geometry import PosetProtocol, RakingError, rake_array
from .geometry.convex.raking import mode_sets
from .geometry.posets.elements import refuse_foreign
from .reshape import names_of_cells

# Constraints of the parameters of one fit.
FIT_CONSTRAINTS = {
    "base": ["array-like", None],
    "poset": [PosetProtocol, None],
    "offset": [NOT_NEGATIVE],
    "tol": [POSITIVE],
    "max_iter": [COUNT],
}
N_JOBS = [Interval(Integral, None, -1, closed="right"), COUNT, None]


class _Encoder(TransformerMixin, BaseEstimator):
    """Encode tensors; a subclass supplies ``fit_transform``."""

    # The rows may stay on an accelerator.
    _on_devices = True
    # Empty cells with which a row has no code: all, or a function of `check_measures`.
    _find_undefined = None

    def _checked(self, X, reset):
        """Validate rows, and return rows of shape (n, D)."""
        return check_tensors(
            self,
            X,
            reset=reset,
            missing=self._missing,
            find_undefined=self._find_undefined,
        )

    @one_blas_thread()
    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Set up the base and project the rows.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative rows. NaN marks a missing cell, if ``handle_missing`` allows
            missing cells.
        y : None
            Ignored.

        Returns
        -------
        self : estimator
        """
        self.fit_transform(X)
        return self

    @one_blas_thread()
    def transform(self, X: ArrayLike) -> NDArray:
        """Encode rows as their coordinates on the base.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative rows. NaN marks a missing cell, if ``handle_missing`` allows
            missing cells.

        Returns
        -------
        codes : ndarray of shape (n, n_params_)
            Natural parameters in the order of the cells. If ``with_mass``, the first
            parameter is the parameter of the bottom.
        """
        rows = self._checked(X, reset=False)
        return self._codes(self._encode(rows), rows.dtype)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Return the names of the codes: ``theta_`` and the feature or cell.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the features, or of all cells of a tensor. None uses the names seen
            in ``fit``.

        Returns
        -------
        names : ndarray of str objects of shape (n_params_,)
        """
        check_is_fitted(self)
        names = names_of_cells(self, input_features)
        if self.poset_.added_bottom:
            names = ["bottom", *names]
        elements = self._codec.codes(self._codec.base.elements[None])[0]
        return np.array([f"theta_{names[x]}" for x in elements], dtype=object)

    def _encode(self, rows, divergence=False):
        given = self._codec, rows, type(self).__name__, self.n_jobs
        return encode_rows(*given, divergence, missing=self._missing is True)

    def _codes(self, encoded, dtype):
        return cast(self._codec.codes(encoded.coordinates), dtype)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.array_api_support = True
        return tags


class ManyBodyProjector(_Encoder):
    """Encode positive tensors by KL projection onto a log-linear model.

    Each row ``x`` is read as the distribution ``p = (x + offset) / mass`` on the
    cells of a poset. The projection is the distribution ``q`` of the model that
    minimises ``KL(p, q)``. The model, called the base, has no interactions beyond
    ``order``. The code of the row contains the natural parameters (theta) of ``q``.
    For a tensor, ``p`` and ``q`` have the same marginals of at most ``order`` modes.

    Parameters
    ----------
    order : int, list of tuple of int or ForwardProjection, default=1
        Largest order of the interactions in the base. A larger order preserves
        more of a row and makes the code longer. For a tensor, a list of tuples of
        modes selects the interactions. The base then contains all their subsets.
        A :class:`~sklearn_pnl.encoding.ForwardProjection` replaces the KL projection.
        For a chain, such as a row with one axis, all elements have an order of at most
        1. Order 1 then reduces nothing: ``n_params_`` is the number of cells, minus 1
        if ``with_mass=False``.

    base : array-like, default=None
        Free coordinates of the base, which replace ``order``: a boolean mask of the
        shape of the poset, or a list of elements (flat indices, or tuples of indices
        for a tensor). Any set of elements is accepted. None uses ``order``.

    poset : TensorPoset or Poset, default=None
        Partial order of the cells. None uses the tensor with the shape of a row, and
        one mode for a 2-D ``X``. Rows may also be flat, with one feature for each
        element (in the order of ``ravel`` for a tensor). If a bottom was added to the
        poset, ``X`` has no feature for the bottom: its cell is the mean of the row.

    offset : float, default=1e-5
        Value added to every cell before encoding, in units of ``X``. With an offset of
        0, a row may contain zero cells if ``order`` describes interactions of a tensor
        and all marginals that the base preserves are positive. All other rows with zero
        cells require a positive offset, because the logarithm of zero is infinite.

    with_mass : bool, default=False
        Whether to project positive measures instead of distributions. If True, the
        code starts with the coordinate of the bottom and also encodes the mass (the
        sum) of the row.

    tol : float, default=1e-6
        Largest accepted difference between the expectations of a row and of its
        projection, over the base. On a device without double precision, the tolerance
        is at least the rounding error of the device. The iteration continues until
        theta is also accurate to 0.01. A ``ConvergenceWarning`` names the rows in which
        nearly empty cells prevent this accuracy, or make it too expensive: a row stops
        after 20 Cholesky factors. A larger ``offset`` helps in both cases.

    max_iter : int, default=100
        Maximum number of Newton steps for one row.

    n_jobs : int, default=None
        Number of blocks of rows that are projected in parallel. None means 1 unless
        in a :obj:`joblib.parallel_config` context.

    handle_missing : {"error", "ignore"}, default="error"
        Handling of NaN. "error" raises an error. "ignore" encodes a row with NaN by
        the model of its observed cells (:func:`~sklearn_pnl.geometry.complete`), and
        :meth:`inverse_transform` returns values for its missing cells. The cell of an
        added bottom is the mean of the observed cells. If the observed cells do not
        determine a code, the code with the smallest variance of the log measure is
        used, and a warning names the rows. The base may have at most 2,048 elements. If
        it has more, fill the missing cells by :class:`ManyBodyImputer` first.

    Attributes
    ----------
    poset_ : TensorPoset or Poset
        Partial order of the cells.

    n_params_ : int
        Length of a code: the dimension of the base, plus 1 if ``with_mass``.

    base_mask_ : ndarray of bool of shape ``poset_.shape``
        Mask of the elements whose natural parameters form the code, without the bottom.

    n_iter_ : int
        Largest number of Newton steps over the rows of ``fit``. A closed form counts
        as 1.

    reconstruction_err_ : float
        Mean of ``KL(p, q)`` over the rows of ``fit``, in nats. For a row with missing
        cells, the divergence is computed over the observed cells.

    input_shape_ : tuple of int
        Shape of a row.

    n_features_in_ : int
        Length of the first axis of a row.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, if all are strings.

    See Also
    --------
    BackwardProjector : Decode codes to rows that resemble the training rows.
    ManyBodyImputer : Fill missing cells and leave observed cells unchanged.

    References
    ----------
    P. Hu, M. Sugiyama, ICLR 2026 (forward projection onto the base B).

    K. Ghalamkari, M. Sugiyama, Y. Kawahara, "Many-body approximation for
    non-negative tensors", NeurIPS 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import ManyBodyProjector
    >>> X = np.array([[[4.0, 1.0], [2.0, 3.0]]])
    >>> projector = ManyBodyProjector(order=1, offset=0).fit(X)
    >>> projector.inverse_transform(projector.transform(X))
    array([[[0.3, 0.2],
            [0.3, 0.2]]])
    """

    _parameter_constraints: ClassVar[dict] = {
        "order": [*ORDER, ForwardProjection],
        **FIT_CONSTRAINTS,
        "with_mass": ["boolean"],
        "n_jobs": N_JOBS,
        "handle_missing": [StrOptions({"error", "ignore"})],
    }

    def __init__(
        self,
        order: int | Sequence | ForwardProjection = 1,
        *,
        base: ArrayLike | None = None,
        poset: PosetProtocol | None = None,
        offset: float = 1e-5,
        with_mass: bool = False,
        tol: float = 1e-6,
        max_iter: int = 100,
        n_jobs: int | None = None,
        handle_missing: Literal["error", "ignore"] = "error",
    ) -> None:
        self.order = order
        self.base = base
        self.poset = poset
        self.offset = offset
        self.with_mass = with_mass
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.handle_missing = handle_missing

    @all_or_nothing
    @one_blas_thread()
    def fit_transform(self, X: ArrayLike, y: Any = None) -> NDArray:
        """Fit the base and return the codes of the rows.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative rows. NaN marks a missing cell, if ``handle_missing`` allows
            missing cells.
        y : None
            Ignored.

        Returns
        -------
        codes : ndarray of shape (n, n_params_)
        """
        rows = self._checked(X, reset=True)
        self._set_base(rows)
        encoded = self._encode(rows, divergence=True)
        self.reconstruction_err_ = float(to_host(encoded.divergence).mean())
        self.n_iter_ = max(1, int(encoded.n_iter.max()))
        return self._codes(encoded, rows.dtype)

    @one_blas_thread()
    def inverse_transform(self, X: ArrayLike) -> NDArray:
        """Return the point of the base for each code.

        The points do not resemble training rows. Use :class:`BackwardProjector`
        (Algorithm 1) to decode codes to rows that do.

        Parameters
        ----------
        X : array-like of shape (n, n_params_)
            Codes.

        Returns
        -------
        tensors : ndarray of shape (n, *poset_.shape)
            Distributions, which sum to 1. If ``with_mass``, measures with the same sum
            as ``x + offset``.
        """
        codes = check_codes(self, X)
        codec = self._codec
        (measures,) = map_blocks(
            codec.measures_of,
            codes,
            step=codec.encoded_at_once,
            task=f"{type(self).__name__}: measures",
            n_jobs=self.n_jobs,
        )
        return reshaped(measures, (-1, *self.poset_.shape))

    @one_blas_thread()
    def to_measures(self, X: ArrayLike) -> NDArray:
        """Convert rows to measures ``x + offset`` on the poset.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative rows. NaN marks a missing cell, if ``handle_missing`` allows
            missing cells.

        Returns
        -------
        measures : ndarray of shape (n, *poset_.shape)
            Measures. A measure divided by its sum is the encoded distribution.
        """
        rows = self._checked(X, reset=False)
        cells = self._codec.cells(rows)
        return reshaped(cells, (-1, *self.poset_.shape))

    @one_blas_thread()
    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Compute the mean log-likelihood of held-out parts of the rows.

        A larger order always fits a row more closely. The method therefore divides each
        row into ten random parts and predicts each part from the projection of the
        other parts. :class:`~sklearn.model_selection.GridSearchCV` can then choose
        ``order``. The seed of the parts is constant.

        If all cells are counts (non-negative integers), binomial thinning divides the
        counts of each cell among the parts. The score of a row is the multinomial
        log-likelihood of its counts, each predicted by the projection of the parts
        without the count, and without the multinomial coefficient.

        Otherwise, the cells are divided among the parts, and the cells of a part are
        predicted as missing cells. The score of a row is the Poisson log-likelihood of
        ``x + offset``, without the terms that do not depend on the prediction. The
        choice is then conservative, because a missing cell is predicted badly by the
        interactions that only a few other cells determine.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative rows. NaN marks a missing cell, if ``handle_missing`` allows
            missing cells.
        y : None
            Ignored.

        Returns
        -------
        score : float
            Mean log-likelihood of a row in nats.

        Raises
        ------
        ValueError
            If ``offset`` is 0. A cell with probability 0 would have the log-likelihood
            -inf.

        Notes
        -----
        For counts, use an offset of at least 0.05. With the default offset of 1e-5, a
        single count in a cell that is otherwise empty costs more than an interaction
        gains, and the score rejects large orders even if the interactions are real.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.model_selection import GridSearchCV
        >>> from sklearn_pnl import ManyBodyProjector
        >>> rates = np.multiply.outer([20.0, 40.0, 60.0], [1.0, 2.0, 3.0, 4.0])
        >>> X = np.random.default_rng(0).poisson(rates, size=(20, 3, 4))
        >>> search = GridSearchCV(ManyBodyProjector(offset=0.05), {"order": [1, 2]})
        >>> search.fit(X).best_params_
        {'order': 1}
        """
        rows = self._checked(X, reset=False)
        if self.offset == 0:
            raise ValueError(
                "score requires a positive offset; got offset=0. A held-out count in a "
                "cell with probability 0 has the log-likelihood -inf. Use offset=0.05."
            )
        return float(held_out_likelihood(self._codec, rows, self.n_jobs).mean())

    def _set_base(self, rows, local_manifold=None):
        """Set the poset and the base for rows of the fitted shape."""
        self.poset_ = lay_out(self.poset, self.input_shape_)
        base = selected_base(self.poset_, self.order, self.base)
        self._codec = Codec(self.poset_, base, self, local_manifold)
        self.base_mask_ = like(self._codec.mask, rows)
        self.n_params_ = self._codec.n_params

    def _find_undefined(self, is_empty, is_missing):
        """Mark empty cells (n, D) for which no code exists with an offset of 0.

        A code exists if the marginals of the row that the base preserves are positive.
        Rows with missing cells, and bases without marginals, require positive cells.
        """
        poset = lay_out(self.poset, self.input_shape_)
        base = selected_base(poset, self.order, self.base)
        is_own = isinstance(base, ForwardProjection)
        family = None if is_own else poset.family(base)
        if family is None:
            return is_empty
        modes = range(len(poset.shape))
        sets = combinations(modes, family) if isinstance(family, int) else family
        cells = is_empty.reshape(-1, *poset.shape)
        axes = tuple(k + 1 for k in modes)
        bad = cells & is_missing.reshape(cells.shape).any(axis=axes, keepdims=True)
        for kept in sets:
            summed = tuple(k + 1 for k in modes if k not in kept)
            bad |= cells.all(axis=summed, keepdims=True)
        return bad.reshape(is_empty.shape)

    @property
    def _missing(self):
        """True if cells may be missing, else the remedy shown in the error."""
        if self.handle_missing == "ignore":
            return True
        return "With handle_missing='ignore', rows are encoded by their observed cells."

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.handle_missing == "ignore"
        return tags


class BackwardProjector(ObjectsByName, _Encoder):
    """Encode rows, and decode codes to rows that resemble the training rows.

    ``transform`` encodes rows in the same way as :class:`ManyBodyProjector`.
    ``inverse_transform`` finds the training rows whose codes are nearest to a code. It
    then combines the code and the mean of the neighbours. ``local_manifold`` selects
    one of four ways to decode, and the local order is the order of the base unless the
    local manifold has its own:

    ========== =============================================================
    "fiber"    The row nearest to the mean of the neighbours (in KL divergence)
               that has all expectations of the code up to the local order.
    "theta"    The row with the mean natural parameters of the neighbours up to
               the local order, and the expectations of the code beyond. This
               problem is the projection of the paper's Algorithm 1.
    "eta"      The row with the mean expectations of the neighbours up to the
               local order, and the natural parameters of the code beyond.
    "mixture"  A weighted mean of the point of the code and the neighbours. The
               authors' program stops at a point of this form.
    ========== =============================================================

    With "fiber" and its default order, ``transform(inverse_transform(codes))`` returns
    ``codes``. With one neighbour, the code of a training row is decoded to the row.
    The inverse is less accurate in three cases:

    - Cells far below the offset are lost to rounding, because the offset is subtracted
      from decoded rows.
    - Cells with less than ``tol`` of the mass of a row need a smaller ``tol``.
    - The value of a bottom that was added to the poset is recomputed as the mean of
      the decoded row.

    Parameters
    ----------
    order : int, list of tuple of int, ForwardProjection or ManyBodyProjector, \
            default=1
        Largest order of the interactions in the base, or a list of interactions. A
        larger order preserves more of a row and makes the code longer. A
        :class:`~sklearn_pnl.encoding.ForwardProjection` replaces the KL projection.
        Pass a :class:`ManyBodyProjector`, which is cloned, to set the base, poset,
        offset, mass or tolerance. Rows with missing cells are rejected for every
        ``handle_missing`` of the projector, because decoding requires complete rows.

    local_manifold : {"fiber", "theta", "eta", "mixture"} or LocalManifold, \
            default="fiber"
        Way to decode a code, as listed above. A string selects
        :class:`FiberManifold`, :class:`ThetaManifold`, :class:`EtaManifold` or
        :class:`MixtureManifold` with default parameters.

    k_neighbors : int, default=5
        Number of nearest training rows that determine the local sub-manifold. A larger
        number yields smoother rows. If there are fewer training rows, all of them are
        used and a warning is issued.

    metric : {"kl", "euclidean"}, default="kl"
        Distance from a code to the codes of the training rows. "kl" is the KL
        divergence between the points of the base. "euclidean" is the Euclidean distance
        of the natural parameters.

    n_jobs : int, default=None
        Number of blocks of rows that are projected in parallel. None means 1 unless
        in a :obj:`joblib.parallel_config` context.

    Attributes
    ----------
    projector_ : ManyBodyProjector
        The fitted projector onto the base. Its ``inverse_transform`` decodes codes to
        points of the base.

    codes_ : ndarray of shape (n, n_params_)
        Codes of the training rows.

    coordinates_ : ndarray of shape (n, 1 + size of the base)
        Natural parameters of the training rows, with the parameter of the bottom first.

    masses_ : ndarray of shape (n,)
        Sums of the training rows after the offset is added to each cell.

    rows_ : ndarray of shape (n, *input_shape_)
        The training rows.

    local_mask_ : ndarray of bool of shape ``poset_.shape``
        Mask of the elements up to the local order.

    k_neighbors_ : int
        Number of neighbours used, at most the number of training rows.

    base_mask_ : ndarray of bool of shape ``poset_.shape``
        Mask of the elements whose natural parameters form the code, without the bottom.

    n_params_ : int
        Length of a code: the dimension of the base, plus 1 if the code contains the
        mass.

    n_iter_ : int
        Largest number of Newton steps over the rows of ``fit``. A closed form counts
        as 1.

    poset_ : TensorPoset or Poset
        Partial order of the cells.

    input_shape_ : tuple of int
        Shape of a row.

    n_features_in_ : int
        Length of the first axis of a row.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, if all are strings.

    See Also
    --------
    ManyBodyProjector : Encode rows without decoding codes to new rows.
    PNLAugmenter : Augment a set of rows without classes.
    sklearn_pnl.geometry.mixed_projection : Solve the convex problem of a projection.

    References
    ----------
    P. Hu, M. Sugiyama, ICLR 2026 (backward projection, local data sub-manifold D).

    S. Amari, "Information Geometry and Its Applications", 2016, section 2.8 (mixed
    coordinates: "fiber", "theta" and "eta" each have exactly one solution).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import BackwardProjector
    >>> X = np.random.default_rng(0).uniform(size=(20, 3, 4))
    >>> projector = BackwardProjector(order=1, k_neighbors=1).fit(X)
    >>> codes = projector.transform(X[:2])
    >>> bool(np.allclose(projector.inverse_transform(codes), X[:2]))
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "order": [*ORDER, ForwardProjection, ManyBodyProjector],
        "local_manifold": LOCAL_MANIFOLD,
        "k_neighbors": [COUNT],
        "metric": METRIC,
        "n_jobs": N_JOBS,
    }

    _objects: ClassVar[dict] = {"local_manifold": MANIFOLDS_WRITTEN}
    # Decoding requires complete training rows.
    _missing = None

    def __init__(
        self,
        order: int | Sequence | ForwardProjection | ManyBodyProjector = 1,
        *,
        local_manifold: LocalManifoldLike = "fiber",
        k_neighbors: int = 5,
        metric: Literal["kl", "euclidean"] = "kl",
        n_jobs: int | None = None,
    ) -> None:
        self.order = order
        self.local_manifold = local_manifold
        self.k_neighbors = k_neighbors
        self.metric = metric
        self.n_jobs = n_jobs

    @all_or_nothing
    @one_blas_thread()
    def fit_transform(self, X: ArrayLike, y: Any = None) -> NDArray:
        """Fit the base and return the codes of the rows.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative rows.
        y : None
            Ignored.

        Returns
        -------
        codes : ndarray of shape (n, n_params_)
        """
        advice = (
            "if X contains codes of a ManyBodyProjector, replace both steps by "
            "BackwardProjector(ManyBodyProjector(...)), which encodes rows. If X "
            "contains rows, make X non-negative, for instance with "
            "MinMaxScaler(clip=True), which also clips test rows"
        )
        rows = unshared(check_tensors(self, X, reset=True, advice=advice), X)
        self.projector_ = projector = as_projector(self.order)
        for name in ("input_shape_", "n_features_in_", "feature_names_in_", "_place"):
            if hasattr(self, name):
                setattr(projector, name, getattr(self, name))
        projector._set_base(rows, as_local_manifold(self.local_manifold))
        self._codec = codec = projector._codec
        encoded = self._encode(rows)
        projector.n_iter_ = self.n_iter_ = max(1, int(encoded.n_iter.max()))
        self.poset_, self.base_mask_ = projector.poset_, projector.base_mask_
        self.n_params_ = projector.n_params_
        self._training = TrainingRows(codec, rows, encoded, self.metric)
        self.coordinates_, self.masses_ = encoded.coordinates, encoded.mass
        self.rows_ = reshaped(rows, (-1, *self.input_shape_))
        self.codes_ = self._codes(encoded, rows.dtype)
        self.local_mask_ = like(codec.local_mask, rows)
        self.k_neighbors_ = clip_neighbors(self.k_neighbors, rows.shape[0])
        return 1 * self.codes_

    @one_blas_thread()
    def inverse_transform(self, X: ArrayLike) -> NDArray:
        """Decode codes to rows by projection onto the local sub-manifolds.

        With ``local_manifold="theta"``, the method is Algorithm 1 of the paper.

        Parameters
        ----------
        X : array-like of shape (n, n_params_)
            Codes.

        Returns
        -------
        rows : ndarray of shape (n, *input_shape_)
            Rows in the units of the training rows. A cell can be as low as ``-offset``,
            because the offset is subtracted. Clip the rows at 0 if necessary.
        """
        # w, points of the base B.
        codes = check_codes(self, X)
        # N, the k training rows whose codes are nearest to w.
        neighbors = self._training.nearest(codes, self.k_neighbors_, n_jobs=self.n_jobs)
        # x = phi^-1(Proj_D(w)), step by step in `Codec.decode`. D is the set M*_ell(N)
        # of the paper only for "theta", which is not the default.
        caller = type(self).__name__
        rows = self._training.decode(codes, neighbors, caller, n_jobs=self.n_jobs)
        return reshaped(rows, (-1, *self.input_shape_))

    @one_blas_thread()
    def decode_margins(
        self, margins: Mapping[tuple[int, ...], ArrayLike], tol: float = 1e-9
    ) -> NDArray:
        """Compute rows that have given marginals and resemble the training rows.

        The method first computes the measure of maximum entropy with the given
        marginals, and finds the training rows with the nearest codes. It then returns
        the measure that has the given marginals and the smallest KL divergence from
        the mean of the neighbours. In the mean, each neighbour is divided by its sum.

        Parameters
        ----------
        margins : dict of tuple of int to array-like
            Requested marginals. A key contains the modes that are kept; a value has
            shape ``(n, *lengths of the kept modes)`` and the units of the rows. For
            images, ``{(0,): row_sums, (1,): column_sums}`` gives both marginals.
        tol : float, default=1e-9
            Largest accepted difference between a marginal and the requested marginal,
            as a share of the mass.

        Returns
        -------
        rows : ndarray of shape (n, *input_shape_)
            Rows with the requested marginals. As in :meth:`inverse_transform`, a cell
            can be as low as ``-offset``.

        Raises
        ------
        RakingError
            If no row has the requested marginals. The message gives the cell of a
            marginal with the largest error.

        References
        ----------
        S. Amari, "Information Geometry and Its Applications", 2016, section 2.8.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn_pnl import BackwardProjector
        >>> X = np.random.default_rng(0).uniform(size=(20, 3, 4))
        >>> projector = BackwardProjector(order=1).fit(X)
        >>> wanted = np.array([[1.0, 2.0, 3.0]])
        >>> projector.decode_margins({(0,): wanted}).sum(axis=2).round(6)
        array([[1., 2., 3.]])
        """
        check_is_fitted(self)
        refuse_foreign(self.rows_, "A fit before decode_margins")
        shape = self.poset_.shape
        settings = {"n_modes": len(shape), "tol": tol}
        given, lifted = {}, {}
        for key, modes in mode_sets(margins).items():
            margin = np.asarray(as_array(margins[key], f"margin {modes}"), np.float64)
            for where in np.argwhere(~(margin >= 0))[:1].tolist():
                raise ValueError(
                    f"margin {modes} must be finite and non-negative; entry "
                    f"{tuple(where)} is {margin[tuple(where)]:g}. Correct the entry, "
                    "or omit the margin."
                )
            n_cells = prod(n for k, n in enumerate(shape) if k not in modes)
            given[modes], lifted[modes] = margin, margin + self.offset * n_cells
        found = rake_array(np.ones(shape), lifted, strict=False, **settings)
        if found.reasons:
            # The message shows the values of the user, without the offset.
            plain = rake_array(np.ones(shape), given, strict=False, **settings)
            row, reason = next(iter((plain.reasons or found.reasons).items()))
            raise RakingError(f"Row {row}: {reason}", found)
        tensors = (found.tables - self.offset).reshape(-1, *self.input_shape_)
        check_measures(tensors, self, self.offset, -self.offset)
        cells = tensors.reshape(len(tensors), -1)
        codes = self._codes(self._encode(cells), cells.dtype)
        near = self._training.nearest(codes, self.k_neighbors_, n_jobs=self.n_jobs)
        mean = self._training.mean(near).reshape(-1, *shape)
        rows = rake_array(mean, lifted, **settings).tables - self.offset
        return rows.reshape(-1, *self.input_shape_)

    @one_blas_thread()
    def kneighbors(
        self, X: ArrayLike, n_neighbors: int | None = None, return_distance: bool = True
    ) -> NDArray | tuple[NDArray, NDArray]:
        """Find the training rows whose codes are nearest to the given codes.

        Parameters
        ----------
        X : array-like of shape (n, n_params_)
            Codes.
        n_neighbors : int, default=None
            Number of neighbours of each code. None uses ``k_neighbors_``.
        return_distance : bool, default=True
            Whether to return the distances.

        Returns
        -------
        distances : ndarray of shape (n, n_neighbors)
            KL divergences in nats or Euclidean distances, in ascending order. Returned
            only if ``return_distance`` is True.
        indices : ndarray of shape (n, n_neighbors)
            Indices of the training rows.
        """
        codes = check_codes(self, X)
        k = check_count("n_neighbors", n_neighbors, or_none=True) or self.k_neighbors_
        indices = self._training.nearest(codes, k, n_jobs=self.n_jobs)
        if not return_distance:
            return like(indices, codes)
        distances = self._training.distances(codes, indices, self.n_jobs)
        return distances, like(indices, codes)

    @property
    def offset(self) -> float:
        """Value added to every cell before encoding."""
        return self.order.offset if isinstance(self.order, ManyBodyProjector) else 1e-5


def as_projector(order, **settings):
    """Return the unfitted projector for a parameter ``order``, with checked parameters.

    ``settings`` are used only if ``order`` is no projector. A subclass must not
    override methods that encode rows, because other estimators do not call them.
    """
    if not isinstance(order, ManyBodyProjector):
        return ManyBodyProjector(order, **settings)
    names = "fit", "fit_transform", "transform", "inverse_transform", "to_measures"
    kind = type(order)
    own = [n for n in names if getattr(kind, n) is not getattr(ManyBodyProjector, n)]
    if own:
        raise TypeError(
            f"{kind.__name__} overrides {' and '.join(own)} of ManyBodyProjector, but "
            "other estimators do not call the methods of a projector. For a forward "
            "projection of your own, derive a class from "
            "sklearn_pnl.encoding.ForwardProjection."
        )
    projector = clone(order)
    projector._validate_params()
    return projector
