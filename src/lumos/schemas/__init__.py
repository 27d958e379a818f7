"""The verbs of `lumos schema`: compare, look back, predict, and keep schemas as code."""
