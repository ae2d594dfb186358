"""What may be done about a training set: add rows, change the learner, or neither."""

from collections.abc import Callable
from dataclasses import dataclass

from imblearn.pipeline import make_pipeline
from sklearn.calibration import CalibratedClassifierCV


@dataclass(frozen=True)
class Rival:
    """A sampler, a change to the learner, a moved threshold, or none of them.

    ``sampler`` makes a sampler from a seed. ``adapt`` makes from a learner and a seed
    the learner to fit, or None where it has no such thing. ``threshold`` decides for
    the minority from its prevalence in training on, instead of the learner's own rule.
    ``calibrated`` samples and fits within a CalibratedClassifierCV, so that the rows
    that calibrate are real ones, in their real shares. ``balanced`` learners draw as
    many rows of each class by themselves.
    """

    sampler: Callable | None = None
    adapt: Callable | None = None
    threshold: bool = False
    calibrated: bool = False
    balanced: bool = False

    def applies(self, learner):
        return self.adapt is None or self.adapt(learner, 0) is not None

    def adapted(self, learner, seed):
        """The learner to fit on the rows that ``samples_first`` speaks of."""
        if self.calibrated:
            if self.sampler is not None:
                learner = make_pipeline(self.sampler(seed), learner)
            return CalibratedClassifierCV(learner)
        return learner if self.adapt is None else self.adapt(learner, seed)

    @property
    def samples_first(self):
        """Whether the sampler comes before the learner, and not inside it."""
        return self.sampler is not None and not self.calibrated

    @property
    def fits_plainly(self):
        """Whether the learner is fitted as it is on the rows as they are."""
        return self.sampler is None and self.adapt is None and not self.calibrated


def as_rival(sampler):
    """A Rival as it is, or one made of a function from a seed to a sampler, or None."""
    return sampler if isinstance(sampler, Rival) else Rival(sampler=sampler)


def seeded(kind, **params):
    """A function from a seed to a sampler."""
    return lambda seed: kind(**params, random_state=seed)
