"""Reports of `lumos db`."""

from lumos.model.report import FORMAT_VERSION, Report


class StoreReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos db status`."""

    format_version: str = FORMAT_VERSION
    store: str
    revision: str | None
    newest_revision: str
    rows: dict[str, int]


class UpgradeReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos db upgrade`."""

    format_version: str = FORMAT_VERSION
    store: str
    before: str | None
    after: str
