"""Near training rows, where some cells of rows are missing."""

import numpy as np
from sklearn import config_context
from sklearn.impute import KNNImputer

from .._runtime.validation import unheard


class NearRows:
    """Means of the training rows (n, D) nearest to others.

    Euclidean over what both rows have, columns divided by their range.
    """

    def __init__(self, rows, n_neighbors):
        # Columns without a value have no ends.
        with unheard():
            ends = np.nanmin(rows, axis=0), np.nanmax(rows, axis=0)
        self.ends = tuple(map(np.nan_to_num, ends))
        self.ranges = self.ends[1] - self.ends[0]
        self._unit = np.where(self.ranges > 0, self.ranges, 1.0)
        k = min(n_neighbors, len(rows))
        self._search = KNNImputer(n_neighbors=k, keep_empty_features=True)
        # An array, also where data frames are the global output.
        self._search.set_output(transform="default").fit(self._scaled(rows))

    def _scaled(self, rows):
        return (rows - self.ends[0]) / self._unit

    def means(self, rows):
        """Rows (n, D) with means of near ones where cells are missing."""
        # Distances are gone over many times: chunks of them that fit the caches take
        # half as long.
        with config_context(working_memory=16):
            means = self._search.transform(self._scaled(rows))
        return means * self._unit + self.ends[0]
