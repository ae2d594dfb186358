"""Values of like training rows, where some cells of rows are missing."""

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn import config_context
from sklearn.covariance import oas
from sklearn.preprocessing import OneHotEncoder, scale

from .._runtime.threads import one_blas_thread
from .._runtime.workspace import slices

# Columns that are predicted from one another, passes over them, and how many rows, to
# either side, may give a cell. (On made tables with 10 to 50% missing fewer passes
# weakened correlations; 2 to 10 rows are alike.)
_AT_ONCE, _PASSES, _NEAR = 128, 3, 4
# Levels of a categorical column that tell something, the rare ones as one.
_LEVELS = 16
# Variance of noise, beside that of normal scores, 1: no column follows from the others;
# and what parts rows of which these tell the same.
_NOISE, _APART = 1e-4, 1e-6


@one_blas_thread()
def matched(rows, missing, labels=None):
    """Rows (n, D) with values of others, one for each column, where cells are missing.

    In place. Predictive mean matching (Little, Journal of Business & Economic
    Statistics 6, 1988), column after column: a cell is that of a row of which the
    others, and categories (n, c), tell about the same, by linear regression of normal
    scores. So rows are near others as if nothing were missing.
    """
    rng, kinds = np.random.default_rng(0), np.empty((len(rows), 0))
    if labels is not None:
        coder = OneHotEncoder(max_categories=_LEVELS, sparse_output=False)
        coder.set_output(transform="default")
        kinds = scale(coder.fit_transform(labels))
    for block in slices(rows.shape[1], _AT_ONCE):
        _match(rows[:, block], missing[:, block], kinds, rng)
    return rows


def _match(rows, missing, kinds, rng):
    n = len(rows)
    cells = [
        (j, np.flatnonzero(missing[:, j]), np.flatnonzero(~missing[:, j]))
        for j in np.flatnonzero(missing.any(axis=0) & ~missing.all(axis=0))
    ]
    if not cells:
        return
    scores = np.hstack([ndtri(rankdata(rows, axis=0) / (n + 1)), kinds])
    for j, gone, there in cells:
        givers = rng.choice(there, len(gone))
        scores[gone, j] = scores[givers, j]
    for left in reversed(range(_PASSES)):
        with config_context(assume_finite=True, skip_parameter_validation=True):
            covariance = oas(scores)[0]
        weights = -np.linalg.inv(covariance + _NOISE * np.eye(len(covariance)))
        for j, gone, there in cells:
            told = scores @ weights[:, j] / -weights[j, j] + scores[:, j]
            givers = _givers(told + _APART * rng.random(n), gone, there, rng)
            scores[gone, j] = scores[givers, j]
            if not left:
                rows[gone, j] = rows[givers, j]


def _givers(told, gone, there, rng):
    """For each row that is gone one of those there that are told about alike."""
    there = there[told[there].argsort()]
    place = told[there].searchsorted(told[gone])
    place += rng.integers(-_NEAR, _NEAR, size=len(gone))
    return there[place.clip(0, len(there) - 1)]
