"""Local sub-manifolds, which determine how a code is decoded (Algorithm 1).

A local sub-manifold selects the coordinates of a decoded row that come from the code;
the other coordinates come from near training rows. A local sub-manifold is a subclass
of :class:`LocalManifold`. The names that ``local_manifold`` accepts are the keys of
:data:`LOCAL_MANIFOLDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import ClassVar, Literal, TypeAlias

from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from .._utils.arrays import filled
from ..geometry import PosetProtocol
from .codec import free_mask
from .forward import ORDER


class LocalManifold(BaseEstimator):
    """Base class of local sub-manifolds.

    The parameters select a set of elements of the poset, the elements up to the local
    order. A subclass determines which coordinates of a decoded row come from the code.

    Parameters
    ----------
    order : int or list of tuple of int, default=None
        Local order, or a list of interactions. None uses the elements of the base.

    base : array-like, default=None
        Elements of the set, which replace ``order``, in the form of the parameter
        ``base`` of :class:`ManyBodyProjector`. None uses ``order``.

    poset : TensorPoset or Poset, default=None
        Partial order of the cells for ``order`` and ``base``. None uses the poset of
        the base. Another poset must have the same number of elements.

    See Also
    --------
    FiberManifold : Decode with the expectations of the code; inverse of encoding.
    ThetaManifold : Decode on the set of the paper.
    EtaManifold : Decode with the expectations of near rows.
    MixtureManifold : Decode to a point on the path of the authors' program.
    """

    _parameter_constraints: ClassVar[dict] = {
        "order": [*ORDER, None],
        "base": ["array-like", None],
        "poset": [PosetProtocol, None],
    }

    def __init__(
        self,
        order: int | Sequence | None = None,
        *,
        base: ArrayLike | None = None,
        poset: PosetProtocol | None = None,
    ) -> None:
        self.order = order
        self.base = base
        self.poset = poset

    # Whether the mean of the near rows is the geometric mean (the mean in theta), not
    # the arithmetic mean (the mean in eta).
    geometric = False
    # Whether the decoded row has the expectations of the code on the matched set.
    keeps_code = True

    @property
    def reduces(self) -> bool:
        """Whether the parameters select a set other than the elements of the base."""
        return any(v is not None for v in (self.order, self.base, self.poset))

    def local_mask(self, poset: PosetProtocol, default: NDArray) -> NDArray:
        """Return the mask of the elements up to the local order.

        ``default`` is the mask of the base.
        """
        if self.order is None and self.base is None:
            return default.reshape(poset.shape)
        return free_mask(poset, self.order, self.base)

    def matched(self, low: NDArray) -> NDArray | None:
        """Return the mask of the elements whose expectations are matched, or None.

        ``low`` is the mask of the elements up to the local order. None means that
        ``project_from_code`` does not call ``project``.
        """
        return low

    def project_from_code(
        self, w: NDArray, r: NDArray, project: Callable
    ) -> tuple[NDArray, NDArray]:
        """Compute decoded distributions and residuals.

        ``w`` contains the points of the codes and ``r`` the means of the near rows.
        ``project(target, reference)`` returns the distributions that have the
        expectations of the target on the matched set, and the natural parameters of the
        reference elsewhere.
        """
        # q = Proj_D(w), where D contains r.
        return project(w, r)


class FiberManifold(LocalManifold):
    """Decode to the row nearest to near rows, given the expectations of the code.

    The decoded row minimises the KL divergence to the mean of the near rows, subject to
    the expectations (marginals) of the code up to the local order. With the default
    order, decoding is the exact inverse of encoding: the decoded row has the code from
    which it was decoded. If a training row is the only neighbour, the code of the row
    is decoded to the row.

    Parameters
    ----------
    order, base, poset
        Elements up to the local order; see :class:`LocalManifold`.

    See Also
    --------
    ThetaManifold : Decode on the set of the paper.
    EtaManifold : Decode with the expectations of near rows.
    MixtureManifold : Decode to a point on the path of the authors' program.
    BackwardProjector : Encode rows and decode codes.

    References
    ----------
    S. Amari, "Information Geometry and Its Applications", 2016, section 2.8 (mixed
    coordinates: the solution exists and is unique).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import BackwardProjector
    >>> from sklearn_pnl.encoding import FiberManifold
    >>> X = np.random.default_rng(0).uniform(size=(20, 3, 4))
    >>> projector = BackwardProjector(1, local_manifold=FiberManifold()).fit(X)
    >>> codes = projector.transform(X) + 0.1
    >>> rows = projector.inverse_transform(codes)
    >>> bool(np.allclose(projector.transform(rows), codes))
    True
    """


class ThetaManifold(LocalManifold):
    """Decode on the set of the paper, with the natural parameters of near rows.

    Up to the local order, the decoded row has the mean natural parameters (theta) of
    the near rows (equation 2 of the paper). The geometric mean of the near rows has the
    same parameters. Beyond the local order, the row has the expectations of the code.
    The row has a closed form if the elements beyond the local order are an up-set.

    Parameters
    ----------
    order, base, poset
        Elements up to the local order; see :class:`LocalManifold`.

    See Also
    --------
    FiberManifold : Decode with the expectations of the code; inverse of encoding.
    EtaManifold : Decode with the expectations of near rows.
    MixtureManifold : Decode to a point on the path of the authors' program.
    BackwardProjector : Encode rows and decode codes.

    References
    ----------
    P. Hu, M. Sugiyama, ICLR 2026 (local data sub-manifold D, backward projection).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import BackwardProjector
    >>> from sklearn_pnl.encoding import ThetaManifold
    >>> X = np.random.default_rng(0).uniform(size=(20, 3, 4))
    >>> projector = BackwardProjector(1, local_manifold=ThetaManifold()).fit(X)
    >>> projector.inverse_transform(projector.codes_).shape
    (20, 3, 4)
    """

    # r is the geometric mean of N, so that theta_r = (1 / k) sum theta_i.
    geometric = True

    def matched(self, low: NDArray) -> NDArray:
        """Return the mask of the elements beyond the local order."""
        # D = {q: theta_q = theta_r up to ell'}. Beyond ell' theta is free, and
        # q = Proj_D(w) has the eta of w.
        return ~low


class EtaManifold(LocalManifold):
    """Decode with the mean expectations of near rows up to the local order.

    Beyond the local order, the decoded row has the natural parameters of the code.

    Parameters
    ----------
    order, base, poset
        Elements up to the local order; see :class:`LocalManifold`.

    See Also
    --------
    FiberManifold : Decode with the expectations of the code; inverse of encoding.
    ThetaManifold : Decode on the set of the paper.
    MixtureManifold : Decode to a point on the path of the authors' program.
    BackwardProjector : Encode rows and decode codes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import BackwardProjector
    >>> from sklearn_pnl.encoding import EtaManifold
    >>> X = np.random.default_rng(0).uniform(size=(20, 3, 4))
    >>> projector = BackwardProjector(1, local_manifold=EtaManifold()).fit(X)
    >>> projector.inverse_transform(projector.codes_).shape
    (20, 3, 4)
    """

    keeps_code = False

    def project_from_code(
        self, w: NDArray, r: NDArray, project: Callable
    ) -> tuple[NDArray, NDArray]:
        """Project with the mean of the near rows as target and the code as reference.

        :class:`LocalManifold` describes the parameters.
        """
        return project(r, w)


class MixtureManifold(LocalManifold):
    """Decode to a weighted mean of the point of the code and the near rows.

    The natural gradient of the authors' program moves from the point of the code
    towards the mean of the near rows, and stops before the mean.

    Parameters
    ----------
    step : float, default=0.98
        Weight of the mean of the near rows. A larger value brings the decoded row
        closer to the mean: 0 returns the point of the code, and 1 the mean. The notes
        list the positions at which the authors' program stops.

    See Also
    --------
    FiberManifold : Decode with the expectations of the code; inverse of encoding.
    ThetaManifold : Decode on the set of the paper.
    EtaManifold : Decode with the expectations of near rows.
    BackwardProjector : Encode rows and decode codes.

    Notes
    -----
    After T steps with learning rate lr and k neighbours, the authors' program is at
    the position ``1 - (1 - lr / k) ** T``. The program stops when a residual is small.
    The program stopped at the following positions:

    ======  ====  ======
    lr      k     step
    ======  ====  ======
    0.05    2     0.95
    0.05    3     0.94
    0.05    5     0.87
    0.05    10    0.64
    0.1     1, 2  0.999
    0.1     4     0.995
    0.1     8     0.95
    ======  ====  ======

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import BackwardProjector
    >>> from sklearn_pnl.encoding import MixtureManifold
    >>> X = np.random.default_rng(0).uniform(size=(20, 3, 4))
    >>> mixture = MixtureManifold(step=0.9)
    >>> projector = BackwardProjector(1, local_manifold=mixture).fit(X)
    >>> projector.inverse_transform(projector.codes_).shape
    (20, 3, 4)
    """

    _parameter_constraints: ClassVar[dict] = {
        "step": [Interval(Real, 0, 1, closed="both")]
    }

    def __init__(self, step: float = 0.98) -> None:
        super().__init__()
        self.step = step

    def matched(self, low: NDArray) -> NDArray | None:
        """Return None, because the solution has a closed form."""
        return None

    def project_from_code(
        self, w: NDArray, r: NDArray, project: Callable
    ) -> tuple[NDArray, NDArray]:
        """Return the weighted means and residuals of 0.

        :class:`LocalManifold` describes the parameters.
        """
        return (1 - self.step) * w + self.step * r, filled(0.0, w.shape[0], w)


LOCAL_MANIFOLDS = {
    "fiber": FiberManifold,
    "theta": ThetaManifold,
    "eta": EtaManifold,
    "mixture": MixtureManifold,
}
MANIFOLDS_WRITTEN = {name: repr(make()) for name, make in LOCAL_MANIFOLDS.items()}
LocalManifoldLike: TypeAlias = (
    Literal["fiber", "theta", "eta", "mixture"] | LocalManifold
)
LOCAL_MANIFOLD = [StrOptions(set(LOCAL_MANIFOLDS)), LocalManifold]


def as_local_manifold(value):
    """Return the object that ``local_manifold`` selects, with checked parameters."""
    if isinstance(value, str):
        return LOCAL_MANIFOLDS[value]()
    value._validate_params()
    return value
