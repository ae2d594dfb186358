"""Missing cells: of tables by near rows and equations, of tensors by their models."""
