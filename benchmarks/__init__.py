"""Measurements of speed, scale and worth; run as modules, see README.md."""
