"""Compare measured figures with limits: the rows of each table of this folder."""


def score(job, measure, measured, *, at_most=None, at_least=None, note=""):
    """Return a row with a measured figure, and whether it satisfies the limit."""
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
