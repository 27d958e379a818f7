"""Hints: which files form a dataset, if Lumos should not decide by itself."""
