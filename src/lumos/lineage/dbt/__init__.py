"""dbt artefacts: models with their compiled SQL, sources, seeds, snapshots, runs and owners."""

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
    "read_project",
    "report_project",
]
