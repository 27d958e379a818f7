"""Usage: who read what and when."""
