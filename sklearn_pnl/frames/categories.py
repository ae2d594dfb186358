"""Category codes, coordinates of categories, and the parent that gives them."""

from collections.abc import Hashable

import numpy as np

from .._utils.masked import is_missing


def level_codes(values):
    """Return integer codes of values from 0, and the first row of each code.

    All missing values share one code. Equal values, such as 1 and 1.0, also share one.
    """
    try:
        levels = dict.fromkeys(values)
    except TypeError:
        row = next(i for i, v in enumerate(values) if not isinstance(v, Hashable))
        raise TypeError(
            f"Row {row} holds a value of the type {type(values[row]).__name__}, where "
            "a number or a category was expected. Give each entry of a vector a column "
            "of its own, for instance by np.stack(column); encode a list of tags as "
            "columns of 0 and 1, for instance with MultiLabelBinarizer; or remove the "
            "column."
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
    coordinate, which is ``sqrt(weight / 2)`` in its rows and 0 in all other rows. A
    level with one row needs no coordinate, because all other rows differ from it. Its
    ``weight / 2`` is added to the last coordinate of the points; this coordinate is 0
    in the queries.

    Parameters
    ----------
    labels : ndarray of int of shape (n, n_categorical)
        Levels from 0 on.
    deviation : float
        Distance of two rows that differ in one category only.

    Attributes
    ----------
    points : ndarray of shape (n, n_coordinates)
    """

    def __init__(self, labels, deviation):
        apart = labels + np.arange(labels.shape[1]) * (1 + labels.max(initial=0))
        _, levels, counts = np.unique(apart, return_inverse=True, return_counts=True)
        # If the coordinates would exceed 256 MiB, the rarest categories are treated as
        # different from every other category.
        most = int(np.clip(2**25 // len(labels), 64, 1024))
        shared = np.argsort(-counts, kind="stable")[: min(most, np.sum(counts > 1))]
        coordinate = np.full(len(counts), -1)
        coordinate[shared] = np.arange(len(shared))
        places = coordinate[levels].reshape(labels.shape)
        rows, columns = np.nonzero(places >= 0)
        size = deviation / np.sqrt(2)
        self.points = np.zeros((len(labels), len(shared) + 1))
        self.points[rows, places[rows, columns]] = size
        n_alone = labels.shape[1] - np.count_nonzero(self.points[:, :-1], axis=1)
        self.points[:, -1] = size * np.sqrt(n_alone)

    def queries(self, n, like=None):
        """Return coordinates (n, n_coordinates) of the rows ``like``, or zeros."""
        if like is None:
            return np.zeros((n, self.points.shape[1]))
        queries = self.points[like]
        queries[:, -1] = 0
        return queries


def one_of(parents, weights, chosen):
    """Choose one parent (n,) of each row with its weights; ``chosen`` is uniform."""
    below = np.cumsum(weights, axis=1)
    place = (chosen[:, None] * below[:, -1:] >= below).sum(axis=1)
    return parents[np.arange(len(parents)), np.minimum(place, parents.shape[1] - 1)]
