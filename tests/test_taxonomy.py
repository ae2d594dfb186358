"""Taxonomies: totals of taxa are coordinates, proportions inside are the others."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_pnl.geometry import (
    e_geodesic,
    mixed_projection,
    taxonomy_poset,
    theta_from_prob,
)

SEEDS = [0, 1, 2]
RANKS = ("phylum", "family", "genus")


def random_lineages(seed, n_features=24):
    """Nested taxa of unequal sizes, in mixed order; single ones too."""
    rng = np.random.default_rng(seed)
    phylum = rng.integers(3, size=n_features)
    family = 3 * rng.integers(2, size=n_features) + phylum
    genus = 6 * rng.integers(3, size=n_features) + family
    return [f"p{p};f{f};g{g}" for p, f, g in zip(phylum, family, genus, strict=True)]


def random_compositions(seed, n_rows, n_features=24):
    """Some of the cells are nearly empty."""
    rng = np.random.default_rng(seed)
    rows = rng.gamma(0.3, size=(n_rows, n_features)) + 1e-6
    return rows / rows.sum(axis=1, keepdims=True)


def totals_slow(X, lineages, rank):
    """Sums over the features that share a lineage down to a rank, as they appear."""
    depth = RANKS.index(rank) + 1
    heads = [tuple(lineage.split(";")[:depth]) for lineage in lineages]
    known = list(dict.fromkeys(heads))
    return np.stack(
        [X[:, [head == taxon for head in heads]].sum(axis=1) for taxon in known], axis=1
    )


def inside(X, totals, members):
    return X / totals[:, members]


# --- order and totals -----------------------------------------------------------


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("seed", SEEDS)
def test_totals_are_sums_over_taxa(seed, rank):
    lineages, X = random_lineages(seed), random_compositions(seed, 5)
    taxonomy = taxonomy_poset(lineages, ranks=RANKS)
    expected = totals_slow(X, lineages, rank)
    assert_allclose(taxonomy.totals(X, rank), expected, rtol=1e-12)
    names = taxonomy.taxa[RANKS.index(rank)]
    assert names == tuple(
        dict.fromkeys(x.split(";")[RANKS.index(rank)] for x in lineages)
    )


@pytest.mark.parametrize("by_abundance", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_eta_of_a_feature_is_the_total_of_the_largest_taxon_it_is_the_first_of(
    seed, by_abundance
):
    lineages, X = random_lineages(seed), random_compositions(seed, 5)
    abundances = X.mean(axis=0) if by_abundance else None
    taxonomy = taxonomy_poset(lineages, abundances=abundances)
    position = np.arange(24) if abundances is None else -abundances
    eta = taxonomy.poset.eta(X)
    for feature in range(24):
        paths = [tuple(lineage.split(";")) for lineage in lineages]
        for depth in (0, 1, 2, 3, 4):
            group = [
                other == feature
                if depth == 4
                else path[:depth] == paths[feature][:depth]
                for other, path in enumerate(paths)
            ]
            if position[feature] == position[group].min():
                break
        assert_allclose(eta[:, feature], X[:, group].sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("seed", SEEDS)
def test_eta_on_the_base_of_a_rank_and_its_totals_decide_each_other(seed, rank):
    # As linear functions of the cells, with the sum of all cells, they span the same.
    taxonomy = taxonomy_poset(random_lineages(seed), ranks=RANKS)
    cells = np.eye(24)
    base = taxonomy.base(rank)
    eta = np.column_stack([np.ones(24), taxonomy.poset.eta(cells)[:, base]])
    totals = taxonomy.totals(cells, rank)
    n_taxa = totals.shape[1]
    assert len(base) == n_taxa - 1
    assert np.linalg.matrix_rank(eta) == np.linalg.matrix_rank(totals) == n_taxa
    assert np.linalg.matrix_rank(np.hstack([eta, totals])) == n_taxa


@pytest.mark.parametrize("seed", SEEDS)
def test_bases_are_down_sets_and_nested_as_the_ranks_are(seed):
    taxonomy = taxonomy_poset(random_lineages(seed), ranks=RANKS)
    bases = [set(taxonomy.base(rank)) for rank in RANKS]
    assert bases[0] < bases[1] < bases[2]
    for base in bases:
        mask = np.isin(np.arange(24), [*base, taxonomy.poset.bottom])
        assert taxonomy.poset.is_down_set(mask)


# --- what projections keep ------------------------------------------------------


def project(target, reference, taxonomy, rank):
    matched = np.isin(np.arange(24), taxonomy.base(rank))
    found = mixed_projection(target, reference, matched, taxonomy.poset, tol=1e-12)
    assert np.all(found.converged)
    return found.prob


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("seed", SEEDS)
def test_encoding_keeps_totals_and_forgets_proportions(seed, rank):
    # The m-projection on theta = 0 off the base (Amari 2016, section 2.8).
    lineages, X = random_lineages(seed), random_compositions(seed, 4)
    taxonomy = taxonomy_poset(lineages, ranks=RANKS)
    encoded = project(X, None, taxonomy, rank)
    totals = totals_slow(X, lineages, rank)
    assert_allclose(totals_slow(encoded, lineages, rank), totals, atol=1e-10)
    members = taxonomy.members[RANKS.index(rank)]
    sizes = np.bincount(members)[members]
    assert_allclose(
        inside(encoded, totals, members), 1 / np.tile(sizes, (4, 1)), rtol=1e-6
    )


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("seed", SEEDS)
def test_decoding_by_the_fibre_of_one_row_takes_its_proportions(seed, rank):
    # eta of a new code on the base, theta of the near row off it: the fibre's point
    # closest to that row.
    lineages, X = random_lineages(seed), random_compositions(seed, 9)
    taxonomy = taxonomy_poset(lineages, ranks=RANKS)
    code = e_geodesic(X[0], X[1], [0.3, 0.6, 0.9])
    decoded = project(code, X[2:5], taxonomy, rank)
    totals, near = (
        totals_slow(code, lineages, rank),
        totals_slow(X[2:5], lineages, rank),
    )
    members = taxonomy.members[RANKS.index(rank)]
    assert_allclose(totals_slow(decoded, lineages, rank), totals, atol=1e-10)
    expected = inside(X[2:5], near, members)
    assert_allclose(inside(decoded, totals, members), expected, rtol=1e-6)
    # The closed form: the row's cells, times the ratio of the totals.
    assert_allclose(decoded, X[2:5] * (totals / near)[:, members], rtol=1e-6)


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("seed", SEEDS)
def test_which_feature_is_the_first_changes_coordinates_alone(seed, rank):
    X = random_compositions(seed, 4)
    first, second = (
        taxonomy_poset(random_lineages(seed), ranks=RANKS, abundances=abundances)
        for abundances in (None, np.random.default_rng(seed).random(24))
    )
    assert first.poset.bottom != second.poset.bottom
    for reference in (None, X[2:]):
        assert_allclose(
            project(X[:2], reference, first, rank),
            project(X[:2], reference, second, rank),
            rtol=1e-7,
        )
    assert not np.allclose(*(theta_from_prob(X, t.poset) for t in (first, second)))


# --- what is read ---------------------------------------------------------------


def test_strings_and_sequences_are_the_same():
    lineages = ["p1;f1", "p1;f2", "p2;f3", "p1;f1"]
    names = ["a", "b", "c", "d"]
    found = [
        taxonomy_poset(lineages),
        taxonomy_poset([x.split(";") for x in lineages], features=names),
        taxonomy_poset([x.replace(";", " | ") for x in lineages], separator="|"),
        taxonomy_poset(np.array(lineages)),
    ]
    for taxonomy in found:
        assert taxonomy.ranks == ("level 1", "level 2")
        assert taxonomy.taxa == (("p1", "p2"), ("f1", "f2", "f3"))
        assert_array_equal(taxonomy.members, [[0, 0, 1, 0], [0, 1, 2, 0]])
        difference = taxonomy.poset.zeta_matrix != found[0].poset.zeta_matrix
        assert difference.nnz == 0
    assert [t.features for t in found[:2]] == [None, tuple(names)]


@pytest.mark.parametrize(
    ("lineage", "ranks"),
    [
        ("k__A;p__B;c__C", ("kingdom", "phylum", "class")),
        ("d__A; p__B; s__C", ("domain", "phylum", "species")),
        ("K__A;P__B", ("kingdom", "phylum")),
        ("A;p__B", ("level 1", "level 2")),
        ("p__A;p__B", ("level 1", "level 2")),
        ("x__A;p__B", ("level 1", "level 2")),
    ],
)
def test_ranks_are_read_from_prefixes(lineage, ranks):
    taxonomy = taxonomy_poset([lineage, lineage])
    assert taxonomy.ranks == ranks
    assert repr(taxonomy).startswith(f"Taxonomy(2 features; {ranks[0]}: 1, ")


def test_prefixes_without_a_name_are_taxa_of_their_parents():
    taxonomy = taxonomy_poset(["f__A;g__", "f__A;g__x", "f__B;g__", "f__A;g__"])
    assert taxonomy.taxa[1] == ("g__", "g__x", "g__")
    assert_array_equal(taxonomy.members[1], [0, 1, 2, 0])


def test_one_feature_and_one_taxon():
    taxonomy = taxonomy_poset(["p__A"])
    assert taxonomy.poset.n_elements == 1
    assert taxonomy.base("phylum").size == 0
    assert taxonomy_poset(["p__A"] * 4).base("phylum").size == 0


# --- refusals -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lineages", "message"),
    [
        ([], "no lineage: a taxonomy needs a feature"),
        (["a;b", ""], "lineage of feature 1 is empty"),
        (["a;b", " ; "], "lineage of feature 1 is empty"),
        (["a;b", []], "lineage of feature 1 is empty"),
        (["a;b", "a"], r"feature 1, \('a',\), has no taxon at rank 2 of 2.*unclassif"),
        (["a;b;c", "a;;d"], r"feature 1, .*, has no taxon at rank 2 of 3"),
        (["a;x", "b;x"], "level 2 'x' has two parents, 'a' and 'b' .feature 1"),
        (["p__a;f__x", "p__b;f__x"], "family 'f__x' has two parents"),
        (
            ["a;g__;s", "b;g__;s"],
            "level 3 's' has two parents, 'a > g__' and 'b > g__'",
        ),
        ("a;b", "one for each feature; got a single string"),
        ({"x": "a"}, "one for each feature; got a single string, a dict"),
        ([1, 2], "feature 0 must be a string or a sequence of strings; got 1"),
        ([["a", 1]], "feature 0 must be a string"),
    ],
    ids=str,
)
def test_lineages_that_make_no_taxonomy_are_refused(lineages, message):
    with pytest.raises(ValueError, match=message):
        taxonomy_poset(lineages)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ranks": ("one",)}, "2 different names, as many as the lineages have"),
        ({"ranks": ("one", "one")}, "2 different names"),
        ({"features": ["x"]}, "2 lineages, but 1 names"),
        ({"abundances": [1.0]}, "a number for each of 2 features"),
        ({"abundances": np.ones((9, 2))}, r"sums of a table.*got shape \(9, 2\)"),
        ({"abundances": [1.0, np.nan]}, "a number for each of 2 features"),
    ],
    ids=str,
)
def test_arguments_that_do_not_fit_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        taxonomy_poset(["a;b", "a;c"], **wrong)


def test_a_rank_that_is_not_there_is_refused():
    taxonomy = taxonomy_poset(["p__A;f__B"])
    for method in (taxonomy.base, lambda rank: taxonomy.totals([1.0], rank)):
        with pytest.raises(ValueError, match="no rank 'genus'; the ranks are .*phylum"):
            method("genus")


def test_lineages_of_a_frame_are_its_rows():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"phylum": ["A", "A", "B"], "family": ["a", "b", "c"]})
    with pytest.raises(ValueError, match=r"a data frame, which lists its .*to_numpy"):
        taxonomy_poset(frame)
    taxonomy = taxonomy_poset(frame.to_numpy(), ranks=list(frame))
    assert str(taxonomy) == "Taxonomy(3 features; phylum: 2, family: 3)"


def test_totals_of_small_integers_do_not_overflow():
    taxonomy = taxonomy_poset(["a;x", "a;y", "b;z"], ranks=["rank", "name"])
    for dtype in (np.int8, np.uint8, bool, np.float16, np.float32):
        X = np.array([[100, 100, 1]]).astype(dtype)
        wanted = [[X[0, 0] + 1.0 * X[0, 1], 1]]
        assert_array_equal(taxonomy.totals(X, "rank"), wanted)
    with pytest.raises(ValueError, match=r"must have shape \(..., 3\)"):
        taxonomy.totals([[1, 2]], "rank")
    with pytest.raises(ValueError, match="masked array"):
        taxonomy.totals(np.ma.masked_array([[1, 2, 3]], [[0, 1, 0]]), "rank")
