"""Loads everything that costs are computed from, as one graph for a period."""
