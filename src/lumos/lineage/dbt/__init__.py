"""dbt artefacts: models with their compiled SQL, sources, runs, owners, exposures and metrics."""

from lumos.lineage.dbt.consumers import project_consumers, report_exposures
from lumos.lineage.dbt.project import (
    MANIFEST,
    DbtProject,
    DbtRelations,
    UnreadableManifest,
    read_project,
)
from lumos.lineage.dbt.report import ModelSql, model_queries, report_project

__all__ = [
    "MANIFEST",
    "DbtProject",
    "DbtRelations",
    "ModelSql",
    "UnreadableManifest",
    "model_queries",
    "project_consumers",
    "read_project",
    "report_exposures",
    "report_project",
]
