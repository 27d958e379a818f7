"""Rules that decide which datasets break when a dataset changes, where and why."""
