"""dbt artefacts: models with their compiled SQL, sources, seeds, snapshots, runs and owners."""

from lumos.lineage.dbt.artefacts import MANIFEST, NoManifest, Project, is_manifest, read_project
from lumos.lineage.dbt.reading import ModelSql, models_of, report
from lumos.lineage.dbt.relations import Relations

__all__ = [
    "MANIFEST",
    "ModelSql",
    "NoManifest",
    "Project",
    "Relations",
    "is_manifest",
    "models_of",
    "read_project",
    "report",
]
