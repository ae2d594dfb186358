"""The noise of new rows: its spread in two clusters, and what it does for learners.

``python -m benchmarks.imbalance.spread clusters``, or ``chosen``, or ``confirmation``
with ``--repeats 3``; then, if wanted, names of variants
"""

import argparse
import sys

import numpy as np
from imblearn.over_sampling import SMOTE, RandomOverSampler
from scipy.stats import wilcoxon
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    roc_auc_score,
)

from benchmarks.tables import grouped, markdown, report
from sklearn_pnl import MixupDraws, PNLAugmenter, PNLSampler

from ..harness import evaluate
from ..rivals import Rival, seeded
from .learners import LEARNERS as ALL_LEARNERS
from .run import FOLDER
from .scores import prior_corrected
from .spread_draws import VariantDraws
from .spread_tables import load_tables

# Less work than at their defaults, which changes little between samplers.
LEARNERS = ALL_LEARNERS | {
    "forest": lambda seed: RandomForestClassifier(60, random_state=seed),
    "boosting": lambda seed: HistGradientBoostingClassifier(
        max_iter=50, random_state=seed
    ),
}
METRICS = ("AP", "AUC", "balanced accuracy", "corrected Brier")
# Beyond a range by so many of its lengths: only shared ends and signs hold.
FREE = 10.0


def _pnl(noise, near=10, k_neighbors=5, **params):
    draws = MixupDraws(noise, noise_neighbors=near)
    return seeded(PNLSampler, draws=draws, k_neighbors=k_neighbors, **params)


def _variant(kind, differences, noise):
    draws = VariantDraws(noise, kind, differences)
    return seeded(PNLSampler, draws=draws, k_neighbors=5)


def _calibrated(learner, _):
    return CalibratedClassifierCV(learner)


# "0.5 of 10" is noise of that size and the shape of so many near rows.
VARIANTS = {
    "none": None,
    "threshold": Rival(threshold=True),
    "ROS 0.3": seeded(RandomOverSampler, shrinkage=0.3),
    "SMOTE": seeded(SMOTE),
    "former": _variant("pooled", 1, 0.25),
    "0.41 of 10": _pnl(0.41),
    "0.5 of 10": _pnl(0.5),
    "0.6 of 10": _pnl(0.6),
    "0.5 of 5": _pnl(0.5, near=5),
    "0.5 of 10, k 10": _pnl(0.5, k_neighbors="auto"),
    "0.41 of 10, k 10": _pnl(0.41, k_neighbors="auto"),
    "0.5 of 10, margin 0.3": _pnl(0.5, range_slack=0.3),
    "0.5 of 10, margin 10": _pnl(0.5, range_slack=FREE),
    "0.5, sixteen pooled": _variant("pooled", 16, 0.5),
}
# Not among all of them.
MORE = {
    "default": seeded(PNLSampler),
    "default, k 5": seeded(PNLSampler, k_neighbors=5),
    "default, no marks": seeded(PNLSampler, marks=None),
    "default, calibrated": Rival(seeded(PNLSampler), calibrated=True),
    "default, calibrated, threshold": Rival(
        seeded(PNLSampler), calibrated=True, threshold=True
    ),
    "SMOTE, calibrated": Rival(seeded(SMOTE), calibrated=True),
    "none, calibrated": Rival(adapt=_calibrated),
    "none, calibrated, threshold": Rival(adapt=_calibrated, threshold=True),
}
REFERENCE = "SMOTE"


# --- tables ---------------------------------------------------------------------


def score(model, split, rival):
    """Scores of probabilities; the Brier score is of those with the prior corrected."""
    y, probability = split.y_test, model.predict_proba(split.X_test)[:, 1]
    share = split.y.mean()
    decided = probability >= (share if rival.threshold else 0.5)
    corrected = prior_corrected(probability, share, rival)
    values = (
        average_precision_score(y, probability),
        roc_auc_score(y, probability),
        balanced_accuracy_score(y, decided),
        brier_score_loss(y, corrected),
    )
    return dict(zip(METRICS, map(float, values), strict=True))


def compare(tables, variants, n_jobs):
    """A row for each variant: mean scores less those of SMOTE, times 1000."""
    known = VARIANTS | MORE
    samplers = {name: known[name] for name in {REFERENCE: None} | variants}
    rows = evaluate(
        tables, samplers, LEARNERS, score, folder=FOLDER, n_jobs=n_jobs,
        log=lambda text: print(text, file=sys.stderr, flush=True),
    )  # fmt: skip
    means = {
        key: np.mean([[row[metric] for metric in METRICS] for row in folds], axis=0)
        for key, folds in grouped(rows, "sampler", "table", "learner").items()
    }
    return [_differences(name, means, tables) for name in samplers]


