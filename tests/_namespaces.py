"""Arrays of array-api-strict and, if it is installed, of PyTorch."""

from importlib.util import find_spec

import array_api_strict
import numpy as np
import pytest

from sklearn_pnl._utils.arrays import compat, to_host

if compat is None:
    pytest.skip("scikit-learn 1.6 has no array_api_compat", allow_module_level=True)


def of_torch(x):
    import torch

    return torch.asarray(x)


NAMESPACES = [
    pytest.param(array_api_strict.asarray, id="array_api_strict"),
    pytest.param(
        of_torch,
        id="torch",
        marks=pytest.mark.skipif(
            find_spec("torch") is None, reason="torch is not installed"
        ),
    ),
]


def assert_same(got, expected, like, tol=1e-9):
    """Check that results have the type and namespace of ``like``, and equal NumPy's."""
    assert type(got) is type(like)
    expected = np.asarray(expected)
    if expected.dtype.kind == "f":
        assert got.dtype == like.dtype
    np.testing.assert_allclose(to_host(got), expected, rtol=tol, atol=tol)
