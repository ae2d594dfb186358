"""The paper's geometry on each data set, in the recipe of all benchmarks."""

from sklearn.preprocessing import FunctionTransformer

from sklearn_pnl import Codes, PrimeFactorReshaper
from sklearn_pnl.encoding import MixtureManifold, ThetaManifold
from sklearn_pnl.geometry import TensorPoset, order_mask

# The point at which the authors' program stops with its learning rate for tables
# (0.05), for each number of neighbours.
STEPS = {2: 0.95, 5: 0.87, 10: 0.64}


def recipe(experiment):
    """Return the geometry of the paper for a data set, for all benchmarks."""
    method = Codes.paper(
        experiment.order,
        reshaper=reshaper(experiment),
        embedding=embedding(experiment),
    )
    return {"method": method, "k_neighbors": experiment.k}


def equation(experiment):
    """Return the recipe with the local submanifold of the paper's text."""
    found = recipe(experiment)
    local = ThetaManifold(order=experiment.local_order)
    found["method"].set_params(local_manifold=local)
    return found


def authors(experiment):
    """Return the recipe with the scaling and the step of the authors' notebooks."""
    found = recipe(experiment)
    found["method"].set_params(
        embedding="minmax-table", local_manifold=MixtureManifold(STEPS[experiment.k])
    )
    return found


def defaults(experiment):
    """Return the defaults; pixels are not scaled, because they are no features."""
    return {"method": Codes(embedding=None)} if experiment.kind == "image" else {}


def reshaper(experiment):
    """Reshape rows to the tensors of the paper; 11 features are padded with a zero."""
    rising = "descending" if experiment.name == "mnist" else "ascending"
    return PrimeFactorReshaper(factor_order=rising)


def embedding(experiment):
    """Embed pixels unchanged, sound from [-1, 1] to [0, 1], and features by range."""
    if experiment.kind == "audio":
        return FunctionTransformer(_raised, inverse_func=_lowered, check_inverse=False)
    return None if experiment.kind == "image" else "minmax"


def base_size(experiment):
    """Count the elements of the base, including the bottom."""
    return int(order_mask(TensorPoset(experiment.tensor), experiment.order).sum()) + 1


def _raised(clips):
    return (clips + 1) / 2


def _lowered(clips):
    return 2 * clips - 1
