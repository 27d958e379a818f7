"""Query logs: their statements, who ran them, and what they read and write."""
