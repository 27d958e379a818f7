"""Costs of datasets and jobs: attribution along lineage, reports and potential savings."""
