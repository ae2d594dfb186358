"""Tables of numbers and categories: PNLSampler beside SMOTE-NC."""
