"""What a server of DataHub comes with, and therefore is no part of a migration."""

from typing import Final

from lumos.catalogs.datahub_model.names import platform_urn
from lumos.catalogs.datahub_model.statements import Entity

# The platforms that servers create when they start, as of DataHub 1.7.
PLATFORMS: Final = frozenset(
    """
    OpenApi abinitio adlsGen1 adlsGen2 aerospike airbyte airflow ambry athena
    azure-data-factory bigid bigquery bigtable cassandra clickhouse cloudsql cockroachdb
    controlm couchbase csv cube dagster databricks datahub dataplex dataproc-metastore db2 dbt
    delta-lake dlt documentdb doris dremio druid dynamodb elasticsearch excel external fabric
    fabric-data-factory fabric-onelake feast file fivetran flink gcs github glue google_sheets
    grafana great-expectations hana hdfs hex hive hudi iceberg informatica informix kafka
    kafka-connect kinesis kinesis-firehose kusto logical looker mariadb matillion metabase
    microsoft-teams microstrategy mlflow mode mongodb mssql mysql neo4j nifi notion odcs
    omni oracle pinot postgres powerbi prefect preset presto presto-on-hive pubsub pulsar
    qlik-sense redash redshift s3 sac sagemaker salesforce sap-datasphere sigma slack snaplogic
    snowflake snowplow spanner spark sqlmesh streamlit superset tableau teradata thoughtspot
    tidb timescaledb trino unknown vertexai vertica voldemort
    """.split()  # noqa: SIM905 - a list of 119 texts is harder to read
)


def default_platform(entity: Entity) -> str | None:
    """The platform that a server gives to an entity of some types when it is created."""
    key = entity.urn.split(":", 3)[-1].removeprefix("(")
    match entity.type:
        case "dataset" | "mlFeatureTable" | "mlModel" | "mlModelDeployment" | "mlModelGroup":
            return key.partition(",")[0]
        case "chart" | "dashboard" | "dataFlow":
            tool = key.partition(",")[0]
        case "dataJob":
            tool = key.removeprefix("urn:li:dataFlow:(").partition(",")[0]
        case "dataProcess":
            tool = key.partition(",")[2].partition(",")[0]
        case _:
            return None
    return platform_urn(tool.lower())
