"""Real data sets from the folder that ``SKLEARN_PNL_DATA`` names."""

import os
import sys
from pathlib import Path

import numpy as np


def load(name):
    """The arrays of ``<name>.npz`` as a dict; leaves with a message if not there."""
    folder = os.environ.get("SKLEARN_PNL_DATA")
    if not folder:
        sys.exit(
            f"This benchmark reads {name}.npz from the folder that the environment "
            "variable SKLEARN_PNL_DATA names; it is not set."
        )
    path = Path(folder) / f"{name}.npz"
    if not path.exists():
        sys.exit(f"{path.name} is not in the folder that SKLEARN_PNL_DATA names.")
    with np.load(path, allow_pickle=False) as file:
        return dict(file)
