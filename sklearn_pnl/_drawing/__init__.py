"""New rows on their way: training rows and codes, there and back, sets of rows."""
