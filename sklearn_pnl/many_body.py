"""Forward projection: rows to codes on a flat base of low order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ._drawing.coding import encode_rows, free_mask, lay_out, make_codec
from ._runtime.blocks import map_blocks
from ._runtime.validation import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    all_or_nothing,
    as_numbers,
    check_cells,
    check_codes,
    check_tensors,
    tells_where,
)
from .geometry import PosetProtocol
from .manifolds import ORDER
from .reshape import names_of_cells

# Constraints of the parameters of one fit, and of all that a codec is built from.
FIT_CONSTRAINTS = {
    "base": ["array-like", None],
    "poset": [PosetProtocol, None],
    "offset": [NOT_NEGATIVE],
    "tol": [POSITIVE],
    "max_iter": [COUNT],
}
N_JOBS = [Interval(Integral, None, -1, closed="right"), COUNT, None]
CODEC_CONSTRAINTS = {**FIT_CONSTRAINTS, "with_mass": ["boolean"], "n_jobs": N_JOBS}


@tells_where()
@dataclass(eq=False, repr=False)
class ManyBodyProjector(TransformerMixin, BaseEstimator):
    r"""Encode positive tensors by KL projection on the ell-body base.

    Each row ``x`` is read as the distribution ``p = (x + offset) / mass`` on the
    cells of a poset, and projected on the e-flat base without interactions beyond
    order ell:

    .. math:: q = \arg\min_q KL(p, q) \quad\text{subject to}\quad
              \theta_q(x) = 0 \text{ for all } x \text{ of order} > \ell .

    ``q`` keeps the expectations ``eta`` of ``p`` up to that order: for a tensor, all
    its marginals of at most ell modes. The code of the row is ``theta_q`` on the base.

    Parameters
    ----------
    order : int or list of tuple of int, default=1
        Largest order ell that is kept; for a tensor also the interactions kept, as
        tuples of modes, closed downward.

    base : array-like, default=None
        The free coordinates given directly, instead of ``order``: a boolean mask of
        the shape of the poset, or a list of elements (flat indices, or for a tensor
        tuples of indices). Any set will do.

    poset : TensorPoset or Poset, default=None
        The order between the cells. None is the tensor of the rows' own shape; a
        2-D ``X`` is a tensor of one mode. Rows may stay flat: a feature an element, in
        the order of ``ravel`` for a tensor. A bottom that was added to the poset is no
        feature; its cell holds the mean of the row.

    offset : float, default=1e-5
        Added to every cell on entry, in units of ``X``. Zero cells need it: their
        log is infinite.

    with_mass : bool, default=False
        Project positive measures instead of distributions: the code starts with the
        coordinate of the bottom and carries the row's mass.

    tol : float, default=1e-6
        Wanted ``max |eta_q - eta_p|`` over the base.

    max_iter : int, default=100
        Most Newton steps for one row.

    n_jobs : int, default=None
        Blocks of rows projected at once. None means 1 unless in a
        :obj:`joblib.parallel_config` context.

    handle_missing : {"error", "ignore"}, default="error"
        What to do about NaN. "ignore" encodes such a row by the model of its observed
        cells alone (:func:`~sklearn_pnl.geometry.complete`), and
        :meth:`inverse_transform` has its missing cells too. An added bottom holds the
        mean of what is observed. Where that does not determine a code, a warning names
        the rows; of the codes that fit they get the one whose log measure varies least.

    Attributes
    ----------
    poset_ : TensorPoset or Poset
        The poset of the fit.

    n_params_ : int
        Length of a code: dimension of the base, with the bottom if ``with_mass``.

    base_mask_ : ndarray of bool of shape ``poset_.shape``
        Elements whose theta makes up the code, without the bottom.

    n_iter_ : int
        Most Newton steps that a row of ``fit`` took; a closed form counts as 1.

    reconstruction_err_ : float
        Mean ``KL(p, q)`` over the rows of ``fit``, normalised, in nats; over the
        observed cells of a row.

    input_shape_ : tuple of int
        Shape of a row.

    n_features_in_ : int
        Length of the first axis of a row.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, if all are strings.

    See Also
    --------
    BackwardProjector : Decodes codes to rows that look like the training rows.
    ManyBodyImputer : Fills missing cells, and leaves the others as they are.

    References
    ----------
    P. Hu, M. Sugiyama, ICLR 2026 (forward projection on the base B).

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

    order: int | Sequence = 1
    _: KW_ONLY
    base: ArrayLike | None = None
    poset: PosetProtocol | None = None
    offset: float = 1e-5
    with_mass: bool = False
    tol: float = 1e-6
    max_iter: int = 100
    n_jobs: int | None = None
    handle_missing: Literal["error", "ignore"] = "error"

    _parameter_constraints: ClassVar[dict] = {
        "order": ORDER,
        **CODEC_CONSTRAINTS,
        "handle_missing": [StrOptions({"error", "ignore"})],
    }
    # What an error about NaN advises.
    _about_missing: ClassVar[str | None] = (
        "handle_missing='ignore' encodes rows by what is observed of them."
    )

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Set up the base and project the rows.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative rows; NaN where a cell is missing, if that is handled.
        y : None
            Ignored.

        Returns
        -------
        self : ManyBodyProjector
        """
        self.fit_transform(X)
        return self

    @all_or_nothing
    def fit_transform(self, X: ArrayLike, y: Any = None) -> NDArray:
        """Fit, and return the codes of the same rows.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative rows; NaN where a cell is missing, if that is handled.
        y : None
            Ignored.

        Returns
        -------
        codes : ndarray of shape (n, n_params_)
        """
        rows = check_tensors(self, X, reset=True, missing=self._missing)
        self.poset_ = lay_out(self.poset, self.input_shape_)
        self.base_mask_ = free_mask(self.poset_, self.order, self.base)
        encoded = self._learn(rows, X)
        self.n_params_ = self._codec.n_params
        self.n_iter_ = max(1, int(encoded.n_iter.max()))
        return self._codes(encoded, rows.dtype)

    def transform(self, X: ArrayLike) -> NDArray:
        """Codes of rows: theta on the base.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative rows; NaN where a cell is missing, if that is handled.

        Returns
        -------
        codes : ndarray of shape (n, n_params_)
            In theta, in the order of the cells; first the bottom if ``with_mass``.
        """
        rows = check_tensors(self, X, reset=False, missing=self._missing)
        return self._codes(self._encode(rows), rows.dtype)

    def inverse_transform(self, X: ArrayLike) -> NDArray:
        """The point of the base that each code stands for.

        Parameters
        ----------
        X : array-like of shape (n, n_params_)
            Codes.

        Returns
        -------
        tensors : ndarray of shape (n, *poset_.shape)
            Distributions, which sum to 1; with ``with_mass`` measures, whose sum is
            that of ``x + offset``.
        """
        codes = check_codes(self, X)
        codec = self._codec
        (measures,) = map_blocks(
            codec.measures_of, codes, step=codec.encoded_at_once, n_jobs=self.n_jobs
        )
        return measures.reshape(-1, *self.poset_.shape)

    def to_measures(self, X: ArrayLike) -> NDArray:
        """The measures that rows are read as: ``x + offset`` on the poset.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative rows; NaN where a cell is missing, if that is handled.

        Returns
        -------
        measures : ndarray of shape (n, *poset_.shape)
            Divided by their sums they are the distributions that are encoded.
        """
        check_is_fitted(self)
        rows = check_cells(self, as_numbers(X), missing=self._missing)
        return self._codec.cells(rows).reshape(-1, *self.poset_.shape)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Names of the coordinates: ``theta_`` and the feature or cell.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the features, or of all cells of a tensor; None takes those seen in
            ``fit``.

        Returns
        -------
        names : ndarray of str objects of shape (n_params_,)
        """
        check_is_fitted(self)
        names = names_of_cells(self, input_features)
        if self.poset_.added_bottom:
            names = ["bottom", *names]
        kept = self._codec.codes(self._codec.base.elements[None])[0]
        return np.array([f"theta_{names[x]}" for x in kept], dtype=object)

    def _learn(self, rows, X):
        """Codes of the rows of ``X``, and what is kept of them."""
        self._codec = make_codec(self, self.poset_, self.base_mask_)
        encoded = self._encode(rows, divergence=True)
        self.reconstruction_err_ = float(encoded.divergence.mean())
        return encoded

    def _encode(self, rows, divergence=False):
        whom = type(self).__name__
        missing = self.handle_missing == "ignore"
        return encode_rows(
            self._codec, rows, whom, self.n_jobs, divergence, missing=missing
        )

    @property
    def _missing(self):
        return self.handle_missing == "ignore" or self._about_missing

    def _codes(self, encoded, dtype):
        return self._codec.codes(encoded.coordinates).astype(dtype, copy=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.allow_nan = self.handle_missing == "ignore"
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
