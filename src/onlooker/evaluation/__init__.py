"""Evaluation of answers: metrics, observers side by side, the paper's bounds."""
