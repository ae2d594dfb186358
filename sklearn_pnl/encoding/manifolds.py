"""Local sub-manifolds: coordinates of a decoded row from its code or from near rows.

A new one is a class here and an entry in :data:`LOCAL_MANIFOLDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import ClassVar, Literal, TypeAlias

from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from .._utils.arrays import filled
from .._utils.validation import COUNT
from ..geometry import PosetProtocol
from .codec import free_mask

ORDER = [COUNT, "array-like"]


class LocalManifold(BaseEstimator):
    """Base class of local sub-manifolds, with a set of elements "up to order ell'".

    Parameters
    ----------
    order : int or list of tuple of int, default=None
        Order ell' of the set, or the interactions in it. None is the set of the base.

    base : array-like, default=None
        The elements of the set given directly, instead of ``order``; as in
        :class:`ManyBodyProjector`.

    poset : TensorPoset or Poset, default=None
        The order between the cells that ``order`` or ``base`` is meant in. None is
        that of the base; any other has as many elements, in the same layout.

    See Also
    --------
    FiberManifold : The exact inverse of encoding.
    ThetaManifold : The set of the paper.
    EtaManifold : Expectations of near rows, theta of the code.
    MixtureManifold : The path of the authors' program.
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

    # Whether near rows are averaged in theta, as a geometric mean, instead of in eta.
    geometric = False
    # Whether expectations on the matched set are those of the code.
    keeps_code = True

    @property
    def reduces(self) -> bool:
        """Whether it says which elements are up to ell', instead of the base."""
        return any(v is not None for v in (self.order, self.base, self.poset))

    def local_mask(self, poset: PosetProtocol, default: NDArray) -> NDArray:
        """Elements up to order ell' on a poset; ``default`` are those of the base."""
        if self.order is None and self.base is None:
            return default.reshape(poset.shape)
        return free_mask(poset, self.order, self.base)

    def matched(self, low: NDArray) -> NDArray | None:
        """Elements whose expectations are matched; ``low`` are those up to ell'."""
        return low

    def project_from_code(
        self, w: NDArray, r: NDArray, project: Callable
    ) -> tuple[NDArray, NDArray]:
        """Distributions q and residuals from codes ``w`` and means of near rows ``r``.

        q = Proj_D(w), with D through ``r``: ``project(target, reference)`` solves for
        the eta of the target on the matched set and the theta of the reference off it.
        """
        return project(w, r)


class FiberManifold(LocalManifold):
    """The fibre over the code: ``min KL(q, r)`` with all expectations of the code.

    With the set of the base, the exact inverse of encoding: a decoded row has the code
    that it was decoded from, and a row's own code, with that row as the only neighbour,
    gives back the row.

    Parameters
    ----------
    order : int or list of tuple of int, default=None
        Order ell' of the set, or the interactions in it. None is the set of the base.

    base : array-like, default=None
        The elements of the set given directly, instead of ``order``; as in
        :class:`ManyBodyProjector`.

    poset : TensorPoset or Poset, default=None
        The order between the cells that ``order`` or ``base`` is meant in. None is
        that of the base; any other has as many elements, in the same layout.

    See Also
    --------
    ThetaManifold : The set of the paper.
    EtaManifold : Expectations of near rows, theta of the code.
    MixtureManifold : The path of the authors' program.
    BackwardProjector : Encoding and decoding.

    References
    ----------
    S. Amari, "Information Geometry and Its Applications", 2016, section 2.8 (mixed
    coordinates: why the solution exists and is unique).

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
    r"""The paper's M*_ell(N): theta of the neighbours up to ell', the rest free.

    .. math:: \theta_q(x) = \frac{1}{k} \sum_{i \in N} \theta_i(x)
              \text{ for } x \text{ of order} \le \ell' .

    Equation 2. The mean of theta is that of a geometric mean of the neighbours. The
    point of the set that minimises ``KL(w, q)`` keeps the expectations eta of the code
    w beyond ell': a closed form where these elements are an up-set.

    Parameters
    ----------
    order : int or list of tuple of int, default=None
        Order ell' of the set, or the interactions in it. None is the set of the base.

    base : array-like, default=None
        The elements of the set given directly, instead of ``order``; as in
        :class:`ManyBodyProjector`.

    poset : TensorPoset or Poset, default=None
        The order between the cells that ``order`` or ``base`` is meant in. None is
        that of the base; any other has as many elements, in the same layout.

    See Also
    --------
    FiberManifold : The exact inverse of encoding.
    EtaManifold : Expectations of near rows, theta of the code.
    MixtureManifold : The path of the authors' program.
    BackwardProjector : Encoding and decoding.

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
        """Elements beyond ell': D = {q: theta_q = theta_r up to ell'}.

        Beyond it theta is free, and q = Proj_D(w) has the eta of w.
        """
        return ~low


class EtaManifold(LocalManifold):
    """Expectations of the neighbours up to ell', theta of the code beyond.

    Parameters
    ----------
    order : int or list of tuple of int, default=None
        Order ell' of the set, or the interactions in it. None is the set of the base.

    base : array-like, default=None
        The elements of the set given directly, instead of ``order``; as in
        :class:`ManyBodyProjector`.

    poset : TensorPoset or Poset, default=None
        The order between the cells that ``order`` or ``base`` is meant in. None is
        that of the base; any other has as many elements, in the same layout.

    See Also
    --------
    FiberManifold : The exact inverse of encoding.
    ThetaManifold : The set of the paper.
    MixtureManifold : The path of the authors' program.
    BackwardProjector : Encoding and decoding.

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
        """See :class:`LocalManifold`: the code and the mean change places."""
        return project(r, w)


class MixtureManifold(LocalManifold):
    """``(1 - step) w + step r``: a point of the m-geodesic from code to neighbours.

    The natural gradient flow of the authors' program runs along it until it stops.

    Parameters
    ----------
    step : float, default=0.98
        Position between the code (0) and the mean of the neighbours (1). The notes say
        where that program stops.

    See Also
    --------
    FiberManifold : The exact inverse of encoding.
    ThetaManifold : The set of the paper.
    EtaManifold : Expectations of near rows, theta of the code.
    BackwardProjector : Encoding and decoding.

    Notes
    -----
    With k neighbours and the learning rate lr, T steps of the natural gradient of the
    authors' program end at ``1 - (1 - lr / k)^T``. A residual decides T. Measured:

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
        """Empty: the solution has a closed form."""
        return None

    def project_from_code(
        self, w: NDArray, r: NDArray, project: Callable
    ) -> tuple[NDArray, NDArray]:
        """See :class:`LocalManifold`."""
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
    """The object that a parameter ``local_manifold`` stands for, checked."""
    if isinstance(value, str):
        return LOCAL_MANIFOLDS[value]()
    value._validate_params()
    return value
