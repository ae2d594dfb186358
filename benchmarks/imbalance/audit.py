"""The audit of the package resample-audit, on SMOTE and on PNLSampler.

``python -m benchmarks.imbalance.audit``
"""

import argparse
import sys
import warnings
from functools import partial

import numpy as np
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.tables import markdown, write_csv

from .problems import SETS, load_tables
from .samplers import BASELINES

# New rows of ROS are copies, so that its figures are those of real rows.
SAMPLERS = ("ROS", "ROS 0.3", "SMOTE", "PNL", "PNL (paper)")
SPLITS, QUERIES = 5, 500

# Below this the audit refuses: it needs six rows of the minority in each half.
MIN_MINORITY = 12


VALUES = {
    "er naive": lambda found: found.er_naive,
    "er split": lambda found: found.er_split,
    "information gain": lambda found: found.info_gain,
    "delta AP": lambda found: found.delta_pr_auc,
    "delta AUC": lambda found: found.delta_roc_auc,
    "delta Brier": lambda found: found.delta_brier,
    "valid": lambda found: found.er_split_ci[1] < found.er_max,
    "passes": lambda found: found.passes_standard,
}


def audit_table(table, name):
    """Audit the new rows of a sampler on a table, as a flat row.

    ``er`` is the share of new rows whose nearest real row is in the majority class:
    ``naive`` compares with all real rows, including the parents, and ``split`` with
    rows that are not parents. Gains and deltas are those of logistic regression on a
    quarter of the rows.
    """
    from resample_audit import audit

    row = {"table": table.name, "family": table.family, "sampler": name}
    # Its regression is on standardised rows, so the new rows it judges are that too.
    X = StandardScaler().fit_transform(table.X)
    try:
        found = audit(
            X,
            table.y,
            partial(BASELINES[name].sampler, 0),
            n_splits=SPLITS,
            n_query=QUERIES,
        )
    except Exception as error:
        return row | dict.fromkeys(VALUES) | {"failure": f"{error}"[:120]}
    values = {name: float(value(found)) for name, value in VALUES.items()}
    return row | values | {"failure": ""}


def summarise(rows):
    """Average over the tables on which no sampler failed."""
    failed = {row["table"] for row in rows if row["failure"]}
    return [
        {"sampler": name, "failures": sum(bool(row["failure"]) for row in chosen)}
        | {
            column: float(
                np.mean([row[column] for row in chosen if row["table"] not in failed])
            )
            for column in VALUES
        }
        for name in SAMPLERS
        for chosen in [[row for row in rows if row["sampler"] == name]]
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default="fresh", choices=SETS)
    options = parser.parse_args()
    try:
        import resample_audit  # noqa: F401
    except ImportError:
        sys.exit("Install it with: pip install --no-deps resample-audit")
    tables = load_tables(options.tables)
    tables = [table for table in tables if table.y.sum() >= MIN_MINORITY]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [audit_table(table, name) for table in tables for name in SAMPLERS]
    write_csv(rows, f"imbalance-audit-{options.tables}")
    print(f"{len(tables)} tables\n\n{markdown(summarise(rows))}")


if __name__ == "__main__":
    main()
