"""What a person reads when the configuration is wrong: the place, the key, what would be right."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from lumos.config import ConfigurationError, Settings
from lumos.errors import MISUSED

Load = Callable[..., Settings]

# A text, and all lines of the message it gets.
MISTAKES = {
    "a misspelt key": (
        """
        sources:
          - type: s3
            buckt: lake
        """,
        [
            "lumos.yaml:2: sources[0] needs 'buckets' or 'bucket'.",
            "lumos.yaml:3: unknown key 'buckt' in sources[0]. Did you mean 'bucket'?",
        ],
    ),
    "a misspelt section": (
        "chnage_detection: {}",
        ["lumos.yaml:1: unknown key 'chnage_detection'. Did you mean 'change_detection'?"],
    ),
    "a key like no other, with the few that exist": (
        "scan:\n  frobnicate: 1",
        [
            "lumos.yaml:2: unknown key 'frobnicate' in scan. "
            "Valid keys: column_stats, datasets, exclude, file_patterns, max_removed_share, table_history, tables."
        ],
    ),
    "a key like no other among many": (
        "sources: [{type: kafka, bootstrap_servers: k, frobnicate: 1}]",
        ["lumos.yaml:1: unknown key 'frobnicate' in sources[0]."],
    ),
    "a hint without a path": (
        "scan: {datasets: [{name: x}]}",
        ["lumos.yaml:1: scan.datasets[0] needs 'path'."],
    ),
    "a hint with a name for many": (
        "scan: {datasets: [{path: 'x/*', name: x, apart: true}]}",
        [
            "lumos.yaml:1: scan.datasets[0]: The name 'x' cannot be used: 'split' creates several datasets."
        ],
    ),
    "a hint with several paths and no name": (
        "scan: {datasets: [{path: [a, b]}]}",
        ["lumos.yaml:1: scan.datasets[0]: Several paths form one dataset and need a 'name'."],
    ),
    "a hint with several paths and a key": (
        "scan: {datasets: [{path: [a, '{b}'], name: x}]}",
        [
            "lumos.yaml:1: scan.datasets[0]: '{b}': several paths form one dataset, so a {key} "
            "cannot split them. Write one hint for each path."
        ],
    ),
    "a hint with half a brace": (
        "scan: {datasets: ['x/{table/*']}",
        [
            "lumos.yaml:1: scan.datasets[0]: 'x/{table/*': braces must contain a name, such as {table}."
        ],
    ),
    "a key in a section that has none": (
        "platform_config: {local: {port: 1}}",
        ["lumos.yaml:1: unknown key 'port' in platform_config.local. It takes no keys."],
    ),
    "a misspelt key of watching, not of the source": (
        """
        change_detection:
          sources:
            - type: file
              path: x
              poling_interval: 5
        """,
        [
            "lumos.yaml:5: unknown key 'poling_interval' in change_detection.sources[0]. "
            "Did you mean 'polling_interval'?"
        ],
    ),
    "a word for a number": (
        """
        change_detection:
          sources:
            - type: hdfs
              path: /data
              polling_interval: often
        """,
        [
            "lumos.yaml:5: change_detection.sources[0].polling_interval must be a number of "
            "seconds (an integer), at least 1, not 'often'."
        ],
    ),
    "a number in quotes": (
        "sources: [{type: postgres, host: h, port: '5432'}]",
        ["lumos.yaml:1: sources[0].port must be a port from 1 to 65535, not '5432'."],
    ),
    "a number that is too large": (
        "scan: {max_removed_share: 30}",
        ["lumos.yaml:1: scan.max_removed_share must be a share from 0 to 1, not '30'."],
    ),
    "a number that is infinite": (
        "cost_calculation: {compute_pricing: {spark: {per_core_hour: .inf}}}",
        [
            "lumos.yaml:1: cost_calculation.compute_pricing.spark.per_core_hour must be "
            "a price of 0 or more, not '.inf'."
        ],
    ),
    "a word for a switch": (
        "change_detection: {enabled: perhaps}",
        ["lumos.yaml:1: change_detection.enabled must be true or false, not 'perhaps'."],
    ),
    "a word for a switch or a list": (
        "change_detection: {sources: [{type: file, path: x, watch_tables: some}]}",
        [
            "lumos.yaml:1: change_detection.sources[0].watch_tables must be true, false or "
            "a list of tables, not 'some'."
        ],
    ),
    "a bad choice": (
        "cost_model: {attribution: {method: equal_splits}}",
        [
            "lumos.yaml:1: cost_model.attribution.method must be one of equal_split, last_touch, "
            "lineage_weighted, not 'equal_splits'. Did you mean 'equal_split'?"
        ],
    ),
    "a channel that does not exist": (
        "notifications: {channels: {chat: 'slack://a/b/hush'}, changes: [{channel: chit}]}",
        ["lumos.yaml:1: notifications: No channel named 'chit'. Known: chat. Did you mean 'chat'?"],
    ),
    "a message without a channel": (
        "notifications: {changes: [{verdict: breaking}]}",
        ["lumos.yaml:1: notifications.changes[0] needs 'channels' or 'channel'."],
    ),
    "a fact that a change does not have": (
        "notifications: {channels: {a: x}, changes: [{channel: a, template: '{dataset_nam} {x'}]}",
        [
            "lumos.yaml:1: notifications.changes[0]: A template names {dataset_nam}, which is not a "
            "known placeholder. Did you mean 'dataset_name'? Write {{dataset_nam}} if the message "
            "should contain {dataset_nam}."
        ],
    ),
    "an event that does not exist": (
        "change_detection: {sources: [{type: s3, bucket: b, event_types: [ObjectTouched]}]}",
        [
            "lumos.yaml:1: change_detection.sources[0].event_types[0] must be one of "
            "ObjectCreated, ObjectDeleted, not 'ObjectTouched'. Did you mean 'ObjectDeleted'?"
        ],
    ),
    "a type of source that does not exist": (
        "sources:\n  - type: postgers",
        [
            "lumos.yaml:2: sources[0].type must be one of azure, bigquery, databricks, file, gcs, "
            "glue, hdfs, hive, iceberg, kafka, local, mariadb, mongodb, mysql, nessie, postgres, "
            "redshift, s3, snowflake, sql, not 'postgers'. "
            "Did you mean 'postgres'?"
        ],
    ),
    "a source without a type": (
        "quality_integrations:\n  - manifest_path: x",
        [
            "lumos.yaml:2: quality_integrations[0] needs 'type', "
            "one of custom_api, dbt_tests, great_expectations."
        ],
    ),
    "a platform that does not exist": (
        "default_platform: datahbu",
        [
            "lumos.yaml:1: No platform named 'datahbu'. Known: amundsen, amundsen-file, atlas, "
            "bigquery, datahub, datahub-file, local, openmetadata, redshift, snowflake. Did you mean 'datahub'?"
        ],
    ),
    "settings of a platform that does not exist": (
        "platform_config:\n  collibra: {}",
        [
            "lumos.yaml:2: No platform named 'collibra'. Known: amundsen, amundsen-file, atlas, "
            "bigquery, datahub, datahub-file, local, openmetadata, redshift, snowflake."
        ],
    ),
    "one value for a list": (
        "scan: {exclude: tmp}",
        ["lumos.yaml:1: scan.exclude must be a list, such as [a, b], not 'tmp'."],
    ),
    "a list for one value": (
        "sources: [{type: s3, bucket: [a, b]}]",
        [
            "lumos.yaml:1: sources[0].bucket must be a bucket name "
            "without a scheme such as s3://, not a list."
        ],
    ),
    "an address for a bucket": (
        "sources: [{type: s3, bucket: 's3://lake/raw'}]",
        [
            "lumos.yaml:1: sources[0].bucket must be a bucket name "
            "without a scheme such as s3://, not 's3://lake/raw'."
        ],
    ),
    "an empty list where something is needed": (
        "sources: [{type: s3, buckets: []}]",
        ["lumos.yaml:1: sources[0].buckets must have at least one value."],
    ),
    "an empty item": (
        "scan:\n  exclude:\n    -",
        ["lumos.yaml:3: scan.exclude[0] must be text, not empty."],
    ),
    "one value for a section": (
        "spark: local",
        ["lumos.yaml:1: spark must be a mapping, not a single value."],
    ),
    "a list for a section": ("scan: [a]", ["lumos.yaml:1: scan must be a mapping, not a list."]),
    "one value for a map": (
        "glossary_mappings: cust_id",
        ["lumos.yaml:1: glossary_mappings must be a mapping, not a single value."],
    ),
    "a list for a free-form map": (
        "spark: {config: [a]}",
        ["lumos.yaml:1: spark.config must be a mapping, not a list."],
    ),
    "a nested Spark option": (
        "spark: {config: {spark: {executor: 1}}}",
        ["lumos.yaml:1: spark: The Spark option 'spark' must be text, a number or a boolean."],
    ),
    "a unit of cost without its prefix": (
        "cost_model: {compute: {spark: {per_dbu: 1}}}",
        [
            "lumos.yaml:1: the key 'per_dbu' in cost_model.compute.spark must be "
            "named after a unit, such as cost_per_credit."
        ],
    ),
    "two prices for one thing": (
        "cost_model: {storage: {s3: {cost_per_gb_month: 1, cost_per_tb_month: 1000}}}",
        [
            "lumos.yaml:1: cost_model.storage.s3: "
            "Give either 'cost_per_gb_month' or 'cost_per_tb_month'."
        ],
    ),
    "two spellings of one key": (
        "sources:\n  - type: s3\n    bucket: a\n    buckets: [b]",
        ["lumos.yaml:4: 'bucket' and 'buckets' mean the same. Keep one of them."],
    ),
    "an option in both places": (
        "sources:\n  - type: s3\n    bucket: a\n    config:\n      bucket: b",
        ["lumos.yaml:5: 'bucket' is given both below 'config' and next to it. Keep one of them."],
    ),
    "a section in both places": (
        "platform: local\nlumos_config:\n  platform: datahub",
        [
            "lumos.yaml:3: 'platform' is given both below 'lumos_config' and next to it. "
            "Keep one of them."
        ],
    ),
    "a nested part that is no mapping": (
        "lumos_config: datahub",
        ["lumos.yaml:1: 'lumos_config' must be a mapping of the keys that are allowed next to it."],
    ),
    "the same address twice": (
        "gms_server: http://a\nplatform_config: {datahub: {server: 'http://b'}}",
        [
            "lumos.yaml:1: 'gms_server' and 'platform_config.datahub.gms_server' mean the same. "
            "Keep one of them."
        ],
    ),
    "the same catalog twice": (
        "datahub: {server: 'http://a'}\nplatform_config: {datahub: {token: b}}",
        ["lumos.yaml:1: 'datahub' and 'platform_config.datahub' mean the same. Keep one of them."],
    ),
    "the address of a catalog beside it": (
        "datahub: {server: 'http://a'}\ngms_server: http://b",
        [
            "lumos.yaml:2: 'gms_server' and 'platform_config.datahub.gms_server' mean the same. "
            "Keep one of them."
        ],
    ),
    "a catalog without an address": (
        "platform_config: {openmetadata: {token: x}}",
        ["lumos.yaml:1: platform_config.openmetadata needs 'server'."],
    ),
    "a password in the name of a platform": (
        "platform: 'datahub:https://me:hush@gms.example'",
        [
            "lumos.yaml:1: platform must be a platform such as datahub or datahub:ADDRESS, without "
            "user and password, not '***'."
        ],
    ),
    "no patience at all": (
        "platform_config: {datahub: {retries: 0}}",
        ["lumos.yaml:1: platform_config.datahub.retries must be a number from 1 to 100, not '0'."],
    ),
    "a database without an address": (
        "sources:\n  - type: postgres\n    schemas: [a]",
        ["lumos.yaml:2: sources[0]: A postgres source needs 'connection_string' or 'host'."],
    ),
    "a store without its address": (
        "storage:\n  backend: postgres",
        ["lumos.yaml:2: storage: The backend postgres requires 'connection_string'."],
    ),
    "an address without its store": (
        "storage:\n  connection_string: postgresql://u:hush@h/d",
        [
            "lumos.yaml:2: storage: 'connection_string' is for the backend postgres; "
            "set 'backend' too."
        ],
    ),
    "an environment that cannot be part of a name": (
        "environment: my env",
        [
            "lumos.yaml:1: environment must be a word such as production, staging or development, "
            "not 'my env'."
        ],
    ),
    **{
        f"a version prefix that {what}": (
            f"cloud_version_prefix: {written}",
            [
                "lumos.yaml:1: cloud_version_prefix must be text without spaces, such as S-, that does "
                "not end with a digit and does not look like a date or a schema version when a "
                "number follows, "
                f"not '{read}'."
            ],
        )
        for what, written, read in (
            ("runs into the number", "v2", "v2"),
            ("makes schema versions", '"1.0."', "1.0."),
            ("makes dates", '"2024-01-"', "2024-01-"),
            ("holds blanks", '"S -"', "S -"),
            ("holds a control character", r'"S\e-"', "S\x1b-"),
        )
    },
}


@pytest.mark.parametrize(("text", "lines"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_reported_with_its_line_and_key(
    load_text: Load, text: str, lines: list[str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_text(dedent(text).lstrip("\n"))
    assert str(caught.value).splitlines() == lines


def test_an_error_carries_its_facts(load_text: Load) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_text("platform: local\nscan:\n  exclud: []\nspark: {masster: x}\n")
    assert caught.value.file == "lumos.yaml"
    assert caught.value.line == 3
    assert caught.value.key == "scan.exclud"
    assert [problem.key for problem in caught.value.problems] == ["scan.exclud", "spark.masster"]
    assert caught.value.exit_code == MISUSED


def test_all_problems_are_reported_at_once_in_the_order_of_the_file(load_text: Load) -> None:
    text = """\
