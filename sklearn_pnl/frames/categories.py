"""Categories as whole numbers and as coordinates, and which parent gives them."""

from collections.abc import Hashable

import numpy as np

from .._runtime.masked import is_missing


def level_codes(values):
    """Code values by whole numbers from 0; also the first row of each code.

    Missing values share a code, and so do equal ones, such as 1 and 1.0.
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

    The weight is the square of a deviation. A level that several rows share has a
    coordinate, ``sqrt(weight / 2)`` in its rows and 0 in others. A level of one row
    needs none: all others differ from it, which ``weight / 2`` in a last coordinate of
    the points, but not of the queries, says.

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
        # The rarest beyond 256 MiB of coordinates count as different from all.
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
        """Coordinates (n, n_coordinates) of the rows ``like``, or of no category."""
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
