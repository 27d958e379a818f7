"""Types of what SQL makes, and what becomes of them when the tables that it reads change."""
