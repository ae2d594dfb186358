"""How time and memory grow with rows, cells, order and neighbours: fitted exponents."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sklearn_pnl import BackwardProjector, ManyBodyProjector

from ..tables import main
from . import problems
from .backward import drawn_codes
from .timing import interleaved, peak

# Training rows for one new row.
ONE_NEW_IN = 5
MIB = 2**20


@dataclass(frozen=True)
class Size:
    """One job: ``n`` rows with ``n_modes`` modes of 4, order ``ell``, k neighbours."""

    n: int
    n_modes: int
    ell: int
    k: int

    @property
    def n_cells(self):
        return 4**self.n_modes

    def tensors(self):
        return problems.synthetic_tensors(self.n, (4,) * self.n_modes)

    def projector(self):
        order = ManyBodyProjector(self.ell, offset=0.1)
        return BackwardProjector(order, k_neighbors=self.k)


def encode_and_decode(size, X):
    """Encode all rows and decode new codes, as an over-sampler does."""
    projector = size.projector().fit(X)
    codes = drawn_codes(projector, size.n // ONE_NEW_IN, np.random.default_rng(0))
    return projector, codes, projector.inverse_transform(codes)


def measure(size, repeats):
    """Return seconds of the steps, and MiB beyond the input."""
    X = size.tensors()
    projector, codes, new = encode_and_decode(size, X)
    taken = interleaved(
        {
            "encode s": lambda: size.projector().fit(X),
            "search s": lambda: projector.kneighbors(codes, return_distance=False),
            "search and decode s": lambda: projector.inverse_transform(codes),
        },
        repeats,
    )
    made = (projector.coordinates_, projector.codes_, codes, new)
    results = sum(array.nbytes for array in made if array.base is None) / MIB
    beyond = peak(size.tensors, partial(encode_and_decode, size)).beyond_input
    return {
        **taken,
        "without search s": sum(taken.values()) - 2 * taken["search s"],
        "peak MiB": beyond,
        "codes and new rows MiB": results,
        "working MiB": beyond - results,
    }


def vary(fixed, name, values, repeats):
    """Return rows for each value of one size, and one row of exponents."""
    rows = []
    for value in values:
        size = replace(fixed, **{name: value})
        shown = {"varied": name, "n": size.n, "D": size.n_cells}
        shown |= {"order": size.ell, "k": size.k, "at": "size"}
        rows.append(shown | measure(size, repeats) | {"wanted": "", "met": ""})
    return [*rows, exponents(rows, name)]


def exponents(rows, name):
    """Fit exponents by least squares in logarithms, over the larger sizes."""
    larger = rows[len(rows) // 2 :] if len(rows) > 3 else rows[-2:]
    column = {"n_modes": "D", "ell": "order"}.get(name, name)
    sizes = np.log([row[column] for row in larger])
    fitted = {
        key: _slope(sizes, [row[key] for row in larger])
        for key in rows[0]
        if key.endswith((" s", "MiB"))
    }
    shown = {"varied": name, "n": None, "D": None, "order": None, "k": None}
    return {**shown, "at": "exponent", **fitted, **_verdict(name, larger, fitted)}


def _slope(sizes, values):
    # Memory at the level of noise can come out as nothing.
    return float(np.polyfit(sizes, np.log(np.maximum(values, 1e-3)), 1)[0])


def _verdict(name, larger, fitted):
    if name != "n":
        return {"wanted": "", "met": ""}
    working = [row["working MiB"] for row in larger]
    rows_more = larger[-1]["n"] - larger[0]["n"]
    # "Flat" means that memory grows by less than a tenth of the memory of the added
    # rows. The neighbour search fills its block of 8192 training rows first.
    added = rows_more * larger[0]["D"] * 8 / MIB
    flat = working[-1] - working[0] <= 0.1 * added
    met = fitted["without search s"] <= 1.05 and flat
    wanted = "without search <= 1.05; working memory flat"
    return {"wanted": wanted, "met": "yes" if met else "NO"}


def run(quick):
    fixed = Size(n=1_000 if quick else 5_000, n_modes=4, ell=1, k=5)
    repeats = 1 if quick else 2
    rows = []
    ns = [fixed.n * 2**i for i in range(4)]
    for ell in (1, 2):
        # Order 2 is the one that iterates to encode.
        rows += vary(replace(fixed, ell=ell), "n", ns, repeats)
    small = replace(fixed, n=fixed.n // 4)
    for ell in (1, 2):
        modes = (2, 3, 4) if quick else (2, 3, 4, 5)
        rows += vary(replace(small, ell=ell), "n_modes", modes, repeats)
    rows += vary(small, "ell", (1, 2, 3), repeats)
    rows += vary(fixed, "k", (1, 4, 16) if quick else (1, 4, 16, 64), repeats)
    return rows


if __name__ == "__main__":
    main(__doc__, run, "speed-scaling")
