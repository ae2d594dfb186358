"""Masked arrays are rejected by name."""

import numpy as np
import pytest

from sklearn_pnl import (
    PNLAugmenter,
    compare_samples,
    geometry,
)
from sklearn_pnl.control import (
    ColumnConstraint,
    calibrate,
)
from sklearn_pnl.geometry import TensorPoset, complete, kl_divergence


def drawn(X, **request):
    return PNLAugmenter().fit(X).sample(5, 0, **request)


# --- masked arrays --------------------------------------------------------------

SMALL = np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], [[0, 1], [0, 0]])
ENDS = SMALL[0]
SQUARE = TensorPoset((2, 2))
USES = [
    (lambda: compare_samples(SMALL.data, SMALL), "X_new"),
    (lambda: geometry.rake_array(SMALL, {(0,): [3, 7]}), "tables"),
    (lambda: geometry.rake_array(SMALL.data, {(0,): ENDS}), r"margin \(0,\)"),
    (lambda: kl_divergence(SMALL.data, q=SMALL), "An array"),
    (
        lambda: complete(SMALL.data, SQUARE, SQUARE.order == 1, reference=SMALL),
        "reference",
    ),
    (lambda: complete(SMALL, SQUARE, SQUARE.order == 1), "measures"),
    (lambda: ColumnConstraint("a", equal=ENDS), "equal"),
    (lambda: calibrate([[1.0, 2.0]], ENDS), "totals"),
    (lambda: drawn(np.eye(9)[:, :2], totals=ENDS), "totals"),
]


@pytest.mark.parametrize(("use", "name"), USES)
def test_masked_cells_are_rejected(use, name):
    with pytest.raises(ValueError, match=f"{name} .*masked"):
        use()
