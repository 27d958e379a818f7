"""Schemas: comparison, compatibility rules, history, versions, proposals and schema files."""
