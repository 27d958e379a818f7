"""Converts URNs to keys of Amundsen, `{database}://{cluster}.{schema}/{table}`, and back.

The database is the platform of the URN, the cluster is its instance, the table is the last segment
of its path, and the schema consists of the other segments. Characters that a part cannot contain
are percent-encoded. A key that does not round-trip (converting it to a URN and back gives another
key) becomes the path of a URN with the platform `amundsen`.
"""

import re
from typing import Final, NamedTuple
from urllib.parse import unquote

from lumos.catalogs.amundsen.graph import KIND
from lumos.errors import MisuseError
from lumos.model.urn import DEFAULT_ENVIRONMENT, InvalidUrn, Urn

# The cluster of URNs without an instance, and the schema of paths with a single segment.
_NO_INSTANCE: Final = DEFAULT_ENVIRONMENT
_NO_SCHEMA: Final = "_"
_EMPTY: Final = "%"
_NOT_IN_TABLE: Final = re.compile(r"[%/?#\\\x00-\x20\x7f]")
_NOT_IN_SCHEMA: Final = re.compile(r"[%/?#\\\x00-\x20\x7f.@]")
_KEY: Final = re.compile(
    r"(?P<database>[^/]*)://(?P<cluster>[^./]*)\.(?P<schema>[^/]*)/(?P<table>[^/]*)", re.DOTALL
)
_COLUMN_KEY: Final = re.compile(rf"(?P<key>{_KEY.pattern})/(?P<column>.*)", re.DOTALL)


class TableKeyParts(NamedTuple):
    database: str
    cluster: str
    schema: str
    table: str

    @property
    def database_key(self) -> str:
        return f"database://{self.database}"

    @property
    def cluster_key(self) -> str:
        return f"{self.database}://{self.cluster}"

    @property
    def schema_key(self) -> str:
        return f"{self.cluster_key}.{self.schema}"


def parse_key(key: str) -> TableKeyParts:
    """Split a key into its parts; a key in another form becomes the table name."""
    match = _KEY.fullmatch(key)
    return (
        TableKeyParts(**match.groupdict())
        if match
        else TableKeyParts(KIND, _NO_INSTANCE, _NO_SCHEMA, key)
    )


def table_key(urn: str) -> str | None:
    """The key of a dataset, or None if `urn` is not the canonical URN of a dataset."""
    try:
        parsed = Urn.parse(urn)
    except InvalidUrn:
        return None
    if str(parsed) != urn:
        return None
    if parsed.platform == KIND and len(parsed.path) == 1 and dataset_urn(parsed.path[0]) == urn:
        return parsed.path[0]
    return _canonical_key(parsed)


def required_table_key(urn: str) -> str:
    """The key of a dataset; raises InvalidUrn or MisuseError if the URN has none."""
    if (key := table_key(urn)) is None:
        canonical = Urn.parse(urn)
        raise MisuseError(f"'{urn}' is not a canonical URN. Write it as '{canonical}'.")
    return key


def dataset_urn(key: str) -> str:
    parsed = _urn_from_key(key)
    if parsed is not None and _canonical_key(parsed) == key:
        return str(parsed)
    return str(Urn(KIND, (key,)))


def column_key(table: str, column: str) -> str:
    return f"{table}/{column}"


def split_column_key(key: str) -> tuple[str, str] | None:
    """Split the key of a column into the key of its table and its name."""
    match = _COLUMN_KEY.fullmatch(key)
    return None if match is None else (match["key"], match["column"])


def unescape_name(table: str) -> str:
    """Unescape the name of a table in a key."""
    return "" if table == _EMPTY else unquote(table)


def dashboard_key(tool: str, id: str) -> str:
    """The key of a dashboard: `{tool}_dashboard://{cluster}.{group}/{name}`."""
    if _foreign_dashboard_id(key := f"{tool}_dashboard://{id}") == (tool, id):
        return key
    return f"{_escape(tool, _NOT_IN_SCHEMA)}_dashboard://lumos.lumos/{_escape(id, _NOT_IN_TABLE)}"


def dashboard_id(key: str) -> tuple[str, str] | None:
    """The tool and the id in the key of a dashboard.

    In keys that Lumos did not write, the id is `{cluster}.{group}/{name}`.
    """
    parts = parse_key(key)
    if key.endswith(f"://lumos.lumos/{parts.table}"):
        tool = unescape_name(parts.database.removesuffix("_dashboard"))
        tool_and_id = tool, unescape_name(parts.table)
        return tool_and_id if dashboard_key(*tool_and_id) == key else None
    return _foreign_dashboard_id(key)


def _foreign_dashboard_id(key: str) -> tuple[str, str] | None:
    tool, separator, id = key.partition("_dashboard://")
    is_foreign_key = (
        separator and "/" not in tool and _KEY.fullmatch(key) and not id.startswith("lumos.lumos/")
    )
    return (tool, id) if is_foreign_key else None


def _canonical_key(urn: Urn) -> str:
    cluster = _escape(urn.instance, _NOT_IN_SCHEMA) if urn.instance else ""
    if cluster == _NO_INSTANCE:
        cluster = f"%{ord(cluster[0]):02X}{cluster[1:]}"
    if urn.environment != DEFAULT_ENVIRONMENT:
        cluster = f"{cluster}@{urn.environment}"
    *folders, table = urn.path
    schema = ".".join(_escape(each, _NOT_IN_SCHEMA) for each in folders)
    if schema == _NO_SCHEMA:
        schema = f"%{ord(_NO_SCHEMA):02X}"
    return (
        f"{urn.platform}://{cluster or _NO_INSTANCE}.{schema if folders else _NO_SCHEMA}"
        f"/{_escape(table, _NOT_IN_TABLE)}"
    )


def _urn_from_key(key: str) -> Urn | None:
    match = _KEY.fullmatch(key)
    if match is None:
        return None
    cluster, _, environment = match["cluster"].partition("@")
    instance = "" if match["cluster"] == _NO_INSTANCE else unquote(cluster)
    has_schema = match["schema"] != _NO_SCHEMA
    folders = match["schema"].split(".") if has_schema else []
    path = [unescape_name(each) for each in (*folders, match["table"])]
    try:
        return Urn.of(match["database"], path, instance=instance, environment=environment)
    except InvalidUrn:
        return None


def _escape(text: str, special: re.Pattern[str]) -> str:
    return special.sub(lambda each: f"%{ord(each[0]):02X}", text) or _EMPTY
