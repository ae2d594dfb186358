"""Draw new rows from one set of rows: encode, draw codes, decode."""

import copy
from inspect import signature
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .backward import BackwardProjector


class PNLAugmenter(BaseEstimator):
    """Pseudo-nonlinear data augmentation of one set of positive rows.

    ``fit`` encodes the rows on the base; ``sample`` draws codes near those of the
    training rows and decodes each through the local sub-manifold of its nearest
    training rows (:class:`BackwardProjector`). No labels are needed: use it for one
    class, for unlabelled data, or for rows with the target as one more feature.

    Parameters
    ----------
    order : int or list of tuple of int, default=1
        Order ell of the base, or the interactions kept.

    base : array-like, default=None
        The free coordinates given directly, instead of ``order``; as in
        :class:`ManyBodyProjector`.

    local_order : int or list of tuple of int, default=None
        Order of the local sub-manifold. None means that of the base.

    local_base : array-like, default=None
        The elements of the local sub-manifold given directly, instead of
        ``local_order``.

    local_manifold : {"fiber", "theta", "eta", "mixture"}, default="fiber"
        How codes are decoded; see :class:`BackwardProjector`.

    n_neighbors : int, default=5
        Training rows that make a local sub-manifold, and among which "mixup" looks
        for a partner.

    augment : {"mixup", "kde"} or estimator, default="mixup"
        How codes are drawn.

        - "mixup": uniformly on the e-geodesic between the code of a random row and
          that of one of its ``n_neighbors`` nearest, a straight line in theta;
        - "kde": from a Gaussian kernel density estimate in theta, as in the paper;
        - an estimator with ``fit`` and ``sample``, such as
          :class:`~sklearn.mixture.GaussianMixture` or
          :class:`~sklearn.neighbors.KernelDensity`, is cloned and fitted on the codes.

    bandwidth : float, default=0.05
        Standard deviation of the noise in every coordinate of theta, for "kde".

    metric : {"kl", "euclidean"}, default="kl"
        Nearness of codes.

    step : float, default=0.98
        Position between code and neighbours for ``local_manifold="mixture"``.

    poset : TensorPoset or Poset, default=None
        Order between the cells; None is the tensor of the rows' own shape.

    offset : float, default=1e-5
        Added to every cell on entry, taken off on return.

    with_mass : bool, default=False
        Whether codes carry the mass of a row.

    tol : float, default=1e-6
        Wanted residual of the projections.

    max_iter : int, default=100
        Most Newton steps of a projection.

    n_jobs : int, default=None
        Blocks of rows at work at once.

    Attributes
    ----------
    projector_ : BackwardProjector
        Encoder and decoder.

    density_ : estimator
        The fitted estimator, if ``augment`` is one.

    input_shape_ : tuple of int
        Shape of a row.

    n_features_in_ : int
        Length of the first axis of a row.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, if all are strings.

    References
    ----------
    P. Hu, M. Sugiyama, "Pseudo-nonlinear data augmentation: a constrained energy
    minimization viewpoint", ICLR 2026, Algorithm 2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import PNLAugmenter
    >>> X = np.random.default_rng(0).uniform(size=(30, 4, 5))
    >>> augmenter = PNLAugmenter(order=1).fit(X)
    >>> augmenter.sample(3, random_state=0).shape
    (3, 4, 5)
    """

    _parameter_constraints: dict = {
        **BackwardProjector._parameter_constraints,
        "augment": [StrOptions({"mixup", "kde"}), HasMethods(["fit", "sample"])],
        "bandwidth": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        order=1,
        *,
        base=None,
        local_order=None,
        local_base=None,
        local_manifold="fiber",
        n_neighbors=5,
        augment="mixup",
        bandwidth=0.05,
        metric="kl",
        step=0.98,
        poset=None,
        offset=1e-5,
        with_mass=False,
        tol=1e-6,
        max_iter=100,
        n_jobs=None,
    ):
        self.order = order
        self.base = base
        self.local_order = local_order
        self.local_base = local_base
        self.local_manifold = local_manifold
        self.n_neighbors = n_neighbors
        self.augment = augment
        self.bandwidth = bandwidth
        self.metric = metric
        self.step = step
        self.poset = poset
        self.offset = offset
        self.with_mass = with_mass
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None):
        """Encode the rows, and fit the density of their codes if there is one.

        Parameters
        ----------
        X : array-like of shape (n, *shape)
            Non-negative rows.
        y : None
            Ignored.

        Returns
        -------
        self : PNLAugmenter
        """
        shared = set(BackwardProjector._parameter_constraints)
        parameters = self.get_params(deep=False)
        self.projector_ = BackwardProjector(
            **{name: parameters[name] for name in parameters if name in shared}
        ).fit(X)
        self.input_shape_ = self.projector_.input_shape_
        self.n_features_in_ = self.projector_.n_features_in_
        if hasattr(self.projector_, "feature_names_in_"):
            self.feature_names_in_ = self.projector_.feature_names_in_
        vars(self).pop("density_", None)
        if not isinstance(self.augment, str):
            self.density_ = clone(self.augment).fit(self.projector_.codes_)
        return self

    def sample(self, n_samples=1, random_state=None):
        """New rows.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState instance or None, default=None
            Seed. The same seed gives the same bytes for every ``n_jobs``.

        Returns
        -------
        rows : ndarray of shape (n_samples, *input_shape_)
            Non-negative, in the units of the training rows.
        """
        return self.sample_with_parents(n_samples, random_state)[0]

    def sample_with_parents(self, n_samples, random_state=None):
        """New rows, and the training rows that each was decoded from.

        Parameters
        ----------
        n_samples : int
            How many.
        random_state : int, RandomState instance or None, default=None
            Seed.

        Returns
        -------
        rows : ndarray of shape (n_samples, *input_shape_)
        parents : ndarray of int of shape (n_samples, n_neighbors)
            Rows of the training data, the nearest first.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be an integer >= 1; got {n_samples!r}.")
        codes = self._draw(n_samples, check_random_state(random_state))
        projector = self.projector_
        parents = projector._neighbors(codes, projector.n_neighbors_)[1]
        rows = projector._decode(codes, parents)
        return np.maximum(rows, 0, out=rows), parents

    def _draw(self, n_samples, rng):
        codes = self.projector_.codes_
        if not isinstance(self.augment, str):
            return self._draw_from_density(n_samples, rng)
        first = rng.randint(len(codes), size=n_samples)
        if self.augment == "kde":
            noise = rng.standard_normal((n_samples, codes.shape[1]))
            return (codes[first] + self.bandwidth * noise).astype(codes.dtype)
        second = self._partners(first, rng)
        t = rng.uniform(size=(n_samples, 1))
        return ((1 - t) * codes[first] + t * codes[second]).astype(codes.dtype)

    def _partners(self, first, rng):
        """For each row a random one of its nearest others; itself if it is alone."""
        codes = self.projector_.codes_
        k = min(self.n_neighbors, len(codes) - 1)
        if k == 0:
            return first
        sources, inverse = np.unique(first, return_inverse=True)
        near = self.projector_._neighbors(codes[sources], k + 1)[1]
        # Copies of a row may rank before it: drop the row where it stands, else the
        # farthest.
        itself = near == sources[:, None]
        itself[~itself.any(axis=1), -1] = True
        others = near[~itself].reshape(len(sources), k)
        return others[inverse, rng.randint(k, size=len(first))]

    def _draw_from_density(self, n_samples, rng):
        """Some estimators take a seed in ``sample``, some as a parameter."""
        density = self.density_
        if "random_state" in signature(density.sample).parameters:
            drawn = density.sample(n_samples, random_state=rng)
        else:
            if "random_state" in density.get_params(deep=False):
                seed = rng.randint(np.iinfo(np.int32).max)
                density = copy.copy(density).set_params(random_state=seed)
            drawn = density.sample(n_samples)
        codes = np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn)
        expected = (n_samples, self.projector_.n_params_)
        if codes.shape != expected or not np.all(np.isfinite(codes)):
            raise ValueError(
                f"{density!r}.sample must return {expected[0]} finite codes of length "
                f"{expected[1]}; got an array of shape {codes.shape}."
            )
        # GaussianMixture returns its draws component by component.
        codes = codes[rng.permutation(n_samples)]
        return codes.astype(self.projector_.codes_.dtype, copy=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.three_d_array = True
        return tags
