"""What is asked of new rows: always what rows of the table, or a draw of them, have."""

from dataclasses import dataclass, field

import numpy as np

from sklearn_pnl import ColumnConstraint, column_total

# New rows with constraints; with totals by chance.
N_ROWS, SET_SIZES = 20, (20, 100)


@dataclass
class Ask:
    """Keywords of ``sample``, and what they mean in plain numbers.

    ``bounds`` are weights of columns (D,), with a lower and an upper value of each row;
    ``sums`` weights with the sum over all rows; ``counts`` columns with how often each
    value is in them.
    """

    name: str
    n_rows: int = N_ROWS
    given: dict = field(default_factory=dict)
    bounds: list = field(default_factory=list)
    sums: list = field(default_factory=list)
    counts: dict = field(default_factory=dict)

    def about(self, n_columns):
        """Columns (D,) that it says something of."""
        about = np.zeros(n_columns, bool)
        for weights, *_ in self.bounds + self.sums:
            about |= weights != 0
        about[list(self.counts)] = True
        return about


def constraints(X, rng, marks):
    """Intervals and sums, one for all rows or a value a row."""
    X = np.asarray(X, float)
    varying = np.flatnonzero(np.ptp(X, axis=0) > 0)
    if not len(varying):
        return
    rows = rng.integers(0, len(X), N_ROWS)
    j, other = rng.choice(varying), rng.choice(varying)
    some = rng.choice(varying, min(len(varying), rng.integers(2, 5)), replace=False)
    weights = rng.choice([1.0, 1.0, -1.0, 2.0], len(some))
    low, high = np.quantile(X[:, j], [0.2, 0.7], method="nearest")
    value, sums = X[rows, j], X[np.ix_(rows, some)] @ weights
    yield _constrained("equal", X, [({j: 1.0}, value[0], value[0])])
    yield _constrained("between", X, [({j: 1.0}, low, high)])
    yield _constrained("a value a row", X, [({j: 1.0}, value, value)])
    terms = dict(zip(some, weights, strict=True))
    yield _constrained("sum", X, [(terms, sums[0], sums[0])])
    yield _constrained("a sum a row", X, [(terms, sums, sums)])
    if other != j:
        most = {other: 1.0}, -np.inf, X[rows[0], other]
        yield _constrained("two", X, [({j: 1.0}, value[0], value[0]), most])


def _constrained(name, X, asked):
    """``asked`` is of weights by columns, lower and upper values."""
    given, bounds = [], []
    for terms, low, high in asked:
        weights = np.zeros(X.shape[1])
        weights[list(terms)] = list(terms.values())
        bounds.append((weights, low, high))
        terms = {int(j): float(a) for j, a in terms.items()}
        if np.array_equal(low, high):
            given.append(ColumnConstraint(terms, equal=low))
        elif np.isinf(low):
            given.append(ColumnConstraint(terms, upper=high))
        else:
            given.append(ColumnConstraint(terms, lower=low, upper=high))
    return Ask(name, given={"constraints": given}, bounds=bounds)


def totals(X, rng, marks):
    """Sums, means and counts of rows drawn from the table again."""
    numbers = np.asarray(X, float)
    varying = np.flatnonzero(np.ptp(numbers, axis=0) > 0)
    if not len(varying):
        return
    n = int(rng.choice(SET_SIZES))
    # Nothing is asked of columns with holes.
    drawn = np.nan_to_num(numbers[rng.integers(0, len(numbers), n)])
    units = np.eye(numbers.shape[1])
    j = int(rng.choice(varying))
    some = rng.choice(varying, min(len(varying), 3), replace=False)
    weights = rng.choice([1.0, 2.0, -1.0], len(some)) @ units[some]

    def sums(name, given, *of):
        found = [(a, float((drawn @ a).sum())) for a in of]
        return Ask(name, n, {"totals": given}, sums=found)

    yield sums("one sum", {j: float(drawn[:, j].sum())}, units[j])
    three = {int(k): float(drawn[:, k].sum()) for k in some}
    yield sums("three sums", three, *units[some])
    mean = column_total(j, equal=float(drawn[:, j].mean()), mean=True)
    yield sums("mean", mean, units[j])
    terms = {int(k): float(weights[k]) for k in some}
    total = column_total(terms, equal=float((drawn @ weights).sum()))
    yield sums("sum of columns", total, weights)
    # What is counted is whole numbers, or one of few values where these are marks.
    most = min(6, len(numbers) // 2)
    few = [k for k in varying if len(np.unique(numbers[:, k])) <= most]
    whole = (numbers == np.rint(numbers)).all(axis=0) & (marks is not None)
    few = [k for k in few if whole[k] or marks == "auto"]
    if few:
        k = int(rng.choice(few))
        levels = [X.dtype.type(value).item() for value in np.unique(numbers[:, k])]
        counts = {value: int((drawn[:, k] == value).sum()) for value in levels}
        yield Ask("counts", n, {"totals": {k: counts}}, counts={k: counts})


def nothing(X, rng, marks):
    """New rows as they are drawn."""
    yield Ask("nothing", 60)


def frame_totals(frame, words, rng):
    """Counts of names, of pairs of names, and sums beside: names and totals."""
    n = int(rng.choice((10, 60, 150)))
    drawn = frame.iloc[rng.integers(0, len(frame), n)]
    numbers = [
        name for name in frame.select_dtypes("number") if frame[name].nunique() > 1
    ]

    def counts(name):
        found = drawn[name].value_counts()
        return {name: {v: int(found.get(v, 0)) for v in frame[name].unique()}}

    if numbers:
        name = rng.choice(numbers)
        total = {name: float(drawn[name].sum())}
        yield "sum", n, total
    if words:
        first, second = rng.choice(words), rng.choice(words)
        yield "counts", n, counts(first)
        if numbers:
            yield "counts and a sum", n, counts(first) | total
        if first != second:
            pairs = drawn.groupby([first, second]).size().to_dict()
            yield "counts of pairs", n, {(first, second): pairs}
            yield "two counts", n, counts(first) | counts(second)
