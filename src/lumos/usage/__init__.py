"""Usage: who read which dataset, and when."""
