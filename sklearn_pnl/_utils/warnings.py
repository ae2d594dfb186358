"""Issue warnings at the line of the user's code."""

import warnings
from contextlib import contextmanager
from inspect import currentframe

import numpy as np
from sklearn.exceptions import ConvergenceWarning

# Warnings point at the first caller outside the packages below: the code of the user.
_LIBRARIES = {"sklearn_pnl", "sklearn", "imblearn", "joblib", "contextlib"}


def warn_unconverged(caller, residual, tol, max_iter):
    """Warn once if some projections did not converge to ``tol``."""
    left = ~(residual <= tol)
    if not left.any():
        return
    warn_missed(
        f"{caller}: {left.sum()} of {left.size} projections did not converge in "
        f"max_iter={max_iter} Newton steps. The largest residual max|eta_q - eta*| is "
        f"{residual.max():.1e} (tol={tol:g}). Increase max_iter, tol or offset."
    )


def warn_not_settled(caller, settled, error):
    """Warn once if theta of some rows has an error above ``error``."""
    left = np.flatnonzero(~settled)
    if len(left):
        warn_missed(
            f"{caller}: theta of {len(left)} of {len(settled)} rows is not determined "
            f"to {error:g} (rows {left[:5].tolist()}), because some cells of the rows "
            "are nearly empty. Increase offset or max_iter, or lower the order."
        )


def warn_not_identified(caller, identified):
    """Warn once if observed cells of some rows do not determine a code."""
    left = np.flatnonzero(~identified)
    if len(left):
        warn_user(
            f"{caller}: the observed cells of {len(left)} of {len(identified)} rows do "
            f"not determine a code (rows {left[:5].tolist()}). The code with the "
            "smallest variance of the log measure is returned. Lower the order, or "
            "drop the rows."
        )


def warn_single_row(data_name):
    """Warn that all new rows are copies, because the training data has one row."""
    warn_user(
        f"{data_name} has only 1 row, and all new rows are copies of this row. Add "
        "training rows to get new rows that differ."
    )


def warn_missed(message):
    """Warn that rows do not satisfy a tolerance or a guarantee."""
    warn_user(message, ConvergenceWarning)


def warn_user(message, category=UserWarning):
    """Warn at the line of the user's code that called the libraries."""
    frame, level = currentframe(), 1
    while frame and frame.f_globals.get("__name__", "").split(".")[0] in _LIBRARIES:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def unheard():
    """Suppress all warnings in the context."""
    with warnings.catch_warnings(action="ignore"):
        yield
