"""Forms that a table is met in: units, types, dummies, containers, holes."""

import numpy as np
import pandas as pd
import polars as pl
from sklearn.preprocessing import (
    MinMaxScaler,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)


def dummies(frame, drop_first=False):
    """Numbers with medians in holes, and a column for each level of a name.

    Also groups of columns that are levels of one name.
    """
    words = list(frame.select_dtypes(exclude="number"))
    coded = pd.get_dummies(frame, columns=words, dtype=float, drop_first=drop_first)
    groups = [
        [j for j, column in enumerate(coded) if column.startswith(f"{name}_")]
        for name in words
        if frame[name].notna().all()
    ]
    # A column of nothing has no median.
    return coded.fillna(coded.median()).fillna(0.0).to_numpy(float), groups


def as_arrays(frame, rng):
    """Names of forms, arrays, parameters of the recipe, one-hot groups."""
    X, groups = dummies(frame)
    standard = StandardScaler().fit_transform(X)
    yield "float", X, {}, groups
    yield "float32", X.astype(np.float32), {}, groups
    yield "standard", standard, {}, groups
    yield "standard float32", standard.astype(np.float32), {}, groups
    yield "minmax", MinMaxScaler().fit_transform(X), {}, groups
    yield "robust", RobustScaler().fit_transform(X), {}, groups
    quantiles = QuantileTransformer(n_quantiles=min(100, len(X)))
    yield "quantiles", quantiles.fit_transform(X), {}, []
    yield "first level dropped", *_first(dummies(frame, drop_first=True)[0])
    if (np.rint(X) == X).all():
        yield "int", X.astype(int), {}, groups
    holes = np.where(rng.random(X.shape) < 0.05, np.nan, standard)
    if not np.isnan(holes).all(axis=0).any():
        yield "holes", holes, {}, []
    yield "marks='zeros'", X, {"marks": "zeros"}, groups
    yield "marks=None", standard, {"marks": None}, groups
    yield "draws='interpolation'", X, {"draws": "interpolation"}, groups
    yield "order=1, draws='kde'", X[:, :24], {"order": 1, "draws": "kde"}, []
    yield "range_slack=0", standard, {"range_slack": 0}, groups
    yield "range_slack=None", standard, {"range_slack": None}, groups


def _first(X):
    return X, {}, []


def with_words(frame, rng):
    """A frame without holes: columns of few numbers are words at times; and a date."""
    frame = frame.fillna(frame.select_dtypes("number").median())
    for name in frame.select_dtypes("number"):
        if frame[name].nunique() <= 6 and rng.random() < 0.5:
            frame[name] = frame[name].astype(str)
    words = list(frame.select_dtypes(exclude="number"))
    frame[words] = frame[words].fillna("none").astype(object)
    days = pd.to_timedelta(rng.integers(0, 500, len(frame)), "D")
    frame["when"] = pd.Timestamp("2024-01-01") + days
    return frame, words


def as_frames(frame, words):
    """Names of forms, and frames."""
    yield "pandas", frame
    yield "category", frame.astype(dict.fromkeys(words, "category"))
    yield "polars", pl.from_pandas(frame)
    yield "pyarrow", frame.convert_dtypes(dtype_backend="pyarrow")
