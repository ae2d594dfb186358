"""Compare new rows with the training rows that they were made from."""

from dataclasses import dataclass
from html import escape
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.metrics import get_scorer
from sklearn.metrics.pairwise import paired_euclidean_distances
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, validate_params
from sklearn.utils.parallel import Parallel, delayed

from ._frames import NUMBER, OTHER, TIME, UNITS, columns_of, is_frame, level_codes
from ._typing import Rows, Seed
from ._validation import check_finite
from ._verdicts import (
    Finding,
    correlation_difference,
    judge,
    off_diagonal,
    real_noise,
    root_mean_square,
    spreads,
    summarise,
)

# Features whose correlations are compared: three matrices of 32 megabytes.
_CORRELATED = 2000
# Nanoseconds.
_DAY = 86_400 * 10**9
# Values beyond this are refused.
_LARGEST = 1e18
# On 4,000 rows of 20 features in a sixth of the time of 100 trees of a random forest,
# and with an area under the ROC curve that is as far from 0.5 or farther.
_CLASSIFIER = ExtraTreesClassifier(40, min_samples_leaf=2)


@dataclass(frozen=True, eq=False, repr=False)
class SampleComparison:
    """Numbers that compare new rows with training rows.

    Made by :func:`compare_samples`, which says how each is computed. ``verdict`` says
    in a word or two what is wrong, ``findings`` why; ``print`` shows both and all
    numbers. Rows of n-D arrays are read flat: a feature a cell.

    Parameters
    ----------
    n_train, n_new, n_test : int
        Numbers of rows; ``n_test`` is 0 without ``X_test``.
    feature_names : tuple of str
        Columns of the data frame, else "x0", "x1", ..., or "x2_5" for cell (2, 5).
    distance : ndarray of shape (n_new,)
        From each new row to the closest training row, in training standard deviations.
    closest : ndarray of int of shape (n_new,)
        That training row.
    usual_distance : ndarray of shape (n_test,), or (n_train,) without ``X_test``
        From each test row to the closest training row, or from each training row to
        the closest other one.
    copy_distance : float
        A row no farther than this from a training row counts as a near-copy.
    near_copy_share, usual_near_copy_share : float
        Share of new rows, and of test (or training) rows, that are near-copies.
    exact_copy_share, usual_exact_copy_share : float
        Share of those equal to a (or to another) training row in every value.
    repeated_share, usual_repeated_share : float
        Share of new rows equal to another new row, among no more new rows than there
        are training rows; and of training rows equal to another one.
    n_compared : int
        Rows of each kind that the classifier gets.
    fold_auc : ndarray of shape (n_folds,)
        Area under the ROC curve of the classifier in each fold; empty where the rows
        do not suffice for two folds. A single value where the new rows are all equal.
    outside_range : ndarray of shape (n_features,)
        Share of new values below the smallest or above the largest training value.
    std_ratio : ndarray of shape (n_features,)
        Standard deviation of new over that of training values; nan where the training
        values are constant.
    mean_difference : ndarray of shape (n_features,)
        New minus training mean, in training standard deviations; nan where the
        training values are constant.
    ks_statistic : ndarray of shape (n_features,)
        Largest gap between the two empirical distribution functions, from 0 to 1.
    correlation_features : ndarray of int
        Features whose correlations are compared.
    correlation_difference : ndarray of shape (n_correlated, n_correlated)
        Pearson correlations of new minus those of training rows; nan where a feature is
        constant in the latter. Where it is constant in new rows alone, they are 0.
    std_noise : ndarray of shape (n_features,)
        Root mean square of the logarithm of ``std_ratio`` between samples of real rows;
        inf where they may be constant, nan where there are too few.
    std_limit : float
        Largest loss of a standard deviation between samples of real rows, in
        ``std_noise``.
    correlation_noise : float
        Largest ``rms_correlation_difference`` between samples of real rows.

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
    >>> bool(comparison.distance_ratio < 0.1)
    True
    >>> comparison.verdict
    'copies'
    """

    n_train: int
    n_new: int
    n_test: int
    feature_names: tuple
    distance: np.ndarray
    closest: np.ndarray
    usual_distance: np.ndarray
    copy_distance: float
    near_copy_share: float
    usual_near_copy_share: float
    exact_copy_share: float
    usual_exact_copy_share: float
    repeated_share: float
    usual_repeated_share: float
    n_compared: int
    fold_auc: np.ndarray
    outside_range: np.ndarray
    std_ratio: np.ndarray
    mean_difference: np.ndarray
    ks_statistic: np.ndarray
    correlation_features: np.ndarray
    correlation_difference: np.ndarray
    std_noise: np.ndarray
    std_limit: float
    correlation_noise: float

    @property
    def findings(self) -> list[Finding]:
        """A ``Finding`` for each criterion: word, value, threshold and reason."""
        return judge(self)

    @property
    def verdict(self) -> str:
        """What is wrong with the new rows, or "fine".

        One or more of "copies", "distinguishable", "spread lost" and "correlations
        lost", separated by commas; "untested" where rows suffice for no criterion.
        """
        return summarise(self.findings)

    @property
    def distance_ratio(self) -> float:
        """Median distance of new rows over the usual one.

        Near 1: new rows lie as far from training rows as real rows do. Where the usual
        median is 0, as among copies, it is inf, or nan if both are.
        """
        new, usual = np.median(self.distance), np.median(self.usual_distance)
        if usual > 0:
            return float(new / usual)
        return float("inf" if new > 0 else "nan")

    @property
    def auc(self) -> float:
        """Mean of ``fold_auc``, nan without folds; 0.5: cannot be told apart."""
        return float(self.fold_auc.mean()) if self.fold_auc.size else float("nan")

    @property
    def auc_stderr(self) -> float:
        """Standard error of ``auc`` over the folds; nan with fewer than two."""
        if self.fold_auc.size < 2:
            return float("nan")
        return float(self.fold_auc.std(ddof=1) / np.sqrt(self.fold_auc.size))

    @property
    def max_correlation_difference(self) -> float:
        """Largest change of a correlation, in absolute value; nan without pairs."""
        changes = off_diagonal(self.correlation_difference)
        return float(changes.max()) if changes.size else float("nan")

    @property
    def mean_correlation_difference(self) -> float:
        """Mean change of the correlations, in absolute value; nan without pairs."""
        changes = off_diagonal(self.correlation_difference)
        return float(changes.mean()) if changes.size else float("nan")

    @property
    def rms_correlation_difference(self) -> float:
        """Root mean square change of the correlations; nan without pairs."""
        return root_mean_square(off_diagonal(self.correlation_difference))

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
        try:
            from pandas import DataFrame, Index
        except ImportError as error:
            raise ImportError(
                "SampleComparison.to_frame needs pandas: pip install pandas."
            ) from error
        if by == "criterion":
            return DataFrame(list(map(vars, self.findings))).set_index("criterion")
        columns = ("outside_range", "std_ratio", "mean_difference", "ks_statistic")
        return DataFrame(
            {column: getattr(self, column) for column in columns},
            index=Index(self.feature_names, name="feature"),
        )

    def __repr__(self):
        return (
            f"SampleComparison({self.verdict!r}, n_train={self.n_train}, "
            f"n_new={self.n_new}, "
            f"distance_ratio={self.distance_ratio:.3g}, "
            f"near_copy_share={self.near_copy_share:.3g}, auc={self.auc:.3g})"
        )

    def _repr_html_(self):
        """For notebooks: the findings, with all numbers below."""
        rows = "".join(
            f"<tr><td>{escape(f.criterion)}</td><td><b>{escape(f.verdict)}</b></td>"
            f"<td>{f.value:.3g}</td><td>{f.threshold:.3g}</td>"
            f"<td style='text-align:left'>{escape(f.reason)}</td></tr>"
            for f in self.findings
        )
        return (
            f"<div><p>{self.n_new} new rows against {self.n_train} training rows: "
            f"<b>{escape(self.verdict)}</b></p><table><thead><tr><th>criterion</th>"
            "<th>verdict</th><th>value</th><th>threshold</th><th>why</th></tr></thead>"
            f"<tbody>{rows}</tbody></table><details><summary>all numbers</summary>"
            f"<pre>{escape(str(self))}</pre></details></div>"
        )

    def __str__(self):
        rows = f"{self.n_new} new rows against {self.n_train} training rows"
        if self.n_test:
            rows += f" and {self.n_test} test rows"
        lines = [
            f"{rows}, {len(self.feature_names)} features",
            f"verdict: {self.verdict}",
            *(
                f"  {f.criterion:16}{f.verdict:28}{f.value:9.3g}"
                f"   threshold {f.threshold:.3g}"
                for f in self.findings
            ),
            f"{'':46}{'new':>9}{'usual':>9}",
            *self._lines_of_copies(),
            *self._lines_of_features(),
        ]
        return "\n".join(lines)

    def _lines_of_copies(self):
        """How near new rows come to real ones, and whether they are told apart."""
        quantiles = [0.05, 0.5, 0.95]
        new = np.quantile(self.distance, quantiles)
        usual = np.quantile(self.usual_distance, quantiles)
        rivals = "test" if self.n_test else "training"
        folds = f"+- {self.auc_stderr:.3f}, {self.fold_auc.size} folds"
        if self.fold_auc.size < 2:
            few = "(too few distinct rows for folds)"
            folds = "all new rows are equal" if self.fold_auc.size else few
        return [
            *(
                f"{f'distance to closest training row, {q:4.0%} quantile':46}"
                f"{a:9.3g}{b:9.3g}"
                for q, a, b in zip(quantiles, new, usual, strict=True)
            ),
            f"{'median distance, new / usual':46}{self.distance_ratio:9.3g}{1:9}",
            f"{f'near-copies, within {self.copy_distance:.3g}':46}"
            f"{self.near_copy_share:9.1%}{self.usual_near_copy_share:9.1%}",
            f"{'exact copies':46}"
            f"{self.exact_copy_share:9.1%}{self.usual_exact_copy_share:9.1%}",
            f"{'equal to another row of its kind':46}"
            f"{self.repeated_share:9.1%}{self.usual_repeated_share:9.1%}",
            f"{f'AUC, new against {rivals} rows':46}{self.auc:9.3f}{0.5:9}  {folds}",
        ]

    def _lines_of_features(self):
        """Ranges, spreads, distributions and correlations."""
        return [
            f"{'values outside the training range':46}{self.outside_range.mean():9.1%}",
            self._extreme("smallest ratio of standard deviations", -self.std_ratio),
            self._extreme("largest ratio of standard deviations", self.std_ratio),
            self._extreme("largest difference of means", np.abs(self.mean_difference)),
            self._extreme("largest Kolmogorov-Smirnov statistic", self.ks_statistic),
            f"{'largest change of a correlation':46}"
            f"{self.max_correlation_difference:9.3f}{'':9}  "
            f"mean {self.mean_correlation_difference:.3f}, "
            f"{len(self.correlation_features)} of {len(self.feature_names)} features",
        ]

    def _extreme(self, title, values):
        """A line with the largest of the values and the name of its feature."""
        if np.all(np.isnan(values)):
            return f"{title:46}{np.nan:9.3f}"
        worst = int(np.nanargmax(values))
        return f"{title:46}{abs(values[worst]):9.3f}{'':9}  {self.feature_names[worst]}"


