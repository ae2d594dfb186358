"""Correct the probabilities of a classifier for the prior that a sampler changed."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import _safe_indexing, column_or_1d, get_tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from ._utils.typing import Rows
from ._utils.validation import InstanceWith, all_or_nothing, on_host
from ._utils.warnings import warn_user
from .frames import read_classes, read_weights

# Parameters of classifiers that change the prior of the classes, with the values that
# leave it as it is. They are those of scikit-learn, XGBoost, LightGBM and CatBoost.
_NEUTRAL = {
    "class_weight": (None,),
    "class_weights": (None,),
    "auto_class_weights": (None, "None"),
    "scale_pos_weight": (None, 1),
    "is_unbalance": (None, False),
    "unbalance": (None, False),
    "unbalanced_sets": (None, False),
    "pos_bagging_fraction": (None, 1),
    "neg_bagging_fraction": (None, 1),
    "priors": (None,),
    "class_prior": (None,),
    "fit_prior": (True,),
}

# The mean probability of the training rows is compared with the prior on at most this
# number of rows, because nearest neighbours predict more slowly than they fit.
_CHECKED_ROWS = 10_000


class PriorCorrectedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Fit a classifier on resampled rows, and correct its probabilities for the prior.

    A sampler that changes the class frequencies changes all probabilities of a
    classifier that is trained on the resampled rows. If resampling preserves the
    density of the rows within each class, Bayes' theorem gives the correction. Let
    ``n_k`` be the number of rows of class k in the data, ``m_k`` the number after
    resampling, and ``q_k(x)`` the probabilities of the classifier. The corrected
    probability of class k is ``q_k(x) n_k / m_k``, divided by the sum of this
    expression over all classes. The correction is exact for any number of classes, and
    for over-sampling, under-sampling and combinations of them. If the new rows have a
    different density from their class, an error remains that no prior can correct. With
    ``sample_weight``, sums of weights replace the counts.

    For two classes, the correction does not change the ranking of rows. The area under
    the ROC curve and the average precision are therefore those of the classifier. If
    the classifier is miscalibrated for other reasons, wrap this estimator in
    :class:`~sklearn.calibration.CalibratedClassifierCV`. ``fit`` warns if the mean
    corrected probability of a class over the training rows is less than half or more
    than twice the share of the class, and if the difference exceeds three standard
    errors of the share.

    Parameters
    ----------
    sampler : sampler
        Sampler with a ``fit_resample`` method, from this library, imbalanced-learn or
        another library; it is cloned. The sampler must return rows in the units of
        ``X``: put scalers into ``estimator`` or before this estimator. If you pass
        ``sample_weight``, ``fit_resample`` must accept it and set ``sample_weight_``,
        the weights of the returned rows, as :class:`PNLSampler` does.

    estimator : classifier
        Classifier with ``predict_proba``; it is cloned. A classifier that changes the
        prior a second time is rejected, also inside a pipeline or an ensemble: one with
        weights or priors of classes (such as ``class_weight``, ``scale_pos_weight``,
        ``is_unbalance`` or ``priors``), or one with a sampler of its own.

    decision : {"posterior", "balanced"}, default="posterior"
        Decision rule of ``predict``. "posterior" predicts the class with the largest
        probability in ``predict_proba``, which gives the fewest errors. "balanced"
        predicts the class that would be most probable if all classes were equally
        frequent, which gives the best mean recall (balanced accuracy) for any class
        frequencies after resampling. For other objectives, find a threshold with
        :class:`~sklearn.model_selection.TunedThresholdClassifierCV` around this
        estimator.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels in ``y``. A class without rows after resampling has probability 0.

    class_count_ : ndarray of shape (n_classes,)
        Number of rows of each class in the data, or the sum of their weights.

    resampled_class_count_ : ndarray of shape (n_classes,)
        Number of rows of each class after resampling, or the sum of their weights.

    sampler_, estimator_ : sampler, classifier
        The fitted sampler and the fitted classifier.

    n_features_in_ : int
        Number of features seen during ``fit``. Only available if the classifier or the
        sampler has it.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during ``fit``. Only available if the classifier or the
        sampler has it.

    See Also
    --------
    PNLSampler : Over-sample by pseudo-nonlinear data augmentation.
    compare_samples : Check whether new rows have the density of real rows.

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

    # The sampler and the estimator validate their own parameters.
    @all_or_nothing
    def fit(
        self,
        X: Rows,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Resample the rows, fit the classifier, and count the rows of each class.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, n_features)
            Rows, in any form that the sampler accepts.
        y : array-like of shape (n,)
            Class labels. If they are one-hot encoded, the classes are the column
            indices.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights of the rows. The sampler draws parents by the weights,
            and the classifier is fitted with the weights of the resampled rows.
        groups : array-like of shape (n,), default=None
            Passed to ``sampler.fit_resample``, which mixes only rows of the same group.
        **fit_params : dict
            Passed to ``estimator.fit``, for example ``eval_set`` of a boosting library.
            Rows in them are not resampled.

        Returns
        -------
        self : PriorCorrectedClassifier
        """
        self._check_parts()
        X = on_host(X)
        given, y = y, read_classes(y)[0]
        if getattr(given, "shape", ())[1:] == (1,):
            # column_or_1d issues the warning of scikit-learn's classifiers for column
            # vectors.
            column_or_1d(given, warn=True)
        sample_weight = read_weights(sample_weight, len(y))
        optional = {"groups": groups, "sample_weight": sample_weight}
        optional = {k: value for k, value in optional.items() if value is not None}
        self.sampler_ = clone(self.sampler)
        X_resampled, y_resampled = self.sampler_.fit_resample(X, y, **optional)
        weights = {}
        if sample_weight is not None:
            weights["sample_weight"] = self.sampler_.sample_weight_
        self.classes_ = np.unique(y)
        self.class_count_ = self._count(y, sample_weight)
        self.resampled_class_count_ = self._count(y_resampled, **weights)
        self.estimator_ = clone(self.estimator)
        self.estimator_.fit(X_resampled, y_resampled, **weights, **fit_params)
        for name in ("n_features_in_", "feature_names_in_"):
            for part in (self.sampler_, self.estimator_):
                if hasattr(part, name):
                    setattr(self, name, getattr(part, name))
        self._check_means(X, y, sample_weight)
        return self

    def _check_parts(self):
        """Reject samplers that change columns, and estimators that change the prior."""
        for name, step in getattr(self.sampler, "steps", ()):
            if hasattr(step, "transform"):
                raise ValueError(
                    f"sampler contains the transformer {name!r}, which changes "
                    "columns. Put the transformer into estimator, or before this "
                    "classifier in a Pipeline."
                )
        for name, value in clone(self.estimator).get_params().items():
            parameter = name.split("__")[-1]
            if hasattr(value, "fit_resample") or parameter == "sampling_strategy":
                raise ValueError(
                    f"estimator resamples the rows ({name}={value!r}), which changes "
                    "the prior a second time. Move the sampler to the parameter "
                    "sampler, or use CalibratedClassifierCV around estimator instead "
                    "of PriorCorrectedClassifier."
                )
            neutral = _NEUTRAL.get(parameter, (value,))
            if not any(
                value is same or np.array_equal(value, same) for same in neutral
            ):
                raise ValueError(
                    f"estimator has {name}={value!r}, which changes the prior a second "
                    f"time. Set it to {neutral[-1]}. For the best mean recall, set "
                    "decision='balanced'."
                )

    def _check_means(self, X, y, sample_weight):
        """Warn if the mean probability of the training rows is not near the prior.

        Half and twice the prior are allowed: a classifier that memorises the rows left
        by an under-sampler, and is right on average for other rows, reaches up to twice
        the prior.
        """
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        rows = np.flatnonzero(weights)
        rows = rows[:: -(-len(rows) // _CHECKED_ROWS)]
        if len(rows) < len(y):
            # Some sparse formats cannot be indexed.
            X = _safe_indexing(X.tocsr() if issparse(X) else X, rows)
        weights = weights[rows] / weights[rows].sum()
        means = weights @ self._probabilities(X)
        labels = np.searchsorted(self.classes_, y[rows])
        priors = np.bincount(labels, weights, minlength=len(means))
        error = np.sqrt(priors * (1 - priors) * (weights**2).sum())
        off = (means > 2 * priors) | (means < priors / 2)
        off &= (abs(means - priors) > 3 * error) & (self.resampled_class_count_ > 0)
        for label, mean, prior in zip(
            self.classes_[off], means[off], priors[off], strict=True
        ):
            warn_user(
                f"The mean corrected probability of class {label!r} over the training "
                f"rows is {mean:.2g}, but {prior:.2g} of the rows have this class. "
                "Either estimator changes the prior a second time (by weights or "
                "resampling), which must be switched off, or its probabilities are "
                "inaccurate; CalibratedClassifierCV around this classifier corrects "
                "them."
            )

    def _count(self, y, sample_weight=None):
        """Return the number of rows or the sum of weights of each class."""
        # LabelEncoder raises an error for classes that do not occur in y.
        codes = LabelEncoder().fit(self.classes_).transform(y)
        return np.bincount(codes, sample_weight, minlength=len(self.classes_))

    def _probabilities(self, X, balanced=False):
        """Return probabilities (n, n_classes) under the prior of the data.

        With ``balanced``, the prior is uniform.
        """
        check_is_fitted(self)
        learnt = np.asarray(self.estimator_.predict_proba(on_host(X)), np.float64)
        seen = np.searchsorted(self.classes_, self.estimator_.classes_)
        joint = np.zeros((len(learnt), len(self.classes_)))
        prior = np.ones(len(seen)) if balanced else self.class_count_[seen]
        resampled = self.resampled_class_count_[seen]
        # A class has a count of 0 if all its rows have weight 0.
        has_rows = resampled > 0
        joint[:, seen[has_rows]] = (learnt * prior)[:, has_rows] / resampled[has_rows]
        return joint / joint.sum(axis=1, keepdims=True)

    def predict_proba(self, X: Rows) -> NDArray:
        """Compute the class probabilities under the prior of the data.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n, n_classes)
            Probabilities, with the classes in the order of ``classes_``.
        """
        return self._probabilities(X)

    def predict_log_proba(self, X: Rows) -> NDArray:
        """Compute the logarithms of the class probabilities; log(0) is -inf.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, n_features)
            Rows.

        Returns
        -------
        log_probabilities : ndarray of shape (n, n_classes)
            Log-probabilities, with the classes in the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Rows) -> NDArray:
        """Predict the class of each row by the rule in ``decision``.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n,)
            Predicted class labels.
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
            # A requirement of one part applies to both; an input is allowed if both
            # parts allow it.
            holds = any if name in ("positive_only", "pairwise") else all
            setattr(tags.input_tags, name, holds(getattr(part, name) for part in parts))
        return tags
