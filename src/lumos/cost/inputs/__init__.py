"""Loads the inputs of cost computation, as one graph for a period."""
