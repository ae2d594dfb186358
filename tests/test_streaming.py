"""New rows in batches, and rows from memory maps: the bytes of arrays in memory."""

import itertools
import tracemalloc
from functools import cache

import numpy as np
import pytest
from joblib import Parallel, delayed
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity

from sklearn_pnl import (
    BackwardProjector,
    KernelDraws,
    ManyBodyProjector,
    MixupDraws,
    PNLAugmenter,
    PNLSampler,
    PrimeFactorReshaper,
)
from sklearn_pnl._drawing.coding import TrainingRows
from sklearn_pnl.geometry import TensorPoset, chain_poset

SEEDS = [0, 1, 2]
# 600 cells make blocks of 218 rows, which share no multiple with the 4,096 codes that
# are drawn at once below 446,464; 1000 rows are a few and a bit of them.
SHAPE, N = (10, 10, 6), 1000
SIZES = [1, 7, 218, 256, 333, N, N + 1]


def positive(seed, *shape, n):
    return np.random.default_rng(seed).gamma(1.0, size=(n, *shape)) + 0.1


def fitted(seed=0, shape=SHAPE, n=40, dtype=np.float64, **params):
    """An augmenter that does to rows what a projector does, and no more."""
    plain = {"order": 1, "k_neighbors": 3, "embedding": None, "reshaper": None}
    plain |= {"offset": 1e-5, "with_mass": False, "range_slack": None}
    X = positive(seed, *shape, n=n).astype(dtype)
    return PNLAugmenter(**(plain | params)).fit(X)


def joined(batches):
    rows, parents = map(np.concatenate, zip(*batches, strict=True))
    return rows, parents


def assert_same_bytes(augmenter, n_samples, sizes, seed):
    rows, parents = augmenter.sample(n_samples, seed, return_parents=True)
    for size in sizes:
        batches = augmenter.iter_samples(n_samples, size, seed, return_parents=True)
        batches = list(batches)
        assert {len(batch) for batch, _ in batches[:-1]} <= {size}
        assert sum(len(batch) for batch, _ in batches) == n_samples
        streamed, streamed_parents = joined(batches)
        assert streamed.dtype == rows.dtype
        assert streamed.tobytes() == rows.tobytes(), f"in batches of {size}"
        assert_array_equal(streamed_parents, parents)


# --- the same bytes -------------------------------------------------------------


def test_the_blocks_here_are_awkward():
    assert fitted()._codec.decoded_at_once == 218


@pytest.mark.parametrize("augment", ["mixup", "kde"])
@pytest.mark.parametrize("seed", SEEDS)
def test_batches_are_the_bytes_of_one_sample(seed, augment):
    assert_same_bytes(fitted(seed, draws=augment), N, SIZES, seed)


@pytest.mark.parametrize("n", [2, 40, 300])
@pytest.mark.parametrize("noise", [0, 0.25])
def test_batches_are_the_same_with_noise_of_any_rank(noise, n):
    # Codes of 194 numbers: fewer rows than those, and more.
    draws = MixupDraws(noise)
    augmenter = fitted(n=n, order=2, k_neighbors=1, draws=draws, offset=1, tol=1e-4)
    assert augmenter.n_params_ == 194
    assert_same_bytes(augmenter, N, [1, 77, 256, 333], 0)


@pytest.mark.parametrize("augment", ["mixup", "kde"])
@pytest.mark.parametrize("with_mass", [False, True])
@pytest.mark.parametrize("manifold", ["fiber", "theta", "eta", "mixture"])
@pytest.mark.parametrize("order", [1, 2])
def test_batches_are_the_same_on_every_manifold(order, manifold, with_mass, augment):
    augmenter = fitted(
        shape=(5, 8, 15),
        order=order,
        local_manifold=manifold,
        with_mass=with_mass,
        draws=augment,
        tol=1e-4,
    )
    # Two blocks and a bit.
    assert_same_bytes(augmenter, 500, [100], 0)


@pytest.mark.parametrize("augment", ["mixup", "kde"])
@pytest.mark.parametrize(
    "params",
    [{}, {"order": 1}, {"order": 2, "reshaper": None}, {"metric": "euclidean"}],
    ids=str,
)
@pytest.mark.parametrize("shape", [(12,), (4, 3)], ids=str)
def test_batches_of_the_whole_recipe_are_the_same(shape, params, augment):
    # Codes are drawn 4,096 at once, and this is more than two times so many.
    if shape == (12,) and params.get("order") == 2:
        params = {"order": 2}
    X = np.random.default_rng(0).normal(size=(150, *shape))
    augmenter = PNLAugmenter(draws=augment, **params).fit(X)
    rows, parents = augmenter.sample(9000, 0, return_parents=True)
    for size in (1000, 4097, None):
        batches = augmenter.iter_samples(9000, size, 0, return_parents=True)
        streamed, streamed_parents = joined(batches)
        assert streamed.tobytes() == rows.tobytes()
        assert_array_equal(streamed_parents, parents)


