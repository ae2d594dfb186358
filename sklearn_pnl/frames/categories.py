"""Encode categories as integers, and as coordinates for distances.

:func:`one_of` chooses the parent whose categories a new row takes.
"""

from collections.abc import Hashable

import numpy as np

from .._utils.masked import is_missing


def level_codes(values):
    """Return integer codes of values from 0, and the first row of each code.

    Equal values, such as 1 and 1.0, have the same code. All missing values, such as
    None and NaN, also have the same code.
    """
    try:
        levels = dict.fromkeys(values)
    except TypeError:
        row = next(i for i, v in enumerate(values) if not isinstance(v, Hashable))
        raise TypeError(
            f"Row {row} contains a {type(values[row]).__name__}, but a number or a "
            "category is required. Expand vectors to one column per entry, for example "
            "with np.stack(column), encode lists of tags with MultiLabelBinarizer, or "
            "drop the column."
        ) from None
    if any(map(is_missing, levels)):
        values = [None if is_missing(value) else value for value in values]
        levels = dict.fromkeys(values)
    codes_of = {value: code for code, value in enumerate(levels)}
    codes = np.fromiter(map(codes_of.__getitem__, values), np.intp, len(values))
    return codes, np.unique(codes, return_index=True)[1]


def typical_deviation(features):
    """Return the median standard deviation of the features (n, D) that vary.

    It is 1 if no feature varies. SMOTE-NC uses the same median.
    """
    deviations = features.std(axis=0)
    deviations = deviations[deviations > 0]
    return float(np.median(deviations)) if len(deviations) else 1.0


class Indicators:
    """Coordinates whose squared distance is a weight for each differing category.

    The weight is the square of the deviation. A level that several rows share has a
    coordinate, which is ``sqrt(weight / 2)`` in rows of the level and 0 in all other
    rows. A level with one row needs no coordinate, because all other rows differ from
    this row. Its ``weight / 2`` is added to the square of the last coordinate of the
    points, which is 0 in the queries.

    Parameters
    ----------
    labels : ndarray of int of shape (n, n_categorical)
        Category codes.
    deviation : float
        Distance between two rows that differ in one category only.

    Attributes
    ----------
    points : ndarray of shape (n, n_coordinates)
        Coordinates of the rows.
    """

    def __init__(self, labels, deviation):
        codes = labels + np.arange(labels.shape[1]) * (1 + labels.max(initial=0))
        _, levels, counts = np.unique(codes, return_inverse=True, return_counts=True)
        # If the coordinates would exceed 256 MiB, the rarest categories are treated as
        # different from every other category.
        most = int(np.clip(2**25 // len(labels), 64, 1024))
        shared = np.argsort(-counts, kind="stable")[: min(most, np.sum(counts > 1))]
        coordinate = np.full(len(counts), -1)
        coordinate[shared] = np.arange(len(shared))
        places = coordinate[levels].reshape(labels.shape)
        indices, columns = np.nonzero(places >= 0)
        size = deviation / np.sqrt(2)
        self.points = np.zeros((len(labels), len(shared) + 1))
        self.points[indices, places[indices, columns]] = size
        n_unshared = labels.shape[1] - np.count_nonzero(self.points[:, :-1], axis=1)
        self.points[:, -1] = size * np.sqrt(n_unshared)

    def queries(self, n, like=None):
        """Return coordinates (n, n_coordinates) of the rows ``like``, or zeros."""
        if like is None:
            return np.zeros((n, self.points.shape[1]))
        queries = self.points[like]
        queries[:, -1] = 0
        return queries


def one_of(parents, weights, chosen):
    """Choose a parent (n,) of each row with probabilities ``weights`` (n, k).

    ``chosen`` are uniform random numbers (n,).
    """
    below = np.cumsum(weights, axis=1)
    place = (chosen[:, None] * below[:, -1:] >= below).sum(axis=1)
    return parents[np.arange(len(parents)), np.minimum(place, parents.shape[1] - 1)]
