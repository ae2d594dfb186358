"""Support for computations: blocks of rows, threads, reports, validation."""
