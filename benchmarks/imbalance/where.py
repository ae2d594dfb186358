"""Where new rows fall: exactly at the ends of the class's range, or between clusters.

``python -m benchmarks.imbalance.where``, or with the names of variants of the search
"""

import argparse
import warnings

import numpy as np

from benchmarks.tables import markdown, report

from .problems import load_tables
from .search import DRAWS, PACKAGED, REFERENCE, TABLES, VARIANTS
from .search_draws import DrawSampler

# Standard deviations between the centres of two normal clusters.
GAPS = (6, 12, 24)
CLUSTER, FEATURES = 25, 8
DATA_SETS, N_NEW = 100, 400

# Beyond rounding of the scaling to and fro, as a share of the range.
ROUNDING = 1e-9


def measure(name, tables):
    """Shares in percent for a variant of the search."""
    make, mixes = VARIANTS[name], name in DRAWS or name in PACKAGED
    members = [_members(table) for table in tables]
    return {
        "variant": name,
        "at an end": np.mean([_at_ends(make, rows) for rows in members]),
        "atoms": np.mean([_atoms(make, rows) for rows in members]) if mixes else None,
        **{f"beyond, {gap} sd": beyond(make, gap) for gap in GAPS},
    }


def beyond(make_sampler, gap):
    """Percent of new rows farther from the nearer centre than any real row is."""
    shares = []
    for seed in range(DATA_SETS):
        rng = np.random.RandomState(seed)
        direction = rng.standard_normal(FEATURES)
        centres = np.outer([0, 1], gap * direction / np.linalg.norm(direction))
        rows = np.repeat(centres, CLUSTER, axis=0)
        rows += rng.standard_normal(rows.shape)
        new = resample(make_sampler(seed), rows, N_NEW)
        shares.append(np.mean(_distances(new, centres) > _farthest(rows, centres)))
    return 100 * float(np.mean(shares))


def resample(sampler, members, n_new):
    """New rows of a class beside one that is only there to be larger."""
    n_other = len(members) + n_new
    X = np.vstack([np.zeros((n_other, members.shape[1])), members])
    y = np.repeat([0, 1], [n_other, len(members)])
    with warnings.catch_warnings():
        # A class of few rows has fewer neighbours than asked for.
        warnings.simplefilter("ignore")
        return sampler.fit_resample(X, y)[0][len(X) :]


def _distances(rows, centres):
    return np.linalg.norm(rows[:, None] - centres, axis=2).min(axis=1)


def _farthest(rows, centres):
    return _distances(rows, centres).max()


def _members(table):
    """Rows of the minority, without features that are constant there."""
    members = table.X[table.y == 1]
    return members[:, np.ptp(members, axis=0) > 0]


def _ends(rows, members):
    """Whether values are at the low, and at the high end of the class's range."""
    low, high = members.min(axis=0), members.max(axis=0)
    margin = ROUNDING * (high - low)
    return np.stack([np.abs(rows - low) <= margin, np.abs(rows - high) <= margin])


def _at_ends(make_sampler, members):
    """Percent of new values at an end, as many there are of the real ones too."""
    new = resample(make_sampler(0), members, N_NEW)
    return 100 * float(_ends(new, members).any(axis=0).mean())


def _atoms(make_sampler, members):
    """Percent of new values at an end at which neither parent is."""
    new, parents = _with_parents(make_sampler(0), members)
    of_parents = _ends(members, members)[:, parents].any(axis=2)
    return 100 * float((_ends(new, members) & ~of_parents).any(axis=0).mean())


def _with_parents(sampler, members):
    if isinstance(sampler, DrawSampler):
        return sampler.draw(members, N_NEW)
    new = resample(sampler, members, N_NEW)
    # Before the members come the rows of the other class.
    return new, sampler.parent_indices_ - (len(members) + N_NEW)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("variants", nargs="*", help="names; default: all, to a CSV")
    options = parser.parse_args()
    tables = load_tables(",".join(TABLES))
    names = options.variants or [REFERENCE, "ROS 0.3", *DRAWS, *PACKAGED]
    rows = [measure(name, tables) for name in names]
    if options.variants:
        print(markdown(rows))
    else:
        report(rows, "imbalance-where")


if __name__ == "__main__":
    main()