@validate_params(
    {
        "copy_quantile": [Interval(Real, 0, 1, closed="neither")],
        "classifier": [
            HasMethods(["fit", "predict_proba"]),
            HasMethods(["fit", "decision_function"]),
            None,
        ],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "max_samples": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    },
    prefer_skip_nested_validation=False,
)
def compare_samples(
    X: Rows,
    X_new: Rows,
    *,
    X_test: Rows | None = None,
    copy_quantile: float = 0.05,
    classifier: Any = None,
    cv: int = 5,
    max_samples: int = 2000,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> SampleComparison:
    """Check new rows against the training rows that they were made from.

    Computed are, with every feature divided by its training standard deviation:

    - **Are they copies?** The distance from each new row to the closest training row,
      against the usual distance: that from each row of ``X_test`` to the closest
      training row or, without ``X_test``, from each training row to the closest other
      one. A near-copy is a row no farther than the ``copy_quantile`` quantile of the
      usual distances. The same rule is applied to the test (or training) rows: about
      ``copy_quantile`` of them are near-copies, and more where the data hold
      duplicates of their own, which make that quantile 0.
    - **Can they be told apart?** The cross-validated area under the ROC curve of a
      classifier that tells new rows from those of ``X_test``, or from the training
      rows.
    - **Are features alike?** Ranges, standard deviations, means and the two-sample
      Kolmogorov-Smirnov statistic, one for each feature.
    - **Are correlations alike?** The difference of the correlation matrices.

    ``verdict`` of the result puts the first, second, third and last into words. Its
    thresholds are the larger of what does not matter and of what real rows show: those
    of ``X`` and ``X_test`` are split 20 times into two samples, which are compared in
    spread and correlations; ``findings`` gives each threshold and its reason.

    Parameters
    ----------
    X : array-like of shape (n_train, ...)
        Training rows: those that the new ones were made from, for a sampler the rows of
        one class. Real values, a table or an array of more dimensions. In data frames
        a category counts as a feature of 0 and 1 for each of its levels, and times as
        days.
    X_new : array-like of shape (n_new, ...)
        New rows alone, without the training rows.
    X_test : array-like of shape (n_test, ...), default=None
        Rows of the same population that were not used to make new ones.
    copy_quantile : float, default=0.05
        Quantile of the usual distances up to which a row is a near-copy.
    classifier : classifier, default=None
        With ``predict_proba`` or ``decision_function``; it gets standardised rows, and
        a seed for each ``random_state`` that is None. None is an
        :class:`~sklearn.ensemble.ExtraTreesClassifier` of 40 trees with two rows a leaf
        or more, which also works on few rows.
    cv : int, default=5
        Folds; fewer where there are fewer rows, and those in which one kind of row
        would be missing are left out.
    max_samples : int, default=2000
        Most rows of each kind that the classifier gets. As many of either are drawn,
        without replacement.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws, the folds and the classifier. The same seed gives the same
        numbers for every ``n_jobs``.
    n_jobs : int, default=None
        Jobs of the search for neighbours and of the folds: threads.

    Returns
    -------
    comparison : SampleComparison

    Raises
    ------
    ValueError
        For NaN or infinity (with the first place), rows of different shapes or with
        different columns, fewer than 2 training or test rows, no new row, and values
        above 1e18, also after standardising.

    See Also
    --------
    SampleComparison : What a comparison found.
    SampleComparisonDisplay : Draw a comparison.

    Notes
    -----
    An AUC against training rows is not a test of copying. New rows lie near the rows
    that they were made from, so plain folds would place them on both sides, and the
    classifier would take every training row in a test fold for a new one: copies would
    get an AUC near 0. So rows are kept in one fold with the row nearest to them, new or
    not: the groups are the connected components of the graph of nearest neighbours
    among the distinct rows of both kinds. They are formed without looking at the kind;
    so rows of the same distribution get about 0.5, and copies get exactly that.
    With ``X_test`` plain folds are right, and copies of few rows are found out as
    well. Where rows can be spared, hold some out.

    Features that are constant in ``X`` keep their units in distances. Of more than
    2,000 features, 2,000 drawn at random have their correlations compared;
    ``correlation_features`` says which. Where there are many features, distances cost
    ``n_train * (n_train + n_new)`` comparisons of rows. Rows are held in float64,
    as they are and standardised.

    References
    ----------
    D. Lopez-Paz, M. Oquab, "Revisiting classifier two-sample tests", ICLR 2017.

    Q. Zhao et al., "CTAB-GAN: effective table data synthesizing", ACML 2021 (the
    distance to the closest record).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_pnl import PNLSampler, compare_samples
    >>> X, y = load_iris(return_X_y=True)
    >>> sampler = PNLSampler(sampling_strategy={0: 100}, random_state=0)
    >>> X_new = sampler.fit_resample(X, y)[0][len(X) :]
    >>> comparison = compare_samples(X[y == 0], X_new, random_state=0)
    >>> comparison.n_train, comparison.n_new, comparison.fold_auc.size
    (50, 50, 5)
    >>> bool(comparison.outside_range.max() < 0.1)
    True
    """
    rng, table = check_random_state(random_state), None
    if is_frame(X):
        table = _Table(X)
        X_new = table.numbers(X_new, "X_new")
        X_test = None if X_test is None else table.numbers(X_test, "X_test")
        X = table.numbers(X, "X")
    names = () if table is None else table.names
    X, shape = _read(X, "X", fewest=2)
    X_new = _read_alike(X_new, "X_new", shape, fewest=1)
    if X_test is not None:
        X_test = _read_alike(X_test, "X_test", shape, fewest=2)
    scaler = StandardScaler().fit(X)
    scaled, scaled_new = scaler.transform(X), _standardise(scaler, X_new, "X_new")
    scaled_test = None if X_test is None else _standardise(scaler, X_test, "X_test")
    correlations = _compare_correlations(scaled, scaled_new, rng)
    rival = scaled if X_test is None else scaled_test
    rows, kinds = _balanced(rival, scaled_new, max_samples, rng)
    settings = {"held_out": X_test is not None, "cv": cv, "rng": rng, "n_jobs": n_jobs}
    fold_auc = _fold_auc(rows, kinds, classifier=classifier or _CLASSIFIER, **settings)
    real = scaled if X_test is None else np.concatenate([scaled, scaled_test])
    chosen = correlations["correlation_features"]
    return SampleComparison(
        n_train=len(X),
        n_new=len(X_new),
        n_test=0 if X_test is None else len(X_test),
        feature_names=names or _cell_names(shape),
        **_compare_distances(scaled, scaled_new, scaled_test, copy_quantile, n_jobs),
        **_compare_copies(X, X_new, X_test, rng),
        n_compared=len(rows) // 2,
        fold_auc=fold_auc,
        **_compare_features(X, X_new),
        **correlations,
        **real_noise(real, len(X), len(X_new), chosen, max_samples, rng),
    )


def _compare_correlations(scaled, scaled_new, rng):
    """Changes of correlations, of some features where there are very many."""
    chosen = np.arange(scaled.shape[1])
    if len(chosen) > _CORRELATED:
        chosen = np.sort(rng.permutation(len(chosen))[:_CORRELATED])
    # Of values of order one: squares of others may overflow or vanish.
    difference = correlation_difference(scaled[:, chosen], scaled_new[:, chosen])
    return {"correlation_features": chosen, "correlation_difference": difference}


def _read(X, name, fewest):
    """Flat rows in float64, and the shape of a row."""
    X = check_array(
        X,
        dtype=[np.float64, np.float32],
        allow_nd=True,
        ensure_all_finite=False,
        ensure_min_samples=fewest,
        estimator="compare_samples",
        input_name=name,
    )
    check_finite(X, name)
    shape = X.shape[1:]
    if 0 in shape:
        raise ValueError(f"{name} has rows of shape {shape}, without any value.")
    X = X.reshape(len(X), -1).astype(np.float64, order="C")
    _check_size(X, name)
    # This makes a 0.0 of every -0.0, which is equal to it but has other bytes.
    X += 0.0
    return X, shape


def _read_alike(X, name, shape, fewest):
    """Flat rows, of the shape of the training rows."""
    X, own_shape = _read(X, name, fewest)
    if own_shape != shape:
        raise ValueError(
            f"{name} has rows of shape {own_shape}, but X has rows of shape {shape}."
        )
    return X


class _Table:
    """What the training rows are, if they came in a data frame, and others like them.

    A category is a feature of 0 and 1 for each of its levels in the training rows;
    levels that only others have are none of them. Times are in days.
    """

    def __init__(self, X):
        columns = columns_of(X)
        self._columns = columns.names
        self._kinds = [columns.kind(j) for j in range(columns.n_columns)]
        self._levels = [
            level_codes(columns.values(j))[1] if kind == OTHER else None
            for j, kind in enumerate(self._kinds)
        ]
        self._mixed = any(kind != NUMBER for kind in self._kinds)
        self.names = tuple(
            str(column) if levels is None else f"{column}={level}"
            for column, levels in zip(self._columns, self._levels, strict=True)
            for level in (levels or [None])
        )

    def numbers(self, X, name):
        """The rows as they are, or as numbers if that is not what columns hold."""
        if not is_frame(X):
            if self._mixed:
                raise ValueError(
                    f"{name} must be a data frame, as X is, whose columns are not all "
                    "numbers."
                )
            return X
        columns = columns_of(X)
        self._check(columns, name)
        if not self._mixed:
            return X
        parts = [self._part(columns, j) for j in range(len(self._kinds))]
        return np.column_stack(parts)

    def _check(self, columns, name):
        """Refuse other columns than those of the training rows."""
        pairs = zip(self._columns, columns.names, strict=False)
        for at, (own, other) in enumerate(pairs):
            if own != other:
                raise ValueError(
                    f"{name} has other columns than X, or another order: column {at} "
                    f"is {other!r} instead of {own!r}."
                )
        if len(self._columns) != columns.n_columns:
            raise ValueError(
                f"{name} has {columns.n_columns} columns, but X has "
                f"{len(self._columns)}."
            )
        for j, kind in enumerate(self._kinds):
            if kind != OTHER and columns.kind(j) != kind:
                raise ValueError(
                    f"Column {self._columns[j]!r} of {name} ({columns.dtype(j)}) holds "
                    f"no {kind}s, as that of X does."
                )

    def _part(self, columns, j):
        """Numbers (n,) or (n, n_levels) of a column."""
        if self._kinds[j] == NUMBER:
            return np.asarray(columns.numbers(j), dtype=np.float64)
        if self._kinds[j] == TIME:
            ticks, unit, missing = columns.ticks(j)
            return np.where(missing, np.nan, ticks * (UNITS[unit] / _DAY))
        codes, levels = level_codes(columns.values(j))
        place = {level: k for k, level in enumerate(self._levels[j])}
        own = np.array([place.get(level, -1) for level in levels], np.intp)[codes]
        return (own[:, None] == np.arange(len(place))).astype(np.float64)


def _cell_names(shape):
    return tuple("x" + "_".join(map(str, cell)) for cell in np.ndindex(shape))


def _standardise(scaler, X, name):
    scaled = scaler.transform(X)
    _check_size(scaled, f"{name}, in training standard deviations,")
    return scaled


def _check_size(X, what):
    """Refuse values whose squares overflow, in the float32 of trees as well."""
    largest = np.abs(X).max(axis=0)
    if largest.max() > _LARGEST:
        raise ValueError(
            f"{what} reaches {largest.max():.1e} in feature {np.argmax(largest)}, too "
            f"large for distances (at most {_LARGEST:.0e}). Divide all rows by a "
            "constant, or leave that feature out."
        )


def _compare_distances(scaled, scaled_new, scaled_test, copy_quantile, n_jobs):
    search = NearestNeighbors(n_neighbors=1, n_jobs=n_jobs).fit(scaled)
    distance, closest = _closest(search, scaled, scaled_new)
    usual = _closest(search, scaled, scaled_test)[0]
    copy_distance = float(np.quantile(usual, copy_quantile))
    return {
        "distance": distance,
        "closest": closest,
        "usual_distance": usual,
        "copy_distance": copy_distance,
        "near_copy_share": float(np.mean(distance <= copy_distance)),
        "usual_near_copy_share": float(np.mean(usual <= copy_distance)),
    }


def _compare_copies(X, X_new, X_test, rng):
    repeated = float(_repeated_rows(X).mean())
    # Values that are few repeat the more often the more rows there are.
    drawn = X_new[rng.permutation(len(X_new))[: len(X)]]
    usual = repeated if X_test is None else float(_equal_rows(X, X_test).mean())
    return {
        "exact_copy_share": float(_equal_rows(X, X_new).mean()),
        "usual_exact_copy_share": usual,
        "repeated_share": float(_repeated_rows(drawn).mean()),
        "usual_repeated_share": repeated,
    }


def _closest(search, scaled, queries):
    """Distances to the closest training row, and which; None is leave-one-out."""
    nearest = search.kneighbors(queries, return_distance=False)[:, 0]
    # The search may get distances by expanding squares, which leaves copies at 1e-8.
    queries = scaled if queries is None else queries
    return paired_euclidean_distances(queries, scaled[nearest]), nearest


def _equal_rows(X, others):
    """Which of the other rows equal a row of X in every value."""
    known = {row.tobytes() for row in X}
    return np.array([row.tobytes() in known for row in others])


def _number_rows(X):
    """A number for each row, the same for equal rows."""
    numbers = {}
    return np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in X])


