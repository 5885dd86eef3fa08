"""What every room stands on: types, errors, checks, text, files, threads, memory."""
