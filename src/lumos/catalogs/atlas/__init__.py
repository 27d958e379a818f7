"""The adapter of Apache Atlas."""
