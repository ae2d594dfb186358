"""The result of a comparison: in print, in notebooks, as data frames."""

from dataclasses import dataclass
from html import escape
from textwrap import fill
from typing import Any, Literal

import numpy as np
from sklearn.utils._optional_dependencies import check_pandas_support

from .features import FeatureComparison
from .findings import FINE, Finding, summarise

PRIVACY = (
    "This is not a statement of privacy: nothing here bounds what others can learn "
    "about a person from new rows."
)
_HEADS = ("criterion", "verdict", "new rows", "real rows", "fine if")


@dataclass(frozen=True, eq=False, repr=False)
class SampleComparison:
    """What :func:`compare_samples` found of new rows, a report to hand over.

    ``verdict`` says in a few words what is wrong, ``findings`` why; ``print`` shows a
    line for each criterion. It is not a statement of privacy: nothing here bounds what
    others can learn about a person from new rows.

    Parameters
    ----------
    n_train, n_new, n_test : int
        Numbers of rows; ``n_test`` is 0 without ``X_test``.
    findings : tuple of Finding
        For each criterion the word, value, usual value, threshold and reason.
    features : FeatureComparison
        Numbers for each feature: ``names``, ``outside_range``, ``mean_difference``,
        ``std_ratio``, ``ks_statistic``, ``zero_share``, ``train_zero_share``,
        ``missing_share`` and ``train_missing_share``. Rows of n-D arrays are read flat:
        a feature a cell.
    unseen_levels : dict of str to list
        Levels of new rows that no training row has, for each category with any.
    correlation_features : ndarray of int of shape (n_correlated,)
        Features whose correlations are compared: all, or 2,000 of them.
    correlation_difference : ndarray of shape (n_correlated, n_correlated)
        Pearson correlations of new minus those of training rows; nan where a feature is
        constant in the latter. Where it is constant in new rows alone, they are 0.
    distance : ndarray of shape (n_new,)
        From each new row to the closest training row, in training standard deviations.
    closest : ndarray of int of shape (n_new,)
        That training row.
    usual_distance : ndarray of shape (n_test,), or (n_train,) without ``X_test``
        From each test row to the closest training row, or from each training row to
        the closest other one.
    fold_auc : ndarray of shape (n_folds,)
        Area under the ROC curve of the classifier in each fold; empty where the rows
        do not suffice for two folds.

    See Also
    --------
    compare_samples : New rows against real ones.
    SampleComparisonDisplay : Draw a comparison.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pnl import compare_samples
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> comparison = compare_samples(X, X + 0.01, random_state=0)
    >>> comparison.distance.shape
    (60,)
    >>> comparison.verdict
    'copies'
    >>> comparison["close rows"].value
    1.0
    """

    n_train: int
    n_new: int
    n_test: int
    findings: tuple
    features: FeatureComparison
    unseen_levels: dict
    correlation_features: np.ndarray
    correlation_difference: np.ndarray
    distance: np.ndarray
    closest: np.ndarray
    usual_distance: np.ndarray
    fold_auc: np.ndarray

    @property
    def verdict(self) -> str:
        """What is wrong with the new rows; "fine" where all could be told.

        One or more words, separated by commas: "copies", "members exposed", "unseen
        categories", "out of range", "shifted", "spread changed", "zeros changed",
        "missing cells changed", "correlations changed", "far off" and
        "distinguishable". If none, and rows are too few for any criterion, "too few
        rows to tell"; "fine, membership untested" without ``X_test``.
        """
        return summarise(self.findings)

    def __getitem__(self, criterion: str) -> Finding:
        """The finding of a criterion."""
        found = {finding.criterion: finding for finding in self.findings}
        if criterion not in found:
            raise KeyError(f"{criterion!r} is no criterion; there are {[*found]}.")
        return found[criterion]

    def to_frame(self, by: Literal["criterion", "feature"] = "criterion") -> Any:
        """The findings, or the numbers of the features, as a data frame.

        Parameters
        ----------
        by : {"criterion", "feature"}, default="criterion"
            What a row is.

        Returns
        -------
        frame : pandas.DataFrame
        """
        if by not in ("criterion", "feature"):
            raise ValueError(f"by must be 'criterion' or 'feature'; got {by!r}.")
        pandas = check_pandas_support("SampleComparison.to_frame")
        if by == "criterion":
            return pandas.DataFrame(map(vars, self.findings)).set_index("criterion")
        frame = pandas.DataFrame(vars(self.features))
        return frame.set_index("names").rename_axis("feature")

    def _title(self):
        test = f" and {self.n_test} held-out rows" if self.n_test else ""
        return (
            f"{self.n_new} new rows against {self.n_train} training rows{test}, "
            f"{len(self.features.names)} features"
        )

    def _lines(self):
        """Cells of the table, a line for each criterion."""
        for f in self.findings:
            numbers = f"{f.value:.3g}", f"{f.usual:.3g}"
            fine_if = f"{'>=' if f.threshold < f.usual else '<='} {f.threshold:.3g}"
            told = [*numbers, fine_if] if np.isfinite(f.value) else [""] * 3
            yield f.criterion, f.verdict, *told

    def __repr__(self):
        return (
            f"SampleComparison({self.verdict!r}, n_train={self.n_train}, "
            f"n_new={self.n_new}, n_test={self.n_test})"
        )

    def __str__(self):
        lines = [self._title(), f"verdict: {self.verdict}"]
        for c, word, value, usual, end in [_HEADS, *self._lines()]:
            lines.append(f"  {c:15}{word:23}{value:>11}{usual:>11}{end:>12}".rstrip())
        told = [f for f in self.findings if f.verdict != FINE]
        lines += [_note(f"{f.criterion}: {f.reason}.") for f in told]
        return "\n".join([*lines, _note(PRIVACY)])

    def _repr_html_(self):
        """For notebooks: a line for each criterion, with its reason."""
        heads = "".join(f"<th>{head}</th>" for head in (*_HEADS, "why"))
        rows = ""
        for cells, f in zip(self._lines(), self.findings, strict=True):
            row = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            why = f"<td style='text-align:left'>{escape(f.reason)}</td>"
            rows += f"<tr>{row}{why}</tr>"
        return (
            f"<div><p>{escape(self._title())}: <b>{escape(self.verdict)}</b></p>"
            f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
            f"<p>{PRIVACY}</p></div>"
        )


def _note(text):
    return fill(text, 88, subsequent_indent="  ")