def _repeated_rows(X):
    """Which rows equal another one."""
    numbers = _number_rows(X)
    return np.bincount(numbers)[numbers] > 1


def _balanced(real, new, max_samples, rng):
    """As many rows of either kind, stacked, and their kinds."""
    size = min(len(real), len(new), max_samples)
    drawn = [rows[rng.permutation(len(rows))[:size]] for rows in (real, new)]
    return np.concatenate(drawn), np.repeat([0, 1], size)


def _fold_auc(rows, kinds, *, classifier, held_out, cv, rng, n_jobs):
    splits = _splits(rows, kinds, held_out, cv, rng)
    if not splits:
        return _auc_of_equal_rows(rows[kinds == 0], rows[kinds == 1])
    classifier = _seeded(classifier, rng)
    # Threads: trees free the interpreter, and processes take longer to start.
    return np.array(
        Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(_score_fold)(classifier, rows, kinds, train, test)
            for train, test in splits
        )
    )


def _score_fold(classifier, rows, kinds, train, test):
    fitted = clone(classifier).fit(rows[train], kinds[train])
    return get_scorer("roc_auc")(fitted, rows[test], kinds[test])


def _auc_of_equal_rows(real, new):
    """Of the best classifier, which knows the row that all new rows are; else none."""
    if len(new) < 2 or np.any(new != new[0]):
        return np.empty(0)
    return np.array([1 - np.mean(np.all(real == new[0], axis=1)) / 2])


