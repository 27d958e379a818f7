"""Statements of any dialect as queries that Spark can analyse without running anything."""

from lumos.impact.spark_queries.checks import Check, Checks, checks

__all__ = ["Check", "Checks", "checks"]
