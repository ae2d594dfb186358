"""Seconds and bytes, taken so that runs on a busy machine can still be compared."""

import re
import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter

_STATUS = Path("/proc/self/status")
_RESET_PEAK = Path("/proc/self/clear_refs")
# Work shorter than this is repeated within a measurement.
_SHORTEST = 0.05
# Work longer than this is measured once: a first call adds little to it.
_LONGEST = 120.0


def seconds(function):
    """Measure the wall time of one call."""
    start = perf_counter()
    function()
    return perf_counter() - start


def interleaved(functions, repeats=5):
    """Measure median seconds of each function of a dict, run in turn.

    Runs that follow each other share the load of the machine, so that ratios of the
    medians vary less than ratios of medians that are measured separately. The first
    round fills caches and determines how often a short function is repeated. It counts
    only for functions that are too slow to run again.
    """
    first = {name: seconds(function) for name, function in functions.items()}
    taken = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            if first[name] <= _LONGEST:
                loops = max(1, int(_SHORTEST / max(first[name], 1e-9)))
                taken[name].append(_mean_seconds(function, loops))
    return {name: median(times or [first[name]]) for name, times in taken.items()}


def _mean_seconds(function, loops):
    start = perf_counter()
    for _ in range(loops):
        function()
    return (perf_counter() - start) / loops


@dataclass(frozen=True)
class Peak:
    """Memory of one job in MiB, beyond its input, and its seconds.

    ``kept`` is the memory of the result of the job.
    """

    beyond_input: float
    kept: float
    seconds: float


def peak(setup, job):
    """Measure memory of ``job(setup())`` in its own process, beyond imports and input.

    Both arguments must be importable: functions of a module, or partials of functions.
    The result of ``job`` may keep references to intermediate arrays.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(peak_here, setup, job).result()


def peak_here(setup, job):
    """Measure memory of ``job(setup())`` in this process, as in :func:`peak`."""
    data = setup()
    _reset_peak()
    before, resident = _peak_bytes(), _resident_bytes()
    start = perf_counter()
    result = job(data)
    taken = perf_counter() - start
    beyond, kept = _peak_bytes() - before, _resident_bytes() - resident
    del result
    return Peak(beyond / 2**20, kept / 2**20, taken)


def _reset_peak():
    """Reset the peak memory after the data are loaded, if the system supports it."""
    if _RESET_PEAK.exists():
        _RESET_PEAK.write_text("5")


def _peak_bytes():
    # Linux hands ru_maxrss of the parent on to a child; VmHWM starts afresh.
    if _STATUS.exists():
        return _from_status("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _resident_bytes():
    return _from_status("VmRSS") if _STATUS.exists() else _peak_bytes()


def _from_status(field):
    return 1024 * int(re.search(rf"{field}:\s+(\d+)", _STATUS.read_text())[1])
