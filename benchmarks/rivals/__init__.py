"""onlooker beside the libraries that others would use: adapters, their environments, and the race between them."""
