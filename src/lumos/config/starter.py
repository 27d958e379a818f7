"""The configuration file that a new project starts with."""

from pathlib import Path
from typing import Final

import msgspec

from lumos.errors import MisuseError


class InitReport(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `lumos init`: the file that was written."""

    format_version: str = "1.0"
    file: str


def write_starter(file: Path, *, force: bool = False) -> InitReport:
    """Writes the starter, over a file that exists only with `force`."""
    try:
        with file.open("w" if force else "x", encoding="utf-8") as target:
            target.write(STARTER)
    except FileExistsError:
        raise MisuseError(f"{file} exists already. Replace it with: lumos init --force") from None
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

#  - type: s3
#    bucket: my-data-lake
#    prefixes: [raw/, processed/]
#    region: eu-central-1

#  - type: gcs
#    bucket: my-data-lake
#    credentials_file: keys/reader.json

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

# pip install 'lumos[mongodb]'
#  - type: mongodb
#    uri: ${SHOP_MONGO}
#    databases: [shop]

# Where Lumos keeps what it knows. Default: a SQLite file, .lumos/lumos.db.
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

# A file that DataHub can ingest:
#platform: datahub-file:metadata.json

# The Spark that scans run on: this machine, a cluster (spark://host:7077) or Spark Connect.
spark:
  master: "local[*]"
#  config:
#    spark.executor.memory: 4g

# Settings of every scan.
scan:
  # If a larger share of the datasets is missing at once, none is marked as gone before
  # lumos ingest --accept-removals
  max_removed_share: 0.3
#  exclude: ["tmp/*"]

# Which datasets SQL means by its tables, where their names do not say it.
#sql_names:
#  - match: raw.*
#    urn: lumos://s3/my-data-lake/raw/{table}

# How SQL files with a single query are named. Default: by the name of the file.
#sql_name_from: "{schema}/{table}/*.sql"

# Which owners in comments of SQL and other files are groups; without it, names that end with team.
#owners:
#  groups: ["*-team", data-platform]

# What lumos watch scans again and again. Default: all sources above, every 300 seconds.
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