spark: {master: 1, confg: {}}
storage:
  backend: oracle
sources:
  - type: s3
  - type: file
    path: data
    exclude: tmp
scan: {max_removed_share: all}
platform: ${PLATFORM}
scan: {}
"""
    with pytest.raises(ConfigurationError) as caught:
        load_text(text)
    assert [problem.position.line for problem in caught.value.problems] == [1, 3, 5, 8, 9, 10, 11]


def test_a_mistake_in_a_variable_names_the_variable(load_text: Load) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_text("", environment={"LUMOS_STORAGE__BACKEND": "sqlit"})
    assert str(caught.value) == (
        "LUMOS_STORAGE__BACKEND: storage.backend must be one of file, postgres, sqlite, "
        "not 'sqlit'. Did you mean 'sqlite'?"
    )
    assert caught.value.file is None


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("storage.pth", "unknown key 'pth' in storage. Did you mean 'path'?"),
        ("stroage.path", "unknown key 'stroage'. Did you mean 'storage'?"),
        ("platform.name", "'platform' has no keys below it, so there is no 'name'."),
    ],
)
def test_an_option_that_does_not_exist_is_reported(load_text: Load, key: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_text("", overrides={key: "x"})
    assert str(caught.value) == f"option {key}: {message}"
    assert caught.value.key == key


def test_a_wrong_value_of_an_option_names_the_option(load_text: Load) -> None:
    with pytest.raises(ConfigurationError, match=r"^option scan\.max_removed_share: scan\.max"):
        load_text("", overrides={"scan.max_removed_share": 2})


def test_a_long_value_is_cut_short(load_text: Load) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_text(f"environment: '{'very ' * 1000}'")
    assert len(str(caught.value)) < 200


def test_the_file_is_named_as_it_was_given(tmp_path: Path, load_text: Load) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_text("x: 1")
    assert str(caught.value).startswith("lumos.yaml:1:")
    assert str(tmp_path) not in str(caught.value)
