"""The gate: checks whether a change in a git repository breaks something downstream."""
