"""The rules by which files form datasets; docs/GROUPING.md is the specification."""
