"""A backward projector with the numerics of its projector said beside its own."""

from sklearn_pnl import BackwardProjector, ManyBodyProjector

OWN = BackwardProjector._get_param_names()


def backward(order=1, **params):
    """What is no parameter of `BackwardProjector` is one of its projector."""
    own = {name: params.pop(name) for name in OWN if name in params}
    return BackwardProjector(ManyBodyProjector(order, **params), **own)


# As errors call it.
backward.__name__ = "BackwardProjector"
