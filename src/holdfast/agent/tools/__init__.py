"""Tools: one module per family."""
