"""Displays in scikit-learn's style: ``from_...`` computes and plots."""
