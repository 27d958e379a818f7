"""Writes configuration files: the starter of a new project, and the sources of a dry run."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, Final

import msgspec
import yaml

from lumos.config.secret import ConnectionString, Secret
from lumos.config.sources import DatasetHint, FileSourceSettings, FileStoreSettings, SourceSettings
from lumos.errors import MisuseError

_DEFAULT_NAME: Final = "lumos.yaml"


class InitReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `lumos init`: the written file."""

    format_version: str = "1.0"
    file: str


def write_starter(file: Path, *, force: bool = False) -> InitReport:
    """Write the starter; an existing file is replaced only with `force`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with file.open("w" if force else "x", encoding="utf-8") as target:
            target.write(STARTER)
    except FileExistsError:
        name = "" if str(file) == _DEFAULT_NAME else f" {quote(str(file))}"
        raise MisuseError(
            f"{file} exists already. Replace it with: lumos init{name} --force"
        ) from None
    return InitReport(file=str(file.absolute()))


STARTER: Final = """\
# Settings of Lumos. Every key is optional. Remove the # from the lines of an example to use it.
#
# ${NAME} takes a value from the environment, ${NAME:-default} with a fallback.
# Relative paths are relative to the folder of this file.
# A variable such as LUMOS_STORAGE__PATH overrides the key storage.path.
# Check this file with: lumos config check

# Where to look for datasets.
sources:
  - type: file
    path: data
#    file_patterns: ["*.parquet", "*.csv"]
#    exclude: ["tmp/*"]

# Profiles, roles and logins of AWS (not static keys): pip install 'lumos[s3]'
#  - type: s3
#    bucket: my-data-lake
#    prefixes: [raw/, processed/]
#    region: eu-central-1

# pip install 'lumos[gcs]'
#  - type: gcs
#    bucket: my-data-lake
#    credentials_file: keys/reader.json

# Identities and logins of Azure (not keys and tokens): pip install 'lumos[azure]'
#  - type: azure
#    account: lakestore
#    container: landing
#    sas_token: ${AZURE_SAS_TOKEN}

#  - type: hdfs
#    path: /warehouse
#    url: http://namenode.example.com:9870

# pip install 'lumos[postgres]'
#  - type: postgres
#    connection_string: ${SHOP_DATABASE}
#    schemas: [public]

# pip install 'lumos[mysql]'
#  - type: mysql
#    connection_string: ${SHOP_MYSQL}
#    databases: [shop]

#  - type: mariadb
#    connection_string: ${SHOP_MARIADB}
#    databases: [shop]

# Any database with an SQLAlchemy dialect.
#  - type: sql
#    connection_string: sqlite:////data/shop.db

# pip install 'lumos[mongodb]'
#  - type: mongodb
#    uri: ${SHOP_MONGO}
#    databases: [shop]

# pip install 'lumos[kafka]'
#  - type: kafka
#    bootstrap_servers: ${KAFKA_SERVERS}
#    topic_patterns: [events.*]
#    schema_registry_url: http://registry.example.com:8081

# pip install 'lumos[hive]'
#  - type: hive
#    uri: thrift://metastore.example.com:9083

# pip install 'lumos[glue]'
#  - type: glue
#    region: eu-west-1

# pip install 'lumos[iceberg]'
#  - type: iceberg
#    uri: https://catalog.example.com
#    token: ${CATALOG_TOKEN}

#  - type: nessie
#    uri: https://nessie.example.com
#    ref: main

# Where Lumos stores metadata. Default: a SQLite file, .lumos/lumos.db.
# For a team, a PostgreSQL database (pip install 'lumos[postgres]'):
#storage:
#  backend: postgres
#  connection_string: ${STORE_URL}

# The catalog to publish to, one of these. Default: none.
# pip install 'lumos[datahub]'
#platform: datahub
#platform_config:
#  datahub:
#    gms_server: http://localhost:8080
#    token: ${DATAHUB_TOKEN}

# pip install 'lumos[openmetadata]'
#platform: openmetadata
#platform_config:
#  openmetadata:
#    server: http://localhost:8585
#    auth_token: ${OPENMETADATA_TOKEN}

# pip install 'lumos[atlas]'
#platform: atlas
#platform_config:
#  atlas:
#    server: http://localhost:21000
#    user: admin
#    password: ${ATLAS_PASSWORD}

# pip install 'lumos[amundsen]'
#platform: amundsen
#platform_config:
#  amundsen:
#    server: http://localhost:5002
#    neo4j_uri: bolt://localhost:7687
#    neo4j_user: neo4j
#    neo4j_password: ${NEO4J_PASSWORD}

# A file that DataHub can ingest:
#platform: datahub-file:metadata.json

# A folder of CSV files that databuilder publishes to Amundsen:
#platform: amundsen-file:csv

# Where Spark runs scans: on this machine, on a cluster (spark://host:7077) or with Spark Connect.
spark:
  master: "local[*]"
#  config:
#    spark.executor.memory: 4g

# Settings of every scan.
scan:
  # If a larger share of the datasets is missing at once, none is recorded as deleted until you run
  # lumos ingest --accept-removals
  max_removed_share: 0.3
