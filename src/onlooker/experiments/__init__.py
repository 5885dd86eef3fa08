"""Experiments: grids of simulations, run in parallel, resumable, judged claim by claim."""
