"""What every script does: read the command line, run on one core, report."""

import argparse

from threadpoolctl import threadpool_limits

from ..tables import report


def main(description, run, name):
    """Report the rows of ``run(quick)`` as ``control-<name>``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="few and small problems")
    quick = parser.parse_args().quick
    with threadpool_limits(1, "blas"):
        # Rough figures must not take the place of full ones.
        report(run(quick), f"control-{name}" + quick * "-quick")
