"""Published tables with their G^2, X^2 and degrees of freedom, from R and textbooks.

Models are written as sets of modes. Results are compared to the last printed digit.
"""

import numpy as np
import pytest

from sklearn_pnl.geometry import TensorPoset, goodness_of_fit

# Students by hair (black, brown, red, blond), eyes (brown, blue, hazel, green) and sex
# (m, f). R's HairEyeColor; Snee, American Statistician 28, 1974.
HAIR_EYE_SEX = np.stack(
    [
        [[32, 11, 10, 3], [53, 50, 25, 15], [10, 10, 7, 7], [3, 30, 5, 8]],
        [[36, 9, 5, 2], [66, 34, 29, 14], [16, 7, 7, 7], [4, 64, 5, 8]],
    ],
    axis=-1,
)
# Applicants by admission, sex (m, f), department A to F: R's UCBAdmissions; Bickel,
# Hammel, O'Connell, Science 187, 1975.
UCB = np.array(
    [
        [[512, 353, 120, 138, 53, 22], [89, 17, 202, 131, 94, 24]],
        [[313, 207, 205, 279, 138, 351], [19, 8, 391, 244, 299, 317]],
    ]
)
# People on board by class (1, 2, 3, crew), age (child, adult), sex (m, f), survival
# (no, yes). R's Titanic. Four of the zeros are children of the crew.
TITANIC = np.array(
    [
        [[[0, 5], [0, 1]], [[118, 57], [4, 140]]],
        [[[0, 11], [0, 13]], [[154, 14], [13, 80]]],
        [[[35, 13], [17, 14]], [[387, 75], [89, 76]]],
        [[[0, 0], [0, 0]], [[670, 192], [3, 20]]],
    ]
)
# Pupils by use of alcohol, cigarettes, marijuana (yes, no): Agresti, "Categorical Data
# Analysis", 3rd edition, table 9.3.
DRUGS = np.array([[[911, 538], [44, 456]], [[3, 43], [2, 279]]])
# Passengers by sex (f, m), place (urban, rural), seat belt (no, yes), injury (no, yes):
# Agresti, table 9.8.
BELTS = np.array(
    [
        [[[7287, 996], [11587, 759]], [[3246, 973], [6134, 757]]],
        [[[10381, 812], [10969, 380]], [[6123, 1084], [6693, 513]]],
    ]
)
# Consumers by temperature (high, low), user of brand M (yes, no), preference (X, M),
# water (soft, medium, hard): vcdExtra's Detergent; Fienberg 1980, p. 71.
DETERGENT = np.array(
    [
        [[[19, 23, 24], [29, 47, 43]], [[29, 33, 42], [27, 23, 30]]],
        [[[57, 47, 37], [49, 55, 52]], [[63, 66, 68], [53, 50, 42]]],
    ]
)
# Cuttings by life, time (now, spring), length (long, short): vcdExtra's Bartlett;
# Bartlett, Supplement to the Journal of the Royal Statistical Society 2, 1935.
BARTLETT = np.array([[[156, 107], [84, 31]], [[84, 133], [156, 209]]])
# Patients by visits and length of stay: vcd's Hospital; Wing, 1962.
HOSPITAL = np.array([[43, 16, 3], [6, 11, 10], [9, 18, 16]])
# Patients by treatment (placebo, treated) and improvement: vcd's Arthritis; Koch and
# Edwards, 1988.
ARTHRITIS = np.array([[29, 7, 7], [13, 7, 21]])
# People by status of their parents and mental health: vcdExtra's Mental; Srole, 1978.
MENTAL = np.array(
[[64, 94, 58, 46], [57, 94, 54, 40], [57, 105, 65, 60],
 [72, 141, 77, 94], [36, 97, 54, 78], [21, 71, 54, 71]]
)  # fmt: skip
# People of Caithness by eyes and hair: MASS's caith; Fisher, 1940.
CAITHNESS = np.array(
[[326, 38, 241, 110, 3], [688, 116, 584, 188, 4],
 [343, 84, 909, 412, 26], [98, 48, 403, 681, 85]]
)  # fmt: skip
# Tenants by satisfaction, influence, type of housing, contact: MASS's housing; Madsen,
# 1976.
HOUSING = np.array(
[
    [[[21, 14], [61, 78], [13, 20], [18, 57]],
     [[34, 17], [43, 48], [8, 10], [15, 31]],
     [[10, 3], [26, 15], [6, 7], [7, 5]]],
    [[[21, 19], [23, 46], [9, 23], [6, 23]],
     [[22, 23], [35, 45], [8, 22], [13, 21]],
     [[11, 5], [18, 25], [7, 10], [5, 6]]],
    [[[28, 37], [17, 43], [10, 20], [7, 13]],
     [[36, 40], [40, 86], [12, 24], [13, 13]],
     [[36, 23], [54, 62], [9, 21], [11, 13]]],
]
)  # fmt: skip
# Births by infection (1, 2, none), risk, antibiotics, planned (yes, no each): Caesar of
# vcdExtra; Fahrmeir and Tutz, 1994, table 1.1. One margin is empty: unplanned births
# without risk and with antibiotics.
CAESAR = np.array(
    [
        [[[0, 4], [11, 10]], [[0, 0], [4, 0]]],
        [[[1, 7], [17, 13]], [[1, 0], [4, 0]]],
        [[[17, 87], [30, 3]], [[1, 0], [32, 9]]],
    ]
)
# Cars of 1993 by type and origin (USA, elsewhere): MASS's Cars93.
CARS = np.array([[7, 9], [11, 0], [10, 12], [7, 14], [8, 6], [5, 4]])

