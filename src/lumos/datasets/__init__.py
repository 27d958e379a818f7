"""Datasets as they are listed, shown and searched."""
