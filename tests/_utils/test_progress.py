"""Progress of calls in blocks: number of blocks, nested calls, threads and errors."""

import sys
import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import sklearn_pnl
from sklearn_pnl import (
    BackwardProjector,
    Codes,
    ManyBodyImputer,
    ManyBodyProjector,
    PNLAugmenter,
    PNLRegressionSampler,
    PNLSampler,
    progress_bar,
)
from sklearn_pnl._utils import blocks, progress
from sklearn_pnl.methods import sampling

pytest.importorskip("tqdm")


class Bar:
    """Records what a bar of tqdm is told."""

    def __init__(self, made, total, desc, leave, delay, unit):
        self.total, self.desc, self.leave, self.delay = total, desc, leave, delay
        self.n, self.is_closed = 0, False
        made.append(self)

    def update(self):
        assert not self.is_closed
        self.n += 1

    def close(self):
        self.is_closed = True


@pytest.fixture
def bars(monkeypatch):
    """The bars that are made in the test."""
    made = []
    monkeypatch.setattr(
        progress, "_import_tqdm", lambda: lambda **params: Bar(made, **params)
    )
    return made


def images(n=400, seed=0):
    return np.random.default_rng(seed).gamma(2.0, size=(n, 4, 5))


def with_gaps(rows):
    rows = rows.copy()
    rows[np.random.default_rng(1).uniform(size=rows.shape) < 0.1] = np.nan
    return rows