@pytest.mark.parametrize("metric", ["kl", "euclidean"])
@pytest.mark.parametrize(
    "augment", [KernelDensity(bandwidth=0.1), GaussianMixture(2, reg_covar=1e-3)]
)
def test_batches_are_the_same_from_an_estimator(augment, metric):
    assert_same_bytes(fitted(draws=augment, metric=metric), N, [7, 333], 0)


@pytest.mark.parametrize("augment", ["mixup", "kde"])
def test_batches_are_the_same_for_euclidean_neighbours(augment):
    # More codes than one chunk of the search in scikit-learn, and copies among them.
    X = np.repeat(positive(0, *SHAPE, n=30), 10, axis=0)
    augmenter = PNLAugmenter(draws=augment, metric="euclidean").fit(X)
    assert_same_bytes(augmenter, 700, [300], 0)


@pytest.mark.parametrize("augment", ["mixup", "kde"])
def test_batches_are_the_same_among_copies(augment):
    X = np.repeat(positive(0, *SHAPE, n=30), 10, axis=0)
    assert_same_bytes(PNLAugmenter(draws=augment).fit(X), N, [33], 0)


@pytest.mark.parametrize("augment", ["mixup", "kde"])
def test_batches_are_the_same_in_single_precision(augment):
    augmenter = fitted(dtype=np.float32, draws=augment)
    assert_same_bytes(augmenter, N, [77], 0)
    assert next(augmenter.iter_samples(3)).dtype == np.float32


def test_batches_are_the_same_on_a_general_poset():
    poset = chain_poset(600)
    augmenter = fitted(shape=(600,), poset=poset, base=np.arange(600) % 50 == 1)
    assert_same_bytes(augmenter, N, [77], 0)


@pytest.mark.parametrize("size", [1, 333])
@pytest.mark.parametrize("n_jobs", [2, 3])
@pytest.mark.parametrize("augment", ["mixup", "kde"])
def test_jobs_change_no_byte(augment, n_jobs, size):
    rows = fitted(draws=augment).sample(N, 0)
    batches = fitted(draws=augment, n_jobs=n_jobs).iter_samples(N, size, 0)
    assert np.concatenate(list(batches)).tobytes() == rows.tobytes()


@pytest.mark.parametrize("augment", ["mixup", "kde", KernelDensity(bandwidth=0.1)])
def test_a_random_state_ends_where_a_sample_leaves_it(augment):
    augmenter = fitted(draws=augment)
    one, other = np.random.RandomState(0), np.random.RandomState(0)
    first = augmenter.sample(N, one), augmenter.sample(N, one)
    for rows in first:
        batches = augmenter.iter_samples(N, 77, other)
        assert np.concatenate(list(batches)).tobytes() == rows.tobytes()
    assert one.standard_normal() == other.standard_normal()


@pytest.mark.parametrize("augment", ["mixup", "kde"])
def test_parameters_set_on_the_way_do_not_matter(augment):
    augment = {"mixup": MixupDraws(0.1), "kde": KernelDraws(0.02)}[augment]
    augmenter = fitted(draws=augment)
    rows = augmenter.sample(N, 0)
    batches = augmenter.iter_samples(N, 100, 0)
    start = [next(batches)]
    augmenter.set_params(draws=KernelDraws(5.0), with_mass=True, offset=3.0)
    augment.set_params(**dict.fromkeys(augment.get_params(), 5.0))
    assert np.concatenate(start + list(batches)).tobytes() == rows.tobytes()


# --- memory ---------------------------------------------------------------------


@pytest.mark.parametrize("augment", ["mixup", "kde"])
def test_memory_is_that_of_a_batch(augment):
    augmenter = fitted(draws=augment, local_manifold="mixture")
    n, size = 24_000, 3_000
    batch = size * 600 * 8
    list(augmenter.iter_samples(1, 1, 0))
    tracemalloc.start()
    try:
        for rows in augmenter.iter_samples(n, size, 0):
            assert len(rows) == size
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # All rows are 8 batches. One is in the caller's hands while one is made of another
    # and of what was left of the one before, beside the temporaries of a block.
    assert peak < 3.6 * batch + 5 * 2**20 < n * 600 * 8 / 2


def test_the_size_of_a_batch_follows_working_memory():
    augmenter = fitted()
    n = 10_000
    with config_context(working_memory=16):
        sizes = [len(rows) for rows in augmenter.iter_samples(n, random_state=0)]
    assert sum(sizes) == n
    # Two of them in 16 MiB, in whole blocks.
    assert 8 * 2**20 / 2 < sizes[0] * 600 * 8 <= 8 * 2**20
    assert sizes[0] % 218 == 0
    with config_context(working_memory=1):
        assert len(next(augmenter.iter_samples(n))) == 218
    assert len(next(augmenter.iter_samples(N))) == N


def test_a_batch_is_made_when_it_is_asked_for(monkeypatch):
    augmenter = fitted(draws="kde")
    decode, decoded = TrainingRows.decode, []

    def counted(self, codes, *others):
        decoded.append(len(codes))
        return decode(self, codes, *others)

    monkeypatch.setattr(TrainingRows, "decode", counted)
    batches = augmenter.iter_samples(10**6, 100, 0)
    assert decoded == []
    list(itertools.islice(batches, 5))
    assert decoded == [218, 218, 218]


