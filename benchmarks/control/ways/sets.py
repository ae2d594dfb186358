"""Whole weights of rows that meet totals; whole tables with margins.

A problem of rows has ``X`` and the ``totals`` of its weighted columns, the first of
which counts rows; an answer has ``weights``. A problem of tables has a ``seed`` and
margins ``m0``, ``m1``, ... over the axes in ``a0``, ``a1``, ...; an answer a ``table``.
A problem of new rows has ``names`` and ``n`` besides; an answer may have ``rows``.
"""

import numpy as np

PACKAGES = {"populationsim": ("populationsim",), "humanleague": ("humanleague",)}
LIMIT = 60.0


def margins_of(problem):
    """Axes and arrays."""
    k = sum(name.startswith("m") and name[1:].isdigit() for name in problem)
    return [tuple(problem[f"a{i}"].tolist()) for i in range(k)], [
        problem[f"m{i}"] for i in range(k)
    ]


def calibrate(problem):
    """Ours, with what is least missed where all is not met."""
    from sklearn_pnl import calibrate

    yield
    weights = calibrate(
        problem["X"], problem["totals"], integer=True, strict=False, time_limit=LIMIT
    )
    yield {"weights": weights}


def sample(problem):
    """Ours: new rows instead of copies."""
    import pandas as pd

    from sklearn_pnl import PNLAugmenter

    yield
    names = [str(c) for c in problem["names"]]
    frame = pd.DataFrame(problem["X"][:, 1:], columns=names)
    asked = dict(zip(names, problem["totals"][1:].tolist(), strict=True))
    augmenter = PNLAugmenter(categorical_features="auto").fit(frame)
    new = augmenter.sample(int(problem["totals"][0]), 0, totals=asked)
    yield {"rows": new.to_numpy(float)}


def truncate_replicate_sample(problem):
    """Real weights, truncated; the rest by chance."""
    from sklearn_pnl import calibrate

    yield
    weights = calibrate(problem["X"], problem["totals"])
    low = np.floor(weights)
    rest = round(weights.sum() - low.sum())
    chances = (weights - low) / (weights - low).sum()
    rng = np.random.default_rng(0)
    low[rng.choice(len(low), rest, replace=False, p=chances)] += 1
    yield {"weights": low}


def milp(problem):
    """SciPy's branch and bound: the least sum of what is missed."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array, hstack, identity

    yield
    (n, c), totals = problem["X"].shape, problem["totals"]
    a = hstack([csr_array(problem["X"].T), identity(c), -identity(c)], format="csc")
    found = milp(
        np.concatenate([np.zeros(n), np.ones(2 * c)]),
        constraints=LinearConstraint(a, totals, totals),
        bounds=Bounds(0, np.inf),
        integrality=np.repeat([1, 0], [n, 2 * c]),
        options={"time_limit": LIMIT},
    )
    if found.x is None:
        raise ValueError(found.message)
    yield {"weights": np.round(found.x[:n])}


def populationsim(problem):
    """List balancing and its programme for whole weights, without its folders."""
    import pandas as pd
    from populationsim.balancing.wrappers import do_balancing
    from populationsim.core import inject
    from populationsim.integerizing.wrappers import do_integerizing

    yield
    inject.add_injectable("settings", {"INTEGERIZER_TIMEOUT": LIMIT})
    X, totals = problem["X"], problem["totals"]
    names = [f"c{j}" for j in range(X.shape[1])]
    large = X.max(axis=0) > 1
    spec = pd.DataFrame(
        {
            "target": names,
            "seed_table": np.where(large, "persons", "households"),
            "importance": np.where(np.arange(len(names)) == 0, 1e7, 1000.0),
        }
    )
    rows = pd.DataFrame(X, columns=names)
    asked = pd.Series(totals, index=names)
    start = pd.Series(np.full(len(X), totals[0] / len(X)))
    status, weights, _ = do_balancing(
        spec, names[0], None, None, None, None, rows, asked, start, False, False,
        "float64",
    )  # fmt: skip
    whole, status = do_integerizing(
        "all", spec, asked, rows, weights["final"], names[0]
    )
    yield {"weights": np.asarray(whole, float)}


def humanleague(problem):
    """Quasirandom whole numbers of a fitted table."""
    import humanleague

    yield
    axes, margins = margins_of(problem)
    table, told = humanleague.qisi(
        problem["seed"].astype(float),
        [np.array(a) for a in axes],
        [m.astype(np.int64) for m in margins],
    )
    if not isinstance(table, np.ndarray):
        raise ValueError(str(told))
    if not told.get("conv", True):
        raise ValueError(f"not converged: {told}")
    yield {"table": np.asarray(table, float)}


def calibrate_cells(problem):
    """Ours, on the cells of a table."""
    import pandas as pd

    from sklearn_pnl import calibrate

    yield
    seed = problem["seed"]
    axes, margins = margins_of(problem)
    cells = pd.DataFrame(np.indices(seed.shape).reshape(seed.ndim, -1).T.astype(str))
    cells.columns = [f"v{k}" for k in range(seed.ndim)]
    asked = {}
    for axis, margin in zip(axes, margins, strict=True):
        levels = np.indices(margin.shape).reshape(margin.ndim, -1).T.astype(str)
        keys = [level[0] if len(level) == 1 else tuple(level) for level in levels]
        name = tuple(f"v{k}" for k in axis)
        asked[name[0] if len(name) == 1 else name] = dict(
            zip(keys, margin.ravel().tolist(), strict=True)
        )
    weights = calibrate(
        cells, asked, design_weights=seed.ravel(), integer=True, strict=False
    )
    yield {"table": weights.reshape(seed.shape)}
