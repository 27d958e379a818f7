"""Moving what one catalog holds into another, and keeping catalogs in step with sources."""

from lumos.engine.migration.desk import MigrationDesk

__all__ = ["MigrationDesk"]
