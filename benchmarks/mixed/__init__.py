"""Compare PNLSampler with SMOTE-NC on tables of numbers and categories."""