def _splits(rows, kinds, held_out, cv, rng):
    """Folds with both kinds of rows on both sides."""
    groups = np.arange(len(rows)) if held_out else _neighbor_groups(rows)
    n_folds = min(cv, len(rows) // 2, groups.max() + 1)
    seed = rng.randint(np.iinfo(np.int32).max)
    if n_folds < 2:
        return []
    splitter = StratifiedKFold if held_out else StratifiedGroupKFold
    folds = splitter(n_folds, shuffle=True, random_state=seed)
    return [
        (train, test)
        for train, test in folds.split(rows, kinds, groups=None if held_out else groups)
        if len({*kinds[train]}) == len({*kinds[test]}) == 2
    ]


def _neighbor_groups(rows):
    """Connected components of the graph of nearest neighbours among distinct rows."""
    numbers = _number_rows(rows)
    distinct = rows[np.unique(numbers, return_index=True)[1]]
    n = len(distinct)
    if n == 1:
        return numbers
    search = NearestNeighbors(n_neighbors=1).fit(distinct)
    nearest = search.kneighbors(return_distance=False)[:, 0]
    edges = coo_array((np.ones(n), (np.arange(n), nearest)), shape=(n, n))
    return connected_components(edges, directed=False)[1][numbers]


def _seeded(classifier, rng):
    """A clone with a seed for every ``random_state`` that is None, nested ones too."""
    classifier = clone(classifier)
    params = classifier.get_params()
    for name in sorted(params):
        if name.split("__")[-1] == "random_state" and params[name] is None:
            classifier.set_params(**{name: rng.randint(np.iinfo(np.int32).max)})
    return classifier


def _compare_features(X, X_new):
    lowest, highest = X.min(axis=0), X.max(axis=0)
    # By the range: the standard deviation of equal values may be a rounding error.
    std = np.where(lowest == highest, np.nan, X.std(axis=0))
    return {
        "outside_range": np.mean((X_new < lowest) | (X_new > highest), axis=0),
        "std_ratio": spreads(X_new) / std,
        "mean_difference": (X_new.mean(axis=0) - X.mean(axis=0)) / std,
        "ks_statistic": np.array(
            [_ks_statistic(a, b) for a, b in zip(X.T, X_new.T, strict=True)]
        ),
    }


def _ks_statistic(a, b):
    """As in ``scipy.stats.ks_2samp``, whose p-value takes most of its time."""
    a, b = np.sort(a), np.sort(b)
    values = np.concatenate([a, b])
    below_a = np.searchsorted(a, values, side="right") / len(a)
    below_b = np.searchsorted(b, values, side="right") / len(b)
    return np.abs(below_a - below_b).max()
