"""Neural networks in PyTorch as scikit-learn's classifiers, with or without mixup."""

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from torch import nn
from torch.nn.functional import cross_entropy

# Rows are standardised by one mean and one deviation over the axes.
AXES = {"MLP": (0,), "CNN": (0, 1, 2), "M5": (0, 1)}
PREDICTED = 1000  # At once.


class NetworkClassifier(ClassifierMixin, BaseEstimator):
    """A network trained by SGD with momentum, whose rate is cut to a tenth twice.

    ``mixing`` trains on mixtures of two rows of a batch and of their labels, with a
    share from a Beta(``alpha``, ``alpha``) distribution: mixtures of the rows
    ("input"), or of the inputs of a random layer ("manifold"). ``damping`` times the
    range of the table is added to each deviation that rows are divided by.
    """

    def __init__(
        self,
        network="MLP",
        *,
        width=128,
        epochs=90,
        batch_size=128,
        rate=0.1,
        momentum=0.9,
        decay=5e-4,
        mixing=None,
        alpha=1.0,
        damping=0.0,
        random_state=0,
    ):
        self.network = network
        self.width = width
        self.epochs = epochs
        self.batch_size = batch_size
        self.rate = rate
        self.momentum = momentum
        self.decay = decay
        self.mixing = mixing
        self.alpha = alpha
        self.damping = damping
        self.random_state = random_state

    def fit(self, X, y):
        torch.set_num_threads(1)
        self.classes_, labels = np.unique(y, return_inverse=True)
        axes = AXES[self.network]
        if self.network == "MLP" and X.ndim > 2:
            axes = tuple(range(X.ndim))
        self._mean = X.mean(axis=axes, dtype=np.float64)
        self._scale = X.std(axis=axes, dtype=np.float64)
        self._scale += self.damping * (X.max() - X.min())
        self._scale = np.where(self._scale > 0, self._scale, 1)
        rows, labels = self._tensor(X), torch.from_numpy(labels)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state)
            self._stages = NETWORKS[self.network](
                rows.shape[1:], self.width, len(self.classes_)
            )
            self._train(rows, labels)
        return self

    def _train(self, rows, labels):
        optimiser = torch.optim.SGD(
            self._stages.parameters(),
            self.rate,
            momentum=self.momentum,
            weight_decay=self.decay,
        )
        third = max(1, -(-self.epochs // 3))
        schedule = torch.optim.lr_scheduler.StepLR(optimiser, third, 0.1)
        fewest = min(self.batch_size, len(rows)) // 8
        self._stages.train()
        for _ in range(self.epochs):
            order = torch.randperm(len(rows))
            for batch in order.split(self.batch_size):
                # Few rows left over have no mean and deviation to normalise by.
                if len(batch) >= fewest:
                    optimiser.zero_grad(set_to_none=True)
                    self._loss(rows[batch], labels[batch]).backward()
                    optimiser.step()
            schedule.step()

    def _loss(self, rows, labels):
        if self.mixing is None:
            return cross_entropy(self._stages(rows), labels)
        share = np.random.default_rng(int(torch.randint(2**31, ()))).beta(
            self.alpha, self.alpha
        )
        n_stages = 1 if self.mixing == "input" else len(self._stages)
        mixed, partner = int(torch.randint(n_stages, ())), torch.randperm(len(rows))
        for number, stage in enumerate(self._stages):
            if number == mixed:
                rows = share * rows + (1 - share) * rows[partner]
            rows = stage(rows)
        return share * cross_entropy(rows, labels) + (1 - share) * cross_entropy(
            rows, labels[partner]
        )

    def predict_proba(self, X):
        self._stages.eval()
        with torch.no_grad():
            parts = [
                self._stages(rows).double().softmax(dim=1)
                for rows in self._tensor(X).split(PREDICTED)
            ]
        return torch.cat(parts).numpy()

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _tensor(self, X):
        """Standardise rows, and reshape them to the input of the network."""
        rows = torch.from_numpy(np.float32((X - self._mean) / self._scale))
        if self.network == "CNN":
            rows = rows.permute(0, 3, 1, 2)
            return rows.contiguous(memory_format=torch.channels_last)
        return rows[:, None] if self.network == "M5" else rows.flatten(1)


def mlp(shape, width, n_classes):
    """Build a network with two layers."""
    first = nn.Sequential(nn.Linear(shape[0], width), nn.ReLU())
    return nn.Sequential(first, nn.Linear(width, n_classes))


def cnn(shape, width, n_classes):
    """Build three convolutions with 1, 2 and 4 times ``width`` channels."""
    stages, channels = [], shape[0]
    for wanted in (width, 2 * width, 4 * width):
        convolution = nn.Conv2d(channels, wanted, 3, padding=1, bias=False)
        stages.append(_block(convolution, nn.BatchNorm2d(wanted), nn.MaxPool2d(2)))
        channels = wanted
    stages.append(_head(nn.AdaptiveAvgPool2d(1), channels, n_classes))
    return nn.Sequential(*stages).to(memory_format=torch.channels_last)


def m5(shape, width, n_classes):
    """Build four convolutions along time as in M5, the first over 80 samples.

    The stride reduces a clip of any length to about 500 steps.
    """
    stages, channels = [], 1
    for i, wanted in enumerate((width, width, 2 * width, 4 * width)):
        sizes = (80, max(1, shape[1] // 500)) if i == 0 else (3,)
        convolution = nn.Conv1d(channels, wanted, *sizes, bias=False)
        stages.append(_block(convolution, nn.BatchNorm1d(wanted), nn.MaxPool1d(4)))
        channels = wanted
    stages.append(_head(nn.AdaptiveAvgPool1d(1), channels, n_classes))
    return nn.Sequential(*stages)


NETWORKS = {"MLP": mlp, "CNN": cnn, "M5": m5}
WIDTHS = {"MLP": 128, "CNN": 16, "M5": 16}


def learners(experiment):
    """Return the network of an experiment by its name."""
    name = experiment.network
    fixed = {"width": WIDTHS[name], "epochs": experiment.epochs}
    return {
        name: lambda seed: NetworkClassifier(name, **fixed, random_state=seed),
    }


def _block(convolution, norm, pool):
    return nn.Sequential(convolution, norm, nn.ReLU(), pool)


def _head(pool, channels, n_classes):
    return nn.Sequential(pool, nn.Flatten(), nn.Linear(channels, n_classes))
