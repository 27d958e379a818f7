"""What engines, connectors and cloud services write."""

from .lakes import Lake

WRITERS = [
    Lake(
        "Spark by date",
        """
        events | parquet | id:int kind at:time | events/dt=2024-01-{01..09}/part-{00000..00002}-{uuid}-c000.snappy.parquet
        users | parquet | user_id:int email | users/part-{00000..00002}-{uuid}-c000.snappy.parquet
        - | - | | events/_SUCCESS; users/_SUCCESS
    """,
    ),
    Lake(
        "Spark year, month, day",
        """
        clicks | parquet | id:int url | raw/clicks/year=2024/month={01..03}/day={01..04}/part-{00000..00001}-{uuid}-c000.snappy.parquet
        clicks | parquet | id:int url referrer | raw/clicks/year=2024/month=04/day={01..04}/part-{00000..00001}-{uuid}-c000.snappy.parquet
        views | parquet | id:int page | raw/views/year=2024/month={01..03}/day={01..04}/part-{00000..00001}-{uuid}-c000.snappy.parquet
    """,
    ),
    Lake(
        "bucketed Spark",
        """
        orders | parquet | id:int customer:int | warehouse/orders/part-{00000..00003}-{uuid}_{00000..00001}.c000.snappy.parquet
    """,
    ),
    Lake(
        "Hive",
        """
        sales | orc | id:int amount:float | warehouse/sales.db/sales/00000{0..4}_0; warehouse/sales.db/sales/000000_0_copy_{1..2}
        stores | orc | store:int city | warehouse/sales.db/stores/000000_0
        facts | orc | id:int dim:int value:float | warehouse/sales.db/facts/ds=2024-01-0{1..3}/00000{0..2}_0
    """,
    ),
    Lake(
        "Hive transactional",
        """
        accounts | orc | operation:int rowId:int row balance:float | warehouse/accounts/base_0000005/bucket_0000{0..1}; warehouse/accounts/delta_000000{6..7}_0000006_0000/bucket_0000{0..1}
    """,
    ),
    Lake(
        "Flink",
        """
        orders | avro | id:int amount:float | out/orders/2024-01-05--{10..13}/part-{uuid}-0-{0..2}
        alerts | json | id level text | out/alerts/2024-01-05--{10..13}/part-0-{0..2}
        - | - | | out/alerts/2024-01-05--13/.part-0-3.inprogress.{uuid}
    """,
    ),
    Lake(
        "Kafka Connect by partition",
        """
        orders | json | order_id:int amount:float at | topics/orders/partition={0..2}/orders+{0}+000000{0000,1000,2000}.json
        users | json | user_id:int email | topics/users/partition={0..2}/users+{0}+000000{0000,1000,2000}.json
        clicks | avro | url at:int | topics/clicks/year=2024/month=01/day=0{5..7}/hour={00..03}/clicks+0+000000{0000,1000}.avro
    """,
    ),
    Lake(
        "Kafka Connect, same schema in two topics",
        """
        a | json | key value headers offset:int | topics/payments/partition=0/payments+0+000000{0000,1000}.json
        b | json | key value headers offset:int | topics/refunds/partition=0/refunds+0+000000{0000,1000}.json
        c | json | key value headers offset:int | topics/invoices/partition=0/invoices+0+000000{0000,1000}.json
    """,
    ),
    Lake(
        "Firehose",
        """
        clickstream | json | user page ts | firehose/clickstream/2024/01/05/{00..05}/clickstream-1-2024-01-05-{00..02}-01-02-{uuid}
        orders | parquet | id:int total:float | firehose/orders/2024/01/05/{00..05}/orders-2-2024-01-05-{00..02}-01-02-{uuid}.parquet
    """,
    ),
    Lake(
        "Firehose at the top",
        """
        stream | json | user page ts | 2024/01/{05..07}/{00..05}/web-events-1-2024-01-05-{00..02}-01-02-{uuid}.gz
    """,
    ),
    Lake(
        "two streams under one prefix",
        """
        clicks | json | user page ts | in/2024/01/{05..06}/{00..01}/clicks-1-2024-01-05-{00..02}-01-02-{uuid}
        orders | json | order_id:int amount:float lines | in/2024/01/{05..06}/{00..01}/orders-1-2024-01-05-{00..02}-01-02-{uuid}
    """,
    ),
    Lake(
        "CloudTrail",
        """
        trail | json | Records | AWSLogs/{123456789012,210987654321}/CloudTrail/{us-east-1,eu-west-1,ap-southeast-2}/2024/01/{05..06}/123456789012_CloudTrail_us-east-1_20240105T{0101,0606}Z_{rand16}.json.gz
        digest | json | awsAccountId digestStartTime digestEndTime logFiles | AWSLogs/{123456789012,210987654321}/CloudTrail-Digest/{us-east-1,eu-west-1}/2024/01/{05..06}/123456789012_CloudTrail-Digest_us-east-1_mytrail_us-east-1_20240105T{0101,0606}Z.json.gz
        flow | csv | version:int account-id interface-id srcaddr dstaddr srcport:int | AWSLogs/{123456789012,210987654321}/vpcflowlogs/us-east-1/2024/01/{05..06}/123456789012_vpcflowlogs_us-east-1_fl-{hex17}_20240105T{0000,0005}Z_{hex8}.log.gz
    """,
    ),
    Lake(
        "CloudTrail of one account",
        """
        trail | json | Records | logs/AWSLogs/123456789012/CloudTrail/us-east-1/2024/01/{05..06}/123456789012_CloudTrail_us-east-1_20240105T{0101,0606}Z_{rand16}.json.gz
    """,
    ),
    Lake(
        "load balancers",
        """
        elb | csv | type time:time elb client:int target request_processing_time:float | AWSLogs/123456789012/elasticloadbalancing/us-east-1/2024/01/{05..06}/123456789012_elasticloadbalancing_us-east-1_app.{web-front,api}.{hex16}_20240105T0005Z_10.0.{1..2}.7_{rand8}.log.gz
    """,
    ),
    Lake(
        "S3 access logs",
        """
        access | csv | bucket_owner bucket time remote_ip requester | logs/my-bucket/2024-01-05-{00..05}-01-02-{upper16}
    """,
    ),
    Lake(
        "CloudFront",
        """
        cdn | csv | date:date time x-edge-location sc-bytes:int c-ip | cdn/E2EXAMPLE3ABCD.2024-01-{05..06}-{00..05}.{hex8}.gz
    """,
    ),
    Lake(
        "Redshift unload",
        """
        sales | parquet | id:int amount:float | unload/sales/{0000..0003}_part_{00..01}.parquet
        users | csv | id name city | unload/users/{0000..0003}_part_00.gz
        venue | csv | venueid:int venuename venuecity | unload/venue_{0000..0003}_part_00
    """,
    ),
    Lake(
        "BigQuery export",
        """
        users | json | id name | export/users-{000000000000..000000000003}.json
        orders | json | id user total:float | export/orders-{000000000000..000000000005}.json
        single | csv | code label | export/codes-000000000000.csv
    """,
    ),
    Lake(
        "Snowflake unload",
        """
        orders | csv | o_orderkey:int o_custkey:int | stage/orders/data_{0..1}_{0..3}_0.csv.gz
        lines | parquet | l_orderkey:int l_linenumber:int | stage/lineitem/data_{uuid}_{006..008}_{0..2}_0.snappy.parquet
    """,
    ),
    Lake(
        "Glue jobs",
        """
        clean | parquet | id:int name | clean/run-{1704412800,1704499200}{123}-part-r-{00000..00003}.snappy.parquet
    """,
    ),
    Lake(
        "Athena tables",
        """
        daily | parquet | day:date total:float | ctas/daily/20240105_010203_000{42..44}_x7k2p_{uuid}
    """,
    ),
    Lake(
        "Delta and Hudi data files",
        """
        delta | parquet | id:int v | delta/t/part-{00000..00003}-{uuid}-c000.snappy.parquet
        hudi | parquet | _hoodie_commit_time id:int v | hudi/t/2024/01/{05..06}/{uuid}-0_{0..1}-22-33_20240105010203.parquet
        - | - | | delta/t/_delta_log/00000000000000000000.json
    """,
    ),
    Lake(
        "Iceberg data files",
        """
        iceberg | parquet | id:int v ts:time | ice/t/data/ts_day=2024-01-{05..07}/00000-{0..2}-{uuid}-00001.parquet
        - | json | format-version:int table-uuid location last-sequence-number:int | ice/t/metadata/0000{0..2}-{uuid}.metadata.json
        - | avro | manifest_path manifest_length:int partition_spec_id:int | ice/t/metadata/snap-{digits18}-1-{uuid}.avro
        - | avro | status:int snapshot_id:int data_file | ice/t/metadata/{uuid}-m0.avro
    """,
    ),
    Lake(
        "database migration service",
        """
        orders | csv | id:int customer:int total:float | dms/public/orders/LOAD0000000{1..4}.csv
        orders | csv | Op id:int customer:int total:float | dms/public/orders/20240105-0102034{56..58}.csv
        customers | csv | id:int name email | dms/public/customers/LOAD0000000{1..2}.csv
    """,
    ),
    Lake(
        "Airbyte",
        """
        users | parquet | _airbyte_ab_id _airbyte_emitted_at:time id:int name | airbyte/prod_db/users/2024_01_{05..07}_1704412800000_0.parquet
        orders | parquet | _airbyte_ab_id _airbyte_emitted_at:time id:int total:float | airbyte/prod_db/orders/2024_01_{05..07}_1704412800000_0.parquet
    """,
    ),
    Lake(
        "Sqoop",
        """
        emp | csv | 1:int 2 3 | sqoop/employees/part-m-0000{0..3}
        dept | csv | 1 2 | sqoop/departments/part-m-0000{0..3}
    """,
    ),
    Lake(
        "Dask and Polars",
        """
        a | parquet | x:int y:float | dask/a/part.{0..11}.parquet
        b | parquet | u:int w:float | polars/b/{00000000..00000003}.parquet
    """,
    ),
    Lake(
        "Trino hive tables",
        """
        t | orc | a:int b | trino/t/ds=2024-01-0{1..3}/20240105_010203_000{10..12}_abcde_{uuid}
    """,
    ),
    Lake(
        "Google Cloud log sink",
        """
        audit | json | insertId logName timestamp protoPayload | logs/cloudaudit.googleapis.com/activity/2024/01/{05..06}/{00..03}:00:00_00:59:59_S{0..1}.json
        syslog | json | insertId textPayload timestamp resource | logs/syslog/2024/01/{05..06}/{00..03}:00:00_00:59:59_S0.json
    """,
    ),
    Lake(
        "Azure diagnostics",
        """
        nsg | json | records | insights-logs-networksecuritygroupflowevent/resourceId=/SUBSCRIPTIONS/{uuid}/RESOURCEGROUPS/NET/PROVIDERS/MICROSOFT.NETWORK/NETWORKSECURITYGROUPS/NSG1/y=2024/m=01/d=0{5..6}/h={00..03}/m=00/macAddress=000D3AF87856/PT1H.json
    """,
    ),
    Lake(
        "Cloudflare logs",
        """
        http | json | ClientIP EdgeStartTimestamp RayID | http_requests/202401{05..07}/202401{05}T{000000,000500}Z_20240105T000500Z_{hex8}.log.gz
    """,
    ),
    Lake(
        "Datadog archive",
        """
        archive | json | _id date service message | dd/dt=202401{05..07}/hour={00..03}/archive_{000102,000203}.1234.{hex8}.json.gz
    """,
    ),
    Lake(
        "Segment",
        """
        tracks | json | anonymousId event messageId | segment-logs/{rand10}/1704412800000/1704412800{123,456,789}.{hex10}.{hex10}.gz
    """,
    ),
    Lake(
        "Snowplow",
        """
        enriched | csv | app_id platform etl_tstamp event | enriched/good/run=2024-01-{05..07}-01-02-03/part-{00000..00002}.gz
        bad | json | schema data | enriched/bad/run=2024-01-{05..07}-01-02-03/part-{00000..00001}.gz
    """,
    ),
    Lake(
        "Amplitude",
        """
        events | json | amplitude_id:int event_type event_time user_id | amplitude/100001/100001_2024-01-0{5..7}_{0..12}#0.json.gz
    """,
    ),
    Lake(
        "Flume and rotated logs",
        """
        flume | json | host message | flume/web/FlumeData.17044128{00000..00005}
        app | csv | ts level logger message | logs/app.log.2024-01-{01..05}
        db | csv | ts pid:int user statement duration:float | logs/db.log.2024-01-{01..05}
    """,
    ),
    Lake(
        "TPC-H text",
        """
        lineitem | csv | a:int b:int c:int d:float | tpch/lineitem/lineitem.tbl.{1..8}
        orders | csv | a:int b:int c d:float e:date | tpch/orders/orders.tbl.{1..8}
        nation | csv | n_nationkey:int n_name n_regionkey:int | tpch/nation/nation.tbl
        region | csv | r_regionkey:int r_name | tpch/region/region.tbl
    """,
    ),
    Lake(
        "TPC-H in two scales",
        """
        l1 | parquet | l_orderkey:int l_partkey:int l_quantity:float | tpch/sf1/lineitem.parquet
        l10 | parquet | l_orderkey:int l_partkey:int l_quantity:float | tpch/sf10/lineitem.parquet
        o1 | parquet | o_orderkey:int o_custkey:int o_totalprice:float | tpch/sf1/orders.parquet
        o10 | parquet | o_orderkey:int o_custkey:int o_totalprice:float | tpch/sf10/orders.parquet
    """,
    ),
    Lake(
        "encoded hive keys",
        """
        e | parquet | id:int v | e/dt%3D2024-01-0{1..3}/city=New%20York/{uuid}.parquet; e/dt%3D2024-01-0{1..3}/city=S%C3%A3o%20Paulo/{uuid}.parquet
    """,
    ),
    Lake(
        "hashes as folders",
        """
        blobs | json | id value | store/{00..09}{0a,1b}/{hex40}.json
    """,
    ),
    Lake(
        "EventBridge by table key",
        """
        orders | json | order_id:int total:float lines customer | bus/dt=2024-01-0{5..7}/table=orders/{uuid}.json
        users | json | user_id:int email created_at | bus/dt=2024-01-0{5..7}/table=users/{uuid}.json
        carts | json | cart_id items | bus/dt=2024-01-0{5..7}/table=carts/{uuid}.json
    """,
    ),
]
