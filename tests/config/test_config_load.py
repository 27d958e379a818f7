"""Which value wins, where the file is, what paths hang on, and how variables are filled in."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lumos.config import ConfigurationError, Secret, Settings, find_file, load, unused_variables
from lumos.config.settings import StorageEventType
from lumos.config.sources import (
    FileSourceSettings,
    KafkaSourceSettings,
    PluginSourceSettings,
    RedshiftSourceSettings,
    S3SourceSettings,
)

Load = Callable[..., Settings]


@pytest.mark.parametrize(
    ("file", "environment", "overrides", "master"),
    [
        pytest.param("", {}, {}, "local[*]", id="default"),
        pytest.param("spark: {master: file}", {}, {}, "file", id="file over default"),
        pytest.param(
            "spark: {master: file}",
            {"LUMOS_SPARK__MASTER": "variable"},
            {},
            "variable",
            id="environment over file",
        ),
        pytest.param(
            "spark: {master: file}",
            {"LUMOS_SPARK__MASTER": "variable"},
            {"spark.master": "option"},
            "option",
            id="option over environment",
        ),
        pytest.param("spark:", {}, {"spark.master": "option"}, "option", id="option over nothing"),
        pytest.param(
            "", {"LUMOS_SPARK__MASTER": "x"}, {"spark.master": None}, "x", id="option not given"
        ),
        pytest.param("spark: {master: x}", {"LUMOS_SPARK__MASTER": ""}, {}, "x", id="empty"),
    ],
)
def test_the_later_layer_wins(
    load_text: Load,
    file: str,
    environment: dict[str, str],
    overrides: dict[str, object],
    master: str,
) -> None:
    settings = load_text(file, environment=environment, overrides=overrides)
    assert settings.spark.master == master


def test_other_keys_of_a_section_stay_when_one_is_overruled(load_text: Load) -> None:
    settings = load_text(
        "scan: {exclude: [tmp], max_removed_share: 0.1}",
        environment={"LUMOS_SCAN__MAX_REMOVED_SHARE": "0.9"},
    )
    assert settings.scan.exclude == ("tmp",)
    assert settings.scan.max_removed_share == 0.9


def test_an_older_spelling_in_the_file_is_overruled_too(load_text: Load) -> None:
    file = "lumos_config: {default_platform: atlas, gms_server: 'http://file'}"
    settings = load_text(
        file,
        environment={"LUMOS_PLATFORM": "datahub"},
        overrides={"gms_server": "http://option"},
    )
    assert settings.platform == "datahub"
    assert settings.platform_config.datahub is not None
    assert settings.platform_config.datahub.gms_server == "http://option"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"DATAHUB_GMS_URL": "http://gms:8080"}, "http://gms:8080"),
        ({"LUMOS_GMS_SERVER": "http://own"}, "http://own"),
        ({"LUMOS_DATAHUB__GMS_SERVER": "http://own"}, "http://own"),
        (
            {
                "DATAHUB_GMS_URL": "http://gms:8080",
                "LUMOS_PLATFORM_CONFIG__DATAHUB__GMS_SERVER": "http://own",
            },
            "http://own",
        ),
    ],
)
def test_a_catalog_is_found_through_the_environment(
    environment: dict[str, str], expected: str
) -> None:
    settings = load(None, environment={"LUMOS_PLATFORM": "datahub", **environment})
    assert settings.platform == "datahub"
    assert settings.platform_config.datahub is not None
    assert settings.platform_config.datahub.gms_server == expected


def test_variables_reach_maps_and_free_form_keys() -> None:
    settings = load(
        None,
        environment={
            "LUMOS_FEATURES__AUTO_DETECTION": "yes",
            "LUMOS_COST_MODEL__STORAGE__S3__COST_PER_GB_MONTH": "0.02",
            "LUMOS_COST_CALCULATION__STORAGE_PRICING__GCS__ARCHIVE": "0.001",
            "LUMOS_SPARK__CONFIG__SPARK__EXECUTOR__MEMORY": "2g",
            "LUMOS_SPARK__CONFIG__spark.sql.session.timeZone": "UTC",
        },
    )
    assert settings.features == {"auto_detection": True}
    assert settings.cost_model.storage["s3"].cost_per_gb_month == 0.02
    archive = settings.cost_calculation.storage_pricing["gcs"]["archive"]
    assert archive.price_per_gb_month == 0.001
    assert settings.spark.properties() == {
        "spark.executor.memory": "2g",
        "spark.sql.session.timeZone": "UTC",
    }


@pytest.mark.usefixtures("registered")
def test_variables_reach_the_options_of_another_packages_platform() -> None:
    environment = {"LUMOS_PLATFORM_CONFIG__SHIPYARD__DOCK": "7"}
    settings = load(None, environment=environment)
    assert settings.platform_config.of("shipyard") == {"dock": 7}


def test_a_variable_below_a_section_that_is_no_mapping_leaves_the_mistake_to_be_reported(
    load_text: Load,
) -> None:
    with pytest.raises(ConfigurationError, match=r"^lumos\.yaml:1: storage must be a mapping"):
        load_text("storage: x", environment={"LUMOS_STORAGE__PATH": "y"})


def test_overrides_may_be_whole_sections_and_dotted_keys() -> None:
    settings = load(
        None,
        environment={},
        overrides={
            "sources": [{"type": "s3", "bucket": "lake"}, {"type": "file", "path": Path("/d")}],
            "spark.config.spark.executor.memory": "2g",
            "platform_config.datahub.token": Secret("hush"),
            "features": {"auto_detection": False},
        },
    )
    assert settings.sources == (
        S3SourceSettings(buckets=("lake",)),
        FileSourceSettings(paths=("/d",)),
    )
    assert settings.spark.properties() == {"spark.executor.memory": "2g"}
    assert settings.platform_config.datahub is not None
    assert settings.platform_config.datahub.token == Secret("hush")
    assert settings.features == {"auto_detection": False}


def test_variables_that_name_no_setting_are_known() -> None:
    environment = {
        "LUMOS_CONFIG": "x.yaml",
        "LUMOS_PLATFORM": "local",
        "LUMOS_STORAGE__PATH": "x",
        "LUMOS_STORAGE": "x",
        "LUMOS_STORAGE__PTH": "x",
        "LUMOS_SOURCES": "x",
        "LUMOS_SCAN__EXCLUDE": "x",
        "LUMOS_ORIGIN__FILE": "x",
        "LUMOS_": "x",
        "LUMOS_FEATURES__": "x",
        "PATH": "x",
    }
    assert unused_variables(environment) == (
        "LUMOS_",
        "LUMOS_FEATURES__",
        "LUMOS_ORIGIN__FILE",
        "LUMOS_SCAN__EXCLUDE",
        "LUMOS_SOURCES",
        "LUMOS_STORAGE",
        "LUMOS_STORAGE__PTH",
    )
    assert load(None, environment=environment).storage.path == str(Path.cwd() / "x")


def test_without_a_file_the_defaults_hold() -> None:
    settings = load(None, environment={})
    assert settings.origin.file is None
    assert settings.storage.path == str(Path.cwd() / ".lumos/lumos.db")
    assert settings.to_masked_dict() | {"storage": None} == Settings().to_masked_dict() | {
        "storage": None
    }


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "---\n", "sources:\nstorage:\nspark:\n"])
def test_an_empty_file_gives_the_defaults(load_text: Load, text: str) -> None:
    settings = load_text(text)
    assert settings.to_masked_dict() | {"storage": None} == Settings().to_masked_dict() | {
        "storage": None
    }


def test_the_file_is_found_by_variable_or_by_name(tmp_path: Path) -> None:
    assert find_file(tmp_path, {}) is None
    (tmp_path / "lumos.yaml").touch()
    assert find_file(tmp_path, {}) == tmp_path / "lumos.yaml"
    assert find_file(tmp_path, {"LUMOS_CONFIG": "other.yaml"}) == tmp_path / "other.yaml"
    assert find_file(tmp_path, {"LUMOS_CONFIG": "/etc/lumos.yaml"}) == Path("/etc/lumos.yaml")


def test_a_missing_file_is_reported_with_the_command_that_makes_one(tmp_path: Path) -> None:
    file = tmp_path / "lumos.yaml"
    with pytest.raises(ConfigurationError, match="lumos init") as caught:
        load(file, environment={})
    assert caught.value.file == str(file)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        load(tmp_path, environment={})


def test_paths_hang_on_the_folder_of_what_they_are_written_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf").mkdir()
    file = tmp_path / "conf" / "lumos.yaml"
    file.write_text(
        "sources: [{type: file, paths: [data, /abs, 'file:///x']}]\n"
        "state_uri: state\n"
        "storage: {path: store.db}\n"
    )
    monkeypatch.chdir(tmp_path)
    settings = load(file, environment={})
    folder = tmp_path / "conf"
    assert settings.sources == (FileSourceSettings(paths=(f"{folder}/data", "/abs", "file:///x")),)
    assert settings.state_uri == f"{folder}/state"
    assert settings.storage.path == f"{folder}/store.db"
    assert settings.origin.folder == str(folder)
    environment = {"LUMOS_STORAGE__PATH": "elsewhere.db"}
    assert load(file, environment=environment).storage.path == f"{tmp_path}/elsewhere.db"
    overrides = {"storage.path": "option.db"}
    assert load(file, environment={}, overrides=overrides).storage.path == f"{tmp_path}/option.db"


def test_a_store_nobody_named_lies_beside_the_file(load_text: Load, tmp_path: Path) -> None:
    assert load_text("").storage.path == str(tmp_path / ".lumos/lumos.db")
    assert load_text("storage: {backend: file}").storage.path == str(tmp_path / "lumos_snapshots")


def test_a_tilde_is_the_home_folder(load_text: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/pilot")
    assert load_text("storage: {path: ~/lumos.db}").storage.path == "/home/pilot/lumos.db"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("production", "PROD"),
        ("Production", "PROD"),
        ("development", "DEV"),
        ("staging", "STAGING"),
        ("dev", "DEV"),
        ("qa-2", "QA-2"),
    ],
)
def test_an_environment_has_one_spelling(load_text: Load, written: str, expected: str) -> None:
    assert load_text(f"environment: {written}").environment == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("ObjectCreated", StorageEventType.CREATED),
        ("s3:ObjectCreated:*", StorageEventType.CREATED),
        ("s3:ObjectCreated:Put", StorageEventType.CREATED),
        ("ObjectDeleted", StorageEventType.DELETED),
        ("ObjectRemoved", StorageEventType.DELETED),
        ("s3:ObjectRemoved:DeleteMarkerCreated", StorageEventType.DELETED),
        ("s3:LifecycleExpiration:Delete", StorageEventType.DELETED),
    ],
)
def test_storage_events_are_known_by_all_their_names(
    load_text: Load, written: str, expected: StorageEventType
) -> None:
    source = f"{{type: s3, bucket: b, event_types: ['{written}']}}"
    settings = load_text(f"change_detection: {{sources: [{source}]}}")
    assert settings.change_detection.sources[0].event_types == (expected,)


@pytest.mark.parametrize(("written", "expected"), [("true", True), ("off", False), ("[a]", ("a",))])
def test_tables_are_watched_all_or_some(load_text: Load, written: str, expected: object) -> None:
    source = f"{{type: postgres, host: h, watch_tables: {written}}}"
    settings = load_text(f"change_detection: {{sources: [{source}]}}")
    assert settings.change_detection.sources[0].watch_tables == expected


def test_sources_keep_their_order(load_text: Load) -> None:
    text = "\n".join(f"  - {{type: file, path: /{n}, name: s{n}}}" for n in (3, 1, 2))
    assert [source.name for source in load_text(f"sources:\n{text}").sources] == ["s3", "s1", "s2"]


@pytest.mark.parametrize("prefix", ["/", "//raw/", "raw/", "/raw/x"])
def test_a_prefix_never_starts_with_a_slash(load_text: Load, prefix: str) -> None:
    settings = load_text(f"sources: [{{type: gcs, bucket: b, prefix: {prefix}}}]")
    assert settings.to_masked_dict()["sources"][0]["prefixes"] == [prefix.lstrip("/")]


def test_kafka_servers_may_be_a_list(load_text: Load) -> None:
    settings = load_text("sources: [{type: kafka, bootstrap_servers: [a:1, b:2]}]")
    assert settings.sources == (KafkaSourceSettings(bootstrap_servers=("a:1", "b:2")),)


def test_text_that_looks_like_something_else_stays_text(load_text: Load) -> None:
    settings = load_text(
        "sources: [{type: snowflake, account: 0123, user: no, password: 1e5, role: 2024-01-01}]"
    )
    source = settings.to_masked_dict()["sources"][0]
    assert (source["account"], source["user"], source["role"]) == ("0123", "no", "2024-01-01")


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("7", 7),
        ("1_000", 1000),
        ("'7'", "7"),
        ("!!str 7", "7"),
        ("007", "007"),
        ("1.5", 1.5),
        ("2e3", 2000.0),
        ("True", True),
        ("no", "no"),
        ("~", None),
        ("2024-01-01", "2024-01-01"),
        ("12:30", "12:30"),
        ("${SEVEN}", 7),
        ("'${SEVEN}'", "7"),
        ("${NOTHING:-}", None),
        ("[a, {b: 1}]", ["a", {"b": 1}]),
    ],
)
def test_a_free_form_value_is_typed_by_its_looks(
    load_text: Load, written: str, expected: object
) -> None:
    settings = load_text(
        f"sources:\n  - type: buoys\n    depth: {written}", environment={"SEVEN": "7"}
    )
    assert settings.sources == (PluginSourceSettings(type="buoys", options={"depth": expected}),)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("${HOST}", "db"),
        ("${HOST}.example", "db.example"),
        ("a-${HOST}-${HOST}", "a-db-db"),
        ("${HOST:-other}", "db"),
        ("${UNSET:-other}", "other"),
        ("${EMPTY:-other}", "other"),
        ("${UNSET:-}x", "x"),
        ("$${HOST}", "${HOST}"),
        ("$HOST", "$HOST"),
        ("${TRICKY}", "${HOST}"),
        ("${WORD}", "null"),
        ('"${HOST}"', "db"),
    ],
)
def test_variables_are_filled_in(load_text: Load, written: str, expected: str) -> None:
    environment = {"HOST": "db", "EMPTY": "", "TRICKY": "${HOST}", "WORD": "null"}
    settings = load_text(f"spark:\n  master: {written}", environment=environment)
    assert settings.spark.master == expected


def test_a_variable_without_quotes_is_typed_by_what_it_holds(load_text: Load) -> None:
    text = "sources:\n  - type: redshift\n    host: h\n    port: ${PORT}\n    password: ${PORT}\n"
    source = load_text(text, environment={"PORT": "5555"}).sources[0]
    assert isinstance(source, RedshiftSourceSettings)
    assert source.port == 5555
    assert source.password == Secret("5555")


def test_a_variable_that_is_not_set_is_reported_with_the_way_to_set_it(load_text: Load) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_text("sources:\n  - type: snowflake\n    account: ${SNOWFLAKE_ACCOUNT}\n")
    assert str(caught.value) == (
        "lumos.yaml:3: sources[0].account needs the environment variable SNOWFLAKE_ACCOUNT, "
        "which is not set. Set it (export SNOWFLAKE_ACCOUNT=...) "
        "or give a default: ${SNOWFLAKE_ACCOUNT:-...}"
    )
    assert caught.value.key == "sources[0].account"


def test_a_variable_of_an_overruled_key_need_not_be_set(load_text: Load) -> None:
    settings = load_text("spark: {master: '${UNSET}'}", overrides={"spark.master": "local"})
    assert settings.spark.master == "local"


@pytest.mark.usefixtures("registered")
def test_a_variable_in_free_form_options_must_be_set_too(load_text: Load) -> None:
    with pytest.raises(ConfigurationError, match=r"sources\[0\]\.deep\.x\[0\] needs the env"):
        load_text("sources: [{type: buoys, deep: {x: ['${UNSET}']}}]")


@pytest.mark.parametrize("written", ["'${'", "'${1A}'", "'${A'", "'${A-b}'"])
def test_a_broken_reference_is_reported(load_text: Load, written: str) -> None:
    with pytest.raises(ConfigurationError, match=r"spark\.master contains"):
        load_text(f"spark:\n  master: {written}", environment={"A": "1"})
