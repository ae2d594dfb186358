"""Baselines of table 1, each with the same number of new rows in each class."""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.signal import istft, stft
from sklearn.base import BaseEstimator
from torch import nn

from sklearn_pnl import PNLSampler

from ..baselines import Baseline, seeded
from .problems import TABLE_1
from .recipe import authors, base_size, defaults, equation, recipe

WIDEST = 32  # Of the autoencoder, whose width is else the dimension of the base.


@dataclass(frozen=True)
class AlikeForAll:
    """Wanted rows of each class: the same number of new ones, ``share`` in all."""

    share: float

    def __call__(self, y):
        labels, counts = np.unique(y, return_counts=True)
        new = round(self.share * len(y) / len(labels))
        return dict(zip(labels.tolist(), (counts + new).tolist(), strict=True))


class _Sampler(BaseEstimator):
    """Rows of each class made by ``_make(X, members, n, rng)`` after the originals."""

    def fit_resample(self, X, y):
        rng = np.random.default_rng(self.random_state)
        self._fit(X)
        new, labels = [], []
        for label, wanted in self.sampling_strategy(y).items():
            members = np.flatnonzero(y == label)
            chosen = X[rng.choice(members, wanted - len(members))]
            new.append(self._make(chosen, rng).astype(X.dtype))
            labels.append(np.full(len(chosen), label, y.dtype))
        return np.concatenate([X, *new]), np.concatenate([y, *labels])


class ChangedCopies(_Sampler):
    """Random rows of a class, each changed by ``change(rows, X, rng)``."""

    def __init__(self, sampling_strategy, *, change, random_state=None):
        self.sampling_strategy = sampling_strategy
        self.change = change
        self.random_state = random_state

    def _fit(self, X):
        self._X = X

    def _make(self, rows, rng):
        return self.change(rows, self._X, rng)


def add_noise(rows, X, rng):
    """Add noise of a quarter of the least positive deviation of a feature."""
    deviations = X.std(axis=0)
    size = deviations[deviations > 1e-12].min() / 4
    return rows + size * rng.standard_normal(rows.shape)


