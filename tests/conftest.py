"""Settings for all tests."""

import os

# Test processes run in parallel, so that threads of BLAS and OpenMP would compete for
# the cores. The variable is read when the libraries are loaded, also in processes that
# tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

try:
    from hypothesis import HealthCheck, Phase, settings
except ImportError:  # its tests say so
    pass
else:
    # The time depends on the machine, so that it is no property of a test.
    common = {
        "deadline": None,
        "suppress_health_check": list(HealthCheck),
        "phases": [Phase.explicit, Phase.generate],
    }
    settings.register_profile("ci", max_examples=25, derandomize=True, **common)
    settings.register_profile("deep", max_examples=700, print_blob=True, **common)
    settings.load_profile("ci")


def pytest_collection_modifyitems(config, items):
    """Run tests that start workers first, so that one process starts the workers.

    Checks of the array API run in a separate process, because SciPy reads a setting
    when it is imported.
    """
    items.sort(key=lambda item: item.get_closest_marker("starting") is None)
    if os.environ.get("SCIPY_ARRAY_API"):
        return
    apart = [item for item in items if "check_array_api" in item.name]
    config.hook.pytest_deselected(items=apart)
    items[:] = [item for item in items if item not in apart]
