"""The columns of a table: the values they take, and the relations between them.

Read the modules in this order. ``column_values`` and ``value_support`` describe single
columns. ``constraints`` contains linear equalities and intervals of columns.
``relations`` and ``equalities`` find the relations that the training rows satisfy, and
``implied_equalities`` derives the equalities of rows with missing cells. ``rounding``
rounds values.
"""
