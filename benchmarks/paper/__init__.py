"""The paper's experiments in classification, repeated with spreads."""
