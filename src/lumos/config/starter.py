"""The configuration file that a new project starts with."""

from pathlib import Path
from typing import Final

from lumos.errors import MisuseError


def write_starter(file: Path, *, force: bool = False) -> None:
    """Writes the starter, over a file that exists only with `force`."""
    try:
        with file.open("w" if force else "x", encoding="utf-8") as target:
            target.write(STARTER)
    except FileExistsError:
        raise MisuseError(f"{file} exists already. Replace it with: lumos init --force") from None


STARTER: Final = """\
# Settings of Lumos. Every key is optional. Take the # off a line to use the example in it.
#
# ${NAME} takes a value from the environment, ${NAME:-default} with a fallback.
# Relative paths hang on the folder of this file.
# A variable such as LUMOS_STORAGE__PATH overrules the key storage.path.
# Check this file with: lumos config check

# Where to look for datasets.
sources:
  - type: file
    path: data
#    file_patterns: ["*.parquet", "*.csv"]
#    exclude: ["tmp/*"]
#
#  - type: s3
#    name: lake
#    bucket: my-data-lake
#    prefixes: [raw/, processed/]
#    region: eu-central-1
#
#  - type: postgres
#    name: shop
#    connection_string: ${SHOP_DATABASE}
#    schemas: [public]
#
#  - type: kafka
#    name: events
#    bootstrap_servers: ${KAFKA_SERVERS:-localhost:9092}
#    topic_patterns: ["events.*"]

# Where Lumos keeps what it knows: sqlite, postgres, or file (with readable copies of the schemas).
storage:
  backend: sqlite
  path: .lumos/lumos.db
#
# For a team, instead of the two lines above:
#  backend: postgres
#  connection_string: ${STORE_URL}

# The catalog to keep true; local is the store above.
platform: local
#platform_config:
#  datahub:
#    gms_server: http://localhost:8080
#    token: ${DATAHUB_TOKEN}

# The Spark that scans run on: this machine, a cluster (spark://host:7077) or Spark Connect.
spark:
  master: "local[*]"
#  config:
#    spark.executor.memory: 4g

# What every scan keeps to.
scan:
#  exclude: ["_tmp/*"]
  # More datasets missing at once than this share are kept until: lumos ingest --accept-removals
  max_removed_share: 0.3

# Which datasets SQL means by its tables, where their names do not say it.
#sql_names:
#  - match: raw.*
#    urn: lumos://s3/my-data-lake/raw/{table}

# Names of queries in SQL files by their paths; without it, the names of the files.
#sql_name_from: "{schema}/{table}/*.sql"

# What lumos watch looks at again and again; without it, all sources above every 300 seconds.
#change_detection:
#  sources:
#    - type: file
#      path: data
#      polling_interval: 60

# Who is told of changes: lumos notify test team_chat tries a channel.
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
