"""Correct the probabilities of a classifier for the prior that a sampler changed."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from ._runtime.typing import Rows
from ._runtime.validation import InstanceWith, all_or_nothing
from .frames import read_classes, read_weights


class PriorCorrectedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Fit a classifier on resampled rows, and correct its probabilities for the prior.

    A sampler that changes how often classes occur changes every probability of a
    classifier that learns from its rows. If the rows of each class keep their density,
    Bayes' theorem says by how much: with ``n_k`` rows of class k in the data, ``m_k``
    of them after resampling, and probabilities ``q_k(x)`` learnt from these, the
    probability of class k in the data is ``q_k(x) n_k / m_k``, divided by the sum of
    that over all classes. This is exact for any number of classes and for
    over-sampling, under-sampling and both; new rows from another density than that of
    their class leave an error that no prior can mend. With ``sample_weight``, sums of
    weights take the place of the counts.

    Ranks of two classes, and with them the area under the ROC curve and the average
    precision, are those of the classifier. If the classifier is wrong in other ways
    too, :class:`~sklearn.calibration.CalibratedClassifierCV` around the whole learns
    how from rows left out.

    Parameters
    ----------
    sampler : sampler
        With ``fit_resample``, of this library, imbalanced-learn or any other; cloned.
        Its rows must be in the units of ``X``: scalers belong into
        ``estimator``, or before the whole. With weights it must take
        ``sample_weight``, and leave those of the rows that it returns in
        ``sample_weight_``, as :class:`PNLSampler` does; others raise their own error.

    estimator : classifier
        With ``predict_proba``; cloned. Weights of classes (``class_weight``), which
        would change the prior once more, are refused.

    decision : {"posterior", "balanced"}, default="posterior"
        What ``predict`` follows. "posterior" is the class of the largest probability
        in ``predict_proba``: the fewest errors. "balanced" is the class that would be
        most probable if all were as frequent: the best mean recall, or balanced
        accuracy, whatever the sampler makes of the shares of the classes. For any
        other aim, :class:`~sklearn.model_selection.TunedThresholdClassifierCV` around
        the whole finds a threshold.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels in ``y``. One that the sampler leaves no row of has probability 0.

    class_count_ : ndarray of shape (n_classes,)
        Rows of each in the data; the sum of their weights, where weights are given.

    resampled_class_count_ : ndarray of shape (n_classes,)
        The same of the rows that the classifier was fitted on.

    sampler_, estimator_ : sampler, classifier
        Fitted.

    n_features_in_ : int
        Number of features seen during ``fit``, if the classifier or sampler has it.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``, likewise.

    See Also
    --------
    PNLSampler : Over-sample by pseudo-nonlinear data augmentation.
    compare_samples : Whether new rows have the density of real ones.

    References
    ----------
    C. Elkan, "The foundations of cost-sensitive learning", IJCAI 2001, theorem 2.

    M. Saerens, P. Latinne, C. Decaestecker, "Adjusting the outputs of a classifier to
    new a priori probabilities: a simple procedure", Neural Computation 14, 2002,
    equation 2.4.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pnl import PNLSampler, PriorCorrectedClassifier
    >>> X, y = make_classification(2000, weights=[0.9], class_sep=0.1, random_state=0)
    >>> sampler, learner = PNLSampler(random_state=0), LogisticRegression()
    >>> resampled = learner.fit(*sampler.fit_resample(X, y))
    >>> corrected = PriorCorrectedClassifier(sampler, learner).fit(X, y)
    >>> for probabilities in resampled.predict_proba(X), corrected.predict_proba(X):
    ...     print(f"{probabilities[:, 1].mean():.1f}, where {y.mean():.1f} is right")
    0.4, where 0.1 is right
    0.1, where 0.1 is right
    """

    _parameter_constraints: ClassVar[dict] = {
        "sampler": [InstanceWith(["fit_resample"])],
        "estimator": [InstanceWith(["fit", "predict_proba"])],
        "decision": [StrOptions({"posterior", "balanced"})],
    }

    def __init__(
        self,
        sampler: Any,
        estimator: Any,
        *,
        decision: Literal["posterior", "balanced"] = "posterior",
    ) -> None:
        self.sampler = sampler
        self.estimator = estimator
        self.decision = decision

    # Sampler and estimator validate their own parameters.
    @all_or_nothing
    def fit(
        self, X: Rows, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> Self:
        """Resample, fit the classifier, and count classes before and after.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, n_features)
            Rows, as the sampler takes them.
        y : array-like of shape (n,)
            Their classes; where they are one-hot, those are numbers of columns.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows, not negative. The sampler draws parents by them, and
            the classifier is fitted with those of the resampled rows.
        groups : array-like of shape (n,), default=None
            Handed to ``sampler.fit_resample``, which mixes rows within groups alone.

        Returns
        -------
        self : PriorCorrectedClassifier
        """
        self._check_parts()
        given, y = y, read_classes(y)[0]
        if getattr(given, "shape", ())[1:] == (1,):
            # Warns of a column, as classifiers of scikit-learn do.
            column_or_1d(given, warn=True)
        sample_weight = read_weights(sample_weight, len(y))
        asked = {"groups": groups, "sample_weight": sample_weight}
        asked = {name: value for name, value in asked.items() if value is not None}
        self.sampler_ = clone(self.sampler)
        X_resampled, y_resampled = self.sampler_.fit_resample(X, y, **asked)
        weights = {}
        if sample_weight is not None:
            weights["sample_weight"] = self.sampler_.sample_weight_
        self.classes_ = np.unique(y)
        self.class_count_ = self._count(y, sample_weight)
        self.resampled_class_count_ = self._count(y_resampled, **weights)
        self.estimator_ = clone(self.estimator)
        self.estimator_.fit(X_resampled, y_resampled, **weights)
        for name in ("n_features_in_", "feature_names_in_"):
            for part in (self.sampler_, self.estimator_):
                if hasattr(part, name):
                    setattr(self, name, getattr(part, name))
        return self

    def _check_parts(self):
        """Refuse samplers that change columns, and weights of classes."""
        for name, step in getattr(self.sampler, "steps", ()):
            if hasattr(step, "transform"):
                raise ValueError(
                    f"{name!r} in the sampler changes columns: put it before this "
                    "step in a Pipeline, or into the estimator."
                )
        for name, value in clone(self.estimator).get_params().items():
            if name.split("__")[-1] == "class_weight" and value is not None:
                raise ValueError(
                    f"{name}={value!r} changes the prior once more: pass None, and set "
                    "decision='balanced' for the best mean recall."
                )

    def _count(self, y, sample_weight=None):
        """Rows of each class, or sums of their weights; 0 for classes without rows."""
        # Refuses classes that are not in y.
        codes = LabelEncoder().fit(self.classes_).transform(y)
        return np.bincount(codes, sample_weight, minlength=len(self.classes_))

    def _probabilities(self, X, balanced=False):
        """Probabilities (n, n_classes) under the prior of the data, or an equal one."""
        check_is_fitted(self)
        learnt = np.asarray(self.estimator_.predict_proba(X), np.float64)
        seen = np.searchsorted(self.classes_, self.estimator_.classes_)
        joint = np.zeros((len(learnt), len(self.classes_)))
        prior = np.ones(len(seen)) if balanced else self.class_count_[seen]
        resampled = self.resampled_class_count_[seen]
        # All rows of a class may have weight 0.
        has_rows = resampled > 0
        joint[:, seen[has_rows]] = (learnt * prior)[:, has_rows] / resampled[has_rows]
        return joint / joint.sum(axis=1, keepdims=True)

    def predict_proba(self, X: Rows) -> NDArray:
        """Compute probabilities of the classes under the prior of the data.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n, n_classes)
            In the order of ``classes_``.
        """
        return self._probabilities(X)

    def predict_log_proba(self, X: Rows) -> NDArray:
        """Compute logarithms of the probabilities; of 0, minus infinity.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, n_features)
            Rows.

        Returns
        -------
        log_probabilities : ndarray of shape (n, n_classes)
            In the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Rows) -> NDArray:
        """Predict classes, as ``decision`` says.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n,)
        """
        probabilities = self._probabilities(X, balanced=self.decision == "balanced")
        return self.classes_[probabilities.argmax(axis=1)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        estimator = get_tags(self.estimator)
        classifier_tags = estimator.classifier_tags or tags.classifier_tags
        tags.classifier_tags = replace(classifier_tags, multi_label=False)
        parts = estimator.input_tags, get_tags(self.sampler).input_tags
        for name in (field.name for field in fields(tags.input_tags)):
            # What a part requires, both do; what they allow, both have to.
            holds = any if name in ("positive_only", "pairwise") else all
            setattr(tags.input_tags, name, holds(getattr(part, name) for part in parts))
        return tags
