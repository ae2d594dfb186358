"""Statistics of fit: whether a search finds the interactions that are there."""
