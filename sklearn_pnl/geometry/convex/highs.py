"""Call HiGHS, the solver of linear programmes in SciPy.

Integer programmes with real variables can print the line
"HighsMipSolverData::transformNewIntegerFeasibleSolution tmpSolver.run();" to standard
output, whatever their options.
"""

from scipy.optimize import OptimizeResult

_FAILED = 4


def solved(solver, *args, **options):
    """Return the result of ``milp`` or ``linprog``; status 4 if the solver fails.

    C++ errors of HiGHS, such as "vector::reserve", would not help a user.
    """
    try:
        return solver(*args, **options)
    except (ValueError, RuntimeError, MemoryError) as error:
        return OptimizeResult(x=None, status=_FAILED, message=str(error))
