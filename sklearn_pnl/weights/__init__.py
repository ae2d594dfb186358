"""Weights of rows and of cells that meet given totals: calibration and raking."""
