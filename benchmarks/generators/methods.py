"""Generators: functions of training rows, a target and a seed to as many new rows."""

import random

import numpy as np
import pandas as pd

from sklearn_pnl import PNLAugmenter

from ..plausibility.run import by_smote


def by_augmenter(train, target, seed):
    """Sample with the defaults of this package."""
    return PNLAugmenter().fit(train).sample(len(train), random_state=seed)


def by_smote_nc(train, target, seed):
    """Sample with SMOTE-NC in each class of the target, or in all rows."""
    if train[target].dtype != "category":
        return by_smote(train, len(train))
    parts = []
    for label, rows in train.groupby(target, observed=True):
        rows = rows.drop(columns=target).reset_index(drop=True)
        rows = rows.apply(
            lambda column: (
                column.cat.remove_unused_categories()
                if column.dtype == "category"
                else column
            )
        )
        parts.append(by_smote(rows, len(rows)).assign(**{target: label}))
    return pd.concat(parts, ignore_index=True)


def by_sdv(kind):
    """Return a generator of SDV by the name of its class."""

    def sample(train, target, seed):
        import sdv.single_table
        import torch
        from sdv.metadata import Metadata

        torch.manual_seed(seed)
        kinds = {
            name: {"sdtype": "categorical" if dtype == "category" else "numerical"}
            for name, dtype in train.dtypes.items()
        }
        metadata = Metadata.load_from_dict({"tables": {"table": {"columns": kinds}}})
        words = train.select_dtypes("category").columns
        model = getattr(sdv.single_table, kind)(metadata)
        model.fit({"table": train.astype(dict.fromkeys(words, object))})
        found = model.sample(len(train))
        return found["table"] if isinstance(found, dict) else found

    return sample


def by_forest(train, target, seed):
    """Sample from an adversarial random forest."""
    from arfpy import arf

    # arfpy 0.1.1 calls a function that NumPy 2.4 removed.
    np.in1d = np.isin  # noqa: NPY201
    model = arf.arf(train, verbose=False, random_state=seed)
    model.forde()
    return model.forge(len(train))


def by_trees(train, target, seed):
    """Sample column by column from classification and regression trees."""
    from synthpop import Synthpop

    # py-synthpop 0.1.2 calls a method that pandas 2 removed.
    pd.Series.iteritems = pd.Series.items
    kinds = {"category": "category", "int64": "int", "float64": "float"}
    kinds = {name: kinds[str(dtype)] for name, dtype in train.dtypes.items()}
    model = Synthpop(seed=seed)
    model.fit(train.copy(), kinds)
    return model.generate(len(train))


def by_argn(train, target, seed):
    """Sample from the autoregressive network of mostlyai-engine."""
    from mostlyai.engine import TabularARGN

    random.seed(seed)
    words = train.select_dtypes("category").columns
    model = TabularARGN(device="cpu", random_state=seed)
    model.fit(train.astype(dict.fromkeys(words, object)))
    # The default replaces rare categories by the string "_RARE_".
    return model.sample(len(train), rare_category_replacement_method="SAMPLE")


METHODS = {
    "PNLAugmenter": by_augmenter,
    "SMOTE-NC": by_smote_nc,
    "CART (py-synthpop)": by_trees,
    "Gaussian copula (SDV)": by_sdv("GaussianCopulaSynthesizer"),
    "random forest (arfpy)": by_forest,
    "TVAE (SDV)": by_sdv("TVAESynthesizer"),
    "network (mostlyai-engine)": by_argn,
    "CTGAN (SDV)": by_sdv("CTGANSynthesizer"),
}
# The packages that methods require in addition to the dependencies of this package.
PACKAGES = {
    "CART (py-synthpop)": "py-synthpop",
    "Gaussian copula (SDV)": "sdv",
    "random forest (arfpy)": "arfpy",
    "TVAE (SDV)": "sdv",
    "CTGAN (SDV)": "sdv",
    "network (mostlyai-engine)": "mostlyai-engine",
}
