"""Whether promises hold on real tables, in all forms that they are met in.

Each trial is a table (some of its rows), a form, and something asked that rows of the
table have; the outcome is what a user gets: all of it kept, a warning by name, a
refusal, or rows that miss a promise without a word. What is asked and checked is
written without the package.
"""

import argparse
import traceback
import warnings
from collections import defaultdict
from time import perf_counter
from zlib import crc32

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from sklearn_pnl import PNLAugmenter, PNLSampler

from ..tables import markdown, report
from . import asks
from .checks import frame_misses, misses
from .forms import as_arrays, as_frames, with_words
from .tables import some_rows, sources

KINDS = {"rows": asks.nothing, "constraints": asks.constraints, "totals": asks.totals}
# A class of so many rows beside the others, in samplers.
RARE = (3, 6, 10, 30)
OUTCOMES = ("kept", "told", "refused", "error", "silent", "left out")
SLOW = 5.0


def attempt(function):
    """What a function returns, or None; messages of warnings; an error; seconds."""
    start = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found, error = function(), None
        except Exception as raised:  # any error is an outcome
            found, error = None, raised
    told = [str(warning.message) for warning in caught]
    return found, told, error, perf_counter() - start


def outcome(told, error, missed):
    """A word for what a user gets."""
    if error is not None:
        # Ours say why; one from inside does not.
        refused = isinstance(error, ValueError) and "sklearn_pnl" in _raised_in(error)
        return "refused" if refused else "error"
    if missed:
        return "told" if told else "silent"
    return "told" if told else "kept"


def _raised_in(error):
    return traceback.extract_tb(error.__traceback__)[-1].filename


def trials(name, read, kinds, seed):
    """Rows of outcomes of one table."""

    def chance(*of):
        # A trial alone draws what it draws among others.
        return np.random.default_rng([crc32(" ".join([name, *of]).encode()), seed])

    try:
        table = read()
    except (OSError, ValueError) as error:
        return [_row("read", name, "", "", "left out", str(error), 0.0)]
    found = []
    with threadpool_limits(1, "blas"):
        if any(kind in kinds for kind in KINDS):
            frame, _ = some_rows(table, chance("rows"))
            for form in as_arrays(frame, chance("forms")):
                found += _of_arrays(name, *form, kinds, chance)
        if "frames" in kinds:
            frame, _ = some_rows(table, chance("frames"))
            frame, words = with_words(frame, chance("words"))
            for form, X in as_frames(frame, words):
                found += _of_frames(name, form, X, words, frame, chance(form, "asked"))
        if "classes" in kinds:
            frame, rare = _rare(table, chance("classes"))
            for form, X, parameters, groups in as_arrays(frame, chance("holes")):
                found += _of_classes(name, form, X, rare, parameters, groups)
    return found


def _row(kind, table, form, asked, what, told, seconds):
    return {
        "kind": kind,
        "table": table,
        "form": form,
        "asked": asked,
        "outcome": what,
        "told": " ".join(told.split())[:300],
        "seconds": round(seconds, 2),
    }


def _of_arrays(name, form, X, parameters, groups, kinds, chance):
    if not X.shape[1]:
        return []
    augmenter, told, error, seconds = attempt(lambda: PNLAugmenter(**parameters).fit(X))
    if error is not None or told:
        what = outcome(told, error, [])
        return [_row("fit", name, form, "", what, f"{error} {told}", seconds)]
    rows = []
    # Codes of an order are not the row: values are no marks then.
    marks = "zeros" if "order" in parameters else parameters.get("marks", "auto")
    for kind in (kind for kind in KINDS if kind in kinds):
        for ask in KINDS[kind](X, chance(form, kind), marks):
            new, told, error, seconds = attempt(
                lambda ask=ask: augmenter.sample(
                    ask.n_rows, random_state=0, **ask.given
                )
            )
            missed = []
            if error is None:
                missed = misses(X, new, parameters, groups, ask, augmenter)
            what = outcome(told, error, missed)
            words = f"{missed or ''} {error or ''} {told or ''}"
            rows.append(_row(kind, name, form, ask.name, what, words, seconds))
    return rows