def classes(n=400):
    return np.repeat([0, 1, 2], [n // 2, n // 4, n // 4])


CALLS = {
    "encode": lambda j: ManyBodyProjector(1, n_jobs=j).fit_transform(images()),
    "encode new rows": lambda j: (
        ManyBodyProjector(2, n_jobs=j).fit(images(9)).transform(images())
    ),
    "decode": lambda j: (
        BackwardProjector(1, n_jobs=j)
        .fit(images())
        .inverse_transform(np.ones((400, 7)))
    ),
    "sampler": lambda j: PNLSampler(order=1, random_state=0, n_jobs=j).fit_resample(
        images(), classes()
    )[0],
    "regression": lambda j: PNLRegressionSampler(
        order=1, random_state=0, n_jobs=j
    ).fit_resample(images(), images()[:, 0, 0])[0],
    "sample": lambda j: PNLAugmenter(Codes(1), n_jobs=j).fit(images()).sample(400, 0),
    "lines": lambda j: PNLAugmenter(n_jobs=j).fit(images()[:, 0]).sample(400, 0),
    "batches": lambda j: np.concatenate(
        [*PNLAugmenter(Codes(1), n_jobs=j).fit(images()).iter_samples(400, 70, 0)]
    ),
    "tensors": lambda j: ManyBodyImputer(1, n_jobs=j).fit_transform(
        with_gaps(images())
    ),
    "table": lambda j: ManyBodyImputer().fit_transform(with_gaps(images()[:, 0])),
}
TASKS = {
    "encode": "ManyBodyProjector: encode",
    "encode new rows": "ManyBodyProjector: encode",
    "decode": "BackwardProjector: decode",
    "sampler": "PNLSampler, class 2: sample",
    "regression": "PNLRegressionSampler: sample",
    "sample": "PNLAugmenter: sample",
    "lines": "PNLAugmenter: sample",
    "batches": "PNLAugmenter: sample",
    "tensors": "ManyBodyImputer: fit models",
    "table": "ManyBodyImputer: fill from near rows",
}


@pytest.fixture
def small_blocks(monkeypatch):
    """Divide all work into many blocks."""
    monkeypatch.setattr(sampling, "BATCH_CELLS", 400)
    monkeypatch.setattr("sklearn_pnl.encoding.codec.rows_at_once", lambda *_: 20)
    monkeypatch.setattr("sklearn_pnl.filling.BLOCK_CELLS", 400)
    monkeypatch.setattr("sklearn_pnl.filling._PAIRS", 10_000)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("name", CALLS)
def test_bars_count_all_blocks(name, n_jobs, bars, small_blocks):
    expected = CALLS[name](n_jobs)
    assert not bars
    with progress_bar():
        found = CALLS[name](n_jobs)
    assert_array_equal(found, expected)
    for bar in bars:
        assert bar.is_closed and bar.n == bar.total > 0, bar.desc
    (task,) = [bar for bar in bars if bar.desc == TASKS[name]][-1:]
    assert task.total > 3 and task.leave and not task.delay
    CALLS[name](n_jobs)
    assert len(bars) == len([bar for bar in bars if bar.is_closed])


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_totals_are_the_numbers_of_processed_blocks(n_jobs, bars, monkeypatch):
    of_block, processed = blocks._of_block, []

    def counted(*args):
        processed.append(1)
        return of_block(*args)

    monkeypatch.setattr(blocks, "_of_block", counted)

    def double(rows):
        return (2 * rows,)

    rows = np.arange(23)
    with progress_bar():
        blocks.map_blocks(double, rows, step=5, task="double", n_jobs=n_jobs)
    ((bar,), total) = bars, len(processed)
    assert (bar.desc, bar.n, bar.total) == ("double", total, total) == ("double", 5, 5)


def test_nested_blocks_are_shown_below_the_outer_bar(bars, small_blocks):
    with progress_bar():
        PNLAugmenter(Codes(1), n_jobs=2).fit(images()).sample(400, 0)
    outer = next(bar for bar in bars if bar.desc == "PNLAugmenter: sample")
    inner = [bar for bar in bars if bar.desc == "PNLAugmenter: decode"]
    assert outer.leave and inner
    assert not any(bar.leave for bar in inner) and all(bar.delay > 0 for bar in inner)


def test_nested_contexts_show_each_bar_once(bars):
    context = progress_bar()
    with context:
        with context, progress_bar():
            ManyBodyProjector(1).fit(images())
        assert len(bars) == 1
        ManyBodyProjector(1).fit(images())
    assert len(bars) == 2
    ManyBodyProjector(1).fit(images())
    assert len(bars) == 2


def test_bars_are_closed_after_an_error_and_an_unfinished_iteration(bars):
    augmenter = PNLAugmenter(Codes(1)).fit(images())
    with pytest.raises(KeyError), progress_bar():
        batches = augmenter.iter_samples(100, 10, 0)
        next(batches)
        raise KeyError
    assert [(bar.n, bar.total, bar.is_closed) for bar in bars[:1]] == [(1, 10, True)]
    # The iteration can go on without its bar.
    bars[0].update = lambda: None
    assert len([*batches]) == 9
    made = len(bars)
    ManyBodyProjector(1).fit(images())
    assert len(bars) == made


def test_other_threads_and_grid_searches(bars):
    with progress_bar():
        thread = threading.Thread(target=CALLS["encode"], args=(None,))
        thread.start()
        thread.join()
        assert not bars
        pipeline = make_pipeline(ManyBodyProjector(1), KNeighborsClassifier())
        grid = {"manybodyprojector__order": [1, 2]}
        GridSearchCV(pipeline, grid, cv=2).fit(images(), classes())
    assert {bar.desc for bar in bars} == {"ManyBodyProjector: encode"}
    assert len(bars) == 2 * (2 + 2) + 1


def test_nothing_is_added_outside_of_a_context():
    items = iter([1, 2])
    assert progress.tracked(items, 2, "task") is items


def test_tqdm_draws_the_bars(capsys):
    with progress_bar():
        CALLS["encode"](None)
    drawn = capsys.readouterr().err
    assert "ManyBodyProjector: encode: 100%" in drawn and "1/1" in drawn


def test_a_missing_tqdm_is_named_with_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match=r"sklearn-pnl\[progress\]"), progress_bar():
        pass
    # The context was not entered.
    assert sklearn_pnl._utils.progress._display.get() is None
    CALLS["encode"](None)
