"""An eighth collection: exports of services and companies, written down before they were run."""

from .lakes import Lake

EIGHTH = [
    Lake(
        "mysqlsh chunks",
        """
        orders | csv | id:int total:float | dump/shop@orders@{0..5}.tsv.zst; dump/shop@orders@@6.tsv.zst
        users | csv | id:int name mail | dump/shop@users@@0.tsv.zst
    """,
    ),
    Lake(
        "Snowflake stages",
        """
        orders | csv | id:int total:float day:date | unload/orders/data_{0..3}_{0..2}_0.csv.gz
        people | parquet | id:int name mail | unload/people/data_{uuid}_{0..3}_0_0.snappy.parquet
    """,
    ),
    Lake(
        "BigQuery shards",
        """
        sessions | json | visitId fullVisitorId hits | ga/sessions_202401{01..09}-{000000000000..000000000002}.json.gz
        intraday | json | visitId fullVisitorId hits | ga/sessions_intraday_20240110-000000000000.json.gz
        lookup | csv | code name | ga/geo.csv
    """,
    ),
    Lake(
        "GCS logs",
        """
        usage | csv | time_micros c_ip cs_method cs_uri | logs/mybucket_usage_2024_01_{05,06}_{00..05}_00_00_{hex5}_v0
        storage | csv | bucket storage_byte_hours:int | logs/mybucket_storage_2024_01_{05..09}_08_00_00_{hex5}_v0
    """,
    ),
    Lake(
        "cost and usage",
        """
        cur | parquet | lineitem_id bill_period cost:float | billing/prod-cur/prod-cur/year=2024/month={1..3}/prod-cur-0000{1..3}.snappy.parquet
        - | json | account columns | billing/prod-cur/2024010{1..3}-2024020{1..3}/prod-cur-Manifest.json
        status | parquet | status | billing/prod-cur/cost_and_usage_data_status/cost_and_usage_data_status.parquet
    """,
    ),
    Lake(
        "S3 inventory",
        """
        inventory | orc | bucket key size:int etag | inv/src-bucket/daily/data/{uuid}.orc; inv/src-bucket/daily/data/{uuid}.orc; inv/src-bucket/daily/data/{uuid}.orc
        - | json | files | inv/src-bucket/daily/2024-01-{01..03}T01-00Z/manifest.json
        - | - | - | inv/src-bucket/daily/2024-01-{01..03}T01-00Z/manifest.checksum
    """,
    ),
    Lake(
        "Segment warehouse",
        """
        tracks | parquet | id event at:time | seg/tracks/{2024..2024}/0{1..3}/{rand12}.parquet
        pages | parquet | id url at:time | seg/pages/2024/0{1..3}/{rand12}.parquet
        identifies | parquet | id traits at:time | seg/identifies/2024/0{1..3}/{rand12}.parquet
    """,
    ),
    Lake(
        "Airbyte, once more",
        """
        users | json | _airbyte_ab_id _airbyte_data | airbyte/postgres/users/2024_01_{05..08}_1704412800000_0.jsonl.gz
        orders | json | _airbyte_ab_id _airbyte_data | airbyte/postgres/orders/2024_01_{05..08}_1704412800000_0.jsonl.gz
        events | json | _airbyte_ab_id _airbyte_data | airbyte/postgres/events/2024_01_{05..08}_1704412800000_0.jsonl.gz
    """,
    ),
    Lake(
        "Fivetran-like",
        """
        account | parquet | id name | salesforce/account/0{1..3}-{uuid}.parquet
        lead | parquet | id name | salesforce/lead/0{1..3}-{uuid}.parquet
        contact | parquet | id name mail | salesforce/contact/0{1..3}-{uuid}.parquet
    """,
    ),
    Lake(
        "Event Hubs capture, once more",
        """
        orders | avro | SequenceNumber:int Offset Body | ns/orders/{0..3}/2024/01/05/{00..03}/00/00.avro
        clicks | avro | SequenceNumber:int Offset Body | ns/clicks/{0..3}/2024/01/05/{00..03}/00/00.avro
    """,
    ),
    Lake(
        "Debezium server",
        """
        a | json | before after op ts_ms:int | cdc/shop.public.orders/2024-01-{01..03}/{digits13}-{hex8}.json
        b | json | before after op ts_ms:int | cdc/shop.public.users/2024-01-{01..03}/{digits13}-{hex8}.json
    """,
    ),
    Lake(
        "elections by state and year",
        """
        votes | csv | county party votes:int | elect/{2016,2020}/{20161108,20201103}__{al,ak,az,ca}__general__precinct.csv
        primary | csv | county party votes:int | elect/{2016,2020}/20160301__{al,ak,az}__primary__precinct.csv
    """,
    ),
    Lake(
        "GBIF months",
        """
        occ | parquet | gbifid species lat:float | occurrence/2024-0{1..3}-01/occurrence.parquet/{000000..000009}
    """,
    ),
    Lake(
        "Common Crawl index, once more",
        """
        cc | parquet | url status:int | cc-index/table/cc-main/warc/crawl=CC-MAIN-2024-{10,18,22}/subset={warc,robotstxt,crawldiagnostics}/part-{00000..00002}-{uuid}.c000.gz.parquet
    """,
    ),
    Lake(
        "OpenAQ",
        """
        m | csv | location_id:int parameter value:float | records/csv.gz/locationid={101..104}/year={2022,2023}/month=0{1..3}/location-101-20230101.csv.gz
    """,
    ),
    Lake(
        "FAA on time",
        """
        ot | csv | Year:int Month:int Carrier Delay:float | airline/On_Time_Reporting_Carrier_On_Time_Performance_(1987_present)_2023_{1..12}.csv
        carriers | csv | Code Description | airline/L_UNIQUE_CARRIERS.csv
        airports | csv | Code Description | airline/L_AIRPORT.csv
    """,
    ),
    Lake(
        "GTFS feeds",
        """
        stops | csv | stop_id stop_name stop_lat:float | gtfs/{mbta,bart,cta,trimet}/stops.txt
        trips | csv | route_id trip_id | gtfs/{mbta,bart,cta,trimet}/trips.txt
        routes | csv | route_id route_name route_type:int | gtfs/{mbta,bart,cta,trimet}/routes.txt
    """,
    ),
    Lake(
        "IMDb, once more",
        """
        a | csv | tconst titleType primaryTitle | imdb/title.basics.tsv.gz
        b | csv | tconst averageRating:float numVotes:int | imdb/title.ratings.tsv.gz
        c | csv | nconst primaryName | imdb/name.basics.tsv.gz
    """,
    ),
    Lake(
        "MovieLens sizes",
        """
        r1 | csv | userId:int movieId:int rating:float timestamp:int | ml/ml-25m/ratings.csv
        m1 | csv | movieId:int title genres | ml/ml-25m/movies.csv
        r2 | csv | userId:int movieId:int rating:float timestamp:int | ml/ml-latest-small/ratings.csv
        m2 | csv | movieId:int title genres | ml/ml-latest-small/movies.csv
    """,
    ),
    Lake(
        "M5 again",
        """
        cal | csv | date:date wm_yr_wk:int weekday | m5/calendar.csv
        ev | csv | id item_id d_1:int d_2:int | m5/sales_train_evaluation.csv
        va | csv | id item_id d_1:int | m5/sales_train_validation.csv
        pr | csv | store_id item_id sell_price:float | m5/sell_prices.csv
        su | csv | id F1:float F2:float | m5/sample_submission.csv
    """,
    ),
    Lake(
        "bike trips",
        """
        trips | csv | ride_id rideable_type started_at:time | citibike/2024{01..03}-citibike-tripdata_{1..3}.csv
    """,
    ),
    Lake(
        "Stack Exchange sites",
        """
        posts | parquet | Id:int Body Score:int | se/{cooking,gaming,math,diy}/Posts.parquet
        users | parquet | Id:int Name Reputation:int | se/{cooking,gaming,math,diy}/Users.parquet
        votes | parquet | Id:int PostId:int VoteTypeId:int | se/{cooking,gaming,math,diy}/Votes.parquet
    """,
    ),
    Lake(
        "genomics samples",
        """
        counts | csv | gene count:int | rna/SRR{1001..1006}/counts.tsv
        qc | csv | metric value:float | rna/SRR{1001..1006}/qc.tsv
        samples | csv | sample group age:int | rna/samples.tsv
    """,
    ),
    Lake(
        "sensor folders",
        """
        imu | csv | t:float ax:float ay:float az:float | drive/2024-01-05_{08..10}-00/imu.csv
        gps | csv | t:float lat:float lon:float | drive/2024-01-05_{08..10}-00/gps.csv
        can | csv | t:float speed:float rpm:float | drive/2024-01-05_{08..10}-00/can.csv
    """,
    ),
    Lake(
        "tenants with hive days",
        """
        ev | parquet | id kind at:time | lake/tenant_{acme,globex,initech}/events/dt=2024-01-0{1..3}/part-0.parquet
        us | parquet | id name | lake/tenant_{acme,globex,initech}/users/part-0.parquet
    """,
    ),
    Lake(
        "environments, once more",
        """
        p | parquet | id kind at:time | prod/events/dt=2024-01-0{1..3}/part-0.parquet
        s | parquet | id kind at:time | staging/events/dt=2024-01-0{1..3}/part-0.parquet
        d | parquet | id kind at:time | dev/events/dt=2024-01-0{1..3}/part-0.parquet
    """,
    ),
    Lake(
        "quarterly spreadsheets",
        """
        pl | csv | account amount:float | fin/FY2023/Q{1..4}/profit_and_loss.csv; fin/FY2024/Q{1..2}/profit_and_loss.csv
        bs | csv | account amount:float | fin/FY2023/Q{1..4}/balance_sheet.csv; fin/FY2024/Q{1..2}/balance_sheet.csv
    """,
    ),
    Lake(
        "vendor drops",
        """
        pos | csv | store sku units:int | sftp/in/POS_{1001..1004}_202401{05..07}_060000.csv
        inv | csv | store sku onhand:int | sftp/in/INV_{1001..1004}_202401{05..07}_060500.csv
        - | csv | rows:int | sftp/in/POS_1001_20240105_060000.ctl
    """,
    ),
    Lake(
        "ML features, once more",
        """
        train | parquet | id f1:float f2:float label:int | fs/churn/v{1..3}/train/part-{00000..00002}.parquet; fs/churn/v{1..3}/test/part-00000.parquet
        pred | parquet | id score:float | fs/churn/predictions/2024-01-{01..05}.parquet
    """,
    ),
    Lake(
        "experiments",
        """
        metrics | json | step:int loss:float acc:float | runs/exp_{lr01,lr001,bigger,dropout,baseline}/metrics.jsonl
        preds | csv | id y:float yhat:float | runs/exp_{lr01,lr001,bigger,dropout,baseline}/preds.csv
    """,
    ),
    Lake(
        "news feeds per language",
        """
        art | json | id title body at:time | news/{en,de,fr,it}/articles_2024-01-0{1..4}.jsonl
        src | csv | source url lang | news/sources.csv
    """,
    ),
    Lake(
        "tweets by hour in bz2",
        """
        tw | json | id text user created_at | twitter/2024/01/0{1..2}/{00..02}/{00..03}.json.bz2
    """,
    ),
    Lake(
        "monthly regional reports",
        """
        sales | csv | region sku total:float | reports/sales_{emea,apac,amer}_2024-0{1..4}.csv
        costs | csv | region dept total:float budget:float | reports/costs_{emea,apac,amer}_2024-0{1..4}.csv
    """,
    ),
    Lake(
        "chromosomes",
        """
        var | csv | pos:int ref alt | vcf/chr{1..22}.tsv.gz; vcf/chrX.tsv.gz; vcf/chrY.tsv.gz; vcf/chrMT.tsv.gz
        ped | csv | family person sex | vcf/pedigree.tsv
    """,
    ),
    Lake(
        "TPC-H text, once more",
        """
        li | csv | column_1:int column_2:int column_3:float | tpch/lineitem.tbl.{1..4}
        or | csv | column_1:int column_2:int column_3 column_4:float | tpch/orders.tbl.{1..4}
        na | csv | column_1:int column_2 | tpch/nation.tbl
        re | csv | column_1:int column_2 | tpch/region.tbl
    """,
    ),
    Lake(
        "TPC-DS parquet",
        """
        ss | parquet | ss_item:int ss_qty:int ss_price:float | tpcds/store_sales/ss_sold_date_sk={2450816..2450820}/part-00000-{uuid}.c000.snappy.parquet
        cs | parquet | cs_item:int cs_qty:int cs_price:float | tpcds/catalog_sales/cs_sold_date_sk={2450816..2450820}/part-00000-{uuid}.c000.snappy.parquet
        it | parquet | i_item:int i_name | tpcds/item/part-00000-{uuid}.c000.snappy.parquet
    """,
    ),
    Lake(
        "application JSON per user",
        """
        profile | json | name mail created:time | app/users/{rand20}/profile.json; app/users/{rand20}/profile.json; app/users/{rand20}/profile.json
        prefs | json | theme lang beta | app/users/{rand20}/prefs.json; app/users/{rand20}/prefs.json; app/users/{rand20}/prefs.json
    """,
    ),
    Lake(
        "order documents",
        """
        orders | json | id total:float lines | docs/orders/ORD-{100234..100240}.json
        invoices | json | id total:float due:date | docs/invoices/INV-{2024001..2024007}.json
    """,
    ),
    Lake(
        "backups by weekday",
        """
        c | csv | id:int name | bk/customers_{mon,tue,wed,thu,fri}.csv
        o | csv | id:int total:float | bk/orders_{mon,tue,wed,thu,fri}.csv
    """,
    ),
    Lake(
        "currencies, once more",
        """
        fx | csv | date:date rate:float | fx/{EURUSD,GBPUSD,USDJPY,AUDUSD}.csv
        meta | csv | pair base quote | fx/pairs.csv
    """,
    ),
    Lake(
        "sports seasons",
        """
        m | csv | Date HomeTeam AwayTeam FTHG:int | football/{1920,2021,2122}/{E0,E1,D1,SP1}.csv
    """,
    ),
    Lake(
        "sources as keys",
        """
        a | json | id at:time url referrer | in/source=web/dt=2024-01-0{1..3}/x-{hex8}.json
        b | json | order_id sku quantity:int price:float | in/source=pos/dt=2024-01-0{1..3}/x-{hex8}.json
        c | json | ticket_id subject agent priority | in/source=zendesk/dt=2024-01-0{1..3}/x-{hex8}.json
    """,
    ),
    Lake(
        "sources as keys with common columns",
        """
        a | json | id ts url referrer agent | in/event=pageview/dt=2024-01-0{1..3}/x-{hex8}.json
        b | json | id ts sku quantity:int price:float | in/event=purchase/dt=2024-01-0{1..3}/x-{hex8}.json
        c | json | id ts ticket subject priority | in/event=support/dt=2024-01-0{1..3}/x-{hex8}.json
    """,
    ),
    Lake(
        "tables as keys",
        """
        a | parquet | id:int name mail | lake/table=users/dt=2024-01-0{1..3}/p.parquet
        b | parquet | id:int user:int total:float | lake/table=orders/dt=2024-01-0{1..3}/p.parquet
    """,
    ),
    Lake(
        "versions of an API",
        """
        a | json | id name | api/v1/users/2024-01-0{1..3}.json; api/v2/users/2024-01-0{1..3}.json
        b | json | id total:float | api/v1/orders/2024-01-0{1..3}.json; api/v2/orders/2024-01-0{1..3}.json
    """,
    ),
    Lake(
        "parks by hour",
        """
        q | csv | at:time ride wait:int | parks/{disneyland,epcot,magic-kingdom,hollywood-studios}/2024-01-0{1..4}.csv
    """,
    ),
    Lake(
        "hospital extract",
        """
        a | csv | subject_id:int gender dob:date | mimic/hosp/patients.csv.gz
        b | csv | subject_id:int hadm_id:int admittime:time | mimic/hosp/admissions.csv.gz
        c | csv | subject_id:int hadm_id:int icd_code | mimic/hosp/diagnoses_icd.csv.gz
        d | csv | icd_code icd_version:int long_title | mimic/hosp/d_icd_diagnoses.csv.gz
        e | csv | icd_code icd_version:int long_title | mimic/hosp/d_icd_procedures.csv.gz
        f | csv | subject_id:int stay_id:int itemid:int value | mimic/icu/chartevents.csv.gz
    """,
    ),
    Lake(
        "Olist",
        """
        a | csv | customer_id customer_city | olist/olist_customers_dataset.csv
        b | csv | order_id customer_id order_status | olist/olist_orders_dataset.csv
        c | csv | order_id product_id price:float | olist/olist_order_items_dataset.csv
        d | csv | product_category_name product_category_name_english | olist/product_category_name_translation.csv
    """,
    ),
    Lake(
        "wide weather stations",
        """
        w | csv | DATE TMAX:int TMIN:int | ghcn/by_station/{USW00094728,GME00102380,ASN00066062}.csv.gz
        y | csv | ID DATE ELEMENT VALUE:int | ghcn/by_year/{2019..2023}.csv.gz
        s | csv | ID LAT:float LON:float | ghcn/ghcnd-stations.csv
    """,
    ),
]
