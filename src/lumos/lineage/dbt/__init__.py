"""dbt artefacts: models with their compiled SQL, sources, seeds, snapshots, runs and owners."""

from lumos.lineage.dbt.project import (
    MANIFEST,
    DbtProject,
    DbtRelations,
    UnreadableManifest,
    is_manifest,
    read_project,
)
from lumos.lineage.dbt.report import ModelSql, model_queries, report_project

__all__ = [
    "MANIFEST",
    "DbtProject",
    "DbtRelations",
    "ModelSql",
    "UnreadableManifest",
    "is_manifest",
    "model_queries",
    "read_project",
    "report_project",
]
