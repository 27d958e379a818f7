"""The page on costs, with its pictures."""