# Squirrel monkeys by who displays to whom: Ploog, "The behavior of squirrel monkeys",
# 1967. No monkey displays to itself, and the third monkey displays to no other.
MONKEYS = np.array(
[[0, 1, 5, 8, 9, 0], [29, 0, 14, 46, 4, 0], [0, 0, 0, 0, 0, 0],
 [2, 3, 1, 0, 38, 2], [0, 0, 0, 0, 0, 1], [9, 25, 4, 6, 13, 0]]
)  # fmt: skip
# Slides by the ratings of two pathologists: Agresti, 2nd edition 2002, section 10.5.
PATHOLOGISTS = np.array([[22, 2, 2, 0], [5, 7, 14, 0], [0, 2, 36, 0], [0, 1, 17, 10]])
# Stroke patients by disability on admission and on discharge, which is never worse.
# Bishop and Fienberg, Biometrics 25, 1969.
STROKE = np.array(
[[5, 0, 0, 0, 0], [4, 5, 0, 0, 0], [6, 4, 4, 0, 0], [9, 10, 4, 1, 0],
 [11, 23, 12, 15, 8]]
)  # fmt: skip

# Published values of G^2, X^2 (or None) and df, and the adjusted df by the rule of
# Bishop, Fienberg, Holland 1975, section 3.8.
PRINTED = [
    # loglm: the vignette on log-linear models of vcdExtra.
    (HAIR_EYE_SEX, 1, "166.3001", "164.9247", 24, 24),
    (HAIR_EYE_SEX, [(0, 2), (1, 2)], "156.6779", "147.9440", 18, 18),
    (HAIR_EYE_SEX, [(0, 1), (2,)], "19.85656", "19.56712", 15, 15),
    # loglm: D. Wollschlaeger, "R examples repository", log-linear models.
    (UCB, 1, "2097.671", "2000.328", 16, 16),
    (UCB, [(0, 2), (1, 2)], "21.73551", "19.93841", 6, 6),
    # LRstats: the help page of seq_loglm in vcdExtra. No children of the crew: 4
    # cells, and 2 parameters, for each sex.
    (TITANIC, [(0, 1, 2), (3,)], "671.96", None, 15, 13),
    (TITANIC, [(0, 3), (1, 3), (2, 3)], "608.73", None, 20, 20),
    # Agresti, table 9.4; more digits: printed by loglm and anova.
    (DRUGS, 1, "1286.0199544", "1411.4", 4, 4),
    (DRUGS, [(0, 1), (2,)], "843.8266437", "704.9", 3, 3),
    (DRUGS, [(0, 2), (1,)], "939.6", "824.2", 3, 3),
    (DRUGS, [(1, 2), (0,)], "534.2", "505.6", 3, 3),
    (DRUGS, [(0, 1), (0, 2)], "497.4", "443.8", 2, 2),
    (DRUGS, [(0, 2), (1, 2)], "187.7543029", "177.6149", 2, 2),
    (DRUGS, [(0, 1), (1, 2)], "92.0", "80.8", 2, 2),
    (DRUGS, 2, "0.3739859", "0.4", 1, 1),
    # Agresti, table 9.9.
    (BELTS, 1, "2792.8", None, 11, 11),
    (BELTS, 2, "23.4", None, 5, 5),
    (BELTS, 3, "1.3", None, 1, 1),
    (BELTS, [(0, 1, 3), (0, 2), (2, 3), (1, 2)], "18.6", None, 4, 4),
    (BELTS, [(0, 2, 3), (0, 1), (1, 2), (1, 3)], "22.8", None, 4, 4),
    (BELTS, [(0, 1, 2), (0, 3), (1, 3), (2, 3)], "7.5", None, 4, 4),
    (BELTS, [(1, 2, 3), (0, 1), (0, 2), (0, 3)], "20.6", None, 4, 4),
    # loglm: the help pages of vcdExtra. Its sweeps stop if no expected count changes by
    # 0.1, so further digits, 2.293841 and 2.270373, are not correct.
    (DETERGENT, 1, "42.92866", "43.90225", 18, 18),
    (DETERGENT, [(2,), (0, 1, 3)], "32.82562", "32.46939", 11, 11),
    (BARTLETT, 1, "151.0193", "141.0527", 4, 4),
    (BARTLETT, 2, "2.2938", "2.270", 1, 1),
    (MENTAL, 1, "47.418", None, 15, 15),
    # Three cells are always empty, and a parameter of the margin is not identified.
    (CAESAR, [(0,), (1, 2, 3)], "85.10955", None, 14, 12),
    (CAESAR, [(0, 2), (1, 2, 3)], "48.18709", None, 12, 10),
    # assocstats: the solutions to the exercises of vcd; Kabacoff, "R in Action".
    (HOSPITAL, 1, "38.353", "35.171", 4, 4),
    (ARTHRITIS, 1, "13.530", "13.055", 2, 2),
    # Venables and Ripley, "Modern Applied Statistics with S", 4th edition, section 7.3.
    (HOUSING, [(0,), (1, 2, 3)], "217.46", None, 46, 46),
    (HOUSING, [(0, 1), (0, 2), (0, 3), (1, 2, 3)], "38.66", None, 34, 34),
    # loglm, its help page.
    (CARS, 1, "18.36179", "14.07985", 5, 5),
    # chisq.test, from a blog on correspondence analysis (datanalytics.com).
    (CAITHNESS, 1, None, "1240.039", 12, 12),
    # Agresti, 2nd edition, section 10.5.
    (PATHOLOGISTS, 1, "118.0", "120.3", 9, 9),
]
# Quasi-independence: cells that can occur; G^2, X^2 and df of independence on them.
INCOMPLETE = [
    # Fienberg, "The Analysis of Cross-Classified Categorical Data", 2nd edition 1980,
    # chapter 8: without the monkey that never displays.
    (MONKEYS, ~np.eye(6, dtype=bool), "135.17", "168.05", 19, 15),
    (STROKE, np.tril(np.ones((5, 5), bool)), "9.60", "8.37", 6, 6),
    # Agresti, 2nd edition, section 10.5: all but agreement; the last column is empty.
    (PATHOLOGISTS, ~np.eye(4, dtype=bool), "13.2", "11.5", 5, 3),
]


