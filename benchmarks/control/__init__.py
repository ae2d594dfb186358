"""Linear constraints on new rows and tables, measured."""
