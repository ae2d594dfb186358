"""Helper that moves the parameters of ``Codes`` into ``method``."""

from inspect import signature

from sklearn_pnl import Codes

OF_CODES = set(signature(Codes).parameters)


def in_method(params):
    """Return the parameters, with those of ``Codes`` combined into ``method``."""
    of_codes = {name: value for name, value in params.items() if name in OF_CODES}
    others = {name: value for name, value in params.items() if name not in OF_CODES}
    return others | ({"method": Codes(**of_codes)} if of_codes else {})
