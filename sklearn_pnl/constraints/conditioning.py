"""How often training rows are seeds of new rows of which values are asked."""

import numpy as np


def condition_weights(values, lower, upper):
    """Weights of training rows by how near they are to intervals, as a Gaussian kernel.

    Parameters
    ----------
    values : ndarray of shape (n_train, k)
        Of the constrained sums in the training rows; NaN where a cell is missing,
        which counts as the middle of the others.
    lower, upper : ndarray of shape (k,) or (n, k)
        What is asked, of all new rows or of each.

    Returns
    -------
    weights : ndarray of shape (n_train,) or (n, n_train)
        Sums to 1. Rows inside all intervals have the greatest weight; the kernel is as
        narrow as leaves an effective number of 20 rows, or a quarter of all.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl.constraints.conditioning import condition_weights
    >>> values = np.arange(200.0)[:, None]
    >>> weights = condition_weights(values, np.array([150.0]), np.array([np.inf]))
    >>> float(weights[:150].sum().round(3)), float(weights[150:].sum().round(3))
    (0.119, 0.881)
    """
    centre = np.nan_to_num(np.nanmedian(values, axis=0))
    values = np.where(np.isnan(values), centre, values)
    spread = values.std(axis=0)
    spread[spread == 0] = 1.0
    low, high = (np.expand_dims(end, -2) for end in (lower, upper))
    gaps = np.maximum(np.maximum(low - values, values - high), 0) / spread
    sq_distances = np.square(gaps).sum(axis=-1)
    sq_distances -= sq_distances.min(axis=-1, keepdims=True)
    # A tenth of a standard deviation keeps new rows close; twenty rows are as many as
    # have partners to mix with.
    width = np.full((*sq_distances.shape[:-1], 1), 0.1)
    while True:
        weights = np.exp(-sq_distances / (2 * width**2))
        weights /= weights.sum(axis=-1, keepdims=True)
        n_effective = 1 / (weights**2).sum(axis=-1, keepdims=True)
        few = n_effective < min(20, max(1.0, len(values) / 4))
        if not few.any():
            return weights
        width = np.where(few, 1.2 * width, width)
