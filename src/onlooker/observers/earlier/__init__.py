"""Earlier methods that the paper cites, and others to compare with."""
