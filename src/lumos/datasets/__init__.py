"""Listing, searching and showing datasets."""
