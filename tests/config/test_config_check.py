"""Remarks on valid settings."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from lumos import plugins
from lumos.config import Settings
from lumos.config.check import Note, check
from lumos.config.sources import FileSourceSettings
from lumos.config.yaml_tree import ConfigurationError

Load = Callable[..., Settings]


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plug-ins of a small installation."""
    groups = {plugins.SOURCES: {"file", "kafka"}, plugins.PLATFORMS: {"local", "atlas"}}
    monkeypatch.setattr(plugins, "names", groups.__getitem__)


def test_what_is_used_needs_no_remark(load_text: Load) -> None:
    settings = load_text(
        "platform: local\n"
        "environment: staging\n"
        "cloud_version_prefix: X-\n"
        "storage: {path: x.db}\n"
        "sources: [{type: local, path: data}]\n"
        "spark: {master: local}\n"
        "state_uri: state\n"
        "scan: {exclude: [x]}\n"
        "documentation: {required_fields: [owner]}\n"
        "glossary_mappings: {a: b}\n"
        "path_patterns: {/a/*: b}\n"
        "cost_model: {attribution: {method: last_touch}, storage: {s3: {cost_per_gb_month: 1}}}\n"
        "features: {checkout: [orders]}\n"
    )
    assert check(settings, {"LUMOS_PLATFORM": "local", "LUMOS_CONFIG": "lumos.yaml"}) == ()


@pytest.mark.parametrize(
    ("section", "value"),
    [
        ("quality_integrations", "[{type: custom_api, endpoint: 'https://x'}]"),
        ("platform_config", "{datahub: {token: x}}"),
    ],
)
def test_a_section_that_is_not_used_yet_is_reported(
    load_text: Load, section: str, value: str
) -> None:
    (note,) = check(load_text(f"\n{section}: {value}"), {})
    assert (note.level, note.key, note.line) == ("info", section, 2)
    assert note.text.endswith((" yet.", " catalog: datahub."))


def test_sources_without_events_and_those_that_cannot_be_watched_are_reported(
    load_text: Load,
) -> None:
    settings = load_text(
        "change_detection:\n"
        "  enabled: true\n"
        "  sources:\n"
        "    - {type: kafka, bootstrap_servers: k, watch_mode: events, polling_interval: 60}\n"
        "    - {type: s3, bucket: b}\n"
        "    - {type: file, path: x}\n"
    )
    first, second = check(settings, {})
    assert (first.level, first.key) == ("warning", "change_detection.sources[0]")
    assert first.text == "'kafka' sources have no events; the source is polled every 60 s."
    assert (second.level, second.key) == ("warning", "change_detection.sources[1]")


