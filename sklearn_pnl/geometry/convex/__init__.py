r"""Convex solvers: linear constraints, margins of tables, and Newton's method.

Three things, each of which appears once:

:func:`linear_projection`
    The I-projection of Csiszar (1975): of the measures with ``lower <= A m <= upper``
    and ``floor <= m <= ceiling`` the one nearest to a given one, in Kullback-Leibler
    divergence or in the chi-square distance of survey calibration (Deville and Särndal
    1992). With equations alone its set is m-flat: the I-projection on
    it is the e-projection of section 3.1 of the paper, with equations between cells in
    place of expectations on a poset. Solved in the dual, where each constraint has one
    multiplier, for many rows that share ``A`` at once.

:func:`rake_array`
    Tables with given margins, nearest to given tables in Kullback-Leibler divergence:
    the same with 0 and 1 as coefficients, which sweeps over the margins solve without a
    matrix (iterative proportional fitting: Deming and Stephan 1940). That loop is
    ``fitting.fit_margins``; it also starts the projections of
    :mod:`sklearn_pnl.geometry.many_body`. Where sweeps are slow,
    :func:`linear_projection` goes on.

``optimize``
    Newton's method for many small convex problems at once, damped by a line search on
    Armijo's condition. Rows that are done leave the batch. The direction is exact, from
    dense Hessians, or from conjugate gradients on products with them. The problem is an
    object with values, gradients and Hessians. It solves projections and linear
    projections; totals of new rows have a Newton step of their own.

A solver returns a report: the residual that was compared with the tolerance, the steps,
and whether each row converged. Solvers neither warn nor raise for a row that did not;
the caller decides. ``reasons`` name an equation that is infeasible within the ranges,
or else the residual of all.
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
