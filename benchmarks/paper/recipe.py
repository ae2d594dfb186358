"""The paper's geometry on each data set, in the recipe of all benchmarks."""

from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer

from sklearn_pnl import PrimeFactorReshaper
from sklearn_pnl.geometry import TensorPoset, order_mask
from sklearn_pnl.manifolds import ThetaManifold
from sklearn_pnl.recipes import PAPER_RECIPE


def recipe(experiment):
    """The paper's geometry on this data set, in the recipe of all benchmarks."""
    projector = clone(PAPER_RECIPE["order"]).set_params(order=experiment.order)
    return dict(PAPER_RECIPE) | {
        "order": projector,
        "reshaper": reshaper(experiment),
        "k_neighbors": experiment.k,
        "embedding": embedding(experiment),
    }


def equation(experiment):
    """The same with the local sub-manifold that the paper's text has."""
    local = ThetaManifold(order=experiment.local_order)
    return recipe(experiment) | {"local_manifold": local}


def defaults(experiment):
    """All defaults; pixels, which are no features with ranges, stay as they are."""
    return {"embedding": None} if experiment.kind == "image" else {}


def reshaper(experiment):
    """Makes the paper's tensors of rows; 11 features are padded with a zero."""
    rising = "descending" if experiment.name == "mnist" else "ascending"
    return PrimeFactorReshaper(factor_order=rising)


def embedding(experiment):
    """Pixels as they are, sound from [-1, 1] to [0, 1], features by their range."""
    if experiment.kind == "audio":
        return FunctionTransformer(_raised, inverse_func=_lowered, check_inverse=False)
    return None if experiment.kind == "image" else "minmax"


def base_size(experiment):
    """Elements of the base, the bottom too."""
    return int(order_mask(TensorPoset(experiment.tensor), experiment.order).sum()) + 1


def _raised(clips):
    return (clips + 1) / 2


def _lowered(clips):
    return 2 * clips - 1
