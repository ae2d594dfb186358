r"""Contingency tables: goodness of fit of log-linear models of counts.

Counts ``n`` with total ``N`` define the distribution ``p = n / N``. The
maximum-likelihood estimate of a log-linear model is the m-projection q of p onto the
model, under Poisson, multinomial and product-multinomial sampling (Example A.1 of the
paper; Bishop, Fienberg and Holland 1975, chapter 3). The projections of
:mod:`sklearn_pnl.geometry.many_body` therefore fit tables, with the statistics

.. math:: G^2 = 2 N KL(p, q), \qquad X^2 = N \sum_x (p(x) - q(x))^2 / q(x) .

If the model with free coordinates B is correct and expected counts are not small, both
follow approximately a chi-square distribution with ``D - 1 - |B|`` degrees of freedom.
:func:`goodness_of_fit` computes the statistics for one model, together with AIC and
BIC. It adjusts the degrees of freedom for cells that cannot occur (structural zeros)
and for cells that the model cannot fill.

The divergences of nested models add up (the Pythagorean theorem; Amari 2016, section
1.6). :func:`deviance_tests` divides the deviance of the uniform distribution among
interactions or orders; each part is the likelihood ratio of two consecutive models.

:func:`theta_with_errors` computes the free natural coordinates of a fit. Their standard
errors follow from the inverse of the Fisher information ``G = d eta / d theta``
(appendix A.1 of the paper).

The functions correspond to R's ``loglin`` and ``MASS::loglm``. There are no score
tests and no bootstrap. To compare models, use ``aic`` and ``bic``,
:func:`select_interactions`, or the held-out likelihood of
:class:`sklearn_pnl.LogLinearModel` in a grid search.
"""

from .deviance import InteractionTests, deviance_tests
from .fit import GoodnessOfFit, goodness_of_fit, theta_with_errors
from .selection import InteractionSelection, SelectionStep, select_interactions

__all__ = [
    "GoodnessOfFit",
    "InteractionSelection",
    "InteractionTests",
    "SelectionStep",
    "deviance_tests",
    "goodness_of_fit",
    "select_interactions",
    "theta_with_errors",
]
