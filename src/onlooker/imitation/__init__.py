"""Imitation: the objective, its solver, burn-in rules, sweeps, covariances, warnings about a fit."""
