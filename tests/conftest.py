"""Settings for all tests."""

import os

# Test processes run side by side, and threads of BLAS and OpenMP would fight for the
# cores, also in processes that tests start. It is read as the libraries are loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

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
    """What starts workers comes first: one test process then starts them for all.

    Array API is checked in a process of its own: a setting of SciPy at import.
    """
    items.sort(key=lambda item: item.get_closest_marker("starting") is None)
    if os.environ.get("SCIPY_ARRAY_API"):
        return
    apart = [item for item in items if "check_array_api" in item.name]
    config.hook.pytest_deselected(items=apart)
    items[:] = [item for item in items if item not in apart]
