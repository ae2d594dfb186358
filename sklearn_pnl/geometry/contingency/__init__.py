r"""Contingency tables: how well a log-linear model fits counts.

Counts ``n`` with total ``N`` are read as the distribution ``p = n / N``. The
maximum-likelihood estimate of a log-linear model, under Poisson, multinomial and
product-multinomial sampling alike, is the m-projection q of p on it (Example A.1 of
the paper; Bishop, Fienberg and Holland 1975, chapter 3). So the projections of
:mod:`sklearn_pnl.geometry.many_body` fit tables, and Kullback-Leibler divergences are
their statistics:

.. math:: G^2 = 2 N KL(p, q), \qquad X^2 = N \sum_x (p(x) - q(x))^2 / q(x) ,

about chi-square with ``D - 1 - |B|`` degrees of freedom if the model with free
coordinates B is right and expected counts are not small. :func:`goodness_of_fit` gives
them for one model and any number of tables, with AIC and BIC, and degrees of freedom
that are adjusted where cells cannot occur (structural zeros) or cannot be filled.

Of nested models the divergences add up (the Pythagorean theorem; Amari 2016, section
1.6): :func:`deviance_tests` divides the deviance of the uniform distribution among
interactions or orders, each part the likelihood ratio of two models next to each other.

:func:`theta_with_errors` gives the free natural coordinates of a fit with their
standard errors, from the inverse of the Fisher information of these coordinates,
``G = d eta / d theta`` (appendix A.1 of the paper).

As R's ``loglin`` and ``MASS::loglm`` do it. There are no score tests, no search for a
model and no bootstrap: fits of the models that are of interest are compared by
``aic`` and ``bic``, or by held-out likelihood (:class:`sklearn_pnl.LogLinearModel` in a
grid search).
"""

from .deviance import InteractionTests, deviance_tests
from .fit import GoodnessOfFit, goodness_of_fit, theta_with_errors

__all__ = [
    "GoodnessOfFit",
    "InteractionTests",
    "deviance_tests",
    "goodness_of_fit",
    "theta_with_errors",
]
