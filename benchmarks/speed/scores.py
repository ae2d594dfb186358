"""Measured figures beside the wanted ones: the rows of every table here."""


def score(job, measure, measured, *, at_most=None, at_least=None, note=""):
    """One row: what was measured, and whether it is on the wanted side of a limit."""
    wanted, met = "", ""
    if at_most is not None:
        wanted, met = f"<= {at_most:g}", _yes(measured <= at_most)
    elif at_least is not None:
        wanted, met = f">= {at_least:g}", _yes(measured >= at_least)
    return {
        "job": job,
        "measure": measure,
        "wanted": wanted,
        "measured": float(measured),
        "met": met,
        "note": note,
    }


def _yes(met):
    return "yes" if met else "NO"
