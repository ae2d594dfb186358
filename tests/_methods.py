"""Parameters of estimators, with those of codes among them in their method."""

from inspect import signature

from sklearn_pnl import Codes

OF_CODES = set(signature(Codes).parameters)


def in_method(params):
    """The same parameters; those of ``Codes``, if there are any, as ``method``."""
    of_codes = {name: value for name, value in params.items() if name in OF_CODES}
    others = {name: value for name, value in params.items() if name not in OF_CODES}
    return others | ({"method": Codes(**of_codes)} if of_codes else {})