def crop(images, X, rng):
    """Shift images by up to a fourteenth of the width, and fill the edge with zeros."""
    return _moved(images, images.shape[1] // 14, rng)


def crop_and_flip(images, X, rng):
    """Shift images by up to an eighth of the width, and mirror every second one."""
    moved = _moved(images, images.shape[1] // 8, rng)
    mirrored = rng.uniform(size=len(images)) < 0.5
    moved[mirrored] = moved[mirrored, :, ::-1]
    return moved


def _moved(images, most, rng):
    edge = [(0, 0), (most, most), (most, most), *[(0, 0)] * (images.ndim - 3)]
    padded = np.pad(images, edge)
    length = images.shape[1]
    corners = rng.integers(2 * most + 1, size=(len(images), 2))
    return np.array(
        [
            image[top : top + length, left : left + length]
            for image, (top, left) in zip(padded, corners, strict=True)
        ]
    )


def mask_spectrum(clips, X, rng):
    """Set one run of frames and one of frequencies, up to a fifth of each, to 0."""
    length = clips.shape[1]
    window = length // 50
    spectra = stft(clips, nperseg=window, axis=1)[2]
    for axis in (1, 2):
        bands = spectra.shape[axis]
        width = rng.integers(bands // 5 + 1, size=len(clips))
        start = (rng.uniform(size=len(clips)) * (bands - width)).astype(int)
        place = np.arange(bands)
        kept = (place < start[:, None]) | (place >= (start + width)[:, None])
        spectra *= np.expand_dims(kept, 3 - axis)
    return istft(spectra, nperseg=window)[1][:, :length]


class AutoencoderSampler(_Sampler):
    """Rows decoded from the codes of random rows of a class, moved by some noise.

    One autoencoder for all classes, of two layers to a code of three numbers and two
    back, on standardised rows; noise of ``bandwidth`` times the codes' deviation.
    """

    def __init__(
        self,
        sampling_strategy,
        *,
        width,
        by_column,
        n_code=3,
        steps=1500,
        batch_size=128,
        rate=1e-3,
        bandwidth=0.05,
        random_state=None,
    ):
        self.sampling_strategy = sampling_strategy
        self.width = width
        self.by_column = by_column
        self.n_code = n_code
        self.steps = steps
        self.batch_size = batch_size
        self.rate = rate
        self.bandwidth = bandwidth
        self.random_state = random_state

    def _fit(self, X):
        torch.set_num_threads(1)
        axis = 0 if self.by_column else None
        self._mean, scale = X.mean(axis=axis), X.std(axis=axis)
        self._scale = np.where(scale > 0, scale, 1)
        rows = self._scaled(X)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state)
            self._encoder = _two_layers(rows.shape[1], self.width, self.n_code)
            self._decoder = _two_layers(self.n_code, self.width, rows.shape[1])
            self._train(rows)
        with torch.no_grad():
            self._spread = self._encoder(rows).std(dim=0)

    def _train(self, rows):
        model = nn.Sequential(self._encoder, self._decoder)
        optimiser = torch.optim.Adam(model.parameters(), self.rate)
        for _ in range(self.steps):
            batch = rows[torch.randint(len(rows), (min(self.batch_size, len(rows)),))]
            optimiser.zero_grad(set_to_none=True)
            nn.functional.mse_loss(model(batch), batch).backward()
            optimiser.step()

    def _make(self, rows, rng):
        with torch.no_grad():
            codes = self._encoder(self._scaled(rows))
            noise = torch.from_numpy(np.float32(rng.standard_normal(codes.shape)))
            new = self._decoder(codes + self.bandwidth * self._spread * noise).numpy()
        return new.reshape(rows.shape) * self._scale + self._mean

    def _scaled(self, X):
        rows = np.float32((X - self._mean) / self._scale)
        return torch.from_numpy(rows.reshape(len(rows), -1))


def _two_layers(n_in, width, n_out):
    return nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, n_out))


CHANGES = {"table": add_noise, "image": crop, "audio": mask_spectrum}


def baselines(experiment):
    """Return all samplers for the data sets of table 1, and fewer for other sizes."""
    change = CHANGES[experiment.kind]
    if experiment.name == "cifar10":
        change = crop_and_flip
    autoencoder = {
        "width": min(WIDEST, base_size(experiment)),
        "by_column": experiment.kind == "table",
        "steps": experiment.steps,
    }
    shared = {"sampling_strategy": AlikeForAll(experiment.share)}
    adding = {
        "STD": seeded(ChangedCopies, change=change, **shared),
        "AE": seeded(AutoencoderSampler, **autoencoder, **shared),
        "PNL (paper)": seeded(PNLSampler, **recipe(experiment), **shared),
        "PNL": seeded(PNLSampler, **defaults(experiment), **shared),
    }
    if experiment.share != TABLE_1:
        return adding
    found = adding | {
        "none": None,
        "mixup": Baseline(adapt=mix("input")),
        "manifold mixup": Baseline(adapt=mix("manifold")),
        "PNL (equation)": seeded(PNLSampler, **equation(experiment), **shared),
    }
    if experiment.kind == "table":
        found |= _of_the_notebooks(shared | authors(experiment))
    return found


def _of_the_notebooks(params):
    """Use the authors' scaling for new rows, and then for the network as well.

    The authors' program neither reflects values at bounds nor restores equalities.
    """
    plain = seeded(PNLSampler, **params, extrapolation=None, equalities=None)
    return {
        "PNL (authors)": seeded(PNLSampler, **params),
        "none, one range": Baseline(adapt=damp),
        "PNL (authors), one range": Baseline(plain, adapt=damp),
    }


def damp(learner, seed):
    """Add 1e-5 to deviations of scaled columns, as the networks of the notebooks do."""
    return learner.set_params(damping=1e-5)


def mix(what):
    return lambda learner, seed: learner.set_params(mixing=what)
