"""The paper's geometry on each data set, in the recipe of all benchmarks."""

from sklearn.preprocessing import FunctionTransformer

from sklearn_pnl import Codes, PrimeFactorReshaper
from sklearn_pnl.encoding import MixtureManifold, ThetaManifold
from sklearn_pnl.geometry import TensorPoset, order_mask

# Where the authors' program stops with their learning rate for tables (0.05), for each
# number of neighbours.
STEPS = {2: 0.95, 5: 0.87, 10: 0.64}


def recipe(experiment):
    """The paper's geometry on this data set, in the recipe of all benchmarks."""
    method = Codes.paper(
        experiment.order,
        reshaper=reshaper(experiment),
        embedding=embedding(experiment),
    )
    return {"method": method, "k_neighbors": experiment.k}


def equation(experiment):
    """The same with the local sub-manifold that the paper's text has."""
    found = recipe(experiment)
    local = ThetaManifold(order=experiment.local_order)
    found["method"].set_params(local_manifold=local)
    return found


def authors(experiment):
    """The same with the scaling and the step of the authors' notebooks for tables."""
    found = recipe(experiment)
    found["method"].set_params(
        embedding="minmax-table", local_manifold=MixtureManifold(STEPS[experiment.k])
    )
    return found


def defaults(experiment):
    """All defaults; pixels, which are no features with ranges, stay as they are."""
    return {"method": Codes(embedding=None)} if experiment.kind == "image" else {}


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