# --- bad calls ------------------------------------------------------------------


METHODS = ["iter_samples"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [0, -1, 2.5, "3"])
def test_sizes_that_are_none_are_refused_at_once(size, method):
    with pytest.raises(ValueError, match="batch_size must be an integer >= 1 or None"):
        getattr(fitted(), method)(10, size)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_samples", [0, -1, 2.5, None])
def test_numbers_of_rows_that_are_none_are_refused_at_once(n_samples, method):
    with pytest.raises(ValueError, match="n_samples must be an integer"):
        getattr(fitted(), method)(n_samples)


@pytest.mark.parametrize("method", METHODS)
def test_streaming_before_fit_is_refused_at_once(method):
    with pytest.raises(NotFittedError):
        getattr(PNLAugmenter(), method)(10)


# --- rows from memory maps ------------------------------------------------------


USES = {
    "many-body": lambda X: ManyBodyProjector(2).fit_transform(X),
    "many-body transform": lambda X: (
        ManyBodyProjector(2).fit(np.array(X[:50])).transform(X)
    ),
    "one body": lambda X: ManyBodyProjector(1, offset=0.5).fit_transform(X),
    "backward": lambda X: decoded(BackwardProjector(1).fit(X)),
    "augmenter": lambda X: PNLAugmenter().fit(X).sample(300, 0),
    "augmenter alone": lambda X: (
        PNLAugmenter(1, embedding=None, reshaper=None).fit(X).sample(300, 0)
    ),
    "sampler": lambda X: PNLSampler(random_state=0).fit_resample(
        X, np.arange(len(X)) % 3 == 0
    )[0],
    "reshaper": lambda X: PrimeFactorReshaper().fit_transform(X),
}
DTYPES = [np.float64, np.float32, np.uint8, np.int16]


def decoded(projector):
    return projector.inverse_transform(projector.codes_)


def counts(dtype, shape=(4, 10, 15), n=300):
    return np.random.default_rng(0).poisson(20, size=(n, *shape)).astype(dtype)


@cache
def bytes_in_memory(use, dtype):
    return USES[use](counts(dtype)).tobytes()


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("use", USES)
def test_a_read_only_memory_map_is_an_array(use, dtype, layout, tmp_path):
    X = np.asarray(counts(dtype), order=layout)
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert isinstance(mapped, np.memmap)
    assert not mapped.flags.writeable
    assert USES[use](mapped).tobytes() == bytes_in_memory(use, dtype)
    assert_array_equal(mapped, X)


# Rows of a table in Fortran order have their cells far apart; those of tensors are
# brought together when they are laid out flat.
TENSOR = TensorPoset((4, 10, 15))
TABLE_USES = {
    "many-body": lambda X: ManyBodyProjector(2, poset=TENSOR).fit_transform(X),
    "one body": lambda X: ManyBodyProjector(1, poset=TENSOR).fit_transform(X),
    "backward": lambda X: decoded(BackwardProjector(1, poset=TENSOR).fit(X)),
    "augmenter": lambda X: PNLAugmenter(poset=TENSOR).fit(X).sample(300, 0),
    "augmenter, whole": lambda X: PNLAugmenter().fit(X).sample(300, 0),
    "augmenter, whole, as it is": lambda X: (
        PNLAugmenter(embedding=None).fit(X).sample(300, 0)
    ),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("use", TABLE_USES)
def test_rounding_does_not_depend_on_the_layout_in_memory(use, dtype, tmp_path):
    X = positive(0, 600, n=600).astype(dtype)
    np.save(tmp_path / "rows.npy", np.asfortranarray(X))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert mapped.flags.f_contiguous
    assert TABLE_USES[use](mapped).tobytes() == TABLE_USES[use](X).tobytes()


@pytest.mark.starting
def test_rows_that_joblib_maps_for_its_workers():
    rows = [counts(dtype) for dtype in (np.float64, np.uint8)]
    jobs = list(itertools.product(rows, USES))
    parallel = Parallel(n_jobs=2, backend="loky", max_nbytes=1000, mmap_mode="r")
    results = parallel(delayed(is_mapped_and_used)(X, use) for X, use in jobs)
    for (X, use), (is_mapped, result) in zip(jobs, results, strict=True):
        assert is_mapped
        assert result.tobytes() == bytes_in_memory(use, X.dtype.type)


def is_mapped_and_used(X, use):
    return isinstance(X, np.memmap) and not X.flags.writeable, USES[use](X)


def test_the_rows_of_a_map_are_not_copied(tmp_path):
    # A table of floats stays on disk: fit holds codes and blocks.
    X = np.lib.format.open_memmap(
        tmp_path / "rows.npy", mode="w+", dtype=np.float64, shape=(20_000, 600)
    )
    X[:] = positive(0, 600, n=1)
    X.flush()
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    ManyBodyProjector().fit(mapped[:10])
    base = np.arange(600) % 100 == 1
    tracemalloc.start()
    try:
        projector = BackwardProjector(base=base).fit(mapped)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert np.shares_memory(projector.rows_, mapped)
    assert peak < X.nbytes / 3
