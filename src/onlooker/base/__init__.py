"""Shared foundations: types, errors, checks, text, files, threads, memory."""
