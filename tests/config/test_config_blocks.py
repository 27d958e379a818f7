"""Every section that users are promised, read from a file and compared value by value."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lumos.config import ConnectionString, Secret, Settings, load
from lumos.config.costs import AttributionSettings, StoragePrice
from lumos.config.platforms import AtlasPlatform, DatahubPlatform, OpenmetadataPlatform, Retries
from lumos.config.settings import (
    ChangeRule,
    CustomApi,
    DbtTests,
    Exemption,
    GreatExpectations,
    Reminder,
    StorageEventType,
)
from lumos.config.sources import (
    AzureSourceSettings,
    BigquerySourceSettings,
    DatabricksSourceSettings,
    FileSourceSettings,
    GcsSourceSettings,
    HdfsSourceSettings,
    KafkaSourceSettings,
    MongodbSourceSettings,
    PluginSourceSettings,
    PostgresSourceSettings,
    RedshiftSourceSettings,
    S3SourceSettings,
    SnowflakeSourceSettings,
)
from lumos.model.change import EventType as ChangeType
from lumos.model.change import Verdict

BLOCKS = Path(__file__).parent / "blocks"
ENVIRONMENT = {
    "SNOWFLAKE_ACCOUNT": "harbour-eu",
    "DATABRICKS_WORKSPACE": "https://dbc.harbour.example",
    "KAFKA_SERVERS": "k1.harbour.example:9092, k2.harbour.example:9092",
    "OM_TOKEN": "0123456789",
    "STORE_PASSWORD": "anchor",
    "S3_SECRET": "shell",
}


def change_detection(settings: Settings) -> None:
    bucket, folder, database = settings.change_detection.sources
    assert settings.change_detection.enabled
    assert bucket.source == S3SourceSettings(buckets=("harbour-lake",), prefixes=("landing/",))
    assert (bucket.watch_mode, bucket.polling_interval) == ("hybrid", 120)
    assert bucket.event_types == (StorageEventType.CREATED, StorageEventType.DELETED)
    assert bucket.sqs_queue == "arn:aws:sqs:eu-west-1:000000000000:harbour-events"
    assert folder.source == HdfsSourceSettings(paths=("/warehouse/ships",), recursive=False)
    assert (folder.watch_mode, folder.polling_interval) == ("polling", 900)
    assert isinstance(database.source, PostgresSourceSettings)
    assert database.source.schemas == ("berths", "cargo")
    assert str(database.source.connection_string) == (
        "postgresql://reader:***@db.harbour.example/ships"
    )
    assert database.watch_tables == ("manifest", "crane")


def lake_sources(settings: Settings) -> None:
    assert settings.sources == (
        S3SourceSettings(
            buckets=("harbour-lake",),
            prefixes=("landing/manifests/", "curated/berths/"),
            file_patterns=("*.avro", "*.parquet", "*.csv"),
        ),
    )


def all_sources(settings: Settings) -> None:
    assert settings.sources == (
        S3SourceSettings(name="lake", buckets=("landing", "curated", "features")),
        GcsSourceSettings(name="analytics", buckets=("boards", "reports")),
        SnowflakeSourceSettings(
            name="finance", account="harbour-eu", databases=("LEDGER", "PAYROLL")
        ),
        BigquerySourceSettings(name="marketing", project="harbour-marketing"),
        DatabricksSourceSettings(name="science", workspace="https://dbc.harbour.example"),
        KafkaSourceSettings(
            name="sensors",
            bootstrap_servers=("k1.harbour.example:9092", "k2.harbour.example:9092"),
            topic_patterns=("crane.*", "tide.*"),
        ),
    )


def nested_options(settings: Settings) -> None:
    assert (settings.platform, settings.environment) == ("datahub", "PROD")
    assert settings.sources == (
        S3SourceSettings(buckets=("harbour-lake",), region="eu-west-1"),
        SnowflakeSourceSettings(name="finance", account="harbour", databases=("LEDGER",)),
    )
    assert settings.features == {
        "auto_detection": True,
        "schema_tracking": True,
        "cost_attribution": False,
    }


def platform_switch(settings: Settings) -> None:
    assert settings.platform == "openmetadata"
    assert settings.platform_config.of("openmetadata") == OpenmetadataPlatform(
        server="https://metadata.harbour.example", auth_token=Secret("0123456789")
    )


def catalogs_beside(settings: Settings) -> None:
    config = settings.platform_config
    assert config.datahub == DatahubPlatform(
        gms_server="http://datahub-gms.harbour:8080", token=Secret("0123456789")
    )
    assert config.openmetadata is not None
    assert config.openmetadata.address == "https://metadata.harbour.example"
    assert [(each.key, each.current_key) for each in settings.origin.former_keys] == [
        ("lumos_config.datahub", "platform_config.datahub"),
        ("lumos_config.openmetadata", "platform_config.openmetadata"),
    ]


def catalogs_whole(settings: Settings) -> None:
    config = settings.platform_config
    assert config.datahub == DatahubPlatform(
        gms_server="https://GMS.harbour.example:443/api/gms/",
        token=Secret("datahub-pass"),
        timeout=5,
        retries=Retries(attempts=3),
        parallel=2,
        ca_file=str(BLOCKS / "harbour.pem"),
    )
    assert config.datahub.address == "https://gms.harbour.example/api/gms"
    assert config.openmetadata == OpenmetadataPlatform(
        server="https://metadata.harbour.example/api/v1/",
        auth_token=Secret("openmetadata-pass"),
        retries=Retries(attempts=20, longest=3600),
        services={"snowflake_prod": "snowflake", "lake.s3": "s3@eu"},
    )
    assert config.openmetadata.address == "https://metadata.harbour.example"


def all_platforms(settings: Settings) -> None:
    config = settings.platform_config
    assert config.datahub == DatahubPlatform(
        gms_server="http://gms.harbour.example:8080", token=Secret("datahub-pass")
    )
    assert config.atlas == AtlasPlatform(
        server="https://atlas.harbour.example", user="pilot", password=Secret("atlas-pass")
    )
    assert config.openmetadata is not None
    assert config.openmetadata.auth_token == Secret("openmetadata-pass")
    assert config.amundsen is not None
    assert config.amundsen.neo4j_password == Secret("amundsen-pass")
    assert config.snowflake is not None
    assert (config.snowflake.database, config.snowflake.schema) == ("META", "LUMOS")
    assert config.bigquery is not None
    assert config.bigquery.dataset == "lumos"
    assert config.redshift is not None
    assert config.redshift.port == 5439


def older_keys(settings: Settings) -> None:
    assert (settings.platform, settings.cloud_version_prefix) == ("datahub", "H-")
    assert settings.platform_config.datahub == DatahubPlatform(
        gms_server="http://gms.harbour.example:8080"
    )


def storage_file(settings: Settings) -> None:
    assert settings.storage.backend == "file"
    assert settings.storage.path == str(BLOCKS / "history")


def storage_postgres(settings: Settings) -> None:
    assert settings.storage.backend == "postgres"
    assert settings.storage.connection_string == ConnectionString(
        "postgresql://lumos:anchor@store.harbour.example/lumos?sslmode=require"
    )


def cost_calculation(settings: Settings) -> None:
    storage = settings.cost_calculation.storage_pricing
    assert storage["aws_s3"] == {
        "standard": StoragePrice(price_per_gb_month=0.025),
        "glacier": StoragePrice(price_per_gb_month=0.005),
        "deep_archive": StoragePrice(price_per_gb_month=0.0011),
    }
    assert storage["azure_blob"]["archive"].price_per_gb_month == 0
    assert settings.cost_calculation.compute_pricing == {
        "spark": {"per_core_hour": 0.14, "per_gb_processed": 0.02},
        "flink": {"per_core_hour": 0.11},
        "databricks": {"dbu_hour": 0.5},
        "emr": {"instance_hour": 0.3},
    }


def cost_model(settings: Settings) -> None:
    model = settings.cost_model
    assert model.storage["s3"].cost_per_gb_month == 0.025
    assert model.storage["snowflake"].cost_per_tb_month == 38
    assert model.compute == {"spark": {"cost_per_dbu": 0.2}, "snowflake": {"cost_per_credit": 2.5}}
    assert model.attribution == AttributionSettings(method="equal_split")


def documentation(settings: Settings) -> None:
    rules = settings.documentation
    assert rules.required_fields == ("description", "owner", "business_domain")
    assert rules.enforcement.mode == "block_on_missing"
    assert rules.exceptions == (
        Exemption(pattern="/scratch/*", reason="Scratch data is gone by tomorrow"),
    )


def glossary(settings: Settings) -> None:
    assert settings.glossary_mappings == {
        "brth_no": "Berth Number",
        "eta": "Expected Arrival",
        "flg": "Flag (yes or no)",
        "no": "Number",
    }
    assert settings.path_patterns["/curated/*"] == "Cleaned once a night"


def notifications(settings: Settings) -> None:
    reminder = settings.notifications.reminders["undocumented_reminder"]
    assert reminder == Reminder(
        schedule="30 7 * * 5",
        recipients=("dataset_owner",),
        template="Ahoy {owner_name},\n\n"
        'nobody knows what "{dataset_name}" is for. Tell them at {catalog_url}\n',
        channels=("harbour-chat",),
    )
    assert settings.notifications.channels == {"harbour-chat": Secret("slack://T0001/B0001/hush")}
    breaking, gone = settings.notifications.changes
    assert breaking == ChangeRule(
        channels=("harbour-chat",),
        datasets=("raw/**", "lumos://s3/harbour-lake/*"),
        verdicts=(Verdict.BREAKING, Verdict.UNDETERMINED),
        owners=("pilots",),
        title="Mind {dataset_name}",
        template="{changes}\n",
    )
    assert (gone.channels, gone.events) == (("harbour-chat",), (ChangeType.DELETED,))
    assert settings.notifications.max_tries == 10


def quality_integrations(settings: Settings) -> None:
    assert settings.quality_integrations == (
        GreatExpectations(checkpoint_store="s3://harbour-quality/checkpoints/"),
        DbtTests(
            manifest_path=str(BLOCKS / "target/manifest.json"),
            run_results_path=str(BLOCKS / "target/run_results.json"),
        ),
        CustomApi(endpoint="https://quality.harbour.example/api/results"),
    )


def databases(settings: Settings) -> None:
    assert settings.sources == (
        PostgresSourceSettings(
            host="db.harbour.example",
            port=6432,
            database="ships",
            user="reader",
            password=Secret("postgres-pass"),
        ),
        MongodbSourceSettings(
            connection_string=ConnectionString(
                "mongodb://reader:mongo-pass@docs.harbour.example/admin"
            ),
            databases=("logbook",),
            collections=("entries",),
        ),
        RedshiftSourceSettings(
            host="cluster.harbour.example", database="ships", schemas=("public",)
        ),
    )


def other_stores(settings: Settings) -> None:
    assert settings.sources == (
        AzureSourceSettings(account="harbourstore", buckets=("landing",), prefixes=("2024/",)),
        HdfsSourceSettings(
            paths=("/warehouse/ships", "/warehouse/cranes"),
            urls=("http://namenode.harbour.example:9870",),
            user="reader",
        ),
        FileSourceSettings(
            paths=(str(BLOCKS / "data/lake"),), exclude=("tmp/*",), instance="laptop"
        ),
    )
    assert settings.sources[2].type == "file"


def plugins(settings: Settings) -> None:
    assert settings.platform == "shipyard"
    assert settings.platform_config.of("shipyard") == {
        "dock": 7,
        "api_key": Secret("shipyard-pass"),
    }
    assert settings.sources == (
        PluginSourceSettings(
            type="buoys",
            name="north",
            options={
                "connection": {
                    "host": "buoys.harbour.example",
                    "port": 7000,
                    "password": Secret("buoy-pass"),
                },
                "fast": True,
                "depths": [1.5, 20],
            },
        ),
    )


def spark_and_scan(settings: Settings) -> None:
    assert settings.spark.master == "spark://cluster.harbour.example:7077"
    assert settings.spark.properties() == {
        "spark.executor.memory": "4g",
        "spark.sql.shuffle.partitions": "64",
        "spark.dynamicAllocation.enabled": "true",
        "spark.hadoop.fs.s3a.secret.key": "shell",
    }
    assert settings.spark.config["spark.hadoop.fs.s3a.secret.key"] == Secret("shell")
    assert settings.state_uri == "s3://harbour-lake/lumos-state"
    assert settings.scan.file_patterns == ("*.parquet",)
    assert settings.scan.exclude == ("_tmp/*",)
    assert settings.scan.max_removed_share == 0.5


EXPECTATIONS = (
    change_detection,
    lake_sources,
    all_sources,
    nested_options,
    platform_switch,
    all_platforms,
    catalogs_beside,
    catalogs_whole,
    older_keys,
    storage_file,
    storage_postgres,
    cost_calculation,
    cost_model,
    documentation,
    glossary,
    notifications,
    quality_integrations,
    databases,
    other_stores,
    plugins,
    spark_and_scan,
)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("expectation", EXPECTATIONS, ids=lambda each: each.__name__)
def test_a_promised_section_is_read(expectation: Callable[[Settings], None]) -> None:
    file = BLOCKS / f"{expectation.__name__}.yaml"
    expectation(load(file, environment=ENVIRONMENT))


def test_every_file_of_examples_has_its_expectation() -> None:
    assert {file.stem for file in BLOCKS.glob("*.yaml")} == {
        expectation.__name__ for expectation in EXPECTATIONS
    }


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("file", sorted(BLOCKS.glob("*.yaml")), ids=lambda each: each.stem)
def test_no_secret_of_an_example_is_shown(file: Path) -> None:
    settings = load(file, environment=ENVIRONMENT)
    shown = f"{settings!r} {settings} {settings.to_masked_dict()}"
    for secret in ("-pass", "tide-and-time", "anchor", "shell", "0123456789", "hush"):
        assert secret not in shown