def test_events_without_their_library_are_reported(
    load_text: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_text(
        "change_detection: {sources: [{type: file, path: y, watch_mode: hybrid, sqs_queue: q}]}"
    )
    monkeypatch.setattr("lumos.config.check.find_spec", lambda _name: None)
    library, queue = check(settings, {})
    assert "pip install 'lumos[watch]'" in library.text
    assert queue.text == "'sqs_queue' is for sources of the type s3."


def test_a_queue_of_a_source_that_is_only_polled_is_told(load_text: Load) -> None:
    settings = load_text("change_detection: {sources: [{type: file, path: y, sqs_queue: q}]}")
    (note,) = check(settings, {})
    assert note.text == (
        "'sqs_queue' is not used: 'watch_mode' is polling. Set it to events or hybrid."
    )


def test_events_of_azure_and_google_cloud_need_a_queue(
    load_text: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "names", lambda _group: {"local", "azure", "gcs", "hdfs", "s3"})
    settings = load_text(
        "change_detection:\n"
        "  sources:\n"
        "    - {type: azure, container: c, watch_mode: events}\n"
        "    - {type: gcs, bucket: b, watch_mode: events, pubsub_subscription: s}\n"
        "    - {type: hdfs, path: /lake, watch_mode: hybrid, storage_queue: q}\n"
        "    - {type: s3, bucket: b, watch_mode: events, event_webhook: '127.0.0.1:8870'}\n"
    )
    azure, hdfs = check(settings, {})
    assert azure.text == "Events need 'storage_queue'; without it the source is polled."
    assert hdfs.text == "'storage_queue' is for sources of the type azure."


def test_events_that_cannot_be_sent_without_a_library_are_reported(
    load_text: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_text(
        "notifications: {subscribers: {s: {type: redis, url: 'redis://h'}, "
        "w: {type: webhook, url: 'https://h', secret: 0123456789abcdef}}}"
    )
    assert check(settings, {}) == ()
    monkeypatch.setattr("lumos.config.check.find_spec", lambda _name: None)
    (note,) = check(settings, {})
    assert note.key == "notifications.subscribers.s"
    assert "pip install 'lumos[redis]'" in note.text


def test_messages_that_cannot_be_sent_without_a_library_are_reported(
    load_text: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_text("notifications: {channels: {a: x}, changes: [{channel: a}]}")
    assert check(settings, {}) == ()
    monkeypatch.setattr("lumos.config.check.find_spec", lambda _name: None)
    (note,) = check(settings, {})
    assert (note.level, note.key) == ("warning", "notifications")
    assert "lumos[notify]" in note.text


def test_remarks_are_in_the_order_of_the_file(load_text: Load) -> None:
    settings = load_text(
        "default_platform: datahub\n"
        "gms_server: http://gms\n"
        "sources:\n"
        "  - {type: file, path: x}\n"
        "  - {type: kafka, bootstrap_servers: k}\n"
        "  - {type: s3, bucket: b}\n"
        "features: {auto_detecton: true, checkout: [orders]}\n"
        "cost_model: {attribution: {method: last_touch}}\n"
        "cost_calculation: {compute_pricing: {spark: {per_core_hour: 1}}}\n"
    )
    notes = check(settings, {"LUMOS_PLATFROM": "x"})
    assert [(note.line, note.level, note.key) for note in notes] == [
        (1, "warning", "platform"),
        (1, "info", "default_platform"),
        (2, "info", "platform_config"),
        (2, "info", "gms_server"),
        (6, "warning", "sources[2]"),
        (7, "warning", "features.auto_detecton"),
        (9, "warning", "cost_calculation"),
        (None, "warning", "LUMOS_PLATFROM"),
    ]
    texts = [note.text for note in notes]
    assert texts[1] == "'default_platform' is the old name of the key 'platform'."
    assert texts[4] == "This version cannot scan 's3'; the source is skipped."
    assert texts[5] == "Unknown switch 'auto_detecton'. Did you mean 'auto_detection'?"
    assert (
        texts[6] == "Prices are set in both 'cost_model' and 'cost_calculation'. Keep one of them."
    )
    assert texts[0] == (
        "This version cannot write to 'datahub'; metadata is only kept in the local store."
    )
    assert texts[7] == (
        "The environment variable LUMOS_PLATFROM does not match any setting and is ignored."
    )


@pytest.mark.parametrize(
    ("text", "environment", "remarks"),
    [
        ("platform: datahub", {}, []),
        ("platform: 'datahub:https://gms.example'", {}, []),
        (
            "platform: datahub\nplatform_config: {datahub: {gms_server: 'https://gms.example'}}",
            {},
            ["No token is given for https://gms.example, as platform_config.datahub.token or "
             "DATAHUB_GMS_TOKEN; a server that requires authentication will reject requests."],
        ),
        (
            "platform: datahub\nplatform_config: {datahub: {gms_server: 'https://gms.example'}}",
            {"DATAHUB_GMS_TOKEN": "x"},
            [],
        ),
        (
            "platform: datahub\nplatform_config: {datahub: {server: 'http://gms.example', token: x}}",
            {},
            ["The token for http://gms.example is sent unencrypted. Use https:// if possible."],
        ),
        (
            "platform: 'datahub:https://other.example'\n"
            "platform_config: {datahub: {server: 'https://gms.example', token: x}}",
            {},
            ["No token is given for https://other.example, as platform_config.datahub.token or "
             "DATAHUB_GMS_TOKEN; a server that requires authentication will reject requests."],
        ),
        ("platform: datahub\nplatform_config: {datahub: {token: x}}", {}, []),
        (
            "platform: openmetadata",
            {},
            ["The address is missing. Set platform_config.openmetadata.server."],
        ),
        (
            "platform: atlas",
            {},
            ["The address is missing. Set platform_config.atlas.server."],
        ),
        (
            "platform: atlas\nplatform_config: {atlas: {server: 'https://a', user: u, password: p}}",
            {},
            [],
        ),
        (
            "platform: atlas\nplatform_config: {atlas: {server: 'https://a'}}",
            {},
            ["No token is given for https://a, as platform_config.atlas.auth_token or ATLAS_TOKEN; "
             "a server that requires authentication will reject requests."],
        ),
        (
            "platform: openmetadata\nplatform_config: {redshift: {host: 'a'}, "
            "openmetadata: {server: 'https://om', token: x}}",
            {},
            ["Not used, because this version does not support the catalog: redshift."],
        ),
    ],
)  # fmt: skip
def test_what_a_catalog_lacks_is_reported(
    load_text: Load,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    environment: dict[str, str],
    remarks: list[str],
) -> None:
    names = {plugins.SOURCES: {"file"}, plugins.PLATFORMS: {"atlas", "datahub", "openmetadata"}}
    monkeypatch.setattr(plugins, "names", names.__getitem__)
    assert [note.text for note in check(load_text(text), environment)] == remarks


@pytest.mark.parametrize("platform", ["datahub", "openmetadata:https://om.example"])
def test_a_catalog_without_its_library_is_reported(
    load_text: Load, monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    names = {plugins.SOURCES: {"file"}, plugins.PLATFORMS: {"datahub", "openmetadata"}}
    monkeypatch.setattr(plugins, "names", names.__getitem__)
    monkeypatch.setattr("lumos.config.check.find_spec", lambda _name: None)
    (note,) = check(load_text(f"platform: {platform}"), {})
    kind = platform.partition(":")[0]
    assert (note.level, note.key) == ("warning", "platform")
    assert note.text == f"'{kind}' needs a library: pip install 'lumos[{kind}]'"


def test_settings_made_in_code_are_checked_too() -> None:
    settings = Settings(platform="local", sources=(FileSourceSettings(paths=("x",)),))
    assert check(settings, {}) == ()
    text = "This version cannot write to 'snowflake'; metadata is only kept in the local store."
    assert check(Settings(platform="snowflake"), {}) == (
        Note(level="warning", key="platform", text=text),
    )


def test_reading_the_configuration_imports_nothing_heavy() -> None:
    heavy = "{'pyspark', 'pyarrow', 'sqlalchemy', 'httpx', 'pandas', 'numpy'}"
    code = (
        f"import sys, lumos.config, lumos.config.check; print(sorted({heavy} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_remarks_on_watched_sources_name_their_line(load_text: Load) -> None:
    settings = load_text(
        "change_detection:\n"
        "  sources:\n"
        "    - {type: file, path: a}\n"
        "    - {type: file, path: b, watch_tables: [orders]}\n"
    )
    (note,) = check(settings, {})
    assert (note.line, note.level, note.key) == (4, "warning", "change_detection.sources[1]")
    assert "'watch_tables' is for databases" in note.text


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("owners: {groups: [data-*], users: [DATA-*]}", "is listed under 'groups' and 'users'"),
        ('owners: {groups: [" "]}', "is empty"),
        ("owners: {teams: [data]}", "teams"),
    ],
)
def test_rules_on_owners_that_cannot_be_meant_are_refused(
    load_text: Load, text: str, complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        load_text(text)
