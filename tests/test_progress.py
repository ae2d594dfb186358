"""Blocks of rows as tasks of scikit-learn's callbacks."""

import pickle
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from imblearn.pipeline import make_pipeline as make_sampling_pipeline
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_pnl import BackwardProjector, ManyBodyProjector, PNLAugmenter, PNLSampler

pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")

# 512 cells make blocks of 256 rows.
X = np.random.default_rng(0).gamma(1.0, size=(1000, 8, 8, 8)) + 0.1
N_BLOCKS = 4
LABELS = np.repeat(["few", "many", "some"], [20, 900, 80])
PROJECTORS = [ManyBodyProjector(), BackwardProjector(), PNLAugmenter(reshaper=None)]
METHODS = {1: "fit", 2: "fit_resample"}


class Recorder:
    """A callback that notes what it is told."""

    def __init__(self):
        self.events = []

    def setup(self, estimator, context):
        self.events.append(("setup", type(estimator).__name__))

    def teardown(self, estimator, context):
        self.events.append(("teardown", type(estimator).__name__))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name, context.max_subtasks))

    def on_fit_task_end(self, estimator, context):
        self.events.append(("end", context.task_name, context.task_id))


class Propagating(Recorder):
    max_propagation_depth = None


def blocks(number):
    return [
        event
        for task_id in range(number)
        for event in [("begin", "block", 0), ("end", "block", task_id)]
    ]


def classes(*tasks):
    """Events of classes, each with its blocks of encoding and of decoding."""
    for number, (name, encoded, decoded) in enumerate(tasks):
        yield ("begin", f"class {name!r}", 2)
        for stage, (part, n) in enumerate([("encode", encoded), ("decode", decoded)]):
            yield ("begin", part, n)
            yield from blocks(n)
            yield ("end", part, stage)
        yield ("end", f"class {name!r}", number)


def fitted_events(estimator, *data):
    recorder = Recorder()
    getattr(clone(estimator).set_callbacks(recorder), METHODS[len(data)])(*data)
    return recorder.events


# --- what is told ---------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("estimator", PROJECTORS, ids=repr)
def test_blocks_of_rows_are_the_tasks_of_a_fit(estimator, n_jobs):
    name = type(estimator).__name__
    assert fitted_events(clone(estimator).set_params(n_jobs=n_jobs), X) == [
        ("setup", name),
        ("begin", "fit", N_BLOCKS),
        *blocks(N_BLOCKS),
        ("end", "fit", 0),
        ("teardown", name),
    ]


def test_classes_are_the_tasks_of_a_sampler_and_blocks_theirs():
    sampler = PNLSampler(reshaper=None, random_state=0)
    # 20 rows are encoded and 580 decoded, 512 at a time, 80 and 520; "many" gets none.
    more = sampler.set_params(sampling_strategy={"few": 600, "some": 600})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "After over-sampling")
        events = fitted_events(more, X, LABELS)
    assert events == [
        ("setup", "PNLSampler"),
        ("begin", "fit_resample", 2),
        *classes(("few", 1, 2), ("some", 1, 2)),
        ("end", "fit_resample", 0),
        ("teardown", "PNLSampler"),
    ]


@pytest.mark.filterwarnings("ignore:.*asks for no new row")
def test_a_sampler_with_nothing_to_do_says_so():
    balanced = np.arange(40) % 2
    events = fitted_events(PNLSampler(reshaper=None), X[:40], balanced)
    assert [event[:2] for event in events] == [
        ("setup", "PNLSampler"),
        ("begin", "fit_resample"),
        ("end", "fit_resample"),
        ("teardown", "PNLSampler"),
    ]


def test_only_fitting_is_told():
    recorder = Recorder()
    augmenter = PNLAugmenter().set_callbacks(recorder).fit(X[:20])
    told = len(recorder.events)
    augmenter.sample(5)
    projector = ManyBodyProjector().set_callbacks(Recorder()).fit(X[:20])
    projector.set_callbacks(recorder).transform(X[:20])
    projector.inverse_transform(projector.transform(X[:5]))
    assert len(recorder.events) == told


