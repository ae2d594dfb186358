"""New rows for small tables with balanced classes."""
