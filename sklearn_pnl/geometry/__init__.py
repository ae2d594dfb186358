r"""Information geometry of log-linear models on a finite poset.

Pure NumPy and SciPy: no scikit-learn, no warnings, no random numbers, no
printing. Everything here is a function of arrays.

Conventions
-----------
Symbols, in the order in which they are used everywhere:

``p, q``
    probabilities (positive arrays); ``p`` comes before ``q`` in a divergence.
``theta``
    natural coordinates, ``log p(x) = sum_{y <= x} theta(y)`` (zeta transform);
    the bottom carries the log-partition, ``theta(bottom) = -psi``.
``eta``
    expectation coordinates, ``eta(x) = sum_{y >= x} p(y)`` (adjoint of zeta);
    ``eta(bottom) = 1``, or the mass of an unnormalised measure.
``psi``
    log-partition function, with ``grad psi = eta`` and ``Hess psi = G``, the
    Fisher information.
``n, D, d, ell``
    rows, cells (elements of the poset), modes of a tensor, order.

Coordinates
    The coordinate system is in a function's name, never in a flag:
    ``theta_from_prob``, ``prob_from_eta``.
Arrays
    have shape ``(..., *poset.shape)``: any number of rows first, then the
    poset. ``poset.shape`` is ``(D,)`` for a general poset and ``(I_1, .., I_d)``
    for a tensor.
Divergence
    ``kl_divergence(p, q) = sum p log(p / q) - sum p + sum q``.
m-projection of p on an e-flat set
    minimises ``KL(p, q)`` over ``q``; it keeps eta of ``p`` where theta is free.
e-projection of r on an m-flat set
    minimises ``KL(q, r)`` over ``q``; it keeps theta of ``r`` where eta is free.
Mixed coordinates
    For a set M of elements other than the bottom there is exactly one ``q``
    with the eta of a *target* on M and the theta of a *reference* off M. It is
    both of the projections above, and the only problem solved here:
    :func:`mixed_projection`.

References
----------
M. Sugiyama, H. Nakahara, K. Tsuda, "Tensor balancing on statistical manifold",
ICML 2017 (log-linear model on a poset, theta, eta, Fisher information).

S. Amari, "Information Geometry and Its Applications", Springer 2016, chapter 2
(dual flatness, mixed coordinates, the Pythagorean theorem).

P. Hu, M. Sugiyama, "Pseudo-nonlinear data augmentation: a constrained energy
minimization viewpoint", ICLR 2026, arXiv:2410.00718 (the method).
"""

from .completion import Completion, complete
from .constructions import boolean_lattice, chain_poset, product_poset, tree_poset
from .coordinates import (
    eta_from_prob,
    fisher_information,
    log_partition,
    measure_from_theta,
    prob_from_eta,
    prob_from_theta,
    theta_from_prob,
)
from .divergences import e_geodesic, kl_divergence, m_geodesic
from .energies import energy_decomposition, geodesic_energy, interaction_energy
from .fit import GoodnessOfFit, goodness_of_fit, theta_with_errors
from .interaction_tests import (
    InteractionSearch,
    InteractionTests,
    deviance_tests,
    score_tests,
    search_interactions,
)
from .interactions import InteractionBasis, close_downward, interaction_mask
from .linear import LinearProjection, linear_projection
from .masks import unmasked
from .observed import estimable_cells
from .posets import Poset, PosetProtocol, TensorPoset, element_mask, order_mask
from .projections import many_body_projection, mixed_projection
from .raking import Raking, RakingError, rake, round_to_margins
from .reach import Unmet
from .solvers import Projection
from .taxonomy import Taxonomy, taxonomy_poset

__all__ = [
    "Completion",
    "GoodnessOfFit",
    "InteractionBasis",
    "InteractionSearch",
    "InteractionTests",
    "LinearProjection",
    "Poset",
    "PosetProtocol",
    "Projection",
    "Raking",
    "RakingError",
    "Taxonomy",
    "TensorPoset",
    "Unmet",
    "boolean_lattice",
    "chain_poset",
    "close_downward",
    "complete",
    "deviance_tests",
    "e_geodesic",
    "element_mask",
    "energy_decomposition",
    "estimable_cells",
    "eta_from_prob",
    "fisher_information",
    "geodesic_energy",
    "goodness_of_fit",
    "interaction_energy",
    "interaction_mask",
    "kl_divergence",
    "linear_projection",
    "log_partition",
    "m_geodesic",
    "many_body_projection",
    "measure_from_theta",
    "mixed_projection",
    "order_mask",
    "prob_from_eta",
    "prob_from_theta",
    "product_poset",
    "rake",
    "round_to_margins",
    "score_tests",
    "search_interactions",
    "taxonomy_poset",
    "theta_from_prob",
    "theta_with_errors",
    "tree_poset",
]

for _name in __all__:
    if not isinstance(_public := globals()[_name], type):
        globals()[_name] = unmasked(_public)
        # Where it is found when it is unpickled.
        globals()[_name].__module__ = __name__
