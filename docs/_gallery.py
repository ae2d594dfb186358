"""Order the examples of the gallery: the quickstart first, then the common tasks."""

FIRST = (
    "plot_quickstart.py",
    "plot_mixed_table.py",
    "plot_regression.py",
    "plot_check_generated_rows.py",
    "plot_totals.py",
    "plot_households.py",
    "plot_scenario.py",
)


class Order:
    """Sort the file names of a folder by their place in FIRST, and then by name."""

    def __init__(self, src_dir):
        """Accept the folder that sphinx-gallery passes."""

    def __call__(self, filename):
        """Return the sort key of a file name."""
        place = FIRST.index(filename) if filename in FIRST else len(FIRST)
        return place, filename
