"""Over-samplers on the imbalanced tables of KEEL; see README.md in this folder."""
