"""A tenth collection: databases, clouds and statistics, written down before it was run."""

from .lakes import Lake

TENTH = [
    Lake(
        "shards of a search index export",
        """
        a | json | _id _source | es/products-{000001..000003}.ndjson.gz
        b | json | _id _source | es/reviews-{000001..000003}.ndjson.gz
    """,
    ),
    Lake(
        "mongo dump",
        """
        a | json | _id name | mongo/shop/users.json
        b | json | _id total:float | mongo/shop/orders.json
        - | json | indexes | mongo/shop/users.metadata.json; mongo/shop/orders.metadata.json
    """,
    ),
    Lake(
        "pg copies",
        """
        a | csv | id:int name | pg/2024-01-0{1..3}/public.users.csv
        b | csv | id:int total:float | pg/2024-01-0{1..3}/public.orders.csv
        c | csv | id:int total:float note | pg/2024-01-0{1..3}/audit.orders.csv
    """,
    ),
    Lake(
        "tenant schema dumps",
        """
        a | csv | id:int name | dumps/{tenant1,tenant2,tenant3}/users.csv
        b | csv | id:int total:float | dumps/{tenant1,tenant2,tenant3}/orders.csv
    """,
    ),
    Lake(
        "three customers one table",
        """
        a | csv | id:int name total:float | clients/{acme,globex,initech}/invoices.csv
    """,
    ),
    Lake(
        "sales by rep",
        """
        a | csv | deal amount:float close:date | crm/pipeline_{john,mary,peter,susan,ahmed}.csv
    """,
    ),
    Lake(
        "survey waves, once more",
        """
        a | csv | resp:int q1 q2 q3 | survey/wave{1..5}.csv
        c | csv | var label | survey/codebook.csv
    """,
    ),
    Lake(
        "survey waves changing",
        """
        a | csv | resp:int q1 q2 q3 | survey/wave1.csv
        a | csv | resp:int q1 q2 q3 q4 | survey/wave2.csv
        a | csv | resp:int q1 q2 q3 q4 q5 | survey/wave3.csv
    """,
    ),
    Lake(
        "plain numbers",
        """
        a | parquet | x:float y:float | sim/{0..9}.parquet
    """,
    ),
    Lake(
        "sim params",
        """
        a | csv | t:float x:float | sim/alpha_0.1_beta_{1,2}/traj_{0..4}.csv; sim/alpha_0.5_beta_{1,2}/traj_{0..4}.csv
    """,
    ),
    Lake(
        "bucketed hive",
        """
        a | orc | id:int v | wh/t/dt=2024-01-0{1..2}/{000000..000003}_0
        b | orc | id:int w:float | wh/u/dt=2024-01-0{1..2}/{000000..000003}_0_copy_1
    """,
    ),
    Lake(
        "spark over two runs",
        """
        a | parquet | id:int v | out/t/run_id={20240105,20240106}/part-{00000..00002}-{uuid}-c000.snappy.parquet
    """,
    ),
    Lake(
        "firehose",
        """
        a | json | id v | fh/clicks/2024/01/05/{00..03}/clicks-stream-1-2024-01-05-{00..03}-00-05-{uuid}.gz
        e | json | errorCode rawData | fh/errors/processing-failed/2024/01/05/00/clicks-stream-1-2024-01-05-00-00-05-{uuid}.gz
    """,
    ),
    Lake(
        "kinesis prefix hive",
        """
        a | parquet | id v | raw/events/year=2024/month=01/day={05..07}/hour={00,12}/delivery-1-2024-01-05-00-00-00-{uuid}.parquet
    """,
    ),
    Lake(
        "ALB logs",
        """
        a | csv | column_1 column_2 column_3 | AWSLogs/123456789012/elasticloadbalancing/us-east-1/2024/01/{05,06}/123456789012_elasticloadbalancing_us-east-1_app.web.{hex16}_20240105T0005Z_10.0.0.1_{rand8}.log.gz
        w | json | ts action rule | AWSLogs/123456789012/WAFLogs/us-east-1/acl/2024/01/{05,06}/00/05/123456789012_waflogs_us-east-1_acl_20240105T0005Z_{hex8}.log.gz
    """,
    ),
    Lake(
        "config snapshots",
        """
        h | json | fileVersion configSnapshotId | AWSLogs/{123456789012,210987654321}/Config/{us-east-1,eu-west-1}/2024/1/{5,6}/ConfigSnapshot/123456789012_Config_us-east-1_ConfigSnapshot_20240105T010203Z_{uuid}.json.gz
        c | json | fileVersion configurationItems | AWSLogs/{123456789012,210987654321}/Config/{us-east-1,eu-west-1}/2024/1/{5,6}/ConfigHistory/123456789012_Config_us-east-1_ConfigHistory_AWS::EC2_{time}_{time}_1.json.gz
    """,
    ),
    Lake(
        "azure activity",
        """
        a | json | time resourceId operationName | insights-activity-logs/resourceId=/SUBSCRIPTIONS/{uuid}/y=2024/m=01/d=0{1..3}/h={00,12}/m=00/PT1H.json
    """,
    ),
    Lake(
        "adf copies",
        """
        a | parquet | id:int name | adls/landing/sap/dbo.Customer/2024/01/0{1..3}/dbo.Customer_2024010{1..3}.parquet
        b | parquet | id:int amount:float | adls/landing/sap/dbo.Invoice/2024/01/0{1..3}/dbo.Invoice_2024010{1..3}.parquet
    """,
    ),
    Lake(
        "dataflow templates",
        """
        a | avro | id v | tmp/output-2024-01-05T00:00:00.000Z-2024-01-05T00:05:00.000Z-pane-0-last-{00..03}-of-04.avro
    """,
    ),
    Lake(
        "dbt artefacts",
        """
        a | csv | id:int name | proj/seeds/countries.csv
        b | csv | code rate:float | proj/seeds/rates.csv
        - | json | metadata nodes | proj/target/manifest.json
    """,
    ),
    Lake(
        "mlflow",
        """
        a | csv | step:int value:float | mlruns/0/{hex32}/artifacts/metrics.csv; mlruns/0/{hex32}/artifacts/metrics.csv; mlruns/0/{hex32}/artifacts/metrics.csv
    """,
    ),
    Lake(
        "air quality",
        """
        a | csv | station at:time value:float | aq/{NO2,O3,PM10,PM25,SO2}/2024-01-0{1..3}.csv
    """,
    ),
    Lake(
        "air quality files",
        """
        a | csv | station at:time value:float | aq/2024/{NO2,O3,PM10,PM25,SO2}_2024-0{1..3}.csv
        s | csv | station lat:float lon:float | aq/stations.csv
    """,
    ),
    Lake(
        "election tables",
        """
        a | csv | cand votes:int | e/candidates_2020.csv; e/candidates_2024.csv
        b | csv | county votes:int | e/counties_2020.csv; e/counties_2024.csv
    """,
    ),
    Lake(
        "wages by state code",
        """
        a | csv | occ wage:float | oes/oesm{18..22}/state_M20{18..22}_dl.csv
        b | csv | occ wage:float naics | oes/oesm{18..22}/natsector_M20{18..22}_dl.csv
    """,
    ),
    Lake(
        "eurostat",
        """
        a | csv | geo time value:float | eurostat/nama_10_gdp.tsv.gz
        b | csv | geo time sex value:float | eurostat/demo_pjan.tsv.gz
        c | csv | geo time unit value:float | eurostat/prc_hicp_midx.tsv.gz
    """,
    ),
    Lake(
        "un comtrade",
        """
        a | parquet | reporter partner cmd value:float | comtrade/type=C/freq=A/classification=HS/reporter={276,840,156}/year={2021,2022}/data.parquet
    """,
    ),
    Lake(
        "citations",
        """
        a | json | id title | s2/papers/papers-part{0..5}.jsonl.gz
        b | json | id name | s2/authors/authors-part{0..5}.jsonl.gz
        c | json | citing cited | s2/citations/citations-part{0..5}.jsonl.gz
        - | json | n | s2/README.txt
    """,
    ),
    Lake(
        "openalex updates",
        """
        w | json | id title | data/works/updated_date=2024-01-0{1..4}/part_{000..002}.gz
        a | json | id name | data/authors/updated_date=2024-01-0{1..4}/part_{000..002}.gz
        - | json | entries | data/works/manifest; data/authors/manifest
    """,
    ),
    Lake(
        "protein",
        """
        a | csv | col1 col2:float | ppi/{9606,10090,7227,4932}.protein.links.v12.0.txt.gz
        b | csv | id alias source | ppi/{9606,10090,7227,4932}.protein.aliases.v12.0.txt.gz
    """,
    ),
    Lake(
        "uk biobank-like",
        """
        a | csv | eid:int f1:float f2:float | ukb/field_{100..104}.csv
    """,
    ),
    Lake(
        "games per season",
        """
        a | csv | player pts:int | nba/{2019-20,2020-21,2021-22}/boxscores.csv
        b | csv | home away score | nba/{2019-20,2020-21,2021-22}/games.csv
    """,
    ),
    Lake(
        "formula one",
        """
        a | csv | raceId:int driverId:int pos:int | f1/results.csv
        b | csv | raceId:int driverId:int lap:int | f1/lap_times.csv
        c | csv | raceId:int driverId:int stop:int | f1/pit_stops.csv
        d | csv | driverId:int ref | f1/drivers.csv
        e | csv | constructorId:int ref | f1/constructors.csv
        f | csv | statusId:int status | f1/status.csv
    """,
    ),
    Lake(
        "chess months",
        """
        a | csv | moves result | lichess/standard/lichess_db_standard_rated_2024-0{1..3}.csv.zst
        b | csv | moves result | lichess/chess960/lichess_db_chess960_rated_2024-0{1..3}.csv.zst
        c | csv | PuzzleId FEN Moves | lichess/lichess_db_puzzle.csv.zst
    """,
    ),
    Lake(
        "satellite scenes",
        """
        a | json | id bbox cloud:float | scenes/S2A_MSIL2A_20240105T{100000..100003}_N0510_R022_T33UUP_20240105T134501.json
    """,
    ),
    Lake(
        "hospital branches",
        """
        a | csv | patient admitted:date ward | hospitals/{st_mary,general,childrens}/admissions_2024-0{1..3}.csv
        b | csv | patient drug dose:float | hospitals/{st_mary,general,childrens}/prescriptions_2024-0{1..3}.csv
    """,
    ),
    Lake(
        "month names",
        """
        a | csv | date:date total:float | budget/2023/{January,February,March}.csv; budget/2024/{January,February}.csv
    """,
    ),
    Lake(
        "month names in files",
        """
        a | csv | date:date total:float | sales_january_2024.csv; sales_february_2024.csv; sales_march_2024.csv
        b | csv | date:date cost:float dept | costs_january_2024.csv; costs_february_2024.csv
    """,
    ),
    Lake(
        "week folders, once more",
        """
        a | csv | sku units:int | wk/2024-W{01..05}/sellout.csv
        b | csv | sku stock:int | wk/2024-W{01..05}/stock.csv
    """,
    ),
    Lake(
        "german dates",
        """
        a | csv | id:int v | ex/umsatz_{01..05}.01.2024.csv
    """,
    ),
    Lake(
        "mixed formats same name",
        """
        a | csv | id:int v | x/orders.csv
        b | parquet | id:int v | x/orders.parquet
    """,
    ),
    Lake(
        "compaction",
        """
        a | parquet | id:int v | t/dt=2024-01-0{1..3}/part-{00000..00002}-{uuid}.c000.parquet; t/dt=2024-01-0{1..3}/compacted.parquet
    """,
    ),
    Lake(
        "random words parquet",
        """
        a | parquet | id:int v | st/tbl/{rand22}.parquet; st/tbl/{rand22}.parquet; st/tbl/{rand22}.parquet; st/tbl/{rand22}.parquet
    """,
    ),
    Lake(
        "tables of same columns by word",
        """
        a | csv | id:int name | ref/color.csv
        b | csv | id:int name | ref/brand.csv
        c | csv | id:int name | ref/status.csv
        d | csv | id:int name | ref/channel.csv
        e | csv | id:int name | ref/segment.csv
    """,
    ),
    Lake(
        "lookups many in data",
        """
        a | csv | code label | data/codes/{gender}.csv
        b | csv | code label | data/codes/{marital_status}.csv
        c | csv | code label | data/codes/{education}.csv
        d | csv | code label | data/codes/{occupation}.csv
    """,
    ),
]
