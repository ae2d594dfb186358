"""Rules that hold in real tables, and how often new rows violate the rules."""
