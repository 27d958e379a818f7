"""The gate: whether a change in a git repository breaks something downstream."""
