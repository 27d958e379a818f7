"""Scanning lakes: files and tables, listed and read by Spark tasks."""