# --- what must not change -------------------------------------------------------


def test_callbacks_change_no_byte():
    plain = PNLSampler(random_state=0).fit_resample(X, LABELS)[0]
    heard = PNLSampler(random_state=0).set_callbacks(Recorder())
    assert heard.fit_resample(X, LABELS)[0].tobytes() == plain.tobytes()


@pytest.mark.parametrize("estimator", PROJECTORS, ids=repr)
def test_nothing_is_left_in_the_estimator(estimator):
    plain = clone(estimator).fit(X[:20])
    heard = clone(estimator).set_callbacks(Recorder()).fit(X[:20])
    assert set(vars(heard)) - set(vars(plain)) == {"_skl_callbacks"}
    assert pickle.loads(pickle.dumps(heard)).n_features_in_ == 8


def test_callbacks_can_be_taken_off_again():
    recorder = Recorder()
    projector = ManyBodyProjector().set_callbacks(recorder).set_callbacks()
    assert_array_equal(projector.fit_transform(X), ManyBodyProjector().fit_transform(X))
    assert recorder.events == []


def test_without_callbacks_no_context_is_made(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a context was made")

    for estimator in (*PROJECTORS, PNLSampler(random_state=0)):
        monkeypatch.setattr(type(estimator), "_init_callback_context", refuse)
        data = (X, LABELS) if isinstance(estimator, PNLSampler) else (X,)
        getattr(clone(estimator), METHODS[len(data)])(*data)


# --- when things go wrong -------------------------------------------------------


class Stubborn(BaseEstimator):
    """A density whose fit fails."""

    def fit(self, X, y=None):
        raise RuntimeError("no density")

    def sample(self, n_samples):
        """Never reached."""


def test_a_fit_that_fails_is_torn_down():
    recorder = Recorder()
    augmenter = PNLAugmenter(draws=Stubborn()).set_callbacks(recorder)
    with pytest.raises(RuntimeError, match="no density"):
        augmenter.fit(X[:20])
    assert recorder.events[-1] == ("teardown", "PNLAugmenter")
    recorder.events.clear()
    augmenter.set_params(draws="kde").fit(X[:20])
    assert recorder.events[0] == ("setup", "PNLAugmenter")
    assert recorder.events[-1] == ("teardown", "PNLAugmenter")


def test_a_fit_that_fails_after_its_blocks_ends_no_task():
    recorder = Recorder()
    huge = X.copy()
    huge[300] = 1e308
    projector = ManyBodyProjector().set_callbacks(recorder)
    with pytest.raises(ValueError, match="sum of row 300 overflows"):
        projector.fit(huge)
    assert ("begin", "fit", N_BLOCKS) in recorder.events
    assert ("end", "fit", 0) not in recorder.events
    assert recorder.events.count(("setup", "ManyBodyProjector")) == 1
    assert recorder.events[-1] == ("teardown", "ManyBodyProjector")
    # The next fit of another estimator is not one of its blocks.
    told = len(recorder.events)
    ManyBodyProjector().fit(X)
    assert len(recorder.events) == told


def test_data_refused_before_there_is_a_task_leaves_nothing_to_tear_down():
    recorder = Recorder()
    with pytest.raises(ValueError, match="NaN"):
        ManyBodyProjector().set_callbacks(recorder).fit(np.full((3, 4), np.nan))
    assert recorder.events == []


class Nosy(Recorder):
    """Uses our estimators from within a hook."""

    def on_fit_task_end(self, estimator, context):
        ManyBodyProjector().fit_transform(X)
        super().on_fit_task_end(estimator, context)

    on_fit_task_begin = on_fit_task_end


def test_a_hook_may_use_our_estimators():
    recorder = Nosy()
    ManyBodyProjector().set_callbacks(recorder).fit(X)
    assert [e for e in recorder.events if e[0] == "end"] == [
        ("end", "fit", 0),
        *(("end", "block", task) for task in np.repeat(range(N_BLOCKS), 2)),
        ("end", "fit", 0),
    ]


class Busy(TransformerMixin, BaseEstimator):
    """An embedding with one of our estimators inside."""

    def fit(self, X, y=None):
        ManyBodyProjector(1).fit(np.tile(X, (1000 // len(X), 1)))
        return self

    def transform(self, X):
        return X

    inverse_transform = transform


class BusyDensity(Busy):
    """A density with one of our estimators inside."""

    def fit(self, X, y=None):
        self.codes_ = X
        return super().fit(np.exp(X))

    def sample(self, n_samples):
        super().fit(np.exp(self.codes_))
        return self.codes_[np.arange(n_samples) % len(self.codes_)]


@pytest.mark.parametrize("inside", [{"embedding": Busy()}, {"draws": BusyDensity()}])
def test_estimators_within_are_no_tasks_of_the_sampler(inside):
    plain = PNLSampler(reshaper=None, random_state=0)
    sampler = clone(plain).set_params(**inside)
    assert fitted_events(sampler, X, LABELS) == fitted_events(plain, X, LABELS)


# --- inside a Pipeline ----------------------------------------------------------


def test_a_pipeline_hands_its_callbacks_on():
    recorder = Propagating()
    flat, y = X.reshape(len(X), -1), np.arange(len(X)) % 2
    pipeline = make_pipeline(ManyBodyProjector(), LogisticRegression(tol=10))
    pipeline.set_callbacks(recorder).fit(flat, y)
    assert ("begin", "fit", N_BLOCKS) in recorder.events
    assert [e for e in recorder.events if e[1] == "block"] == blocks(N_BLOCKS)
    assert not hasattr(pipeline.named_steps["manybodyprojector"], "_skl_callbacks")


def test_a_sampler_in_a_pipeline_keeps_its_callbacks():
    # The Pipeline of imbalanced-learn 0.14 runs no callbacks of its own, but the clone
    # that it fits has those that were set on the step.
    recorder = Recorder()
    sampler = PNLSampler(random_state=0).set_callbacks(recorder)
    pipeline = make_sampling_pipeline(sampler, LogisticRegression(tol=10))
    pipeline.fit(X.reshape(len(X), -1), LABELS)
    assert ("end", "class 'some'", 1) in recorder.events


# --- the bars of scikit-learn ---------------------------------------------------


@contextmanager
def printed(capsys):
    lines = []
    capsys.readouterr()
    yield lines
    lines += capsys.readouterr().out.splitlines()


@pytest.fixture
def progress_bar():
    pytest.importorskip("rich", reason="ProgressBar needs rich")
    from sklearn.callback import ProgressBar

    return ProgressBar()


@pytest.mark.parametrize("estimator", PROJECTORS, ids=repr)
def test_the_progress_bar_shows_a_fit(estimator, progress_bar, capsys):
    with printed(capsys) as lines:
        clone(estimator).set_callbacks(progress_bar).fit(X)
    assert len(lines) == 1
    assert f"{type(estimator).__name__} - fit" in lines[0]
    assert "100%" in lines[0]


def test_the_progress_bar_shows_classes(progress_bar, capsys):
    with printed(capsys) as lines:
        sampler = PNLSampler(random_state=0).set_callbacks(progress_bar)
        sampler.fit_resample(X, LABELS)
    # The bar ends each line, after the name and the number of the task.
    shown = [line.split("━")[0].split(" #")[0].strip() for line in lines]
    parts = ["encode", "decode"]
    tasks = ["fit_resample", "class 'few'", *parts, "class 'some'", *parts]
    assert shown == [f"PNLSampler - {task}" for task in tasks]
    assert all("100%" in line for line in lines)