def as_printed(value, printed):
    digits = len(printed.partition(".")[2])
    return abs(value - float(printed)) <= 0.500001 * 10.0**-digits


@pytest.mark.parametrize("counts, order, deviance, pearson, dof, adjusted", PRINTED)
def test_statistics_agree_with_the_textbook(
    counts, order, deviance, pearson, dof, adjusted
):
    fit = goodness_of_fit(counts, TensorPoset(counts.shape), order)
    assert fit.converged
    assert deviance is None or as_printed(fit.deviance, deviance), fit.deviance
    assert pearson is None or as_printed(fit.pearson, pearson), fit.pearson
    assert (fit.dof, fit.adjusted_dof) == (dof, adjusted)


@pytest.mark.parametrize("counts, can, deviance, pearson, dof, adjusted", INCOMPLETE)
def test_quasi_independence_agrees_with_the_textbook(
    counts, can, deviance, pearson, dof, adjusted
):
    poset = TensorPoset(counts.shape)
    fit = goodness_of_fit(counts * can, poset, 1, reference=can)
    assert fit.converged
    assert as_printed(fit.deviance, deviance), fit.deviance
    assert as_printed(fit.pearson, pearson), fit.pearson
    assert (fit.dof, fit.adjusted_dof) == (dof, adjusted)
    assert not fit.expected[~can].any()


def test_titanic_table_has_structural_zeros():
    """Test that structural zeros change ``dof`` as random zeros change adjusted df."""
    can = np.ones(TITANIC.shape)
    can[3, 0] = 0
    poset, order = TensorPoset(TITANIC.shape), [(0, 1, 2), (3,)]
    fit = goodness_of_fit(TITANIC, poset, order, reference=can)
    assert as_printed(fit.deviance, "671.96")
    assert fit.dof == fit.adjusted_dof == 13


def test_p_values_agree_with_the_textbook():
    # loglm, for the same tables.
    drugs = goodness_of_fit(DRUGS, TensorPoset((2, 2, 2)), 2)
    assert as_printed(drugs.p_value, "0.54084")
    cuttings = goodness_of_fit(BARTLETT, TensorPoset((2, 2, 2)), 2)
    assert as_printed(cuttings.p_value, "0.12989")


def test_aic_differences_agree_with_the_textbook():
    # add1 of loglm, from the help page of Detergent in vcdExtra: likelihood ratio and
    # AIC of each pair added to independence. Constants of R's AIC cancel.
    poset = TensorPoset(DETERGENT.shape)
    none = goodness_of_fit(DETERGENT, poset, 1)
    printed = {
        (0, 2): ("4.3616", 52.567), (1, 2): ("20.5815", 36.347),
        (2, 3): ("0.3953", 58.533), (0, 1): ("1.2531", 55.676),
        (0, 3): ("6.0991", 52.830), (1, 3): ("1.0751", 57.854),
    }  # fmt: skip
    for pair, (ratio, aic) in printed.items():
        fit = goodness_of_fit(DETERGENT, poset, [pair, (0,), (1,), (2,), (3,)])
        assert as_printed(none.deviance - fit.deviance, ratio)
        assert fit.aic - none.aic == pytest.approx(aic - 54.929, abs=2e-3)
