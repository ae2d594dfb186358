"""What every script does: read the command line, run, report."""

import argparse

from ..tables import report


def main(description, run, name):
    """Report the rows of ``run(quick)`` as ``speed-<name>``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="few rows")
    quick = parser.parse_args().quick
    # Rough figures must not take the place of full ones.
    report(run(quick), f"speed-{name}" + quick * "-quick")
