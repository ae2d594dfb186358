"""Rows of household budgets: parts add up to a total; total and children may be given.

A problem has ``numbers`` of training rows by ``names``, their ``children`` (a
category), ``n``, ``seed`` and, where values are asked for, ``total`` and ``asked`` of
each new row. Answers are ``numbers`` and ``children`` of new rows in that order.
"""

import tempfile
from pathlib import Path

import numpy as np

PACKAGES = {
    "smote": ("imbalanced-learn",),
    "sdv_copula": ("sdv",),
    "sdv_copula_constraint": ("sdv",),
    "sdv_ctgan_constraint": ("sdv", "ctgan"),
    "ctgan_pishield": ("ctgan", "pishield"),
    "mostlyai": ("mostlyai-engine",),
}
# Of these is the total made; the next columns are it and whole numbers.
N_PARTS = 6
DRAWN = 200


def frame_of(problem):
    """Training rows as a frame."""
    import pandas as pd

    frame = pd.DataFrame(problem["numbers"], columns=[str(c) for c in problem["names"]])
    return frame.assign(children=problem["children"].astype(object))


def answer(frame):
    """A frame as arrays."""
    numbers = frame.drop(columns="children").to_numpy(float)
    return {"numbers": numbers, "children": frame["children"].to_numpy(str)}


def wanted(problem, frame):
    """Values asked of each new row, as a frame."""
    given = {"total": problem["total"], "children": problem["asked"].astype(object)}
    return type(frame)(given)


def by_level(problem, frame, draw):
    """New rows in the order asked for, drawn from the rows of their category."""
    rows = wanted(problem, frame).reindex(columns=frame.columns)
    for level in np.unique(problem["asked"]):
        here = problem["asked"] == level
        rows[here] = draw(frame[frame["children"] == level], problem["total"][here])
    return answer(rows.infer_objects())


def ours(problem):
    from sklearn_pnl import ColumnConstraint, PNLAugmenter

    frame, n, seed = frame_of(problem), int(problem["n"]), int(problem["seed"])
    yield

    def draw(some, totals):
        # Some held-out totals are beyond those of the training rows of a category.
        settings = {"categorical_features": "auto", "range_slack": 1.0}
        augmenter = PNLAugmenter(**settings).fit(some)
        asked = ColumnConstraint("total", equal=totals)
        return augmenter.sample(len(totals), seed, constraints=asked).to_numpy()

    if "total" in problem:
        yield by_level(problem, frame, draw)
    yield answer(PNLAugmenter(categorical_features="auto").fit(frame).sample(n, seed))


def filtered(problem):
    """Many default rows, of which those nearest to what is asked are kept."""
    from sklearn_pnl import PNLAugmenter

    frame, seed = frame_of(problem), int(problem["seed"])
    yield

    def draw(some, totals):
        augmenter = PNLAugmenter(categorical_features="auto").fit(some)
        many = augmenter.sample(DRAWN * len(totals), seed).to_numpy()
        free, at = np.ones(len(many), dtype=bool), many[:, N_PARTS].astype(float)
        kept = []
        for total in totals:
            gap = np.where(free, np.abs(at - total), np.inf)
            kept.append(int(np.argmin(gap)))
            free[kept[-1]] = False
        return many[kept]

    yield by_level(problem, frame, draw)


def smote(problem):
    """SMOTE, whole numbers rounded, and the parts rescaled to the total."""
    from imblearn.over_sampling import SMOTE, SMOTENC

    frame, n, seed = frame_of(problem), int(problem["n"]), int(problem["seed"])
    yield

    def more(some, m, sampler):
        """SMOTE balances classes: a second one of constant rows makes it add m."""
        rows, other = some.to_numpy(), np.repeat(some.to_numpy()[:1], len(some) + m, 0)
        labels = np.repeat([1, 0], [len(rows), len(other)])
        new, _ = sampler.fit_resample(np.vstack([rows, other]), labels)
        return new[len(rows) + len(other) :]

    def rescaled(numbers, totals=None):
        numbers[:, N_PARTS:] = np.rint(numbers[:, N_PARTS:])
        if totals is not None:
            numbers[:, N_PARTS] = totals
        parts = numbers[:, :N_PARTS]
        parts *= (numbers[:, N_PARTS] / parts.sum(axis=1))[:, None]
        return numbers

    def draw(some, totals):
        some = some.drop(columns="children").astype(float)
        new = more(some, len(totals), SMOTE(random_state=seed))
        level = np.full((len(totals), 1), "", dtype=object)
        return np.hstack([rescaled(new, totals).astype(object), level])

    if "total" in problem:
        found = by_level(problem, frame, draw)
        yield found | {"children": problem["asked"]}
    mixed = SMOTENC([frame.shape[1] - 1], random_state=seed)
    new = more(frame, n, mixed)
    numbers = rescaled(new[:, :-1].astype(float))
    yield {"numbers": numbers, "children": new[:, -1].astype(str)}


