"""Backward projectors for tests."""

from sklearn_pnl import BackwardProjector, ManyBodyProjector

OWN = BackwardProjector._get_param_names()


def backward(order=1, **params):
    """Return a `BackwardProjector`; other parameters are passed to its projector."""
    own = {name: params.pop(name) for name in OWN if name in params}
    return BackwardProjector(ManyBodyProjector(order, **params), **own)


# Errors contain the name of the class.
backward.__name__ = "BackwardProjector"
