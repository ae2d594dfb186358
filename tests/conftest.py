"""Settings for all tests."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="session", autouse=True)
def _one_blas_thread():
    """Test processes run side by side; their BLAS threads would fight for the cores."""
    with threadpool_limits(1, user_api="blas"):
        yield