def with_sdv(problem, synthesizer, constrained):
    """A synthesizer of SDV; the constraint drops a part, and makes it of the rest."""
    from sdv.cag import SingleTableProgrammableConstraint
    from sdv.metadata import Metadata
    from sdv.single_table import CTGANSynthesizer, GaussianCopulaSynthesizer

    class Parts(SingleTableProgrammableConstraint):
        names = tuple(str(c) for c in problem["names"][:N_PARTS])

        def transform(self, data):
            return data.drop(columns=self.names[-1])

        def get_updated_metadata(self, metadata):
            data = metadata.to_dict()
            for table in data["tables"].values():
                table["columns"].pop(self.names[-1])
            return Metadata.load_from_dict(data)

        def reverse_transform(self, data):
            rest = data["total"] - data[list(self.names[:-1])].sum(axis=1)
            data[self.names[-1]] = rest.round(2)
            return data

        def is_valid(self, data):
            return (data[list(self.names)] >= 0).all(axis=1)

    kinds = {"copula": GaussianCopulaSynthesizer, "ctgan": CTGANSynthesizer}
    frame, n = frame_of(problem), int(problem["n"])
    yield
    whole = frame.columns[N_PARTS:-1]
    frame[whole] = frame[whole].astype(int)
    metadata = Metadata.detect_from_dataframes({"rows": frame})
    for column in frame.columns[:-1]:
        metadata.update_column(column, sdtype="numerical")
    metadata.update_column("children", sdtype="categorical")
    model = kinds[synthesizer](metadata)
    if constrained:
        model.add_constraints([Parts()])
    model.fit({"rows": frame})
    if "total" in problem:
        known = wanted(problem, frame).astype({"total": int})
        new = model.sample_remaining_columns(known)
    else:
        new = model.sample(n)
    new = new["rows"] if isinstance(new, dict) else new
    yield answer(new[list(frame.columns)])


def sdv_copula(problem):
    yield from with_sdv(problem, "copula", False)


def sdv_copula_constraint(problem):
    yield from with_sdv(problem, "copula", True)


def sdv_ctgan_constraint(problem):
    yield from with_sdv(problem, "ctgan", True)


def mostlyai(problem):
    """Its engine, with what is asked for as seed of each row."""
    from mostlyai.engine import TabularARGN

    frame, n = frame_of(problem), int(problem["n"])
    yield
    with tempfile.TemporaryDirectory() as folder:
        model = TabularARGN(
            workspace_dir=folder, random_state=int(problem["seed"]), verbose=0
        )
        model.fit(frame)
        seeds = wanted(problem, frame) if "total" in problem else None
        new = model.sample(n_samples=None if seeds is not None else n, seed_data=seeds)
        yield answer(new[list(frame.columns)])


def ctgan_pishield(problem):
    """CTGAN, its rows corrected by a shield; a shield for each total asked for."""
    import torch
    from ctgan import CTGAN
    from pishield.shield_layer import build_shield_layer

    frame, n = frame_of(problem), int(problem["n"])
    yield
    torch.manual_seed(int(problem["seed"]))
    np.random.seed(int(problem["seed"]))  # noqa: NPY002, CTGAN draws from it
    model = CTGAN()
    model.fit(frame, discrete_columns=["children"])
    new = model.sample(n)[list(frame.columns)]
    numbers = new.drop(columns="children").to_numpy(float)
    numbers[:, N_PARTS:] = np.rint(numbers[:, N_PARTS:])
    last, total = N_PARTS - 1, N_PARTS

    def shielded(rows, asked=None):
        """At least 0, and all parts but the last at most the total, which it leaves.

        Two inequalities for one equation it takes for others: all rows become 0.
        """
        parts = "".join(f" - y_{j}" for j in range(last))
        order = [*range(total + 1, rows.shape[1]), total, *range(total)]
        lines = ["ordering " + " ".join(f"y_{j}" for j in order)]
        lines += [f"y_{j} >= 0" for j in range(total + 1)]
        lines += [f"y_{total}{parts} >= 0"]
        if asked is not None:
            lines += [f"y_{total} >= {asked:g}", f"-y_{total} >= {-asked:g}"]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "requirements.txt"
            path.write_text("\n".join(lines) + "\n")
            shield = build_shield_layer(
                rows.shape[1], str(path), requirements_type="linear"
            )
        rows = shield(torch.tensor(rows, dtype=torch.float32)).numpy().astype(float)
        rows[:, last] = rows[:, total] - rows[:, :last].sum(axis=1)
        return rows

    if "total" not in problem:
        numbers = shielded(numbers)
    for value in np.unique(problem.get("total", [])):
        here = problem["total"] == value
        numbers[here] = shielded(numbers[here], value)
    yield {"numbers": numbers, "children": new["children"].to_numpy(str)}
