"""Missing cells filled, of tables so that sums hold, of tensors by a model."""

from .tables import TableFiller
from .tensors import TensorFiller

__all__ = ["TableFiller", "TensorFiller"]
