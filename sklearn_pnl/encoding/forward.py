"""Forward projections, which encode distributions on a base.

The forward projection of the package is the KL projection onto a log-linear model. A
subclass of :class:`ForwardProjection` replaces it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from .._utils.validation import COUNT
from ..geometry import PosetProtocol, order_mask, prob_from_theta
from ..geometry.posets.elements import refuse_foreign

ORDER = [COUNT, "array-like"]


class ForwardProjection(BaseEstimator):
    """Base class of forward projections of your own.

    A forward projection maps the distribution ``p`` of a row to the coordinates of a
    point of the base, which are the code of the row. :meth:`points` is the inverse of
    :meth:`encode` on the base. Pass an object of a subclass as the parameter ``order``
    of :class:`ManyBodyProjector`, :class:`BackwardProjector` or :class:`Codes`. The
    estimators add the offset and the mass, search for neighbours and decode.

    A subclass implements :meth:`encode`. It also implements :meth:`points`, unless the
    coordinates are natural parameters of a log-linear model. Parameters of a subclass
    are the parameters of its ``__init__``, as for every estimator of scikit-learn.

    Parameters
    ----------
    order : int or list of tuple of int, default=1
        Largest order of the interactions in the base, or a list of interactions.

    See Also
    --------
    LocalManifold : Base class of the sets onto which a code is decoded.
    sklearn_pnl.methods.Draws : Base class of the distributions of new codes.
    ManyBodyProjector : Encode rows by the KL projection onto a log-linear model.

    Notes
    -----
    All local manifolds decode the point of a code. :class:`FiberManifold` is the exact
    inverse of encoding only if the point has the expectations of the row, as for the KL
    projection. With ``metric="kl"``, neighbours are searched by the KL divergence
    between points. Rows with missing cells, and arrays on a device, are rejected.

    Examples
    --------
    The reverse KL projection onto the distributions of independent modes, whose
    solution is the geometric mean over the other modes:

    >>> import numpy as np
    >>> from sklearn_pnl import BackwardProjector
    >>> from sklearn_pnl.encoding import ForwardProjection
    >>> from sklearn_pnl.geometry import theta_from_prob
    >>> class ReverseProjection(ForwardProjection):
    ...     def encode(self, p, poset):
    ...         log_p = np.log(p)
    ...         means = (log_p.mean(axis=2 - k, keepdims=True) for k in range(2))
    ...         q = np.exp(sum(means))
    ...         q /= q.sum(axis=(1, 2), keepdims=True)
    ...         return theta_from_prob(q, poset)[:, self.base_mask(poset)]
    >>> X = np.random.default_rng(0).uniform(size=(20, 3, 4))
    >>> projector = BackwardProjector(ReverseProjection()).fit(X)
    >>> projector.inverse_transform(projector.codes_).shape
    (20, 3, 4)
    """

    _parameter_constraints: ClassVar[dict] = {"order": ORDER}

    def __init__(self, order: int | Sequence = 1) -> None:
        self.order = order

    def base_mask(self, poset: PosetProtocol) -> NDArray:
        """Return the mask of the elements with a coordinate; see ``base_mask_``.

        A code has one coordinate for each element, in the order of the cells. The
        elements also are the default local order of a :class:`LocalManifold`.
        """
        return order_mask(poset, self.order)

    def encode(self, p: NDArray, poset: PosetProtocol) -> NDArray:
        """Compute the coordinates of the projections of distributions.

        Parameters
        ----------
        p : ndarray of shape (n, *poset.shape)
            Distributions. All cells are positive.
        poset : TensorPoset or Poset
            Partial order of the cells.

        Returns
        -------
        coordinates : ndarray of shape (n, n_elements)
            Finite coordinates, one for each element of :meth:`base_mask`.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement encode.")

    def points(self, coordinates: NDArray, poset: PosetProtocol) -> NDArray:
        """Compute the distributions of the base that have given coordinates.

        By default, coordinates are natural parameters (theta) of a log-linear model.

        Parameters
        ----------
        coordinates : ndarray of shape (n, n_elements)
            Coordinates of training rows or of new codes.
        poset : TensorPoset or Poset
            Partial order of the cells.

        Returns
        -------
        points : ndarray of shape (n, *poset.shape)
            Positive values, which the estimators divide by their sum.
        """
        theta = np.zeros((len(coordinates), *poset.shape))
        theta[:, self.base_mask(poset)] = coordinates
        return prob_from_theta(theta, poset)


class ProjectedBase:
    """Base of a :class:`ForwardProjection`, with the interface of a base of a codec.

    Coordinates are the log mass and the coordinates of the projection. Log measures are
    not linear functions of the coordinates.
    """

    has_bottom, is_flat = True, False

    def __init__(self, poset, forward):
        self.poset, self._forward = poset, forward
        self.mask = np.asarray(forward.base_mask(poset), bool).reshape(poset.shape)
        elements = np.flatnonzero(self.mask)
        self.elements = np.r_[poset.bottom, elements[elements != poset.bottom]]

    @property
    def design(self):
        """Raise an error, because only log-linear models have a design."""
        raise ValueError(
            f"{self._forward!r} cannot encode rows with missing cells, and the score "
            "of rows that are no counts hides cells. Impute missing cells, for example "
            "with ManyBodyImputer."
        )

    def coordinates(self, p, log_mass):
        """Project distributions ``p`` (n, D), and compute coordinates with the mass."""
        refuse_foreign(p, f"{self._forward!r}")
        shape = len(p), len(self.elements) - 1
        codes = self._forward.encode(p.reshape(-1, *self.poset.shape), self.poset)
        codes = np.asarray(codes, np.float64)
        if codes.shape != shape or not np.isfinite(codes).all():
            raise ValueError(
                f"encode of {self._forward!r} must return finite values of shape "
                f"{shape}; got an array of shape {codes.shape} with "
                f"{np.isfinite(codes).sum()} finite values."
            )
        return np.column_stack([np.broadcast_to(log_mass, len(p)), codes])

    def energy(self, coordinates):
        """Compute log measures (n, D)."""
        shape = len(coordinates), *self.poset.shape
        points = self._forward.points(coordinates[:, 1:], self.poset)
        points = np.asarray(points, np.float64)
        if points.shape != shape or not (np.isfinite(points) & (points > 0)).all():
            raise ValueError(
                f"points of {self._forward!r} must return positive values of shape "
                f"{shape}; got an array of shape {points.shape} with the minimum "
                f"{points.min(initial=np.inf):g}. If the codes are far from the "
                "training rows, reduce the noise or the bandwidth of draws."
            )
        points = points.reshape(len(points), -1)
        log_mass = coordinates[:, :1] - np.log(points.sum(axis=1, keepdims=True))
        return np.log(points) + log_mass
