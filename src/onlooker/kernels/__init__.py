"""Compiled loops: they take arrays, check nothing, and are called from one place each.

Importing a module of this package imports numba, which is slow: callers import it inside the function that needs it.
"""
