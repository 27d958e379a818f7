"""From what the store knows to one graph of costs for a period."""
