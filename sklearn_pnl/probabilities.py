"""A sampler and a classifier whose probabilities are those of the data as they came."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import assert_all_finite, column_or_1d, get_tags
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    process_routing,
)
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from ._runtime.typing import Rows
from ._runtime.validation import all_or_nothing, tells_where
from .tables import plain_target

# Of how rows may come, what a part of the two needs, rather than what it can take.
_NEEDED = "positive_only", "pairwise"


@tells_where()
@dataclass(eq=False, repr=False)
class PriorCorrectedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Fit a classifier on resampled rows, and undo what they did to the prior.

    A sampler that changes how often classes occur changes every probability of a
    classifier that learns from its rows. If the rows of each class keep their density,
    Bayes' theorem says by how much: with ``n_k`` rows of class k in the data, ``m_k``
    of them after resampling, and probabilities ``q_k(x)`` learnt from these, the
    probability of class k in the data is ``q_k(x) n_k / m_k``, divided by the sum of
    that over all classes. This is exact for any number of classes and for
    over-sampling, under-sampling and both; new rows from another density than that of
    their class leave an error that no prior can mend.

    Ranks of two classes, and with them the area under the ROC curve and the average
    precision, are those of the classifier. If the classifier is wrong in other ways
    too, :class:`~sklearn.calibration.CalibratedClassifierCV` around the whole learns
    how from rows left out.

    Parameters
    ----------
    sampler : sampler
        With ``fit_resample``, of this library, imbalanced-learn or any other; cloned.
        Its rows must be in the units of ``X``: what scales them belongs into
        ``estimator``, or before the whole.

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

    class_count_ : ndarray of int of shape (n_classes,)
        Rows of each in the data.

    resampled_class_count_ : ndarray of int of shape (n_classes,)
        Rows of each that the classifier was fitted on.

    sampler_, estimator_ : sampler, classifier
        Fitted.

    n_features_in_ : int
        Number of features seen during ``fit``, if the classifier or sampler tells.

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

    sampler: Any
    estimator: Any
    _: KW_ONLY
    decision: Literal["posterior", "balanced"] = "posterior"

    _parameter_constraints: ClassVar[dict] = {
        "sampler": [HasMethods(["fit_resample"])],
        "estimator": [HasMethods(["fit", "predict_proba"])],
        "decision": [StrOptions({"posterior", "balanced"})],
    }

    # Sampler and estimator validate their own parameters.
    @all_or_nothing
    def fit(self, X: Rows, y: Any, **params: Any) -> Self:
        """Resample, fit the classifier, and count classes before and after.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, n_features)
            Rows, as the sampler takes them.
        y : array-like of shape (n,)
            Their classes.
        **params : dict
            With metadata routing, what ``estimator.fit`` requests. A value for each
            row, such as a weight, is refused: resampled rows are others.

        Returns
        -------
        self : PriorCorrectedClassifier
        """
        self._check_parts()
        y = _labels(plain_target(y)[0])
        # What wraps classifiers hands on weights that it was not given.
        params = {name: value for name, value in params.items() if value is not None}
        for name, value in params.items():
            if np.shape(value)[:1] == (len(y),):
                raise ValueError(
                    f"{name!r} has a value for each of the {len(y)} rows, and "
                    "resampled rows would have none. Leave it out, or fit the "
                    "estimator without a sampler."
                )
        _raise_for_params(params, self, None)
        asked = process_routing(self, "fit", **params).estimator.fit
        self.sampler_ = clone(self.sampler)
        X_resampled, y_resampled = self.sampler_.fit_resample(X, y)
        self.classes_, self.class_count_ = np.unique(y, return_counts=True)
        self.resampled_class_count_ = self._count(y_resampled)
        self.estimator_ = clone(self.estimator).fit(X_resampled, y_resampled, **asked)
        for name in ("n_features_in_", "feature_names_in_"):
            for part in (self.sampler_, self.estimator_):
                if hasattr(part, name):
                    setattr(self, name, getattr(part, name))
        return self

    def _check_parts(self):
        """Sampler and classifier are objects, and no class has a weight."""
        for name in ("sampler", "estimator"):
            part = getattr(self, name)
            if isinstance(part, type):
                raise TypeError(
                    f"{name} is the class {part.__name__}; pass an object of it: "
                    f"{part.__name__}()."
                )
        for name, step in getattr(self.sampler, "steps", ()):
            if hasattr(step, "transform"):
                raise ValueError(
                    f"{name!r} in the sampler changes columns, which rows that are "
                    "asked about would not have: put it before this step in a "
                    "Pipeline, or into the estimator."
                )
        for name, value in clone(self.estimator).get_params().items():
            if name.split("__")[-1] == "class_weight" and value is not None:
                raise ValueError(
                    f"{self.estimator!r} has {name}={value!r}, which changes the prior "
                    "once more, unseen by the correction: pass None. For the best mean "
                    "recall, set decision='balanced'."
                )

    def _count(self, y_resampled):
        """Resampled rows of each class, none of others."""
        labels, counts = np.unique(np.asarray(y_resampled), return_counts=True)
        unknown = np.setdiff1d(labels, self.classes_)
        if len(unknown):
            raise ValueError(
                f"{self.sampler_!r} made rows of class {unknown.tolist()[0]!r}, which "
                f"is not in y: its classes are {self.classes_.tolist()}."
            )
        found = np.zeros(len(self.classes_), np.intp)
        found[np.searchsorted(self.classes_, labels)] = counts
        return found

    def _probabilities(self, X, balanced=False):
        """Of all classes (n, n_classes), as frequent as in the data, or all alike."""
        check_is_fitted(self)
        learnt = np.asarray(self.estimator_.predict_proba(X), np.float64)
        seen = np.searchsorted(self.classes_, self.estimator_.classes_)
        joint = np.zeros((len(learnt), len(self.classes_)))
        wanted = 1 if balanced else self.class_count_[seen]
        joint[:, seen] = learnt * (wanted / self.resampled_class_count_[seen])
        return joint / joint.sum(axis=1, keepdims=True)

    def predict_proba(self, X: Rows) -> NDArray:
        """Probabilities of the classes in the data as they came.

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
        """Logarithms of the probabilities; of 0, minus infinity.

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
        """Classes, as ``decision`` says.

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

    def get_metadata_routing(self) -> MetadataRouter:
        """How metadata go to the estimator.

        Returns
        -------
        routing : MetadataRouter
        """
        fitting = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=fitting)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        learner = get_tags(self.estimator)
        known = learner.classifier_tags or tags.classifier_tags
        tags.classifier_tags = replace(known, multi_label=False)
        parts = learner.input_tags, get_tags(self.sampler).input_tags
        for name in (field.name for field in fields(tags.input_tags)):
            given = [getattr(part, name) for part in parts]
            setattr(tags.input_tags, name, (any if name in _NEEDED else all)(given))
        return tags


def _labels(y):
    """One label (n,) a row."""
    assert_all_finite(y, input_name="y")
    kind = type_of_target(y, input_name="y")
    if kind.startswith("multilabel") or kind.endswith("-multioutput"):
        raise ValueError(
            "Multilabel and multioutput targets are not supported: y must have one "
            f"label a row; got an array of shape {np.shape(y)}."
        )
    check_classification_targets(y)
    return column_or_1d(y, warn=True)
