"""Logs of learners that other people wrote, and how well observers predict them one step ahead."""
