"""Default and largest number of neighbours for a class of rows."""

from .._utils.warnings import warn_single_row, warn_user


def clip_neighbors(n_neighbors, n_rows, of_rows=False, data_name="the training data"):
    """Clip ``n_neighbors`` to the number of rows, and warn if this changes the number.

    With ``of_rows``, a row is not its own neighbour, except if it is the only row.
    """
    most = n_rows - of_rows
    if most == 0:
        warn_single_row(data_name)
    elif n_neighbors > n_rows:
        warn_user(
            f"k_neighbors={n_neighbors}, but {data_name} has only {n_rows} rows: using "
            f"{most} neighbours. Lower k_neighbors to avoid this warning."
        )
    return max(1, min(n_neighbors, most))


def default_k_neighbors(m):
    """Return the default number of neighbours for a class with m rows.

    The default is a third of the rows, at least 7 and at most 10, or all rows of a
    smaller class. More neighbours would mix the clusters of a small class.
    """
    return min(m, max(7, min(10, m // 3)))