#  exclude: ["tmp/*"]

# The datasets of table names in SQL that Lumos cannot find by name.
#sql_names:
#  - match: raw.*
#    urn: lumos://s3/my-data-lake/raw/{table}

# The table names of SQL files with a single query. Default: the name of the file.
#sql_name_from: "{schema}/{table}/*.sql"

# The owners in comments of SQL and other files that are groups. Default: names that end with team.
#owners:
#  groups: ["*-team", data-platform]

# Prices, for lumos cost. Usage comes from lumos cost ingest FILE.
#cost_model:
#  currency: USD
#  storage: {s3: {cost_per_gb_month: 0.023}}
#  compute: {spark: {cost_per_core_hour: 0.19}}

# The sources that lumos watch scans repeatedly. Default: all sources above, every 300 seconds.
#change_detection:
#  sources:
#    - type: file
#      path: data
#      polling_interval: 60

# Who is notified of changes (pip install 'lumos[notify]'). To try: lumos notify test team_chat
#notifications:
#  channels:
#    team_chat: ${TEAM_CHAT_URL}
#  changes:
#    - datasets: ["*"]
#      verdicts: [breaking]
#      channels: [team_chat]

#environment: production
#cloud_version_prefix: S-
#state_uri: /mnt/shared/lumos-state
"""


def write_sources(
    file: Path, sections: Sequence[SourceSettings], *, datasets: Iterable[str], force: bool = False
) -> None:
    """Write sources as a configuration file, with a comment for each dataset found.

    Secrets are omitted: they come from the environment or from a variable that the user adds.
    Database addresses may contain a password, so they are written as a variable.
    """
    check_overwrite(file, force=force)
    with file.open("w" if force else "x", encoding="utf-8") as target:
        target.write(_text(sections, datasets))


def check_overwrite(file: Path, *, force: bool) -> None:
    """Raise if the file exists, unless `force` is set."""
    if file.exists() and not force:
        raise MisuseError(f"{file} exists already. Replace it with --force, or name another file.")
    if not file.absolute().parent.is_dir():
        raise MisuseError(f"There is no folder {file.absolute().parent} to write {file.name} to.")


def _text(sections: Sequence[SourceSettings], datasets: Iterable[str]) -> str:
    plain = [_public_keys(section) for section in sections]
    body = yaml.safe_dump({"sources": plain}, sort_keys=False, allow_unicode=True, width=100)
    lines = [
        "# Where Lumos looks for datasets. Use it with: lumos ingest --config FILE",
        "# New datasets in these locations are found automatically.",
        *_hints(sections),
        body.rstrip(),
        "",
        "# Datasets that were found when this file was written:",
        *(f"#   {_one_line(each)}" for each in datasets),
    ]
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return "".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in text)


def _hints(sections: Iterable[SourceSettings]) -> list[str]:
    """Comments on how to provide the omitted secrets."""
    values = [
        (name, getattr(section, name)) for section in sections for name in section.__struct_fields__
    ]
    keys = dict.fromkeys(
        name for name, value in values if isinstance(value, Secret) and not _is_address(value)
    )
    return [
        *(f"# Add the secret as a variable: {name}: ${{NAME}}" for name in keys),
        *(f"# Set {_ADDRESS_VARIABLE} to {value}" for _, value in values if _is_address(value)),
    ]


def _is_address(value: object) -> bool:
    return isinstance(value, ConnectionString)


def _public_keys(section: SourceSettings) -> dict[str, Any]:
    """The keys that were set, without secrets. A list of one bucket or path is a single value."""
    plain: dict[str, Any] = {"type": section.type}
    defaults = zip(section.__struct_fields__[-len(section.__struct_defaults__) :],
                   section.__struct_defaults__, strict=True)  # fmt: skip
    default = dict(defaults)
    for name in section.__struct_fields__:
        value = getattr(section, name)
        if _is_address(value):
            plain[name] = f"${{{_ADDRESS_VARIABLE}}}"
            continue
        if name == "type" or value == default.get(name, ...) or isinstance(value, Secret):
            continue
        if name == "paths" and isinstance(section, FileSourceSettings):
            # Make paths absolute, since the file may be in another folder.
            value = tuple(map(os.path.abspath, value))
        if name == "datasets" and isinstance(section, FileStoreSettings):
            value = tuple(map(_plain_hint, value))
        if isinstance(value, tuple):
            single_name = _SINGLE_NAMES.get(name)
            plain.update(
                {single_name: value[0]} if single_name and len(value) == 1 else {name: list(value)}
            )
        else:
            plain[name] = value
    return plain


def _plain_hint(hint: DatasetHint) -> dict[str, Any]:
    path = hint.path if isinstance(hint.path, str) else list(hint.path)
    plain = {"path": path, "name": hint.name, "split": hint.split}
    return {key: value for key, value in plain.items() if value}


_ADDRESS_VARIABLE = "DATABASE_URL"
_SINGLE_NAMES = {"buckets": "bucket", "paths": "path", "urls": "url"}
