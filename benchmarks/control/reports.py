"""What `compare_samples` and the reports of SDMetrics find of rows with a known fault.

A table of breast cancers, ten numbers and two categories, in three parts: to train on,
held out, and real rows that are made new ones by a known fault. SDMetrics has scores
from 0 to 1, and no word for what is too low: so a fault counts as found by it where the
score is below the lowest of the samples of real rows without a fault. SDMetrics must
be installed.
"""

import warnings
from collections import Counter
from time import perf_counter

import numpy as np
import pandas as pd
from sdmetrics.single_table import (
    DCRBaselineProtection,
    DCROverfittingProtection,
    NewRowSynthesis,
)
from sklearn.datasets import load_breast_cancer

from sklearn_pnl import PNLAugmenter, compare_samples

from .script import main

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    from sdmetrics.reports.single_table import DiagnosticReport, QualityReport

N_NUMBERS = 10


def table():
    """Ten means, the diagnosis and a band of size."""
    data = load_breast_cancer(as_frame=True)
    frame = data.data.iloc[:, :N_NUMBERS].copy()
    frame["diagnosis"] = data.target_names[data.target]
    bands = pd.qcut(data.data["worst radius"], 4, labels=["s", "m", "l", "xl"])
    return frame.assign(band=bands.astype(str))


def jittered(rows, share, rng):
    """Numbers with noise of a share of their standard deviations."""
    rows = rows.copy()
    numbers = rows.iloc[:, :N_NUMBERS]
    noise = rng.normal(size=numbers.shape) * share * numbers.std().to_numpy()
    rows.iloc[:, :N_NUMBERS] = numbers + noise
    return rows


def faults(train, real, rng):
    """By name: new rows made of real ones that nobody has seen, and what is wrong."""
    yield "none: real rows", real
    shifted = real.copy()
    shifted["mean texture"] += 0.5 * train["mean texture"].std()
    yield "one mean shifted by half a std", shifted
    middle = train.iloc[:, :N_NUMBERS].mean()
    narrow = real.copy()
    narrow.iloc[:, :N_NUMBERS] = middle + 0.6 * (real.iloc[:, :N_NUMBERS] - middle)
    yield "spread of .6", narrow
    yield "columns shuffled", real.apply(lambda c: rng.permutation(c.to_numpy()))
    zeros = real.copy()
    zeros.loc[rng.permutation(len(real))[: len(real) // 10], "mean area"] = 0
    yield "a tenth of a column is 0", zeros
    unseen = real.copy()
    unseen.loc[rng.permutation(len(real))[: len(real) // 20], "band"] = "xxl"
    yield "a twentieth has a level never seen", unseen
    some = train.iloc[: len(real) * 3 // 100]
    yield "3% copies", pd.concat([some, real.iloc[len(some) :]], ignore_index=True)
    yield "copies", train.iloc[: len(real)].reset_index(drop=True)
    near = jittered(train.iloc[: len(real)].reset_index(drop=True), 0.05, rng)
    yield "copies with noise of .05", near
    augmenter = PNLAugmenter(categorical_features="auto").fit(train)
    yield "PNLAugmenter()", augmenter.sample(len(real), random_state=0)


def scores(train, new, held_out, metadata):
    """SDMetrics, as its guide has it."""
    settings = {"verbose": False}
    quality, valid = QualityReport(), DiagnosticReport()
    quality.generate(train, new, metadata, **settings)
    valid.generate(train, new, metadata, **settings)
    named = {"metadata": {"tables": {"rows": metadata}}, "table_name": "rows"}
    given = {"real_data": train, "synthetic_data": new} | named
    return {
        "quality": quality.get_score(),
        "diagnostic": valid.get_score(),
        "new rows": NewRowSynthesis.compute(**given),
        "DCR baseline": DCRBaselineProtection.compute(**given),
        "DCR overfitting": DCROverfittingProtection.compute(
            real_training_data=train,
            synthetic_data=new,
            real_validation_data=held_out,
            **named,
        ),
    }


def run(quick):
    """A row for each fault: verdicts, scores, and how often these tell it from none."""
    frame, seeds = table(), range(3 if quick else 10)
    kinds = dict.fromkeys(frame.columns[:N_NUMBERS], "numerical")
    kinds |= dict.fromkeys(frame.columns[N_NUMBERS:], "categorical")
    metadata = {"columns": {c: {"sdtype": kind} for c, kind in kinds.items()}}
    words, found, seconds = {}, {}, {}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        mixed = frame.iloc[rng.permutation(len(frame))].reset_index(drop=True)
        parts = np.array_split(np.arange(len(frame)), 3)
        train, held_out, real = (mixed.iloc[p].reset_index(drop=True) for p in parts)
        for name, new in faults(train, real, rng):
            times = [perf_counter()]
            result = compare_samples(train, new, X_test=held_out, random_state=seed)
            words.setdefault(name, Counter()).update(result.verdict.split(", "))
            times.append(perf_counter())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                held = scores(train, new, held_out, metadata)
            found.setdefault(name, []).append(held)
            times.append(perf_counter())
            seconds.setdefault(name, []).append(np.diff(times))
    usual = pd.DataFrame(found["none: real rows"]).min()
    rows = []
    for name, held in found.items():
        held = pd.DataFrame(held)
        below = (held < usual).mean()
        told = [f"{word} {n}" for word, n in words[name].most_common()]
        rows.append(
            {"fault": name, f"compare_samples, of {len(seeds)}": "; ".join(told)}
            | {c: f"{held[c].mean():.3f} ({below[c]:.0%})" for c in held}
            | dict(
                zip(
                    ("s", "s SDMetrics"),
                    np.median(seconds[name], axis=0).round(2),
                    strict=True,
                )
            )
        )
    return rows


if __name__ == "__main__":
    main(__doc__, run, "reports")
