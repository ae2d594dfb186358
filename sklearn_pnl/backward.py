"""Backward projection: codes to rows, through a sub-manifold of near training rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from numbers import Integral
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from ._drawing.coding import TrainingRows, make_codec, own
from ._runtime.docs import with_params_of
from ._runtime.validation import (
    COUNT,
    NamedObjects,
    check_cells,
    check_codes,
    clip_neighbors,
    tells_where,
)
from .geometry import RakingError, rake
from .geometry.raking import mode_sets
from .manifolds import LOCAL_MANIFOLD, ORDER, LocalManifoldLike, as_local_manifold
from .many_body import CODEC_CONSTRAINTS, ManyBodyProjector

METRIC = [StrOptions({"kl", "euclidean"})]


@tells_where()
@with_params_of(ManyBodyProjector)
@dataclass(eq=False, repr=False, kw_only=True)
class BackwardProjector(NamedObjects, ManyBodyProjector):
    """Encode rows on a flat base, and decode codes to rows like the training rows.

    ``transform`` encodes as :class:`ManyBodyProjector` does. ``inverse_transform``
    takes a code, a point ``w`` of the base, and the distribution-valued mean ``r`` of
    its nearest training rows, and solves one convex problem, given by the local
    sub-manifold of order ell':

    ========== =============================================================
    "fiber"    ``min KL(q, r)`` over the ``q`` with all expectations of ``w`` up
               to order ell'. With ell' = ell this is the exact inverse of
               encoding: ``transform(inverse_transform(w)) = w``; with one
               neighbour, its own code gives back the row itself. A decoded row
               is ``q * mass - offset``, so cells far below the offset are lost to
               rounding, and theta with them where a whole marginal is; and a
               bottom that was added to the poset is filled in anew.
    "theta"    theta of the neighbours' geometric mean up to order ell', the
               expectations of ``w`` beyond it: the paper's set M*, closed form.
    "eta"      expectations of ``r`` up to order ell', theta of ``w`` beyond it.
    "mixture"  ``(1 - step) w + step r``: the m-geodesic, which the natural
               gradient flow of the authors' program follows until it stops.
    ========== =============================================================

    Parameters
    ----------
    order, base
        As in :class:`ManyBodyProjector`.

    local_manifold : {"fiber", "theta", "eta", "mixture"} or LocalManifold, \
            default="fiber"
        See above. A name stands for :class:`FiberManifold`, :class:`ThetaManifold`,
        :class:`EtaManifold` or :class:`MixtureManifold` with its defaults: ell' that
        of the base, step 0.98.

    n_neighbors : int, default=5
        Training rows that make a local sub-manifold; at most those there are.

    metric : {"kl", "euclidean"}, default="kl"
        Nearness of codes: ``KL(w, w_i)`` on the base, or distance in theta.

    poset
        As in :class:`ManyBodyProjector`.

    offset
        As in :class:`ManyBodyProjector`.
        It is taken off again on return.

    with_mass
        As in :class:`ManyBodyProjector`.
        Without it a decoded row gets the mean mass of its neighbours.

    tol, max_iter, n_jobs
        As in :class:`ManyBodyProjector`.

    Attributes
    ----------
    codes_ : ndarray of shape (n, n_params_)
        Codes of the training rows.

    coordinates_ : ndarray of shape (n, 1 + size of the base)
        theta of the training rows on the bottom and the base.

    masses_ : ndarray of shape (n,)
        Sums of the training rows with the offset in each cell.

    rows_ : ndarray of shape (n, *input_shape_)
        The training rows.

    local_mask_ : ndarray of bool of shape ``poset_.shape``
        Elements up to the local order.

    n_neighbors_ : int
        ``n_neighbors``, at most the number of training rows.

    base_mask_, n_params_, n_iter_, poset_, input_shape_, n_features_in_, \
    feature_names_in_
        As in :class:`ManyBodyProjector`. There is no ``reconstruction_err_``, which
        takes longer than a projection of order 1.

    See Also
    --------
    ManyBodyProjector : Encoding alone.
    PNLAugmenter : One set of rows, without classes.
    sklearn_pnl.geometry.mixed_projection : The problem that all projections are.

    References
    ----------
    P. Hu, M. Sugiyama, ICLR 2026 (backward projection, local data sub-manifold D).

    S. Amari, "Information Geometry and Its Applications", 2016, section 2.8 (mixed
    coordinates; why every problem above has exactly one solution).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import BackwardProjector
    >>> X = np.random.default_rng(0).uniform(size=(20, 3, 4))
    >>> projector = BackwardProjector(order=1, n_neighbors=1).fit(X)
    >>> codes = projector.transform(X[:2])
    >>> bool(np.allclose(projector.inverse_transform(codes), X[:2]))
    True
    """

    local_manifold: LocalManifoldLike = "fiber"
    n_neighbors: int = 5
    metric: Literal["kl", "euclidean"] = "kl"

    # Of rows that are kept to decode from, all cells are needed.
    handle_missing: ClassVar[Literal["error", "ignore"]] = "error"

    _parameter_constraints: ClassVar[dict] = {
        "order": ORDER,
        **CODEC_CONSTRAINTS,
        "local_manifold": LOCAL_MANIFOLD,
        "n_neighbors": [COUNT],
        "metric": METRIC,
    }
    _about_missing: ClassVar[None] = None

    def _learn(self, rows, X):
        """Codes of the rows of ``X``, and all that decodes them."""
        manifold = as_local_manifold(self.local_manifold)
        self._codec = make_codec(self, self.poset_, self.base_mask_, manifold)
        rows, encoded = own(rows, X), self._encode(rows)
        self._training = TrainingRows(self._codec, rows, encoded, self.metric)
        self.coordinates_, self.masses_ = encoded.coordinates, encoded.mass
        self.rows_ = rows.reshape(-1, *self.input_shape_)
        self.codes_ = self._codes(encoded, rows.dtype)
        self.local_mask_ = self._codec.local_mask
        self.n_neighbors_ = clip_neighbors(self.n_neighbors, len(rows))
        return encoded

    def inverse_transform(self, X: ArrayLike) -> NDArray:
        """Rows decoded from codes through the local sub-manifold of each.

        Parameters
        ----------
        X : array-like of shape (n, n_params_)
            Codes.

        Returns
        -------
        rows : ndarray of shape (n, *input_shape_)
            In the units of the training rows. The offset is taken off again, so a
            cell may reach down to ``-offset``; clip at 0 where that matters.
        """
        codes = check_codes(self, X)
        k = self.n_neighbors_
        near = self._training.nearest(codes, k, n_jobs=self.n_jobs)
        weights = np.full(near.shape, 1 / k)
        whom = type(self).__name__
        # So that the code of a row is the one that it was decoded from.
        rows = self._training.decode(codes, near, weights, whom, self.n_jobs, True)
        return rows.reshape(-1, *self.input_shape_)

    def decode_margins(
        self, margins: Mapping[tuple[int, ...], ArrayLike], tol: float = 1e-9
    ) -> NDArray:
        """Rows with given marginals, like the training rows otherwise.

        Solves ``min KL(q, r)`` over the measures ``q`` with these marginals, the fibre
        over given expectations; ``r`` is the mean of the training rows, each with a
        mass of 1, whose codes are nearest to that of the flattest such measure.

        Parameters
        ----------
        margins : dict of tuple of int to array-like
            Sums over all modes but those of the key, in the units of the rows, of shape
            ``(n, *their lengths)``: ``{(0,): row_sums, (1,): column_sums}`` of images,
            the totals of stores in tables of stores and products.
        tol : float, default=1e-9
            Wanted largest gap between a marginal and what was asked for, as a share of
            the mass.

        Returns
        -------
        rows : ndarray of shape (n, *input_shape_)
            With exactly these marginals. As in :meth:`inverse_transform` a cell may
            reach down to ``-offset``.

        Raises
        ------
        RakingError
            If margins contradict each other: which, where, and by how much.

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
        shape = self.poset_.shape
        lifted = {
            modes: np.asarray(margins[key], dtype=np.float64)
            + self.offset * prod(n for k, n in enumerate(shape) if k not in modes)
            for key, modes in mode_sets(margins).items()
        }
        settings = {"n_modes": len(shape), "tol": tol}
        try:
            flat = rake(np.ones(shape), lifted, **settings).tables.reshape(-1, *shape)
        except RakingError:
            # In the figures that were given, without the offset.
            found = rake(np.ones(shape), margins, strict=False, **settings)
            for row, reason in found.reasons.items():
                raise RakingError(
                    f"Row {row}: {reason} Scale or mend one of them: the margins of a "
                    "row must agree.",
                    found,
                ) from None
            raise
        cells = check_cells(self, flat.reshape(-1, *self.input_shape_) - self.offset)
        codes = self._codes(self._encode(cells), cells.dtype)
        near = self._training.nearest(codes, self.n_neighbors_, n_jobs=self.n_jobs)
        mean = self._training.mean(near).reshape(-1, *shape)
        rows = rake(mean, lifted, **settings).tables - self.offset
        return rows.reshape(-1, *self.input_shape_)

    def kneighbors(
        self, X: ArrayLike, n_neighbors: int | None = None, return_distance: bool = True
    ) -> NDArray | tuple[NDArray, NDArray]:
        """Training rows whose codes are nearest to the given codes.

        Parameters
        ----------
        X : array-like of shape (n, n_params_)
            Codes.
        n_neighbors : int, default=None
            None means the parameter of the estimator.
        return_distance : bool, default=True
            Whether to return the distances too.

        Returns
        -------
        distances : ndarray of shape (n, n_neighbors)
            ``KL(w, w_i)`` in nats, or Euclidean distances, ascending; only if
            ``return_distance``.
        indices : ndarray of shape (n, n_neighbors)
            Rows of the training data.
        """
        codes = check_codes(self, X)
        k = self.n_neighbors_ if n_neighbors is None else n_neighbors
        if not (isinstance(k, Integral) and 1 <= k <= len(self.rows_)):
            raise ValueError(
                f"n_neighbors must be an integer from 1 to {len(self.rows_)}, the "
                f"number of training rows; got {k!r}."
            )
        indices = self._training.nearest(codes, k, n_jobs=self.n_jobs)
        if not return_distance:
            return indices
        return self._training.distances(codes, indices, self.n_jobs), indices
