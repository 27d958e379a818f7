"""Readers of resource usage: Spark event logs, dbt run results and CSV tables."""
