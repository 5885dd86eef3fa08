"""How good an answer is: metrics, observers side by side, the paper's bounds."""
