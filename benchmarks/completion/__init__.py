"""Missing cells of tensors and of tables with totals."""
