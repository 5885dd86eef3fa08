"""Learners that are let play in an environment, and the logs that they leave."""
