"""Treatments of a training set: add rows, change the learner, or neither."""

from collections.abc import Callable
from dataclasses import dataclass

from imblearn.pipeline import make_pipeline
from sklearn.calibration import CalibratedClassifierCV


@dataclass(frozen=True)
class Baseline:
    """A sampler, a change of the learner, a moved threshold, or none of them.

    ``sampler`` makes a sampler from a seed. ``adapt`` makes the learner to fit from a
    learner and a seed, or returns None if it does not apply. ``threshold`` decides for
    the minority class from its prevalence in the training rows, instead of the rule of
    the learner. ``calibrated`` samples and fits within a CalibratedClassifierCV, so
    that the calibration uses real rows in their real shares. ``share`` is the share of
    minority rows that a learner draws itself, such as 1/2 for balanced classes.
    """

    sampler: Callable | None = None
    adapt: Callable | None = None
    threshold: bool = False
    calibrated: bool = False
    share: float | None = None

    def applies(self, learner):
        return self.adapt is None or self.adapt(learner, 0) is not None

    def adapted(self, learner, seed):
        """Return the learner to fit on the rows, after sampling or unchanged."""
        if self.calibrated:
            if self.sampler is not None:
                learner = make_pipeline(self.sampler(seed), learner)
            return CalibratedClassifierCV(learner)
        return learner if self.adapt is None else self.adapt(learner, seed)

    @property
    def samples_first(self):
        """Whether the sampler runs before the learner, and not inside it."""
        return self.sampler is not None and not self.calibrated

    @property
    def fits_plainly(self):
        """Whether the unchanged learner is fitted on the unchanged rows."""
        return self.sampler is None and self.adapt is None and not self.calibrated


def as_baseline(sampler):
    """Convert a function from a seed to a sampler, or None, to a Baseline."""
    return sampler if isinstance(sampler, Baseline) else Baseline(sampler=sampler)


def seeded(kind, **params):
    """Return a function from a seed to a sampler."""
    return lambda seed: kind(**params, random_state=seed)
