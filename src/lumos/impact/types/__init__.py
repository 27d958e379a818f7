"""Types of SQL expressions, and how they change with the tables that are read."""