def _of_frames(name, form, X, words, frame, rng):
    parameters = {"categorical_features": words} if words else {}
    augmenter, told, error, seconds = attempt(lambda: PNLAugmenter(**parameters).fit(X))
    if error is not None:
        what = outcome(told, error, [])
        return [_row("frames", name, form, "fit", what, str(error), seconds)]
    rows = []
    for asked, n, totals in asks.frame_totals(frame, words, rng):
        new, told, error, seconds = attempt(
            lambda n=n, totals=totals: augmenter.sample(
                n, random_state=0, totals=totals
            )
        )
        missed = [] if error else list(frame_misses(X, new, words, totals))
        what = outcome(told, error, missed)
        told = f"{missed or ''} {error or ''} {told or ''}"
        rows.append(_row("frames", name, form, asked, what, told, seconds))
    return rows


def _rare(table, rng):
    """Rows of a table, and which are of a class that few of them are of."""
    frame, labels = some_rows(table, rng, 1200)
    values, counts = np.unique(labels, return_counts=True)
    rare = (
        labels == values[np.argmin(np.where(counts >= min(RARE), counts, len(frame)))]
    )
    few = rng.permutation(np.flatnonzero(rare))[: rng.choice(RARE)]
    kept = np.sort(np.concatenate([few, np.flatnonzero(~rare)]))
    return frame.iloc[kept].reset_index(drop=True), rare[kept]


def _of_classes(name, form, X, rare, parameters, groups):
    if not X.shape[1] or rare.all():
        return []
    sampler = PNLSampler(random_state=0, **parameters)
    found, told, error, seconds = attempt(lambda: sampler.fit_resample(X, rare))
    missed = []
    if error is None:
        new = found[0][len(X) :]
        ask = asks.Ask("nothing")
        missed = misses(X, new, parameters, groups, ask, sampler, rare)
        if not np.array_equal(found[0][: len(X)], X, equal_nan=X.dtype.kind == "f"):
            missed.append("the rows that were there")
    words = f"{missed or ''} {error or ''} {told or ''}"
    what = outcome(told, error, missed)
    return [_row("classes", name, form, "", what, words, seconds)]


def summary(rows):
    """How often which outcome came of what was asked."""
    groups = defaultdict(list)
    for row in rows:
        groups[row["kind"], row["asked"]].append(row)
    return [
        {
            "kind": kind, "asked": asked, "jobs": len(own),
            **{what: sum(row["outcome"] == what for row in own) for what in OUTCOMES},
            "longest, s": max(row["seconds"] for row in own),
        }
        for (kind, asked), own in sorted(groups.items())
    ]  # fmt: skip


def main():
    """Try, print what was not kept, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    every = [*KINDS, "frames", "classes"]
    parser.add_argument("kinds", nargs="*", default=every, help=", ".join(every))
    parser.add_argument("--all", action="store_true", help="also tables of packages")
    parser.add_argument("--tables", nargs="*", help="these alone")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--n-jobs", type=int, default=1)
    given = parser.parse_args()
    tables = sources(given.all or bool(given.tables))
    names = given.tables or list(tables)
    tasks = (
        delayed(trials)(name, tables[name], given.kinds, seed)
        for seed in given.seeds
        for name in names
    )
    rows = []
    for found in Parallel(given.n_jobs, return_as="generator")(tasks):
        rows += found
        for row in found:
            if row["outcome"] != "kept" or row["seconds"] > SLOW:
                print(*row.values(), sep=" | ", flush=True)
    if given.all and not given.tables and given.kinds == every:
        report(summary(rows), "promises")
    else:
        # A part must not take the place of the whole.
        print(markdown(summary(rows)))


if __name__ == "__main__":
    main()
