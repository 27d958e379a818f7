"""An eleventh collection: what tools leave behind, runs, ids of devices and keys that name tables."""

from .lakes import Lake

ELEVENTH = [
    Lake(
        "artefacts of a transformation tool",
        """
        a | parquet | customer_id:int revenue:float | warehouse/fct_revenue.parquet
        - | json | metadata nodes | build/target/manifest.json
        - | json | metadata results | build/target/run_results.json
        - | json | metadata nodes sources | build/target/catalog.json
    """,
    ),
    Lake(
        "a catalog that is data",
        """
        a | json | sku title price:float | shop/catalog.json
        b | json | order_id:int sku | shop/orders.json
    """,
    ),
    Lake(
        "a common data model",
        """
        a | csv | id name city | crm-link/lead/{2021..2024}.csv
        - | json | name version entities | crm-link/model.json
        - | json | EntityName Attributes | crm-link/feed/lead-EntityMetadata.json
    """,
    ),
    Lake(
        "search indices with their definitions",
        """
        a | json | _index _id _source | dump/tickets-2024.0{1..4}.json
        - | json | properties | dump/tickets-2024.0{1..4}.mapping.json
        - | json | index | dump/tickets-2024.0{1..4}.settings.json
        - | json | analysis | dump/tickets-2024.0{1..4}.analyzer.json
    """,
    ),
    Lake(
        "jobs that tell how they went",
        """
        a | parquet | id:int kind at:time | events/run=2024-02-0{1..4}/part-0.parquet
        c | json | timestamp count:int | events/run=2024-02-0{1..4}/loading_complete.json
        b | json | parcel state at:time | logistics/shipping_status.json
    """,
    ),
    Lake(
        "runs of a scheduler",
        """
        a | csv | id:int amount:float | etl/sales/scheduled__2024-03-0{1..5}T02:00:00+00:00/invoices.csv
        a | csv | id:int amount:float | etl/sales/manual__2024-03-03T11:17:45.120931+00:00/invoices.csv
        a | csv | id:int amount:float | etl/sales/backfill__2024-02-28T02:00:00+00:00/invoices.csv
        b | csv | reason row:int | etl/sales/scheduled__2024-03-0{1..5}T02:00:00+00:00/rejects.csv
        b | csv | reason row:int | etl/sales/manual__2024-03-03T11:17:45.120931+00:00/rejects.csv
    """,
    ),
    Lake(
        "closings of the books",
        """
        a | csv | account debit:float credit:float | Books/2024-0{1,2,4,5} Month End/Ledger.csv
        a | csv | account debit:float credit:float | Books/2024-03 Quarter End/Ledger.csv
        b | csv | asset cost:float life:int | Books/2024-0{1,2,4,5} Month End/Assets.csv
        b | csv | asset cost:float life:int | Books/2024-03 Quarter End/Assets.csv
    """,
    ),
    Lake(
        "days of experiments with a remark",
        """
        a | csv | well:int od:float gfp:float | plates/2024-02-06_pilot/Plate_{001..003}.csv
        a | csv | well:int od:float gfp:float | plates/2024-02-20_rerun/Plate_{001..003}.csv
        a | csv | well:int od:float gfp:float | plates/2024-03-12_rerun2/Plate_{001..003}.csv
    """,
    ),
    Lake(
        "days with tables in their folders' names",
        """
        a | csv | id:int name | drop/2024-02-0{1..3}_users/part-0.csv
        b | csv | id:int name | drop/2024-02-0{1..3}_items/part-0.csv
    """,
    ),
    Lake(
        "health of devices by id",
        """
        a | json | device uptime:int signal:int at:time | edge/status/{DV-3C7E,DV-90AF,DV-B21D}_2024-04-0{1..4}.json
        b | csv | device site | edge/devices.csv
    """,
    ),
    Lake(
        "kinds of devices before their ids",
        """
        a | avro | device at:time value:float | plant/{valve-0c9a,boiler-77d1}/2024/04/0{1..3}/readings.avro
        b | avro | device at:time code:int | plant/{valve-0c9a,boiler-77d1}/2024/04/0{1..3}/faults.avro
    """,
    ),
    Lake(
        "price lists by department",
        """
        a | json | list_id sku price:float valid_from:date | prices/PL_{DAIRY,BAKERY,FRUITS}_{2023H2,2024H1}.json
    """,
    ),
    Lake(
        "courses by code and time",
        """
        a | csv | time user action component | lms/activity_{BI201,BI330,CH115,MU404}_2024020{1..3}-0900.csv
    """,
    ),
    Lake(
        "releases and candidates",
        """
        a | parquet | session fps:float scene | bench/build_2.{0..2}.0/frames.parquet
        a | parquet | session fps:float scene | bench/build_2.3.0-rc2/frames.parquet
    """,
    ),
    Lake(
        "half years beside years",
        """
        a | csv | deed price:float town | notary/transactions-{2020..2023}.csv; notary/transactions-2024-s1.csv
    """,
    ),
    Lake(
        "texts by locale",
        """
        a | csv | key text reviewed | i18n/labels_{de,fr,it,pt-BR,zh-Hant}.csv
    """,
    ),
    Lake(
        "mornings and afternoons",
        """
        a | csv | id:int ward bed admitted:time | feed/2024/05/0{1..4}/beds_{am,pm}.csv
    """,
    ),
    Lake(
        "results of bulk jobs",
        """
        a | csv | Id Name Stage Amount:float | bulk/Deal/750meORSeBlghth4qa/752RGGbe4821UkO.csv
        a | csv | Id Name Stage Amount:float | bulk/Deal/750HyupC5tna3wBU61/7526QeASM2Ko8z1.csv
        a | csv | Id Name Stage Amount:float | bulk/Deal/750rCPfE9smLTz7ui5/752NB8LJY26qdUX.csv
    """,
    ),
    Lake(
        "keys that name tables of equal columns",
        """
        a | parquet | user at:time page | web/event_type=clicks/dt=2024-05-0{1..3}/part-0.parquet
        a | parquet | user at:time page | web/event_type=views/dt=2024-05-0{1..3}/part-0.parquet
        a | parquet | user at:time page | web/event_type=signups/dt=2024-05-0{1..3}/part-0.parquet
    """,
    ),
    Lake(
        "keys that tell whose data it is",
        """
        a | parquet | user at:time page | web/country={de,fr,us}/source=ads/dt=2024-05-0{1..3}/part-0.parquet
        a | parquet | user at:time page | web/country=de/source=emails/dt=2024-05-0{1..3}/part-0.parquet
    """,
    ),
    Lake(
        "names that are values elsewhere",
        """
        a | csv | stop_id name lat:float lon:float | rail/timetable/{obb,trenord,ns}/2024-01-0{1..3}/stops.csv
        b | csv | trip_id stop_id at:time | rail/timetable/{obb,trenord,ns}/2024-01-0{1..3}/calls.csv
        c | parquet | train lat:float lon:float at:time | rail/live/{obb,trenord}/2024-01-0{1..3}/fixes.parquet
        d | csv | channel budget:float start:date | plans/Plan {Obb,Trenord} 2024.csv
    """,
    ),
    Lake(
        "folders called after sites",
        """
        a | csv | page hits:int day:date | traffic/{globex.com,www.globex.it,news.globex.org}/2024-01-0{1..3}.csv
    """,
    ),
    Lake(
        "network elements before what they count",
        """
        a | csv | subscriber bytes:int at:time | usage/{PGW3,PGW8,SGW2}_FLOW_2024010{1..3}_060000.csv
        b | csv | subscriber seconds:int at:time | usage/{TAS01,TAS02}_CALLS_2024010{1..3}_060000.csv
    """,
    ),
]
