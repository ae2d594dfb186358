"""Generators of synthetic rows, compared with PNLAugmenter on five real tables."""
