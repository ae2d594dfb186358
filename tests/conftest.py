"""Settings for all tests."""

import os

import pytest
from threadpoolctl import threadpool_limits


def pytest_collection_modifyitems(config, items):
    """Array API is checked in a process of its own: a setting of SciPy at import."""
    if os.environ.get("SCIPY_ARRAY_API"):
        return
    apart = [item for item in items if "check_array_api" in item.name]
    config.hook.pytest_deselected(items=apart)
    items[:] = [item for item in items if item not in apart]


@pytest.fixture(scope="session", autouse=True)
def _one_blas_thread():
    """Test processes run side by side; their BLAS threads would fight for the cores."""
    with threadpool_limits(1, user_api="blas"):
        yield
