"""Lakes as real tools and people write them, from experience alone, before they were first grouped.

The truth is what a data platform engineer would register as one table. `hint` is the one hint that
makes it explicit where paths alone cannot tell, as pattern and name. `tied` expands values that a
folder and a file name repeat: `<d:01..03>` defines d, `<d>` repeats it.
"""

import re

from .lakes import Lake


def _values(text: str) -> list[str]:
    out: list[str] = []
    for item in text.split(","):
        m = re.fullmatch(r"(\d+)\.\.(\d+)", item)
        if m:
            a, b = m.groups()
            out += [str(i).zfill(len(a)) for i in range(int(a), int(b) + 1)]
        else:
            out.append(item)
    return out


def _tied(path: str) -> list[str]:
    m = re.search(r"<(\w+):([^>]*)>", path)
    if not m:
        return [path]
    out: list[str] = []
    for value in _values(m.group(2)):
        p = path[: m.start()] + value + path[m.end() :]
        out += _tied(p.replace("<" + m.group(1) + ">", value))
    return out


def tied(text: str) -> str:
    lines = []
    for line in text.strip().splitlines():
        line = line.strip()
        if not line:
            continue
        label, fmt, cols, paths = [c.strip() for c in line.split("|")]
        expanded = [q for p in paths.split(";") if p.strip() for q in _tied(p.strip())]
        lines.append(f"{label} | {fmt} | {cols} | {'; '.join(expanded)}")
    return "\n".join(lines)


EXPERIENCED: list[Lake] = []

# ---------------------------------------------------------------- AWS service logs

# Organisation trail: all accounts and regions are one table; digests are a different record
# type written by the same service (hash chain), Insights again another one.
EXPERIENCED.append(
    Lake(
        "cloudtrail_org",
        tied("""
cloudtrail | json | Records | AWSLogs/o-a1b2c3d4e5/<a:111122223333,444455556666>/CloudTrail/<r:us-east-1,eu-west-1>/2024/03/<d:01..03>/<a>_CloudTrail_<r>_202403<d>T0{0,1}05Z_{rand16}.json.gz
cloudtrail_insight | json | Records insightDetails | AWSLogs/o-a1b2c3d4e5/<a:111122223333,444455556666>/CloudTrail-Insight/us-east-1/2024/03/<d:01..02>/<a>_CloudTrail-Insight_us-east-1_202403<d>T0910Z_{rand16}.json.gz
cloudtrail_digest | json | awsAccountId digestStartTime:time digestEndTime:time digestS3Bucket digestS3Object previousDigestHashValue logFiles | AWSLogs/o-a1b2c3d4e5/<a:111122223333,444455556666>/CloudTrail-Digest/us-east-1/2024/03/<d:01..02>/<a>_CloudTrail-Digest_us-east-1_org-trail_us-east-1_202403<d>T{05,06}1011Z.json.gz
"""),
    )
)

