"""Settings for all tests."""

import os

import pytest
from threadpoolctl import threadpool_limits

try:
    from hypothesis import HealthCheck, Phase, settings
except ImportError:  # its tests say so
    pass
else:
    # Time is no property: the machine decides it.
    common = {
        "deadline": None,
        "suppress_health_check": list(HealthCheck),
        "phases": [Phase.explicit, Phase.generate],
    }
    settings.register_profile("ci", max_examples=25, derandomize=True, **common)
    settings.register_profile("deep", max_examples=700, print_blob=True, **common)
    settings.load_profile("ci")


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
