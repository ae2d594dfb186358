r"""Convex solvers: linear constraints, margins of tables, and Newton's method.

:func:`linear_projection`
    The I-projection of Csiszar (1975): the measure with ``lower <= A m <= upper`` and
    ``floor <= m <= ceiling`` that is nearest to a given measure. The distance is the
    Kullback-Leibler divergence, or the chi-square distance of survey calibration
    (Deville and Särndal 1992). The set defined by equations is m-flat, so the
    I-projection is the e-projection of section 3.1 of the paper. The dual problem has
    one multiplier per constraint, and is solved for many rows with one ``A`` at once.

:func:`rake_array`
    Tables with given margins that are nearest to given tables in Kullback-Leibler
    divergence. The constraints have coefficients 0 and 1, so that sweeps over the
    margins solve the problem without a matrix (iterative proportional fitting: Deming
    and Stephan 1940). ``fitting.fit_margins`` contains the sweeps, and also computes
    the start of the projections of :mod:`sklearn_pnl.geometry.many_body`. If the sweeps
    converge slowly, :func:`linear_projection` continues.

``weights``
    Positive weights of rows with given sums. Rows with equal coefficients form a cell,
    so that counts are fitted by sweeps over few cells (``fitting.fit_counts``).
    :func:`linear_projection` solves other problems.

``newton``, ``quasi_newton``
    Newton's method for many small convex problems at once, with a line search. Rows
    that have converged leave the batch. The direction is computed from dense Hessians,
    from a Cholesky factor with BFGS updates, or by conjugate gradients. A problem is an
    object with values, gradients and Hessians.

``reach``, ``integers``, ``highs``
    Reachable ranges of linear functions with explanations of conflicts, and integers
    near given cells. ``highs`` calls the solver of SciPy without output.

A solver returns a report with the residual, the number of steps, and the convergence of
each row. Solvers do not warn or raise if a row does not converge; the caller decides.
``reasons`` name an equation that is infeasible within the bounds of the cells, or the
residual of all equations.
"""

from .affine import LinearProjection, linear_projection
from .raking import Raking, RakingError, rake_array

__all__ = [
    "LinearProjection",
    "Raking",
    "RakingError",
    "linear_projection",
    "rake_array",
]