# Several load balancers write below one prefix: the documented Athena table covers them all.
EXPERIENCED.append(
    Lake(
        "alb_access_logs",
        tied("""
alb_logs | csv | type time:time elb client_port target_port request_processing_time:float target_processing_time:float response_processing_time:float elb_status_code:int target_status_code:int received_bytes:int sent_bytes:int request user_agent | lb-logs/AWSLogs/123456789012/elasticloadbalancing/us-east-1/2024/05/<d:01..04>/123456789012_elasticloadbalancing_us-east-1_app.{web-prod.50dc6c495c0c9188,api-prod.7f3a9b21ce004d11}_202405<d>T{0005,0010,2355}Z_10.0.{1.17,2.203}_{hex8}.log.gz
- | - | | lb-logs/AWSLogs/123456789012/ELBAccessLogTestFile
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "vpc_flow_hive_parquet",
        tied("""
vpc_flow_logs | parquet | version:int account_id interface_id srcaddr dstaddr srcport:int dstport:int protocol:int packets:int bytes:int start:time end:time action log_status | AWSLogs/aws-account-id=123456789012/aws-service=vpcflowlogs/aws-region={us-east-1,us-west-2}/year=2024/month=03/day=<d:01..02>/hour=<h:00..03>/123456789012_vpcflowlogs_us-east-1_fl-0a1b2c3d4e5f60718_202403<d>T<h>00Z_{hex8}.log.parquet
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "s3_server_access_logs",
        tied("""
s3_access_logs | csv | bucketowner bucket requestdatetime remoteip requester requestid operation key request_uri httpstatus:int errorcode bytessent:int objectsize:int totaltime:int useragent | logs/2024-03-0{1..3}-{00,01,13}-{16,47}-{05,52}-{upper8}{upper8}
"""),
    )
)

# A central logging bucket of one account: one table per service.
EXPERIENCED.append(
    Lake(
        "central_logging_bucket",
        tied("""
cloudtrail | json | Records | AWSLogs/123456789012/CloudTrail/eu-central-1/2024/02/<d:27..29>/123456789012_CloudTrail_eu-central-1_202402<d>T{0000,0005}Z_{rand16}.json.gz
config_history | json | fileVersion configSnapshotId configurationItems | AWSLogs/123456789012/Config/eu-central-1/2024/2/<d:27..29>/ConfigHistory/123456789012_Config_eu-central-1_ConfigHistory_AWS::EC2::{Instance,SecurityGroup}_202402<d>T061122Z_202402<d>T071530Z_1.json.gz
config_snapshot | json | fileVersion requestId configurationItems | AWSLogs/123456789012/Config/eu-central-1/2024/2/<d:27..29>/ConfigSnapshot/123456789012_Config_eu-central-1_ConfigSnapshot_202402<d>T023344Z_{uuid}.json.gz
vpc_flow_logs | csv | version:int account-id interface-id srcaddr dstaddr srcport:int dstport:int protocol:int packets:int bytes:int start:int end:int action log-status | AWSLogs/123456789012/vpcflowlogs/eu-central-1/2024/02/<d:27..29>/123456789012_vpcflowlogs_eu-central-1_fl-1234abcd_202402<d>T{0000,0005,0010}Z_{hex8}.log.gz
waf_logs | json | timestamp:int formatVersion:int webaclId terminatingRuleId action httpSourceName httpRequest | AWSLogs/123456789012/WAFLogs/eu-central-1/web-acl-prod/2024/02/<d:27..29>/<h:08,09>/<m:00,05>/123456789012_waflogs_eu-central-1_web-acl-prod_202402<d>T<h><m>Z_{hex8}.log.gz
"""),
    )
)

# CloudFront standard logs: distribution id, hour and a random suffix in one flat folder; the
# two distributions are different sites but share the documented table.
EXPERIENCED.append(
    Lake(
        "cloudfront_standard_logs",
        tied("""
cloudfront_logs | csv | date:date time x-edge-location sc-bytes:int c-ip cs-method cs-host cs-uri-stem sc-status:int cs-referer cs-user-agent | cf-logs/{E2EXAMPLE1ABCD,EMLARXS9EXAMPLE}.2024-03-{01..02}-{00..05}.{hex8}.gz
"""),
        hint=("cf-logs/*.gz", "cloudfront_logs"),
    )
)

# Legacy cost and usage report: month folder, assembly id folder, chunks, manifests.
EXPERIENCED.append(
    Lake(
        "aws_cost_and_usage_report",
        tied("""
prod_cur | csv | identity_LineItemId identity_TimeInterval bill_BillingEntity bill_PayerAccountId lineItem_UsageAccountId lineItem_ProductCode lineItem_UsageAmount:float lineItem_UnblendedCost:float product_region | cur/prod-cur/{20240101-20240201,20240201-20240301,20240301-20240401}/{6ad2f9c4-3f7b-4be2-9d02-7e5f8a10c111,b81e9f10-0d1e-4ab8-8f5f-1c2d3e4f5a6b}/prod-cur-{00001..00003}.csv.gz
- | json | assemblyId account columns charset compression reportKeys | cur/prod-cur/{20240101-20240201,20240201-20240301,20240301-20240401}/prod-cur-Manifest.json; cur/prod-cur/{20240101-20240201,20240201-20240301,20240301-20240401}/{6ad2f9c4-3f7b-4be2-9d02-7e5f8a10c111,b81e9f10-0d1e-4ab8-8f5f-1c2d3e4f5a6b}/prod-cur-Manifest.json
- | - | | cur/aws-programmatic-access-test-object
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "s3_inventory",
        tied("""
inventory_media | csv | Bucket Key Size:int LastModifiedDate:time StorageClass ETag | inventory/media-bucket/daily-inv/data/{uuid}.csv.gz; 6x inventory/media-bucket/daily-inv/data/{uuid}.csv.gz
inventory_backups | csv | Bucket Key VersionId IsLatest IsDeleteMarker Size:int LastModifiedDate:time EncryptionStatus | 5x inventory/backup-bucket/weekly-inv/data/{uuid}.csv.gz
- | json | sourceBucket destinationBucket version creationTimestamp fileFormat fileSchema files | inventory/media-bucket/daily-inv/2024-03-{01..03}T01-00Z/manifest.json; inventory/backup-bucket/weekly-inv/2024-03-03T01-00Z/manifest.json
- | - | | inventory/media-bucket/daily-inv/2024-03-{01..03}T01-00Z/manifest.checksum; inventory/media-bucket/daily-inv/hive/dt=2024-03-{01..03}-01-00/symlink.txt; inventory/backup-bucket/weekly-inv/2024-03-03T01-00Z/manifest.checksum; inventory/backup-bucket/weekly-inv/hive/dt=2024-03-03-01-00/symlink.txt
"""),
    )
)

# ---------------------------------------------------------------- streams into object stores

# Firehose default prefix yyyy/MM/dd/HH below a custom prefix, no extension; failed records apart.
EXPERIENCED.append(
    Lake(
        "kinesis_firehose",
        tied("""
clickstream | json | event_id user_id session_id page referrer ts:time | clickstream/2024/03/<d:01..02>/<h:00..03>/prod-clickstream-3-2024-03-<d>-<h>-{04-11,19-57}-{uuid}
orders | json | order_id:int customer_id:int total:float currency placed_at:time | orders/2024/03/<d:01..02>/<h:00..03>/prod-orders-1-2024-03-<d>-<h>-00-21-{uuid}
delivery_errors | json | attemptsMade:int arrivalTimestamp:int errorCode errorMessage attemptEndingTimestamp:int rawData lambdaArn | errors/processing-failed/2024/03/<d:01..02>/05/prod-clickstream-3-2024-03-<d>-05-01-44-{uuid}
"""),
    )
)

# Firehose with dynamic partitioning by customer, and parquet conversion with the failures aside.
EXPERIENCED.append(
    Lake(
        "firehose_dynamic_partitioning",
        tied("""
telemetry | parquet | device_id firmware metric value:float ts:time | telemetry/data/customer_id={1001,1002,1007}/dt=2024-03-<d:01..03>/iot-telemetry-7-2024-03-<d>-{00-15-02,12-15-09}-{uuid}.parquet
telemetry_conversion_errors | json | attemptsMade:int arrivalTimestamp:int lastErrorCode lastErrorMessage rawData sequenceNumber subSequenceNumber | telemetry/error/format-conversion-failed/2024/03/<d:01..02>/11/iot-telemetry-7-2024-03-<d>-11-20-31-{uuid}
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "kafka_connect_s3_default",
        tied("""
orders | avro | order_id:int customer_id:int status total:float created_at:time | topics/orders/partition=<p:0..2>/orders+<p>+000000{0000,1000,2000}.avro
payments | avro | payment_id:int order_id:int method amount:float paid_at:time | topics/payments/partition=<p:0..1>/payments+<p>+000000{0000,1000}.avro
shipments | avro | shipment_id:int order_id:int carrier tracking_no shipped_at:time | topics/shipments/partition=0/shipments+0+000000{0000,1000}.avro
"""),
    )
)

# Time based partitioner; topics with dotted names.  A dead letter topic is its own table.
EXPERIENCED.append(
    Lake(
        "kafka_connect_time_based",
        tied("""
web_clicks | json | visitor_id url referrer ua at:time | kafka/web.clicks/year=2024/month=03/day={01..02}/hour={00..02}/web.clicks+<p:0..2>+00000{10000,20000}.json
web_searches | json | visitor_id query results:int at:time | kafka/web.searches/year=2024/month=03/day={01..02}/hour={00..02}/web.searches+0+0000004000.json
web_dlq | json | topic partition:int offset:int exception payload | kafka/web.dlq/year=2024/month=03/day=02/hour={00..02}/web.dlq+0+0000000100.json
"""),
    )
)

# ---------------------------------------------------------------- product analytics, ELT tools

# Segment raw copies: one folder per source id, then the received day as epoch milliseconds.
# Each source is a different application, but a raw copy is one table of messages.
EXPERIENCED.append(
    Lake(
        "segment_raw_logs",
        tied("""
segment_logs | json | messageId type anonymousId userId event properties context receivedAt:time | segment-logs/{9VNKZ2cSRT,hT4s8QmWxa}/17092{51200000,94400000}/17092{52312345,60042817}.{hex8}{hex8}.1.1.{hex8}.gz; segment-logs/{9VNKZ2cSRT,hT4s8QmWxa}/1709337600000/1709338{312345,942817}.{hex8}{hex8}.1.1.{hex8}.gz
"""),
        hint=("segment-logs/**/*", "segment_logs"),
    )
)

# Segment data lake: the event name is a partition-looking folder but each event is a table with
# its own columns (that is how Segment registers them in Glue).
EXPERIENCED.append(
    Lake(
        "segment_data_lake",
        tied("""
pages | parquet | id anonymous_id user_id context_page_url context_page_title received_at:time | ps-segment/data/iJ83hdk2lqP/segment_type=pages/day=2024-03-{01..03}/hr={00,07}/{uuid}.parquet
identifies | parquet | id anonymous_id user_id email plan received_at:time | ps-segment/data/iJ83hdk2lqP/segment_type=identifies/day=2024-03-{01..03}/hr={00,07}/{uuid}.parquet
order_completed | parquet | id anonymous_id user_id order_id revenue:float coupon received_at:time | ps-segment/data/iJ83hdk2lqP/segment_type=order_completed/day=2024-03-{01..03}/hr={00,07}/{uuid}.parquet
product_viewed | parquet | id anonymous_id user_id product_id price:float received_at:time | ps-segment/data/iJ83hdk2lqP/segment_type=product_viewed/day=2024-03-{01..03}/hr={00,07}/{uuid}.parquet
"""),
        hint=("ps-segment/data/*/segment_type={key}/**/*", "segment_events"),
    )
)

EXPERIENCED.append(
    Lake(
        "snowplow_enriched_good_bad",
        tied("""
enriched_good | csv | app_id platform etl_tstamp:time collector_tstamp:time event event_id user_ipaddress domain_userid page_url se_category se_action | archive/enriched/good/run=2024-03-{01..04}-02-15-11/part-0000{0..2}-{uuid}.txt.gz
enriched_bad | json | schema data failure_tstamp:time | archive/enriched/bad/run=2024-03-{01..04}-02-15-11/part-00000-{uuid}.txt.gz
- | - | | archive/enriched/good/run=2024-03-{01..04}-02-15-11/_SUCCESS; archive/enriched/bad/run=2024-03-{01..04}-02-15-11/_SUCCESS
"""),
    )
)

# Shredded types: one table per vendor/name/model; the run folder stands above the table.
EXPERIENCED.append(
    Lake(
        "snowplow_shredded",
        tied("""
atomic_events | csv | app_id platform collector_tstamp:time event event_id domain_userid page_url | shredded/good/run=2024-03-{01..03}-02-15-11/output=good/vendor=com.snowplowanalytics.snowplow/name=atomic/format=tsv/model=1/part-0000{0..1}-{uuid}.txt.gz
add_to_cart | json | schema data hierarchy | shredded/good/run=2024-03-{01..03}-02-15-11/output=good/vendor=com.acme/name=add_to_cart/format=json/model=1/part-00000-{uuid}.txt.gz
checkout_step | json | schema data hierarchy | shredded/good/run=2024-03-{01..03}-02-15-11/output=good/vendor=com.acme/name=checkout_step/format=json/model=2/part-00000-{uuid}.txt.gz
link_click | json | schema data hierarchy | shredded/good/run=2024-03-{01..03}-02-15-11/output=good/vendor=com.snowplowanalytics.snowplow/name=link_click/format=json/model=1/part-00000-{uuid}.txt.gz
- | json | schema data | shredded/good/run=2024-03-{01..03}-02-15-11/shredding_complete.json
"""),
        hint=("shredded/good/*/*/*/name={key}/**/*", "shredded"),
    )
)

# Fivetran managed data lake: Iceberg tables, schema.table/data + metadata.
EXPERIENCED.append(
    Lake(
        "fivetran_managed_lake_iceberg",
        tied("""
salesforce_account | parquet | id name industry annual_revenue:float _fivetran_synced:time _fivetran_deleted | fivetran/salesforce/account/data/0000{0..2}-{0..1}-{uuid}-00001.parquet
salesforce_contact | parquet | id account_id email first_name last_name _fivetran_synced:time _fivetran_deleted | fivetran/salesforce/contact/data/0000{0..1}-0-{uuid}-00001.parquet
salesforce_opportunity | parquet | id account_id stage_name amount:float close_date:date _fivetran_synced:time _fivetran_deleted | fivetran/salesforce/opportunity/data/0000{0..1}-0-{uuid}-00001.parquet
zendesk_ticket | parquet | id:int requester_id:int status priority subject created_at:time _fivetran_synced:time | fivetran/zendesk/ticket/data/0000{0..1}-0-{uuid}-00001.parquet
- | json | format-version table-uuid location last-updated-ms schemas snapshots | fivetran/salesforce/{account,contact,opportunity}/metadata/0000{0..1}-{uuid}.metadata.json; fivetran/zendesk/ticket/metadata/00000-{uuid}.metadata.json
- | avro | status snapshot_id data_file | fivetran/salesforce/{account,contact,opportunity}/metadata/{uuid}-m0.avro; fivetran/salesforce/{account,contact,opportunity}/metadata/snap-{digits12}-1-{uuid}.avro; fivetran/zendesk/ticket/metadata/snap-{digits12}-1-{uuid}.avro
- | - | | fivetran/salesforce/{account,contact,opportunity}/metadata/version-hint.text
"""),
    )
)

# Airbyte S3 destination, raw: every stream has the same three columns; the stream folder decides.
EXPERIENCED.append(
    Lake(
        "airbyte_raw_streams",
        tied("""
public_users | csv | _airbyte_ab_id _airbyte_emitted_at:int _airbyte_data | airbyte/public/users/2024_03_0{1..4}_170925{1200123,8400456}_0.csv.gz
public_orders | csv | _airbyte_ab_id _airbyte_emitted_at:int _airbyte_data | airbyte/public/orders/2024_03_0{1..4}_170925{1200123,8400456}_{0..1}.csv.gz
public_order_items | csv | _airbyte_ab_id _airbyte_emitted_at:int _airbyte_data | airbyte/public/order_items/2024_03_0{1..4}_1709251200123_{0..2}.csv.gz
hubspot_contacts | csv | _airbyte_ab_id _airbyte_emitted_at:int _airbyte_data | airbyte/hubspot/contacts/2024_03_0{1..4}_1709254800789_0.csv.gz
hubspot_deals | csv | _airbyte_ab_id _airbyte_emitted_at:int _airbyte_data | airbyte/hubspot/deals/2024_03_0{1..4}_1709254800789_0.csv.gz
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "airbyte_parquet_flattened",
        tied("""
issues | parquet | _airbyte_raw_id _airbyte_extracted_at:time id:int number:int title state user created_at:time closed_at:time | data_sync/github/issues/2024_03_{01,02,09}_17092{51200001,99000044}_0.parquet
pull_requests | parquet | _airbyte_raw_id _airbyte_extracted_at:time id:int number:int title state merged_at:time head base | data_sync/github/pull_requests/2024_03_{01,02,09}_17092{51200001,99000044}_0.parquet
stargazers | parquet | _airbyte_raw_id _airbyte_extracted_at:time user_id:int repository starred_at:time | data_sync/github/stargazers/2024_03_{01,02,09}_1709251200001_0.parquet
"""),
    )
)

# DMS writes the full load and the changes of a table into the same folder; Op is present in both
# (IncludeOpForFullLoad): one table.
EXPERIENCED.append(
    Lake(
        "dms_full_load_and_cdc",
        tied("""
sales_orders | csv | Op order_id:int customer_id:int status total:float updated_at:time | dms/sales/orders/LOAD0000000{1..4}.csv; dms/sales/orders/202403{01,02}-{101512,113047,235901}{123,871}.csv
sales_customers | csv | Op customer_id:int name email country updated_at:time | dms/sales/customers/LOAD0000000{1..2}.csv; dms/sales/customers/202403{01,02}-{101513,180322}654.csv
sales_products | csv | Op product_id:int sku title price:float updated_at:time | dms/sales/products/LOAD00000001.csv
hr_employees | csv | Op emp_id:int first_name last_name dept_id:int hired:date | dms/hr/employees/LOAD00000001.csv; dms/hr/employees/20240301-091500002.csv
- | - | | dms/awsdms_txn_status
"""),
    )
)

# Here the task has a separate cdcPath and date partitioning, and the full load has no Op: the
# change feed is a different record (operation + row) and gets its own table.
EXPERIENCED.append(
    Lake(
        "dms_separate_cdc_path",
        tied("""
accounts_full | parquet | id:int iban owner balance:float opened:date | dms-target/full/bank/accounts/LOAD0000000{1..3}.parquet
transfers_full | parquet | id:int from_id:int to_id:int amount:float booked_at:time | dms-target/full/bank/transfers/LOAD0000000{1..6}.parquet
accounts_cdc | parquet | Op dms_ts:time id:int iban owner balance:float opened:date | dms-target/cdc/bank/accounts/2024/03/<d:01..03>/202403<d>-{080011204,171502998}.parquet
transfers_cdc | parquet | Op dms_ts:time id:int from_id:int to_id:int amount:float booked_at:time | dms-target/cdc/bank/transfers/2024/03/<d:01..03>/202403<d>-{080011204,121233000,171502998}.parquet
"""),
        hint=("dms-target/cdc/bank/{key}/**/*", "cdc"),
    )
)

# ---------------------------------------------------------------- query engines

# CTAS without a location: Athena puts each table below tables/<uuid>/, no extension, one query id
# per table.
EXPERIENCED.append(
    Lake(
        "athena_ctas_default_location",
        tied("""
ctas_top_customers | parquet | customer_id:int name revenue:float orders:int | athena/tables/3f2b8a6e-77a1-4c6e-8e12-0f4f8d1c9a01/20240301_101112_00045_x7k2p_{uuid}; 4x athena/tables/3f2b8a6e-77a1-4c6e-8e12-0f4f8d1c9a01/20240301_101112_00045_x7k2p_{uuid}
ctas_sessions | parquet | session_id user_id started:time ended:time pages:int | 6x athena/tables/8c0e1d44-90d2-4a53-b1b9-5f6d2a7e3c02/20240302_070004_00008_q3mzn_{uuid}
ctas_funnel | orc | step name users:int conversion:float | 3x athena/tables/d9a7b3c1-15e8-4f0b-a4ce-2b8c6e9f7d03/20240302_081530_00013_b9rta_{uuid}
- | - | | athena/tables/3f2b8a6e-77a1-4c6e-8e12-0f4f8d1c9a01-manifest.csv; athena/tables/8c0e1d44-90d2-4a53-b1b9-5f6d2a7e3c02-manifest.csv
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "athena_bucketed_partitioned_ctas",
        tied("""
lineitem_opt | parquet | l_orderkey:int l_partkey:int l_quantity:float l_extendedprice:float l_shipdate:date | warehouse/lineitem_opt/l_shipyear={1996..1998}/20240305_120102_00077_hh2vu_bucket-0000{0..4}
orders_opt | parquet | o_orderkey:int o_custkey:int o_orderstatus o_totalprice:float o_orderdate:date | warehouse/orders_opt/o_orderyear={1996..1998}/20240305_121544_00081_k8wxe_bucket-0000{0..4}
"""),
    )
)

# UNLOAD each night into a dated folder below the table.
EXPERIENCED.append(
    Lake(
        "athena_unload_nightly",
        tied("""
daily_revenue | json | day:date store_id:int revenue:float baskets:int | unload/daily_revenue/2024-03-<d:01..04>/202403<d>_020011_000{12,31}_wmq4c_{uuid}.gz
stock_levels | json | day:date store_id:int sku qty:int | unload/stock_levels/2024-03-<d:01..04>/202403<d>_020345_00018_f2zzp_{uuid}.gz
"""),
    )
)

# The query result location is scratch space: ad hoc results with any columns are no dataset; the
# scheduled query that lands in its own folder with stable columns is one.
EXPERIENCED.append(
    Lake(
        "athena_query_results",
        tied("""
- | csv | _col0:int | results/Unsaved/2024/03/01/{uuid}.csv
- | csv | user_id event_count:int | results/Unsaved/2024/03/01/{uuid}.csv
- | csv | day:date region total:float | results/Unsaved/2024/03/02/{uuid}.csv
- | - | | results/Unsaved/2024/03/01/{uuid}.csv.metadata; results/Unsaved/2024/03/01/{uuid}.txt; results/Unsaved/2024/03/02/{uuid}.csv.metadata
weekly_kpis | csv | week:date kpi value:float target:float | results/weekly_kpis/2024/03/{04,11,18,25}/{uuid}.csv
- | - | | results/weekly_kpis/2024/03/{04,11,18,25}/{uuid}.csv.metadata
"""),
        hint=("results/weekly_kpis/**/*.csv", "weekly_kpis"),
    )
)

# ---------------------------------------------------------------- Glue, warehouses, exports

EXPERIENCED.append(
    Lake(
        "glue_job_outputs",
        tied("""
customers_clean | parquet | customer_id:int name email country ingest_ts:time | glue-out/customers_clean/run-{1709251234567,1709337634990}-part-block-0-0-r-0000{0..3}-snappy.parquet
orders_clean | parquet | order_id:int customer_id:int total:float order_date:date | glue-out/orders_clean/year=2024/month=03/day={01..03}/run-1709251234567-part-block-0-0-r-0000{0..1}-snappy.parquet
rejects | json | reason row source_file | glue-out/rejects/run-{1709251234567,1709337634990}-part-r-0000{0..1}
- | - | | glue-out/customers_clean_$folder$; glue-out/orders_clean_$folder$; glue-out/rejects_$folder$
"""),
    )
)

# GA4 daily tables exported shard by shard: events_YYYYMMDD is one table sharded by day, intraday is
# a provisional table of its own, the user table is again different.
EXPERIENCED.append(
    Lake(
        "ga4_bigquery_export",
        tied("""
events | avro | event_date event_timestamp:int event_name event_params user_pseudo_id device geo traffic_source | ga4/analytics_271828182/events_202403{01..04}/0000000000{00..02}.avro
events_intraday | avro | event_date event_timestamp:int event_name event_params user_pseudo_id device geo traffic_source | ga4/analytics_271828182/events_intraday_20240305/0000000000{00..01}.avro
pseudonymous_users | avro | pseudo_user_id stream_id user_info device audiences last_updated_date | ga4/analytics_271828182/pseudonymous_users_202403{01..04}/000000000000.avro
"""),
        hint=("ga4/*/events_2*/*.avro", "events"),
    )
)

EXPERIENCED.append(
    Lake(
        "bigquery_extract_wildcards",
        tied("""
orders | csv | order_id:int user_id:int status created_at:time num_of_item:int | exports/orders-000000000{000..005}.csv.gz
order_items | csv | id:int order_id:int product_id:int sale_price:float returned_at:time | exports/order_items-000000000{000..009}.csv.gz
users | csv | id:int first_name last_name email age:int country created_at:time | exports/users-000000000{000..002}.csv.gz
distribution_centers | csv | id:int name latitude:float longitude:float | exports/distribution_centers-000000000000.csv.gz
events | json | id:int user_id:int session_id event_type uri created_at:time | exports/events-000000000{000..007}.json.gz
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "snowflake_unload",
        tied("""
customer | parquet | C_CUSTKEY:int C_NAME C_ADDRESS C_NATIONKEY:int C_ACCTBAL:float | stage/customer/data_{0..3}_{0..1}_0.snappy.parquet
orders | parquet | O_ORDERKEY:int O_CUSTKEY:int O_ORDERSTATUS O_TOTALPRICE:float O_ORDERDATE:date | stage/orders/date=2024-03-0{1..3}/data_01b2c3d4-0604-8a1f-0000-00010a2b3c4d_006_{0..2}_0.snappy.parquet
nation | csv | N_NATIONKEY:int N_NAME N_REGIONKEY:int N_COMMENT | stage/nation/data_0_0_0.csv.gz
region | csv | R_REGIONKEY:int R_NAME R_COMMENT | stage/region/data_0_0_0.csv.gz
"""),
    )
)

# COPY INTO @stage/<prefix> without a slash: all tables in one folder, told apart by the prefix.
EXPERIENCED.append(
    Lake(
        "snowflake_unload_flat_prefix",
        tied("""
dim_store | csv | store_id:int store_name city opened:date | dump/dim_store_{0..1}_{0..1}_0.csv.gz
dim_date | csv | date_key:int full_date:date weekday holiday | dump/dim_date_0_0_0.csv.gz
fact_sales | csv | date_key:int store_id:int product_id:int qty:int amount:float | dump/fact_sales_{0..3}_{0..3}_0.csv.gz
fact_returns | csv | date_key:int store_id:int product_id:int qty:int amount:float reason | dump/fact_returns_{0..1}_{0..1}_0.csv.gz
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "redshift_unload_flat",
        tied("""
sales | csv | salesid:int listid:int sellerid:int buyerid:int eventid:int qtysold:int pricepaid:float saletime:time | unload/sales_000{0..3}_part_0{0..1}.gz
listing | csv | listid:int sellerid:int eventid:int numtickets:int priceperticket:float listtime:time | unload/listing_000{0..3}_part_00.gz
venue | csv | venueid:int venuename venuecity venuestate venueseats:int | unload/venue_000{0..3}_part_00.gz
- | json | entries | unload/sales_manifest; unload/listing_manifest; unload/venue_manifest
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "redshift_unload_partitioned",
        tied("""
lineorder | parquet | lo_orderkey:int lo_linenumber:int lo_custkey:int lo_quantity:int lo_revenue:int lo_shipmode | rs/lineorder/lo_orderyear={1995..1998}/lo_region={AMERICA,ASIA}/000{0..3}_part_00.parquet
lineorder_daily | parquet | lo_orderdate:date orders:int revenue:int | rs/lineorder_daily/000{0..3}_part_0{0..1}.parquet
- | json | entries schema meta | rs/lineorder/manifest; rs/lineorder_daily/manifest
"""),
    )
)

# ---------------------------------------------------------------- Spark, Hive, Flink, Beam, table formats

EXPERIENCED.append(
    Lake(
        "spark_tables_with_success_and_crc",
        tied("""
page_views | parquet | user_id:int url ts:time duration_ms:int | user/etl/page_views/dt=2024-03-{01..04}/part-{00000..00003}-{uuid}.c000.snappy.parquet
users | parquet | user_id:int name country signup:date | user/etl/users/part-{00000..00001}-{uuid}-c000.snappy.parquet
daily_counts | csv | dt:date url views:int | user/etl/daily_counts/part-00000-{uuid}-c000.csv
- | - | | user/etl/{page_views,users,daily_counts}/_SUCCESS; user/etl/{users,daily_counts}/._SUCCESS.crc; user/etl/users/.part-{00000..00001}-{uuid}-c000.snappy.parquet.crc; user/etl/daily_counts/.part-00000-{uuid}-c000.csv.crc
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "hive_warehouse_no_extension",
        tied("""
sales_orders | orc | order_id:int customer_id:int amount:float status | warehouse/sales.db/orders/dt=2024-03-0{1..3}/country={DE,FR}/00000{0..1}_0
sales_order_lines | orc | order_id:int line:int sku qty:int price:float | warehouse/sales.db/order_lines/dt=2024-03-0{1..3}/00000{0..2}_0
sales_customers | orc | customer_id:int name email segment | warehouse/sales.db/customers/00000{0..3}_0
crm_customers | orc | id:int full_name phone owner | warehouse/crm.db/customers/00000{0..1}_0
crm_calls | orc | id:int customer_id:int agent started:time seconds:int | warehouse/crm.db/calls/dt=2024-03-0{1..3}/000000_0; warehouse/crm.db/calls/dt=2024-03-02/000000_0_copy_{1..2}
orders_default | parquet | order_id:int customer_id:int amount:float status | warehouse/orders/dt=__HIVE_DEFAULT_PARTITION__/000000_0; warehouse/orders/dt=2024-03-01/000000_0
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "hive_acid_tables",
        tied("""
inventory | orc | operation:int originalTransaction:int bucket:int rowId:int currentTransaction:int row | warehouse/tablespace/managed/hive/shop.db/inventory/base_0000005/bucket_0000{0..2}; warehouse/tablespace/managed/hive/shop.db/inventory/delta_000000<t:6..8>_000000<t>_0000/bucket_0000{0..2}; warehouse/tablespace/managed/hive/shop.db/inventory/delete_delta_0000007_0000007_0000/bucket_0000{0..2}
prices | orc | operation:int originalTransaction:int bucket:int rowId:int currentTransaction:int row | warehouse/tablespace/managed/hive/shop.db/prices/valid_from=2024-0{1..3}-01/delta_0000001_0000004_v0000021/bucket_0000{0..1}
- | - | | warehouse/tablespace/managed/hive/shop.db/inventory/base_0000005/_orc_acid_version; warehouse/tablespace/managed/hive/shop.db/inventory/delta_000000<t:6..8>_000000<t>_0000/_orc_acid_version; warehouse/tablespace/managed/hive/shop.db/prices/valid_from=2024-0{1..3}-01/delta_0000001_0000004_v0000021/_orc_acid_version
"""),
    )
)

# Flink file sink: in-progress files are hidden and not (yet) data.
EXPERIENCED.append(
    Lake(
        "flink_streaming_file_sink",
        tied("""
ride_events | parquet | ride_id:int driver_id:int event lat:float lon:float ts:time | flink/ride_events/dt=2024-03-{01..02}/hour={00..03}/part-{uuid}-{0..1}.parquet
ride_alerts | json | ride_id:int rule severity ts:time | flink/ride_alerts/2024-03-{01..02}--{00..03}/part-{0..1}-{0..1}
- | - | | flink/ride_events/dt=2024-03-02/hour=03/.part-{uuid}-2.parquet.inprogress.{uuid}; flink/ride_alerts/2024-03-02--03/.part-0-2.inprogress.{uuid}; flink/ride_events/dt=2024-03-{01..02}/hour={00..03}/_SUCCESS
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "beam_dataflow_shards",
        tied("""
wordcounts | csv | word count:int | beam/out/wordcounts-0000{0..4}-of-00005.csv
enriched_events | avro | event_id user_id kind at:time country | beam/out/enriched_events-0000{0..7}-of-00008.avro
pubsub_taxirides | json | ride_id point_idx:int latitude:float longitude:float timestamp:time ride_status | beam/pubsub/taxirides-2024-03-01T0<h:0..3>:00:00.000Z-2024-03-01T0<h>:05:00.000Z-pane-0-last-0000{0..1}-of-00002.json
errors | json | message stacktrace payload | beam/out/errors-00000-of-00001.json
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "databricks_landing_and_delta",
        tied("""
landing_orders | json | order_id:int customer_id:int lines placed_at:time | landing/shop/orders/2024-03-0{1..4}/orders_export_{uuid}.json; landing/shop/orders/2024-03-04/orders_export_{uuid}.json
landing_customers | csv | customer_id:int name email updated_at:time | landing/shop/customers/2024-03-0{1..4}/customers_full.csv
bronze_orders | parquet | order_id:int customer_id:int lines placed_at:time _source_file _ingested_at:time _rescued_data | delta/bronze/orders/ingest_date=2024-03-0{1..4}/part-0000{0..1}-{uuid}.c000.snappy.parquet
bronze_customers | parquet | customer_id:int name email updated_at:time _source_file _ingested_at:time _rescued_data | delta/bronze/customers/part-0000{0..3}-{uuid}-c000.snappy.parquet
- | json | commitInfo add metaData protocol | delta/bronze/{orders,customers}/_delta_log/0000000000000000000{0..3}.json
- | - | | delta/bronze/{orders,customers}/_delta_log/0000000000000000000{0..3}.crc; checkpoints/bronze_{orders,customers}/offsets/{0..3}; checkpoints/bronze_{orders,customers}/commits/{0..3}; checkpoints/bronze_{orders,customers}/metadata
- | parquet | add remove metaData protocol | delta/bronze/orders/_delta_log/00000000000000000010.checkpoint.parquet
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "hudi_copy_on_write",
        tied("""
trips | parquet | _hoodie_commit_time _hoodie_record_key _hoodie_partition_path _hoodie_file_name uuid rider driver fare:float ts:int | hudi/trips/city={sao_paulo,chennai,san_francisco}/{uuid}-0_{0..1}-21-0_20240301{101500123,121500456}.parquet
drivers | parquet | _hoodie_commit_time _hoodie_record_key _hoodie_partition_path _hoodie_file_name driver_id name rating:float | hudi/drivers/{uuid}-0_0-18-{0..2}_20240301101500987.parquet
- | - | | hudi/{trips,drivers}/.hoodie/hoodie.properties; hudi/trips/.hoodie/20240301{101500123,121500456}.commit; hudi/trips/.hoodie/20240301{101500123,121500456}.inflight; hudi/trips/city={sao_paulo,chennai,san_francisco}/.hoodie_partition_metadata
"""),
    )
)

# Debezium through a sink per topic: every table has the same envelope; the topic names the table.
EXPERIENCED.append(
    Lake(
        "debezium_topics",
        tied("""
inventory_customers | json | before after source op ts_ms:int | cdc/dbserver1.inventory.customers/2024/03/0{1..3}/{00,12}/dbserver1.inventory.customers+0+000000{0100,0200}.json
inventory_orders | json | before after source op ts_ms:int | cdc/dbserver1.inventory.orders/2024/03/0{1..3}/{00,12}/dbserver1.inventory.orders+0+000000{0500,0900}.json
inventory_products | json | before after source op ts_ms:int | cdc/dbserver1.inventory.products/2024/03/0{1..3}/00/dbserver1.inventory.products+0+0000000010.json
inventory_addresses | json | before after source op ts_ms:int | cdc/dbserver1.inventory.addresses/2024/03/0{1..3}/00/dbserver1.inventory.addresses+0+0000000033.json
schema_changes | json | source databaseName ddl tableChanges ts_ms:int | cdc/dbserver1/2024/03/01/00/dbserver1+0+0000000000.json
"""),
    )
)

# ---------------------------------------------------------------- SaaS exports

# Stripe data pipeline: the delivery (hour) stands above the table.
EXPERIENCED.append(
    Lake(
        "stripe_data_pipeline",
        tied("""
charges | parquet | id amount:int currency customer_id created:time status balance_transaction_id | stripe/{2024030100,2024030106,2024030112}/livemode/charges/part-0000{0..1}-{uuid}-c000.snappy.parquet
customers | parquet | id email description created:time delinquent | stripe/{2024030100,2024030106,2024030112}/livemode/customers/part-00000-{uuid}-c000.snappy.parquet
invoices | parquet | id customer_id subscription_id amount_due:int paid period_start:time period_end:time | stripe/{2024030100,2024030106,2024030112}/livemode/invoices/part-00000-{uuid}-c000.snappy.parquet
balance_transactions | parquet | id amount:int fee:int net:int currency type available_on:time created:time | stripe/{2024030100,2024030106,2024030112}/livemode/balance_transactions/part-0000{0..1}-{uuid}-c000.snappy.parquet
- | - | | stripe/{2024030100,2024030106,2024030112}/livemode/coreapi_SUCCESS
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "salesforce_weekly_export",
        tied("""
Account | csv | Id Name Type Industry AnnualRevenue:float OwnerId CreatedDate:time | sfdc/WE_00D3000000EXAMPLE_2024-03-{03,10,17}/Account.csv
Contact | csv | Id AccountId FirstName LastName Email OwnerId CreatedDate:time | sfdc/WE_00D3000000EXAMPLE_2024-03-{03,10,17}/Contact.csv
Opportunity | csv | Id AccountId Name StageName Amount:float CloseDate:date OwnerId | sfdc/WE_00D3000000EXAMPLE_2024-03-{03,10,17}/Opportunity.csv
OpportunityLineItem | csv | Id OpportunityId Product2Id Quantity:float UnitPrice:float | sfdc/WE_00D3000000EXAMPLE_2024-03-{03,10,17}/OpportunityLineItem.csv
Task | csv | Id WhoId WhatId Subject Status ActivityDate:date | sfdc/WE_00D3000000EXAMPLE_2024-03-{03,10,17}/Task.csv
User | csv | Id Username LastName FirstName Email IsActive | sfdc/WE_00D3000000EXAMPLE_2024-03-{03,10,17}/User.csv
Invoice__c | csv | Id Name Account__c Total__c:float Due__c:date | sfdc/WE_00D3000000EXAMPLE_2024-03-{03,10,17}/Invoice__c.csv
"""),
    )
)

# Salesforce event monitoring: one csv per event type and day, type and date in the file name.
EXPERIENCED.append(
    Lake(
        "salesforce_event_log_files",
        tied("""
Login | csv | EVENT_TYPE TIMESTAMP REQUEST_ID ORGANIZATION_ID USER_ID LOGIN_STATUS BROWSER_TYPE SOURCE_IP | elf/2024-03-0<d:1..5>_Login.csv
API | csv | EVENT_TYPE TIMESTAMP REQUEST_ID ORGANIZATION_ID USER_ID API_VERSION METHOD_NAME ROWS_PROCESSED:int | elf/2024-03-0<d:1..5>_API.csv
ReportExport | csv | EVENT_TYPE TIMESTAMP REQUEST_ID ORGANIZATION_ID USER_ID URI REPORT_DESCRIPTION | elf/2024-03-0<d:1..5>_ReportExport.csv
URI | csv | EVENT_TYPE TIMESTAMP REQUEST_ID ORGANIZATION_ID USER_ID URI RUN_TIME:int | elf/2024-03-0<d:1..5>_URI.csv
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "mixpanel_pipeline",
        tied("""
mp_master_event | json | event distinct_id time:int mp_event_name properties insert_id | mixpanel/2195193/mp_master_event/2024/03/{01..03}/000000000{000..002}.json.gz
mp_people_data | json | distinct_id email name properties last_seen:time | mixpanel/2195193/mp_people_data/000000000{000..001}.json.gz
mp_identity_mappings_data | json | distinct_id resolved_distinct_id | mixpanel/2195193/mp_identity_mappings_data/000000000000.json.gz
- | - | | mixpanel/2195193/mp_master_event/2024/03/{01..03}/_complete
"""),
    )
)

# Amplitude hourly archive: project, day, hour # sequence in the file name.
EXPERIENCED.append(
    Lake(
        "amplitude_export",
        tied("""
events | json | event_id:int event_type event_time:time user_id device_id session_id:int event_properties user_properties country | amplitude/187520/187520_2024-03-0{1..2}_{0..23}#{0..1}.json.gz
merged_users | json | scope:int merge_event_time:int merge_server_time:int amplitude_id:int merged_amplitude_id:int | amplitude/merge/-187520_2024-03-0{1..2}_{0,8,16}.json.gz
"""),
    )
)

# elasticdump: per index a mapping and settings file (not data) and the data; daily log indices
# are one table.
EXPERIENCED.append(
    Lake(
        "elasticdump_indices",
        tied("""
products | json | _index _id _score _source | es-backup/products_data.json
users | json | _index _id _score _source | es-backup/users_data.json
app_logs | json | _index _id _score _source | es-backup/app-logs-2024.03.{01..05}_data.json
- | json | settings mappings | es-backup/products_mapping.json; es-backup/users_mapping.json; es-backup/app-logs-2024.03.{01..05}_mapping.json
- | json | analysis | es-backup/products_analyzer.json; es-backup/users_analyzer.json; es-backup/app-logs-2024.03.{01..05}_analyzer.json
"""),
        hint=("es-backup/app-logs-*_data.json", "app_logs"),
    )
)

EXPERIENCED.append(
    Lake(
        "mongo_nightly_mongoexport",
        tied("""
users | json | _id email name createdAt:time roles | mongo/2024-03-{01..04}/shop/users.json
carts | json | _id userId items updatedAt:time | mongo/2024-03-{01..04}/shop/carts.json
products | json | _id sku title price:float tags | mongo/2024-03-{01..04}/shop/products.json
sessions | json | _id userId token expires:time | mongo/2024-03-{01..04}/auth/sessions.json
- | json | options indexes uuid collectionName | mongo/2024-03-{01..04}/shop/{users,carts,products}.metadata.json; mongo/2024-03-{01..04}/auth/sessions.metadata.json
- | - | | mongo/2024-03-{01..04}/oplog.bson
"""),
    )
)

# ---------------------------------------------------------------- open data

EXPERIENCED.append(
    Lake(
        "nyc_tlc_trip_data",
        tied("""
yellow_tripdata | parquet | VendorID:int tpep_pickup_datetime:time tpep_dropoff_datetime:time passenger_count:float trip_distance:float RatecodeID:float PULocationID:int DOLocationID:int payment_type:int fare_amount:float total_amount:float | trip-data/yellow_tripdata_2023-{01..12}.parquet; trip-data/yellow_tripdata_2024-{01..03}.parquet
green_tripdata | parquet | VendorID:int lpep_pickup_datetime:time lpep_dropoff_datetime:time store_and_fwd_flag PULocationID:int DOLocationID:int trip_distance:float fare_amount:float ehail_fee:float trip_type:float | trip-data/green_tripdata_2023-{01..12}.parquet; trip-data/green_tripdata_2024-{01..03}.parquet
fhv_tripdata | parquet | dispatching_base_num pickup_datetime:time dropOff_datetime:time PUlocationID:float DOlocationID:float SR_Flag Affiliated_base_number | trip-data/fhv_tripdata_2023-{01..12}.parquet
fhvhv_tripdata | parquet | hvfhs_license_num dispatching_base_num request_datetime:time pickup_datetime:time dropoff_datetime:time PULocationID:int DOLocationID:int trip_miles:float driver_pay:float | trip-data/fhvhv_tripdata_2023-{01..12}.parquet
taxi_zone_lookup | csv | LocationID:int Borough Zone service_zone | misc/taxi_zone_lookup.csv
- | - | | misc/data_dictionary_trip_records_yellow.pdf; misc/taxi_zones.zip
"""),
    )
)

# noaa-ghcn-pds: the same observations materialised three times (by year, by station, parquet);
# a catalog keeps one table per materialisation.
EXPERIENCED.append(
    Lake(
        "ghcn_daily",
        tied("""
ghcnd_by_year | csv | ID DATE ELEMENT DATA_VALUE:int M_FLAG Q_FLAG S_FLAG OBS_TIME | csv/by_year/{1995..2004}.csv
ghcnd_by_station | csv | ID DATE ELEMENT DATA_VALUE:int M_FLAG Q_FLAG S_FLAG OBS_TIME | csv/by_station/{USW00094728,USW00014739,ACW00011604,AE000041196,GME00102244,ASN00066062}.csv
ghcnd_parquet | parquet | ID DATE DATA_VALUE:int M_FLAG Q_FLAG S_FLAG OBS_TIME | parquet/by_year/YEAR={2001..2003}/ELEMENT={TMAX,TMIN,PRCP}/{hex32}_0.snappy.parquet
- | - | | ghcnd-stations.txt; ghcnd-inventory.txt; ghcnd-countries.txt; ghcnd-version.txt; readme.txt
"""),
        hint=("csv/{key}/*.csv", "ghcnd"),
    )
)

# GSOD: one folder per year, one file per station: one table.
EXPERIENCED.append(
    Lake(
        "noaa_gsod",
        tied("""
gsod | csv | STATION DATE:date LATITUDE:float LONGITUDE:float ELEVATION:float NAME TEMP:float DEWP:float SLP:float VISIB:float WDSP:float MAX:float MIN:float PRCP:float | gsod/{2019..2022}/{01001099999,01008099999,72503014732,72530094846,10384099999}.csv
isd_history | csv | USAF WBAN STATION_NAME CTRY STATE ICAO LAT:float LON:float BEGIN END | isd-history.csv
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "noaa_storm_events",
        tied("""
StormEvents_details | csv | BEGIN_YEARMONTH:int BEGIN_DAY:int EPISODE_ID:int EVENT_ID:int STATE YEAR:int EVENT_TYPE DAMAGE_PROPERTY | stormevents/csvfiles/StormEvents_details-ftp_v1.0_d20{18..21}_c20220425.csv.gz; stormevents/csvfiles/StormEvents_details-ftp_v1.0_d2022_c20240117.csv.gz
StormEvents_fatalities | csv | FAT_YEARMONTH:int FAT_DAY:int FATALITY_ID:int EVENT_ID:int FATALITY_TYPE FATALITY_AGE:int | stormevents/csvfiles/StormEvents_fatalities-ftp_v1.0_d20{18..22}_c20240117.csv.gz
StormEvents_locations | csv | YEARMONTH:int EPISODE_ID:int EVENT_ID:int LOCATION_INDEX:int RANGE:float LATITUDE:float LONGITUDE:float | stormevents/csvfiles/StormEvents_locations-ftp_v1.0_d20{18..22}_c20240117.csv.gz
- | - | | stormevents/csvfiles/Storm-Data-Bulk-csv-Format.pdf; stormevents/csvfiles/legacy_README.txt
"""),
    )
)

# ACS tables: the table id is the table, the year is a slice of it; the column metadata describe.
EXPERIENCED.append(
    Lake(
        "census_acs_tables",
        tied("""
B01001 | csv | GEO_ID NAME B01001_001E:int B01001_001M:int B01001_002E:int B01001_026E:int | acs/ACSDT5Y20{19..22}.B01001-Data.csv
B19013 | csv | GEO_ID NAME B19013_001E:int B19013_001M:int | acs/ACSDT5Y20{19..22}.B19013-Data.csv
B25077 | csv | GEO_ID NAME B25077_001E:int B25077_001M:int | acs/ACSDT5Y20{19..22}.B25077-Data.csv
- | csv | ColumnName Label | acs/ACSDT5Y20{19..22}.{B01001,B19013,B25077}-Column-Metadata.csv
- | - | | acs/ACSDT5Y20{19..22}.{B01001,B19013,B25077}-Table-Notes.txt
"""),
        hint=("acs/*.{key}-Data.csv", "acs"),
    )
)

# PUMS: a person and a housing file per state (FIPS): two tables.
EXPERIENCED.append(
    Lake(
        "census_pums",
        tied("""
pums_person | csv | RT SERIALNO SPORDER:int PUMA ST PWGTP:int AGEP:int SEX:int SCHL WAGP:float | pums/2022/1-Year/psam_p{01,02,04,05,06,08,09,10}.csv; pums/2021/1-Year/psam_p{01,02,04,05,06,08,09,10}.csv
pums_housing | csv | RT SERIALNO DIVISION:int PUMA REGION:int ST WGTP:int NP:int TYPEHUGQ:int BDSP:float RNTP:float VALP:float | pums/2022/1-Year/psam_h{01,02,04,05,06,08,09,10}.csv; pums/2021/1-Year/psam_h{01,02,04,05,06,08,09,10}.csv
- | - | | pums/2022/1-Year/ACS2022_PUMS_README.pdf; pums/2021/1-Year/ACS2021_PUMS_README.pdf
"""),
        hint=("pums/*/1-Year/psam_p*.csv", "pums_person"),
    )
)

# LEHD LODES: state folder, then od/rac/wac; the job type and segment codes are slices of a table,
# the crosswalk is a lookup per state.  main and aux of od are slices, too (same columns).
EXPERIENCED.append(
    Lake(
        "lehd_lodes",
        tied("""
lodes_od | csv | w_geocode h_geocode S000:int SA01:int SA02:int SE01:int createdate | lodes8/<s:ca,ny,tx>/od/<s>_od_{main,aux}_JT0{0,1}_{2019,2020}.csv.gz
lodes_rac | csv | h_geocode C000:int CA01:int CA02:int CE01:int CNS01:int createdate | lodes8/<s:ca,ny,tx>/rac/<s>_rac_{S000,SA01}_JT00_{2019,2020}.csv.gz
lodes_wac | csv | w_geocode C000:int CA01:int CA02:int CE01:int CNS01:int CFA01:int createdate | lodes8/<s:ca,ny,tx>/wac/<s>_wac_{S000,SA01}_JT00_{2019,2020}.csv.gz
lodes_xwalk | csv | tabblk2020 st stusps stname cty ctyname trct cbsa | lodes8/<s:ca,ny,tx>/<s>_xwalk.csv.gz
- | - | | lodes8/<s:ca,ny,tx>/lodes_<s>.sha256sum; lodes8/<s:ca,ny,tx>/version.txt
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "wikipedia_pageviews",
        tied("""
pageviews | csv | domain_code page_title count_views:int total_response_size:int | other/pageviews/2024/2024-<m:02,03>/pageviews-2024<m>{01,02}-{00..11}0000.gz
projectviews | csv | domain_code dash count_views:int total_response_size:int | other/pageviews/2024/2024-<m:02,03>/projectviews-2024<m>{01,02}-{00..11}0000
- | - | | other/pageviews/2024/2024-{02,03}/md5sums.txt
"""),
    )
)

# GDELT v2: three feeds, told apart by the middle of the name; the translingual feeds have the same
# columns but are published as separate feeds (own master list).
EXPERIENCED.append(
    Lake(
        "gdelt_v2",
        tied("""
gdelt_events | csv | GLOBALEVENTID:int SQLDATE:int MonthYear:int Actor1Code Actor2Code EventCode GoldsteinScale:float NumMentions:int AvgTone:float SOURCEURL | gdeltv2/202403010{0..2}{00,15,30,45}00.export.CSV
gdelt_mentions | csv | GLOBALEVENTID:int EventTimeDate:int MentionTimeDate:int MentionType:int MentionSourceName MentionIdentifier Confidence:int | gdeltv2/202403010{0..2}{00,15,30,45}00.mentions.CSV
gdelt_gkg | csv | GKGRECORDID DATE:int SourceCollectionIdentifier:int SourceCommonName DocumentIdentifier Counts Themes Locations Persons Tone | gdeltv2/202403010{0..2}{00,15,30,45}00.gkg.csv
gdelt_translation_export | csv | GLOBALEVENTID:int SQLDATE:int MonthYear:int Actor1Code Actor2Code EventCode GoldsteinScale:float NumMentions:int AvgTone:float SOURCEURL | gdeltv2/202403010{0..2}{00,15,30,45}00.translation.export.CSV
- | - | | gdeltv2/masterfilelist.txt; gdeltv2/masterfilelist-translation.txt; gdeltv2/lastupdate.txt
"""),
        hint=("gdeltv2/*00.export.CSV", "gdelt_events"),
    )
)

EXPERIENCED.append(
    Lake(
        "gharchive_hourly",
        tied("""
gharchive | json | id type actor repo payload public created_at:time | gh/2024-02-29-{0..23}.json.gz; gh/2024-03-{01..02}-{0..23}.json.gz
"""),
    )
)

# SEC financial statement data sets: one folder per quarter, always the same four tables.
EXPERIENCED.append(
    Lake(
        "sec_financial_statements",
        tied("""
sub | csv | adsh cik:int name sic form period:date fy fp filed:date | sec/{2022q4,2023q1,2023q2,2023q3,2023q4}/sub.txt
num | csv | adsh tag version coreg ddate:date qtrs:int uom value:float | sec/{2022q4,2023q1,2023q2,2023q3,2023q4}/num.txt
tag | csv | tag version custom:int abstract:int datatype iord crdr tlabel | sec/{2022q4,2023q1,2023q2,2023q3,2023q4}/tag.txt
pre | csv | adsh report:int line:int stmt inpth:int tag version plabel | sec/{2022q4,2023q1,2023q2,2023q3,2023q4}/pre.txt
- | - | | sec/{2022q4,2023q1,2023q2,2023q3,2023q4}/readme.htm
"""),
    )
)

# GTFS: several agencies, dated feeds, always the same file names: the tables of the standard,
# over all agencies and feed versions.
EXPERIENCED.append(
    Lake(
        "gtfs_feeds",
        tied("""
stops | csv | stop_id stop_name stop_lat:float stop_lon:float location_type:int | gtfs/{bvg,mvg}/2024-03-{01,08}/stops.txt
routes | csv | route_id agency_id route_short_name route_long_name route_type:int | gtfs/{bvg,mvg}/2024-03-{01,08}/routes.txt
trips | csv | route_id service_id trip_id trip_headsign direction_id:int shape_id | gtfs/{bvg,mvg}/2024-03-{01,08}/trips.txt
stop_times | csv | trip_id arrival_time departure_time stop_id stop_sequence:int | gtfs/{bvg,mvg}/2024-03-{01,08}/stop_times.txt
calendar | csv | service_id monday:int tuesday:int wednesday:int thursday:int friday:int start_date:date end_date:date | gtfs/{bvg,mvg}/2024-03-{01,08}/calendar.txt
agency | csv | agency_id agency_name agency_url agency_timezone | gtfs/{bvg,mvg}/2024-03-{01,08}/agency.txt
"""),
        hint=("gtfs/*/*/{key}.txt", "gtfs"),
    )
)

EXPERIENCED.append(
    Lake(
        "citibike_tripdata",
        tied("""
citibike_tripdata | csv | ride_id rideable_type started_at:time ended_at:time start_station_name start_station_id end_station_name end_station_id start_lat:float start_lng:float member_casual | tripdata/2023{10..12}-citibike-tripdata_{1..3}.csv; tripdata/2024{01..03}-citibike-tripdata.csv
jc_citibike_tripdata | csv | ride_id rideable_type started_at:time ended_at:time start_station_name start_station_id end_station_name end_station_id start_lat:float start_lng:float member_casual | tripdata/JC-2023{10..12}-citibike-tripdata.csv; tripdata/JC-2024{01..03}-citibike-tripdata.csv
"""),
        hint=("tripdata/JC-*.csv", "jc_citibike_tripdata"),
    )
)

# JHU CSSE: daily reports named by US date, wide time series per measure (the columns are equal,
# the measure is only in the name: separate tables), a lookup.
EXPERIENCED.append(
    Lake(
        "jhu_covid19",
        tied("""
daily_reports | csv | FIPS Admin2 Province_State Country_Region Last_Update:time Lat:float Long_:float Confirmed:int Deaths:int Recovered:int Active:int | csse/csse_covid_19_daily_reports/{01..03}-{01,15,28}-2021.csv
daily_reports_us | csv | Province_State Country_Region Last_Update:time Lat:float Long_:float Confirmed:int Deaths:int Incident_Rate:float Testing_Rate:float | csse/csse_covid_19_daily_reports_us/{01..03}-{01,15,28}-2021.csv
time_series_confirmed_global | csv | Province/State Country/Region Lat:float Long:float 1/22/20:int 1/23/20:int | csse/csse_covid_19_time_series/time_series_covid19_confirmed_global.csv
time_series_deaths_global | csv | Province/State Country/Region Lat:float Long:float 1/22/20:int 1/23/20:int | csse/csse_covid_19_time_series/time_series_covid19_deaths_global.csv
time_series_recovered_global | csv | Province/State Country/Region Lat:float Long:float 1/22/20:int 1/23/20:int | csse/csse_covid_19_time_series/time_series_covid19_recovered_global.csv
uid_lookup | csv | UID:int iso2 iso3 code3:int FIPS Admin2 Province_State Country_Region Population:int | csse/UID_ISO_FIPS_LookUp_Table.csv
- | - | | csse/csse_covid_19_daily_reports/README.md; csse/csse_covid_19_time_series/Errata.csv.bak
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "common_crawl_columnar_index",
        tied("""
cc_index | parquet | url_surtkey url url_host_name fetch_time:time fetch_status:int content_digest content_mime_type warc_filename warc_record_offset:int | cc-index/table/cc-main/warc/crawl=CC-MAIN-2024-{10,18}/subset={warc,robotstxt,crawldiagnostics}/part-0000{0..3}-{uuid}.c000.gz.parquet
"""),
    )
)

# OpenAQ archive: location, year and month as keys, file name repeats location and day.
EXPERIENCED.append(
    Lake(
        "openaq_archive",
        tied("""
measurements | csv | location_id:int sensors_id:int location datetime:time lat:float lon:float parameter units value:float | records/csv.gz/locationid=<l:2178,9312,70084>/year=2023/month=<m:11,12>/location-<l>-2023<m>{01..04}.csv.gz
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "imdb_and_movielens_downloads",
        tied("""
title_basics | csv | tconst titleType primaryTitle originalTitle isAdult:int startYear:int runtimeMinutes:int genres | imdb/title.basics.tsv.gz
title_akas | csv | titleId ordering:int title region language types isOriginalTitle:int | imdb/title.akas.tsv.gz
title_crew | csv | tconst directors writers | imdb/title.crew.tsv.gz
title_episode | csv | tconst parentTconst seasonNumber:int episodeNumber:int | imdb/title.episode.tsv.gz
title_principals | csv | tconst ordering:int nconst category job characters | imdb/title.principals.tsv.gz
title_ratings | csv | tconst averageRating:float numVotes:int | imdb/title.ratings.tsv.gz
name_basics | csv | nconst primaryName birthYear:int deathYear:int primaryProfession knownForTitles | imdb/name.basics.tsv.gz
ratings | csv | userId:int movieId:int rating:float timestamp:int | ml-25m/ratings.csv
movies | csv | movieId:int title genres | ml-25m/movies.csv
tags | csv | userId:int movieId:int tag timestamp:int | ml-25m/tags.csv
links | csv | movieId:int imdbId tmdbId | ml-25m/links.csv
genome_scores | csv | movieId:int tagId:int relevance:float | ml-25m/genome-scores.csv
genome_tags | csv | tagId:int tag | ml-25m/genome-tags.csv
- | - | | ml-25m/README.txt
"""),
    )
)

# dbgen -C: chunks table.tbl.N (or .csv here), single small tables.
EXPERIENCED.append(
    Lake(
        "tpch_generated_chunks",
        tied("""
lineitem | csv | l_orderkey:int l_partkey:int l_suppkey:int l_linenumber:int l_quantity:float l_shipdate:date l_comment | tpch/sf10/lineitem.tbl.{1..8}
orders | csv | o_orderkey:int o_custkey:int o_orderstatus o_totalprice:float o_orderdate:date | tpch/sf10/orders.tbl.{1..8}
partsupp | csv | ps_partkey:int ps_suppkey:int ps_availqty:int ps_supplycost:float | tpch/sf10/partsupp.tbl.{1..8}
part | csv | p_partkey:int p_name p_mfgr p_brand p_size:int p_retailprice:float | tpch/sf10/part.tbl.{1..8}
customer | csv | c_custkey:int c_name c_address c_nationkey:int c_acctbal:float | tpch/sf10/customer.tbl.{1..8}
supplier | csv | s_suppkey:int s_name s_address s_nationkey:int s_acctbal:float | tpch/sf10/supplier.tbl.{1..8}
nation | csv | n_nationkey:int n_name n_regionkey:int n_comment | tpch/sf10/nation.tbl
region | csv | r_regionkey:int r_name r_comment | tpch/sf10/region.tbl
"""),
    )
)

# ---------------------------------------------------------------- Kaggle, splits

# Kaggle: test lacks the target, the submission is a different thing: three tables, never unioned.
EXPERIENCED.append(
    Lake(
        "kaggle_house_prices",
        tied("""
train | csv | Id:int MSSubClass:int MSZoning LotFrontage:float LotArea:int Street Neighborhood OverallQual:int YearBuilt:int SalePrice:int | house-prices/train.csv
test | csv | Id:int MSSubClass:int MSZoning LotFrontage:float LotArea:int Street Neighborhood OverallQual:int YearBuilt:int | house-prices/test.csv
sample_submission | csv | Id:int SalePrice:float | house-prices/sample_submission.csv
- | - | | house-prices/data_description.txt
"""),
    )
)

# Several competitions side by side: train.csv of one has nothing to do with train.csv of another.
EXPERIENCED.append(
    Lake(
        "kaggle_competitions_side_by_side",
        tied("""
titanic_train | csv | PassengerId:int Survived:int Pclass:int Name Sex Age:float SibSp:int Parch:int Ticket Fare:float Cabin Embarked | kaggle/titanic/train.csv
titanic_test | csv | PassengerId:int Pclass:int Name Sex Age:float SibSp:int Parch:int Ticket Fare:float Cabin Embarked | kaggle/titanic/test.csv
titanic_gender_submission | csv | PassengerId:int Survived:int | kaggle/titanic/gender_submission.csv
digit_train | csv | label:int pixel0:int pixel1:int pixel2:int pixel3:int | kaggle/digit-recognizer/train.csv
digit_test | csv | pixel0:int pixel1:int pixel2:int pixel3:int | kaggle/digit-recognizer/test.csv
digit_sample_submission | csv | ImageId:int Label:int | kaggle/digit-recognizer/sample_submission.csv
store_sales_train | csv | id:int date:date store_nbr:int family sales:float onpromotion:int | kaggle/store-sales/train.csv
store_sales_test | csv | id:int date:date store_nbr:int family onpromotion:int | kaggle/store-sales/test.csv
store_sales_stores | csv | store_nbr:int city state type cluster:int | kaggle/store-sales/stores.csv
store_sales_oil | csv | date:date dcoilwtico:float | kaggle/store-sales/oil.csv
store_sales_holidays | csv | date:date type locale locale_name description transferred | kaggle/store-sales/holidays_events.csv
store_sales_transactions | csv | date:date store_nbr:int transactions:int | kaggle/store-sales/transactions.csv
store_sales_sample_submission | csv | id:int sales:float | kaggle/store-sales/sample_submission.csv
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "kaggle_home_credit",
        tied("""
application_train | csv | SK_ID_CURR:int TARGET:int NAME_CONTRACT_TYPE CODE_GENDER AMT_INCOME_TOTAL:float AMT_CREDIT:float DAYS_BIRTH:int | application_train.csv
application_test | csv | SK_ID_CURR:int NAME_CONTRACT_TYPE CODE_GENDER AMT_INCOME_TOTAL:float AMT_CREDIT:float DAYS_BIRTH:int | application_test.csv
bureau | csv | SK_ID_CURR:int SK_ID_BUREAU:int CREDIT_ACTIVE DAYS_CREDIT:int AMT_CREDIT_SUM:float | bureau.csv
bureau_balance | csv | SK_ID_BUREAU:int MONTHS_BALANCE:int STATUS | bureau_balance.csv
POS_CASH_balance | csv | SK_ID_PREV:int SK_ID_CURR:int MONTHS_BALANCE:int CNT_INSTALMENT:float NAME_CONTRACT_STATUS SK_DPD:int | POS_CASH_balance.csv
credit_card_balance | csv | SK_ID_PREV:int SK_ID_CURR:int MONTHS_BALANCE:int AMT_BALANCE:float AMT_DRAWINGS_CURRENT:float NAME_CONTRACT_STATUS SK_DPD:int | credit_card_balance.csv
previous_application | csv | SK_ID_PREV:int SK_ID_CURR:int NAME_CONTRACT_TYPE AMT_APPLICATION:float DAYS_DECISION:int | previous_application.csv
installments_payments | csv | SK_ID_PREV:int SK_ID_CURR:int NUM_INSTALMENT_NUMBER:int DAYS_INSTALMENT:float AMT_PAYMENT:float | installments_payments.csv
columns_description | csv | Row:int Table_ Description Special | HomeCredit_columns_description.csv
sample_submission | csv | SK_ID_CURR:int TARGET:float | sample_submission.csv
"""),
    )
)

# Hugging Face style: equal columns, the split is a slice of one dataset.
EXPERIENCED.append(
    Lake(
        "huggingface_splits",
        tied("""
squad | parquet | id title context question answers | squad/plain_text/train-0000{0..3}-of-00004.parquet; squad/plain_text/validation-00000-of-00001.parquet; squad/plain_text/test-00000-of-00001.parquet
- | - | | squad/README.md; squad/.gitattributes
"""),
        hint=("squad/plain_text/*.parquet", "squad"),
    )
)

# Splits as folders written by one feature job: one feature table with a split dimension.
EXPERIENCED.append(
    Lake(
        "ml_split_folders",
        tied("""
churn_features | parquet | customer_id:int tenure_months:int avg_spend:float tickets_90d:int plan churned:int | features/churn/{train,validation,test}/part-0000{0..3}-{uuid}.snappy.parquet
ltv_features | parquet | customer_id:int first_order:date orders_12m:int revenue_12m:float channel ltv:float | features/ltv/{train,validation,test}/part-0000{0..1}-{uuid}.snappy.parquet
- | json | feature dtype min max | features/{churn,ltv}/schema.json
"""),
        hint=("features/{key}/*/*.parquet", "features"),
    )
)

# ---------------------------------------------------------------- finance: files per symbol

# Per-ticker files are one table keyed by the file name; a careful catalog does not hold 12 tables.
EXPERIENCED.append(
    Lake(
        "ticker_price_files",
        tied("""
prices | csv | Date:date Open:float High:float Low:float Close:float Adj_Close:float Volume:int | prices/{AAPL,MSFT,GOOG,AMZN,META,NVDA,TSLA,JPM,V,WMT,BRK-B,^GSPC}.csv
"""),
        hint=("prices/*.csv", "prices"),
    )
)

# Per symbol in different kinds: one table per kind and grain.
EXPERIENCED.append(
    Lake(
        "market_data_by_kind",
        tied("""
daily | csv | Date:date Open:float High:float Low:float Close:float Volume:int | market/daily/{AAPL,MSFT,SAP.DE,7203.T,BP.L}.csv
intraday_1min | csv | Datetime:time Open:float High:float Low:float Close:float Volume:int | market/intraday_1min/{AAPL,MSFT,SAP.DE,7203.T,BP.L}.csv
dividends | csv | Date:date Dividends:float | market/dividends/{AAPL,MSFT,SAP.DE,7203.T,BP.L}.csv
fundamentals | json | symbol asOf:date marketCap:float trailingPE:float sector | market/fundamentals/{AAPL,MSFT,SAP.DE,7203.T,BP.L}.json
symbols | csv | symbol name exchange currency | market/symbols.csv
"""),
        hint=("market/{key}/*.csv", "market"),
    )
)

# Binance public data: all symbols of one kind are one table; the candle interval is the grain, so
# klines 1m and klines 1h stay apart.
EXPERIENCED.append(
    Lake(
        "binance_public_data",
        tied("""
klines_1m | csv | open_time:int open:float high:float low:float close:float volume:float close_time:int count:int | data/spot/daily/klines/<s:BTCUSDT,ETHUSDT,BNBBTC>/1m/<s>-1m-2024-03-0{1..4}.csv
klines_1h | csv | open_time:int open:float high:float low:float close:float volume:float close_time:int count:int | data/spot/daily/klines/<s:BTCUSDT,ETHUSDT,BNBBTC>/1h/<s>-1h-2024-03-0{1..4}.csv
aggTrades | csv | agg_trade_id:int price:float quantity:float first_trade_id:int last_trade_id:int transact_time:int is_buyer_maker | data/spot/daily/aggTrades/<s:BTCUSDT,ETHUSDT>/<s>-aggTrades-2024-03-0{1..4}.csv
trades | csv | id:int price:float qty:float quote_qty:float time:int is_buyer_maker | data/spot/daily/trades/<s:BTCUSDT,ETHUSDT>/<s>-trades-2024-03-0{1..4}.csv
- | - | | data/spot/daily/klines/<s:BTCUSDT,ETHUSDT,BNBBTC>/<i:1m,1h>/<s>-<i>-2024-03-0{1..4}.csv.CHECKSUM
"""),
        hint=("data/spot/daily/klines/*/{key}/*.csv", "klines"),
    )
)

# ---------------------------------------------------------------- tenants, devices

# SaaS with a folder per tenant: orders of all tenants are one multi-tenant table.
EXPERIENCED.append(
    Lake(
        "tenant_folders",
        tied("""
orders | parquet | order_id:int customer_id:int total:float created_at:time | tenants/{acme,globex,initech,umbrella}/orders/2024-03-{01..03}.parquet
invoices | parquet | invoice_id:int order_id:int due:date amount:float paid | tenants/{acme,globex,initech,umbrella}/invoices/2024-03-{01..03}.parquet
users | parquet | user_id:int email role last_login:time | tenants/{acme,globex,initech,umbrella}/users/2024-03-{01..03}.parquet
"""),
        hint=("tenants/*/{key}/*.parquet", "tenants"),
    )
)

# Here tenants are uuids and partition keys below the table: no doubt possible.
EXPERIENCED.append(
    Lake(
        "tenant_id_partitions",
        tied("""
audit_events | json | event_id actor action target at:time | lake/audit_events/tenant_id={3d6f0a1e-0a51-4f3d-9a61-0a4b7b1f0001,8b7f0a1e-1b51-4f3d-8a61-1a4b7b1f0002,f16f0a1e-2c51-4f3d-ba61-2a4b7b1f0003}/date=2024-03-{01..04}/{uuid}.json
usage_daily | parquet | date:date seats:int api_calls:int storage_gb:float | lake/usage_daily/tenant_id={3d6f0a1e-0a51-4f3d-9a61-0a4b7b1f0001,8b7f0a1e-1b51-4f3d-8a61-1a4b7b1f0002,f16f0a1e-2c51-4f3d-ba61-2a4b7b1f0003}/usage.parquet
plans | csv | plan_id:int name price:float seats_max:int | lake/plans/plans.csv
"""),
    )
)

# An agency hosts unrelated customers' own exports: same folder names by chance, other columns:
# not one table.
EXPERIENCED.append(
    Lake(
        "client_folders_with_different_columns",
        tied("""
acme_orders | csv | order_no:int sku qty:int net:float ordered:date | clients/acme/orders/orders_2024-{01..03}.csv
globex_orders | csv | OrderID Buyer Country GrossAmount:float Currency Timestamp:time Channel | clients/globex/orders/orders_2024-{01..03}.csv
acme_stock | csv | sku warehouse on_hand:int | clients/acme/stock/stock_2024-{01..03}.csv
globex_leads | csv | LeadID Source Email Score:float | clients/globex/leads/leads_2024-{01..03}.csv
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "sensor_folders",
        tied("""
readings | csv | ts:time temperature:float humidity:float battery:float | iot/readings/sensor-{0001..0008}/2024-03-{01..05}.csv
sensors | csv | sensor_id location installed:date model | iot/sensors.csv
"""),
    )
)

# Gateway layout: site / device / kind / day; the kind is the table, site and device are slices.
EXPERIENCED.append(
    Lake(
        "device_then_kind",
        tied("""
temperature | parquet | ts:time value:float quality:int | plant/{hamburg,lyon}/{press-01,press-02,oven-07}/temperature/202403{01..03}.parquet
vibration | parquet | ts:time x:float y:float z:float rms:float | plant/{hamburg,lyon}/{press-01,press-02,oven-07}/vibration/202403{01..03}.parquet
alarms | json | ts:time code severity:int text | plant/{hamburg,lyon}/{press-01,press-02,oven-07}/alarms/202403{01..03}.json
"""),
        hint=("plant/*/*/{key}/*", "plant"),
    )
)

# Azure IoT Hub capture: hub / partition / date / hour / minute.
EXPERIENCED.append(
    Lake(
        "azure_iothub_and_eventhub_capture",
        tied("""
iothub_messages | avro | EnqueuedTimeUtc:time Properties SystemProperties Body | iothub-prod/{00..03}/2024/03/01/{10,11}/{00,30}.avro
clicks_capture | avro | SequenceNumber:int Offset EnqueuedTimeUtc:time SystemProperties Properties Body | evhns-prod/clicks/{0..1}/2024/03/01/{10,11}/{00,05,10}/00.avro
payments_capture | avro | SequenceNumber:int Offset EnqueuedTimeUtc:time SystemProperties Properties Body | evhns-prod/payments/{0..1}/2024/03/01/{10,11}/{00,05,10}/17.avro
"""),
    )
)

# ---------------------------------------------------------------- snapshots, backfills, layers

EXPERIENCED.append(
    Lake(
        "dated_snapshots_of_a_database",
        tied("""
customers | csv | id:int name email created:date | snapshots/2024-03-{01,08,15,22}/customers.csv
products | csv | id:int sku title price:float | snapshots/2024-03-{01,08,15,22}/products.csv
orders | csv | id:int customer_id:int status total:float created:time | snapshots/2024-03-{01,08,15,22}/orders.csv
order_items | csv | order_id:int line:int product_id:int qty:int price:float | snapshots/2024-03-{01,08,15,22}/order_items.csv
categories | csv | id:int parent_id:int name | snapshots/2024-03-{08,15,22}/categories.csv
- | - | | snapshots/2024-03-{01,08,15,22}/SHA256SUMS; snapshots/latest.txt
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "pg_backup_folders_compact_date",
        tied("""
accounts | csv | id:int login email active | backups/crm_prod_202403<d:01..04>_0300/public.accounts.csv.gz
activities | csv | id:int account_id:int kind note at:time | backups/crm_prod_202403<d:01..04>_0300/public.activities.csv.gz
deals | csv | id:int account_id:int stage value:float closes:date | backups/crm_prod_202403<d:01..04>_0300/public.deals.csv.gz
billing_invoices | csv | id:int account_id:int number total:float issued:date | backups/crm_prod_202403<d:01..04>_0300/billing.invoices.csv.gz
- | - | | backups/crm_prod_202403{01..04}_0300/toc.dat; backups/crm_prod_202403{01..04}_0300/restore.sql
"""),
    )
)

# RDS snapshot export to S3: export task / database / schema.table / chunk / part.
EXPERIENCED.append(
    Lake(
        "rds_snapshot_export",
        tied("""
orders | parquet | id:int user_id:int total:float created_at:time | rds-export/weekly-2024-03-{03,10}/shopdb/public.orders/{1..2}/part-0000{0..1}-{uuid}-c000.gz.parquet
users | parquet | id:int email name created_at:time | rds-export/weekly-2024-03-{03,10}/shopdb/public.users/1/part-00000-{uuid}-c000.gz.parquet
refunds | parquet | id:int order_id:int amount:float reason | rds-export/weekly-2024-03-{03,10}/shopdb/public.refunds/1/part-00000-{uuid}-c000.gz.parquet
- | json | exportTaskIdentifier sourceArn exportOnly status | rds-export/weekly-2024-03-<d:03,10>/export_info_weekly-2024-03-<d>.json
- | json | perTableStatus | rds-export/weekly-2024-03-{03,10}/export_tables_info_weekly-2024-03_from_1_to_3.json
- | - | | rds-export/weekly-2024-03-{03,10}/shopdb/public.{orders,users,refunds}/1/_SUCCESS; rds-export/weekly-2024-03-{03,10}/shopdb/public.orders/2/_SUCCESS
"""),
    )
)

# A one-off backfill into a sub folder of the table: same rows, same table.
EXPERIENCED.append(
    Lake(
        "backfill_inside_table",
        tied("""
page_events | parquet | event_id user_id:int page at:time | events/page_events/dt=2024-03-{01..06}/part-0000{0..1}.parquet; events/page_events/backfill/dt=2023-12-{29..31}/part-0000{0..1}.parquet
"""),
        hint=("events/page_events/**/*.parquet", "page_events"),
    )
)

# Backfill and reprocessing as file name suffix.
EXPERIENCED.append(
    Lake(
        "backfill_suffix_files",
        tied("""
transactions | csv | txn_id:int account amount:float booked:date | bank/transactions_2024-0{1..3}.csv; bank/transactions_2023-12_backfill.csv; bank/transactions_2024-02_corrected.csv
balances | csv | account day:date balance:float | bank/balances_2024-0{1..3}.csv; bank/balances_2023-12_backfill.csv
"""),
        hint=("bank/{key}_20*.csv", "bank"),
    )
)

# Medallion: the same entity is another table in each layer (other columns, other owners).
EXPERIENCED.append(
    Lake(
        "medallion_layers",
        tied("""
bronze_orders | json | payload _topic _partition:int _offset:int _ingested:time | bronze/orders/ingest_date=2024-03-{01..03}/part-0000{0..1}-{uuid}.json
bronze_customers | json | payload _topic _partition:int _offset:int _ingested:time | bronze/customers/ingest_date=2024-03-{01..03}/part-00000-{uuid}.json
silver_orders | parquet | order_id:int customer_id:int total:float currency placed_at:time | silver/orders/order_date=2024-03-{01..03}/part-0000{0..1}-{uuid}.snappy.parquet
silver_customers | parquet | customer_id:int name email country valid_from:time valid_to:time | silver/customers/part-0000{0..3}-{uuid}.snappy.parquet
gold_daily_revenue | parquet | day:date country revenue:float orders:int | gold/daily_revenue/part-00000-{uuid}.snappy.parquet
gold_customer_ltv | parquet | customer_id:int ltv:float segment | gold/customer_ltv/part-0000{0..1}-{uuid}.snappy.parquet
"""),
    )
)

# raw and curated with equal columns: the layers are separate tables (different guarantees).
EXPERIENCED.append(
    Lake(
        "raw_and_curated_equal_columns",
        tied("""
raw_trades | csv | trade_id:int isin qty:int price:float ts:time | raw/trades/2024/03/{01..04}/trades.csv
raw_quotes | csv | isin bid:float ask:float ts:time | raw/quotes/2024/03/{01..04}/quotes.csv
curated_trades | parquet | trade_id:int isin qty:int price:float ts:time | curated/trades/dt=2024-03-{01..04}/trades.parquet
curated_quotes | parquet | isin bid:float ask:float ts:time | curated/quotes/dt=2024-03-{01..04}/quotes.parquet
quarantine_trades | csv | trade_id:int isin qty:int price:float ts:time | quarantine/trades/2024/03/{02,04}/trades.csv
"""),
        hint=("{key}/trades/**/*.csv", "trades"),
    )
)

EXPERIENCED.append(
    Lake(
        "landing_zone_date_above_table",
        tied("""
crm_accounts | csv | account_id name owner region | landing/2024/03/{01..04}/crm_accounts.csv
crm_contacts | csv | contact_id account_id email phone | landing/2024/03/{01..04}/crm_contacts.csv
erp_invoices | csv | invoice_no account_id issued:date net:float vat:float | landing/2024/03/{01..04}/erp_invoices.csv
erp_items | csv | item_no description unit price:float | landing/2024/03/{01..04}/erp_items.csv
web_sessions | json | session_id started:time pages:int source | landing/2024/03/{01..04}/web_sessions.json
- | - | | landing/2024/03/{01..04}/_READY
"""),
    )
)

# Date, source system, then the file with its own timestamp.
EXPERIENCED.append(
    Lake(
        "landing_zone_date_source_timestamped",
        tied("""
sap_mara | csv | MANDT MATNR MTART MATKL MEINS ERSDA:date | inbound/202403<d:01..03>/SAP/MARA_202403<d>{0130,1330}05.csv
sap_vbak | csv | MANDT VBELN ERDAT:date AUART KUNNR NETWR:float | inbound/202403<d:01..03>/SAP/VBAK_202403<d>{0130,1330}05.csv
sap_vbap | csv | MANDT VBELN POSNR MATNR KWMENG:float NETPR:float | inbound/202403<d:01..03>/SAP/VBAP_202403<d>{0130,1330}05.csv
wms_stock | csv | site bin sku qty:int counted:time | inbound/202403<d:01..03>/WMS/stock_202403<d>T0600.csv
pos_receipts | json | store till receipt_no lines total:float at:time | inbound/202403<d:01..03>/POS/receipts_{0101,0102,0207}_202403<d>.json
- | - | | inbound/202403<d:01..03>/SAP/MARA_202403<d>{0130,1330}05.csv.md5; inbound/202403<d:01..03>/SAP/VBAK_202403<d>{0130,1330}05.ctl
"""),
    )
)

# dev, staging and prod are never one table.
EXPERIENCED.append(
    Lake(
        "environment_folders",
        tied("""
dev_orders | parquet | order_id:int customer_id:int total:float placed_at:time | dev/orders/dt=2024-03-{01..02}/part-00000-{uuid}.parquet
staging_orders | parquet | order_id:int customer_id:int total:float placed_at:time | staging/orders/dt=2024-03-{01..04}/part-00000-{uuid}.parquet
prod_orders | parquet | order_id:int customer_id:int total:float placed_at:time | prod/orders/dt=2024-03-{01..06}/part-0000{0..2}-{uuid}.parquet
"""),
        hint=("{key}/orders/**/*.parquet", "orders"),
    )
)

# ---------------------------------------------------------------- names that look like slices

# A new version with other columns is a new table.
EXPERIENCED.append(
    Lake(
        "versioned_tables",
        tied("""
orders_v1 | csv | id:int customer total:float date:date | exports/orders_v1/2023-{07..12}.csv
orders_v2 | csv | order_id customer_id:int channel net:float tax:float gross:float currency placed_at:time | exports/orders_v2/2024-{01..04}.csv
refunds_v1 | csv | id:int order_id:int amount:float | exports/refunds_v1/2024-{01..04}.csv
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "versioned_api_dumps_flat",
        tied("""
user_v1 | json | id:int name mail | api/user_v1_2024-03-{01..04}.json
user_v2 | json | id:int profile emails created_at:time flags | api/user_v2_2024-03-{01..04}.json
team_v1 | json | id:int title members | api/team_v1_2024-03-{01..04}.json
"""),
    )
)

# The region is part of the table name and the teams own them: separate tables, equal columns.
EXPERIENCED.append(
    Lake(
        "regional_tables",
        tied("""
eu_orders | parquet | order_id:int customer_id:int amount:float currency ordered_at:time | dwh/eu_orders/dt=2024-03-{01..03}/part-0000{0..1}.parquet
us_orders | parquet | order_id:int customer_id:int amount:float currency ordered_at:time | dwh/us_orders/dt=2024-03-{01..03}/part-0000{0..1}.parquet
apac_orders | parquet | order_id:int customer_id:int amount:float currency ordered_at:time | dwh/apac_orders/dt=2024-03-{01..03}/part-0000{0..1}.parquet
eu_customers | parquet | customer_id:int name vat_id country | dwh/eu_customers/part-0000{0..1}.parquet
us_customers | parquet | customer_id:int name state zip | dwh/us_customers/part-0000{0..1}.parquet
"""),
    )
)

# Region as a folder below the table is a slice.
EXPERIENCED.append(
    Lake(
        "region_slices_below_table",
        tied("""
shipments | csv | shipment_id:int carrier weight:float shipped:date | logistics/shipments/{emea,amer,apac}/2024-{01..03}.csv
claims | csv | claim_id:int shipment_id:int reason amount:float | logistics/claims/{emea,amer,apac}/2024-{01..03}.csv
"""),
        hint=("logistics/{key}/*/*.csv", "logistics"),
    )
)

# One table per event (as warehouse destinations of analytics tools do), equal columns.
EXPERIENCED.append(
    Lake(
        "event_tables_equal_columns",
        tied("""
signed_up | json | id anonymous_id user_id context properties sent_at:time | events/signed_up/2024-03-{01..04}.json
signed_in | json | id anonymous_id user_id context properties sent_at:time | events/signed_in/2024-03-{01..04}.json
checkout_started | json | id anonymous_id user_id context properties sent_at:time | events/checkout_started/2024-03-{01..04}.json
checkout_completed | json | id anonymous_id user_id context properties sent_at:time | events/checkout_completed/2024-03-{01..04}.json
product_added | json | id anonymous_id user_id context properties sent_at:time | events/product_added/2024-03-{01..04}.json
product_removed | json | id anonymous_id user_id context properties sent_at:time | events/product_removed/2024-03-{01..04}.json
coupon_applied | json | id anonymous_id user_id context properties sent_at:time | events/coupon_applied/2024-03-{01..04}.json
email_opened | json | id anonymous_id user_id context properties sent_at:time | events/email_opened/2024-03-{01..04}.json
"""),
        hint=("events/{key}/*.json", "events"),
    )
)

EXPERIENCED.append(
    Lake(
        "event_files_flat_equal_columns",
        tied("""
cart_viewed | csv | event_id user_id:int session_id ts:time props | ev/cart_viewed_202403{01..05}.csv
item_liked | csv | event_id user_id:int session_id ts:time props | ev/item_liked_202403{01..05}.csv
search_performed | csv | event_id user_id:int session_id ts:time props | ev/search_performed_202403{01..05}.csv
session_ended | csv | event_id user_id:int session_id ts:time props | ev/session_ended_202403{01..05}.csv
"""),
        hint=("ev/{key}_202*.csv", "ev"),
    )
)

# ---------------------------------------------------------------- logs

# Many *_log tables of one application, nearly the same columns: a table each.
EXPERIENCED.append(
    Lake(
        "log_tables_nearly_equal",
        tied("""
access_log | parquet | log_id:int ts:time user_id:int ip level message path | logs/access_log/dt=2024-03-{01..03}/part-00000.parquet
audit_log | parquet | log_id:int ts:time user_id:int ip level message entity | logs/audit_log/dt=2024-03-{01..03}/part-00000.parquet
error_log | parquet | log_id:int ts:time user_id:int ip level message stacktrace | logs/error_log/dt=2024-03-{01..03}/part-00000.parquet
login_log | parquet | log_id:int ts:time user_id:int ip level message | logs/login_log/dt=2024-03-{01..03}/part-00000.parquet
payment_log | parquet | log_id:int ts:time user_id:int ip level message amount:float | logs/payment_log/dt=2024-03-{01..03}/part-00000.parquet
email_log | parquet | log_id:int ts:time user_id:int level message recipient | logs/email_log/dt=2024-03-{01..03}/part-00000.parquet
sms_log | parquet | log_id:int ts:time user_id:int level message recipient | logs/sms_log/dt=2024-03-{01..03}/part-00000.parquet
cron_log | parquet | log_id:int ts:time job level message | logs/cron_log/dt=2024-03-{01..03}/part-00000.parquet
import_log | parquet | log_id:int ts:time job level message rows:int | logs/import_log/dt=2024-03-{01..03}/part-00000.parquet
export_log | parquet | log_id:int ts:time job level message rows:int | logs/export_log/dt=2024-03-{01..03}/part-00000.parquet
"""),
    )
)

# logrotate on two hosts: the current file and its rotations are one table; hosts are slices, the
# kinds of log are tables.
EXPERIENCED.append(
    Lake(
        "rotated_json_logs",
        tied("""
app_log | json | ts:time level logger msg trace_id | var-log/{web01,web02}/app.log; var-log/{web01,web02}/app.log.{1..5}; var-log/{web01,web02}/app.log.{6..9}.gz
access_log | json | time:time remote_addr request status:int bytes:int ua | var-log/{web01,web02}/access.log; var-log/{web01,web02}/access.log.{1..5}; var-log/{web01,web02}/access.log.{6..9}.gz
"""),
        hint=("var-log/*/{key}.log*", "log"),
    )
)

EXPERIENCED.append(
    Lake(
        "rotated_logs_dateext",
        tied("""
nginx_access | json | time_iso8601:time remote_addr request status:int body_bytes_sent:int | nginx/access.log-202403{01..07}.gz; nginx/access.log
nginx_error | json | time:time level pid:int message client | nginx/error.log-202403{01..07}.gz; nginx/error.log
worker | json | ts:time queue job duration_ms:int ok | worker/worker-2024-03-{01..07}.{1..2}.log
"""),
    )
)

# Fluent Bit to S3: tag, date folders, index and random suffix; each container its own stream of
# the same kubernetes record: one table.
EXPERIENCED.append(
    Lake(
        "fluentbit_kubernetes",
        tied("""
kube_logs | json | log stream time:time kubernetes | fluent-bit-logs/kube.var.log.containers.{checkout,cart,frontend}-{hex8}_shop_app/2024/03/{01..02}/{00,08,16}/10-00-{rand16}.gz
"""),
        hint=("fluent-bit-logs/**/*.gz", "kube_logs"),
    )
)

# ---------------------------------------------------------------- mixtures in one folder

# The same table was exported in three formats; the label is equal, the format splits it.
EXPERIENCED.append(
    Lake(
        "mixed_formats_in_one_folder",
        tied("""
customers | csv | id:int name email country | drop/customers_2024-0{1..3}.csv
customers | parquet | id:int name email country | drop/customers_2024-0{4..6}.parquet
customers | json | id:int name email country | drop/customers_2024-0{5..6}.json
complaints | json | id:int customer_id:int text opened:time | drop/complaints_2024-0{1..6}.json
- | - | | drop/README.md; drop/.DS_Store; drop/Thumbs.db
"""),
    )
)

# Two teams write Spark default names into neighbouring folders.
EXPERIENCED.append(
    Lake(
        "two_teams_part_00000",
        tied("""
growth_export | parquet | user_id:int cohort:date channel activated | shared/growth/part-0000{0..3}-{uuid}-c000.snappy.parquet
finance_export | parquet | account gl_code period amount:float | shared/finance/part-0000{0..3}-{uuid}-c000.snappy.parquet
finance_budget | csv | gl_code period budget:float | shared/finance_budget/part-0000{0..1}-{uuid}-c000.csv
- | - | | shared/{growth,finance,finance_budget}/_SUCCESS
"""),
    )
)

# Two jobs wrote into the same folder: same part names, other columns: two tables.
EXPERIENCED.append(
    Lake(
        "two_jobs_one_folder",
        tied("""
clicks | parquet | click_id user_id:int url ts:time | tmp/output/part-0000{0..2}-3c0a8d52-6f60-4f9a-9d0b-111111111111-c000.snappy.parquet
campaigns | parquet | campaign_id:int name budget:float starts:date ends:date | tmp/output/part-0000{0..1}-9e4b7f10-8a2c-4d7e-8c3f-222222222222-c000.snappy.parquet
- | - | | tmp/output/_SUCCESS
"""),
    )
)

# Case on the object store distinguishes: Orders was the manual upload of another system.
EXPERIENCED.append(
    Lake(
        "names_differ_in_case",
        tied("""
Orders | csv | OrderNo Customer Amount:float OrderDate:date | up/Orders/Export_2024_{01..03}.csv
orders | csv | order_id:int customer_id:int total:float currency placed_at:time | up/orders/export_2024_{01..03}.csv
returns | csv | return_id:int order_id:int reason | up/returns/Returns_2024_01.csv; up/returns/returns_2024_02.csv; up/returns/RETURNS_2024_03.CSV
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "unicode_names",
        tied("""
aufträge | csv | auftragsnr:int kunde betrag:float datum:date | vertrieb/aufträge/aufträge_2024-{01..04}.csv
umsätze | csv | monat:date filiale umsatz:float | vertrieb/umsätze/umsätze_2024-{01..04}.csv
売上 | csv | 日付:date 店舗 金額:int | 日本/売上/売上_2024年{01..04}月.csv
在庫 | csv | 日付:date 店舗 商品 数量:int | 日本/在庫/在庫_2024年{01..04}月.csv
заказы | json | номер:int клиент сумма:float дата:date | россия/заказы/2024-03-{01..04}.json
clientes | csv | código:int nombre país alta:date | españa/clientes año 2023.csv; españa/clientes año 2024.csv
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "reference_files_next_to_partitions",
        tied("""
flights | parquet | flight_date:date carrier flight_num origin dest dep_delay:float arr_delay:float | flights/year=2023/month={10,11,12}/part-0000{0..1}.parquet; flights/year=2024/month={1,2,3}/part-0000{0..1}.parquet
carriers | csv | code name country | flights/carriers.csv
airports | csv | iata name city state lat:float lon:float | flights/airports.csv
plane_data | csv | tailnum type manufacturer model year:int | flights/plane-data.csv
- | - | | flights/README.txt
"""),
    )
)

# ---------------------------------------------------------------- reports and dates

# Monthly, quarterly and yearly reports have different grain: a table each.
EXPERIENCED.append(
    Lake(
        "reports_by_period",
        tied("""
sales_monthly | csv | month store units:int revenue:float | reports/sales_2023-{01..12}.csv
sales_quarterly | csv | quarter region units:int revenue:float growth:float | reports/sales_2023-Q{1..4}.csv
sales_yearly | csv | year:int region revenue:float profit:float plan:float | reports/sales_{2021..2023}.csv
"""),
        hint=("reports/sales_*-Q*.csv", "sales_quarterly"),
    )
)

EXPERIENCED.append(
    Lake(
        "reports_by_folder_and_month_name",
        tied("""
pnl | csv | account actual:float budget:float variance:float | finance/{2022,2023}/{Jan,Feb,Mar,Apr,May,Jun,Jul,Aug,Sep,Oct,Nov,Dec}/P&L.csv
balance_sheet | csv | account opening:float closing:float | finance/{2022,2023}/{Jan,Feb,Mar,Apr,May,Jun,Jul,Aug,Sep,Oct,Nov,Dec}/Balance Sheet.csv
headcount | csv | department fte:float open_positions:int | finance/{2022,2023}/headcount Q{1..4}.csv
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "weekly_and_fiscal_names",
        tied("""
nielsen_scan | csv | upc week_end:date units:int dollars:float store | vendor/nielsen_scan_2023W{40..52}.csv; vendor/nielsen_scan_2024W{01..04}.csv
budget | csv | cost_center fy:int period:int amount:float | vendor/budget_FY{22,23,24}.csv
forecast | csv | cost_center fy:int period:int amount:float version | vendor/forecast_FY24_P{01..06}.csv
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "multi_level_dates",
        tied("""
weather_obs | csv | station obs_time:time temp:float wind:float | met/obs/2024/2024-02/2024-02-<d:28,29>/obs_202402<d>00.csv; met/obs/2024/2024-03/2024-03-<d:01..04>/obs_202403<d>{00,06,12,18}.csv
weather_fcst | csv | station run:time lead_h:int temp:float wind:float | met/fcst/2024/2024-03/2024-03-<d:01..04>/fcst_202403<d>{00,12}.csv
lightning | json | ts:time lat:float lon:float amp:float | met/lightning/2024/061/{00..05}.json; met/lightning/2024/062/{00..05}.json
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "epoch_names",
        tied("""
ticks | csv | ts:int symbol bid:float ask:float | stream/ticks/{1709251200,1709254800,1709258400,1709262000}.csv
heartbeats | json | host ts:int load:float mem:float | stream/heartbeats/17092512{00123,03456,09871}.json; stream/heartbeats/1709254{800010,803999}.json
positions | csv | ts:int vessel lat:float lon:float | stream/positions_{1709251200000,1709254800000,1709258400000}.csv
"""),
    )
)

EXPERIENCED.append(
    Lake(
        "hourly_folders",
        tied("""
impressions | json | imp_id ad_id:int user ts:time price:float | adserver/impressions/2024-03-01/{00..23}/data.json
clicks | json | click_id imp_id ts:time | adserver/clicks/2024-03-01/{00..23}/data.json
conversions | json | conv_id click_id ts:time value:float | adserver/conversions/2024-03-01/{00..23}/data.json
"""),
    )
)

# The hour stands above the table.
EXPERIENCED.append(
    Lake(
        "hour_above_table",
        tied("""
bids | parquet | bid_id auction_id bidder price:float ts:time | rtb/2024-03-01T{00..07}/bids.parquet
auctions | parquet | auction_id placement floor:float ts:time | rtb/2024-03-01T{00..07}/auctions.parquet
wins | parquet | auction_id bid_id clearing_price:float ts:time | rtb/2024-03-01T{00..07}/wins.parquet
"""),
    )
)

# ---------------------------------------------------------------- hashes, uuids, last mixtures

EXPERIENCED.append(
    Lake(
        "uuid_and_hash_file_names",
        tied("""
payments | json | payment_id amount:float currency at:time | blob/payments/{uuid}.json; 11x blob/payments/{uuid}.json
documents_index | parquet | doc_id sha256 mime bytes:int uploaded:time | 6x blob/documents_index/{hex32}.parquet
webhooks | json | id source headers body received:time | 4x blob/webhooks/2024/03/{01..03}/{hex32}.json
"""),
    )
)

# Content addressed storage: the folders are hash prefixes, not tables.
EXPERIENCED.append(
    Lake(
        "hash_prefix_sharding",
        tied("""
products_crawl | json | url title price:float fetched:time | crawl/products/{00,1f,3a,7c,a9,e4,ff}/{hex32}.json; crawl/products/{00,1f,3a,7c,a9,e4,ff}/{hex32}.json
reviews_crawl | json | url author stars:int text fetched:time | crawl/reviews/{02,1f,3b,7c,aa,e4,fe}/{hex32}.json
"""),
    )
)

# Job runs as uuid folders above several outputs: the run is a slice, the output is the table.
EXPERIENCED.append(
    Lake(
        "run_uuid_above_table",
        tied("""
metrics | csv | epoch:int loss:float accuracy:float lr:float | runs/{5a1f0c9e-0001-4a6b-9d10-aaaaaaaaaaaa,0b7d1c2e-0002-4c8d-8e21-bbbbbbbbbbbb,c93e2d4f-0003-4e0f-9f32-cccccccccccc}/metrics.csv
predictions | parquet | sample_id:int label:int score:float | runs/{5a1f0c9e-0001-4a6b-9d10-aaaaaaaaaaaa,0b7d1c2e-0002-4c8d-8e21-bbbbbbbbbbbb,c93e2d4f-0003-4e0f-9f32-cccccccccccc}/predictions.parquet
feature_importance | csv | feature gain:float split:int | runs/{5a1f0c9e-0001-4a6b-9d10-aaaaaaaaaaaa,0b7d1c2e-0002-4c8d-8e21-bbbbbbbbbbbb,c93e2d4f-0003-4e0f-9f32-cccccccccccc}/feature_importance.csv
- | - | | runs/{5a1f0c9e-0001-4a6b-9d10-aaaaaaaaaaaa,0b7d1c2e-0002-4c8d-8e21-bbbbbbbbbbbb,c93e2d4f-0003-4e0f-9f32-cccccccccccc}/model.pkl
"""),
    )
)

# dlt (data load tool) filesystem destination: dataset / table / load id . file id; _dlt tables are
# bookkeeping but real tables.
EXPERIENCED.append(
    Lake(
        "dlt_filesystem_destination",
        tied("""
players | parquet | id:int name rating:int _dlt_id _dlt_load_id | chess/players/1709251200.12345.{hex8}.parquet; chess/players/1709337600.54321.{hex8}.parquet
games | parquet | url end_time:time white black result _dlt_id _dlt_load_id | 3x chess/games/1709251200.12345.{hex8}.parquet; 2x chess/games/1709337600.54321.{hex8}.parquet
games__moves | parquet | value _dlt_parent_id _dlt_list_idx:int _dlt_id | 2x chess/games__moves/1709251200.12345.{hex8}.parquet
_dlt_loads | json | load_id schema_name status:int inserted_at:time schema_version_hash | chess/_dlt_loads/chess__{1709251200.12345,1709337600.54321}.jsonl
_dlt_version | json | version:int engine_version:int inserted_at:time schema_name version_hash schema | chess/_dlt_version/chess__1709251200.12345__{hex8}.jsonl
- | - | | chess/init; chess/players/.gitkeep
"""),
    )
)

# Singer/Meltano target-s3 flat: stream-timestamp.
EXPERIENCED.append(
    Lake(
        "meltano_target_files",
        tied("""
campaigns | csv | id:int name status spend:float _sdc_batched_at:time | meltano/campaigns-20240<m:301,302,303>T020000.csv
ad_groups | csv | id:int campaign_id:int name cpc:float _sdc_batched_at:time | meltano/ad_groups-20240<m:301,302,303>T020000.csv
ads | csv | id:int ad_group_id:int headline final_url _sdc_batched_at:time | meltano/ads-20240<m:301,302,303>T020000.csv
ads_insights | csv | ad_id:int date:date impressions:int clicks:int spend:float | meltano/ads_insights-20240<m:301,302,303>T020000.csv
"""),
    )
)

# Google Ads / Search Console / App Store drops with the account id in the name: all accounts are
# one table per report.
EXPERIENCED.append(
    Lake(
        "marketing_report_drops",
        tied("""
campaign_performance | csv | Day:date Campaign Impressions:int Clicks:int Cost:float | ads/campaign_performance_{123-456-7890,987-654-3210}_2024-03-{01..03}.csv
keyword_performance | csv | Day:date Keyword MatchType Clicks:int Cost:float QualityScore:int | ads/keyword_performance_{123-456-7890,987-654-3210}_2024-03-{01..03}.csv
appstore_sales | csv | Provider SKU Title Units:int DeveloperProceeds:float BeginDate:date | ads/S_D_85012345_202403{01..03}.txt.gz
play_installs | csv | Date:date PackageName DailyDeviceInstalls:int | ads/installs_com.acme.app_20240{1..3}_overview.csv
play_installs_country | csv | Date:date PackageName Country DailyDeviceInstalls:int | ads/installs_com.acme.app_20240{1..3}_country.csv
"""),
    )
)

# Columns grew over the years: still one table.
EXPERIENCED.append(
    Lake(
        "schema_evolution",
        tied("""
members | csv | id:int name joined:date | club/members/2021.csv
members | csv | id:int name joined:date email | club/members/2022.csv
members | csv | id:int name joined:date email phone newsletter | club/members/2023.csv; club/members/2024.csv
fees | csv | member_id:int year:int amount:float | club/fees/{2021..2022}.csv
fees | csv | member_id:int year:int amount:float currency paid_on:date | club/fees/{2023..2024}.csv
"""),
    )
)

# A home folder that became a lake: copies, final versions, a single lookup.
EXPERIENCED.append(
    Lake(
        "analyst_home_folder",
        tied("""
survey | csv | respondent:int q1:int q2:int q3 submitted:time | work/survey_results.csv
region_codes | csv | code name parent | work/region_codes.csv
model_scores | parquet | customer_id:int score:float scored_at:time | work/scores/scores_2024-03-{01..03}.parquet
zip_to_county | csv | zip county state fips | work/lookup/zip_county.csv
- | - | | work/notebook.ipynb; work/plot.png; work/scores/.ipynb_checkpoints/x.txt; work/~$budget.xlsx
"""),
    )
)

# Bucketing by numbers and languages: Wikipedia/OSCAR style dumps, the language is a slice.
EXPERIENCED.append(
    Lake(
        "corpus_by_language",
        tied("""
wiki_text | parquet | id url title text | wikipedia/20231101.{de,en,fr,ja}/train-0000{0..3}-of-00004.parquet
"""),
        hint=("wikipedia/*/*.parquet", "wiki_text"),
    )
)

# dbt/Trino iceberg warehouse: table folder with a random suffix; old snapshot of a table recreated
# under a new suffix would be another location, here each table has one.
EXPERIENCED.append(
    Lake(
        "trino_iceberg_suffixed_locations",
        tied("""
stg_orders | parquet | order_id:int customer_id:int status total:float | wh/analytics/stg_orders-4f1c2a9be3d84c11a0b1c2d3e4f50617/data/20240301_0610{11,42}_00017_k2n9d-{uuid}.parquet
stg_customers | parquet | customer_id:int name email | wh/analytics/stg_customers-a7b8c9d0e1f24354a6b7c8d9e0f10213/data/20240301_061033_00018_k2n9d-{uuid}.parquet
fct_orders | parquet | order_id:int customer_id:int total:float margin:float order_date:date | wh/analytics/fct_orders-00112233445566778899aabbccddeeff/data/order_date_month=2024-0{1..3}/20240301_061201_00021_k2n9d-{uuid}.parquet
- | json | format-version table-uuid location schemas snapshots | wh/analytics/{stg_orders-4f1c2a9be3d84c11a0b1c2d3e4f50617,stg_customers-a7b8c9d0e1f24354a6b7c8d9e0f10213,fct_orders-00112233445566778899aabbccddeeff}/metadata/0000{0..1}-{uuid}.metadata.json
- | avro | status snapshot_id data_file | wh/analytics/{stg_orders-4f1c2a9be3d84c11a0b1c2d3e4f50617,stg_customers-a7b8c9d0e1f24354a6b7c8d9e0f10213,fct_orders-00112233445566778899aabbccddeeff}/metadata/{uuid}-m0.avro
"""),
    )
)

# Dask / pandas / polars / DuckDB default names.
EXPERIENCED.append(
    Lake(
        "python_writers_default_names",
        tied("""
dask_trips | parquet | trip_id:int start:time end:time km:float | out/trips.parquet/part.{0..11}.parquet
pyarrow_stations | parquet | station_id:int name capacity:int | out/stations/region={north,south}/part-0.parquet; out/stations/region=north/part-1.parquet
duckdb_daily | parquet | day:date trips:int km:float | out/daily/year={2022..2024}/data_0.parquet
polars_weather | parquet | day:date rain:float temp:float | out/weather/0000000{0..3}.parquet
chunk_stops | csv | stop_id:int name lat:float lon:float | out/stops_chunk{0..4}.csv
- | - | | out/trips.parquet/_metadata; out/trips.parquet/_common_metadata
"""),
    )
)

# Hospital interface: the message type is in the file name, facility and timestamp around it.
EXPERIENCED.append(
    Lake(
        "healthcare_batches",
        tied("""
adt | json | mrn event facility at:time | hl7/FAC{01..03}_ADT_20240301{0600,1200,1800}.json
oru | json | mrn order_id code value:float unit at:time | hl7/FAC{01..03}_ORU_20240301{0600,1200,1800}.json
claims_837 | csv | claim_id member_id provider_npi billed:float service_date:date | claims/837P_{PAYERA,PAYERB}_202403{01..03}.csv
remit_835 | csv | claim_id paid:float adj_code paid_date:date | claims/835_{PAYERA,PAYERB}_202403{01..03}.csv
"""),
        hint=("hl7/FAC*_{key}_*.json", "hl7"),
    )
)

# Game studio: build version and platform above the event day; one table per event stream.
EXPERIENCED.append(
    Lake(
        "game_telemetry_by_build",
        tied("""
match_end | parquet | match_id player_id rank:int kills:int duration_s:int | telemetry/match_end/build={1.4.0,1.4.1,1.5.0-rc2}/platform={pc,ps5}/dt=2024-03-0{1..2}/{hex8}.parquet
purchase | parquet | player_id sku price:float currency at:time | telemetry/purchase/build={1.4.0,1.4.1,1.5.0-rc2}/platform={pc,ps5}/dt=2024-03-0{1..2}/{hex8}.parquet
crash | json | player_id stack gpu driver at:time | telemetry/crash/build={1.4.0,1.4.1,1.5.0-rc2}/platform={pc,ps5}/{hex8}.json
"""),
    )
)