def _differences(name, means, tables):
    """Of the mean of learners, with p of Wilcoxon's test over families; of each."""
    less = np.array(
        [
            [
                means[name, table.name, learner] - means[REFERENCE, table.name, learner]
                for learner in LEARNERS
            ]
            for table in tables
        ]
    )
    less[..., -1] *= -1
    families = [table.family for table in tables]
    row = {"variant": name}
    for i, metric in enumerate(METRICS):
        gain = less[..., i].mean(axis=1)
        of_families = [
            np.mean([g for g, f in zip(gain, families, strict=True) if f == family])
            for family in dict.fromkeys(families)
        ]
        p = wilcoxon(of_families, zero_method="zsplit").pvalue if gain.any() else 1
        row[metric] = round(1000 * float(gain.mean()), 1)
        row[f"{metric}: won"] = int((gain > 0).sum())
        row[f"{metric}: p"] = float(f"{p:.2g}")
    for j, learner in enumerate(LEARNERS):
        told = (f"{1000 * value:.1f}" for value in less[:, j].mean(axis=0))
        row[learner] = " / ".join(told)
    return row


# --- two clusters ---------------------------------------------------------------

CLUSTER, FEATURES, GAPS = 25, 8, (6, 24)
DATA_SETS, N_NEW, N_FRESH = 40, 600, 200


def clusters(draws, scale, gap):
    """Spread of new rows over that of training rows, and the share beyond the farthest.

    Two clusters, the second of deviation ``scale``, each judged alone, with fresh rows
    of the same two for comparison.
    """
    found = []
    for seed in range(DATA_SETS):
        rng = np.random.RandomState(seed)
        way = rng.standard_normal(FEATURES)
        centres = np.outer([0, gap], way / np.linalg.norm(way))
        drawn = [
            centre + sd * rng.standard_normal((CLUSTER + N_FRESH, FEATURES))
            for centre, sd in zip(centres, (1, scale), strict=True)
        ]
        training, fresh = zip(
            *(np.split(rows, [CLUSTER]) for rows in drawn), strict=True
        )
        augmenter = PNLAugmenter(draws=draws).fit(np.vstack(training))
        new, parents = augmenter.sample(N_NEW, random_state=seed, return_parents=True)
        of_second = parents[:, 0] >= CLUSTER
        parts = new[~of_second], new[of_second]
        judged = [_judged(*each) for each in zip(training, fresh, parts, strict=True)]
        found.append(judged)
    return np.mean(found, axis=0)


def _judged(training, fresh, new):
    def distances(rows):
        return np.linalg.norm(rows - training.mean(axis=0), axis=1)

    farthest = distances(training).max()
    spread = np.sqrt(np.var(new, axis=0).sum() / np.var(training, axis=0).sum())
    return spread, *(np.mean(distances(rows) > farthest) for rows in (new, fresh))


def clusters_table():
    """A row for each way to draw, gap, and cluster that is judged."""
    ways = {
        "former: one pooled, 0.25": VariantDraws(0.25, "pooled", 1),
        "sixteen pooled, 0.41": VariantDraws(0.41, "pooled", 16),
        **{
            f"{noise} of {near}": MixupDraws(noise, noise_neighbors=near)
            for near in (5, 10)
            for noise in (0.41, 0.5, 0.6)
        },
    }
    return [
        {
            "draws": name,
            "gap": gap,
            "clusters": f"1 and {scale}",
            "judged": float(sd),
            "spread": float(spread),
            "beyond, %": 100 * float(beyond),
            "of fresh rows, %": 100 * float(fresh),
        }
        for name, draws in ways.items()
        for gap in GAPS
        for scale in (1, 0.1)
        for sd, (spread, beyond, fresh) in zip(
            (1, scale), clusters(draws, scale, gap), strict=True
        )
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["clusters", "chosen", "confirmation"])
    parser.add_argument(
        "variants", nargs="*", help="names; default: those of `VARIANTS`"
    )
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    if options.what == "clusters":
        report(clusters_table(), "spread-clusters")
        return
    known = VARIANTS | MORE
    unknown = [name for name in options.variants if name not in known]
    if unknown:
        sys.exit(f"Unknown: {'; '.join(unknown)}. Known: {'; '.join(known)}")
    tables = load_tables(options.what, options.repeats)
    chosen = dict.fromkeys(options.variants or VARIANTS)
    rows = compare(tables, chosen, options.n_jobs)
    if options.what == "chosen" and options.variants:
        print(markdown(rows))
    else:
        report(rows, f"spread-{options.what}")


if __name__ == "__main__":
    main()
