"""Lakes of companies: people's own names, layers, tenants, copies, and much that is no data."""

from .lakes import Lake

COMPANY = [
    Lake(
        "two tables in a folder",
        """
        users | csv | id:int name email | ref/users.csv
        orders | csv | order_id:int user_id:int amount:float | ref/orders.csv
    """,
    ),
    Lake(
        "one file",
        """
        users | csv | id:int name email | users.csv
    """,
    ),
    Lake(
        "one dated file",
        """
        events | json | id kind at | events_20240101.json
    """,
    ),
    Lake(
        "monthly files by name of the month",
        """
        sales | csv | day:date shop:int amount:float | sales/sales-{jan,feb,mar,apr,may,jun}-2024.csv; sales/sales-{jan,feb}-2023.csv
    """,
    ),
    Lake(
        "months alone",
        """
        sales | csv | day:date shop:int amount:float | sales/{january,february,march,april}.csv
    """,
    ),
    Lake(
        "dates in front",
        """
        orders | csv | id:int total:float | drop/2024-{01..06}-orders.csv
        customers | csv | id:int name city | drop/2024-{01..06}-customers.csv
    """,
    ),
    Lake(
        "quarters and years",
        """
        orders | csv | id:int total:float | fin/orders_2023Q{1..4}.csv; fin/orders_2024Q1.csv
        events | csv | at:time kind text | fin/events.{2021..2024}.csv
        budget | csv | cost_center account planned:float | fin/FY{2022..2024}_budget.csv
    """,
    ),
    Lake(
        "versions of a day",
        """
        log | csv | at:time level text | log_202401{01..09}.csv; log_20240101_v2.csv; log_20240103_v2.csv
    """,
    ),
    Lake(
        "countries",
        """
        customers | csv | id:int name street city | customers/{US,DE,FR,PL}.csv
    """,
    ),
    Lake(
        "countries in lower case",
        """
        customers | csv | id:int name street city | customers/{us,de,fr,pl,it}.csv
        suppliers | csv | id:int company iban | suppliers/{us,de}.csv
    """,
    ),
    Lake(
        "sales of regions",
        """
        sales | csv | id:int amount:float sold_at:time | sales_{emea,apac,latam}.csv
        targets | csv | region quarter target:float | targets.csv
    """,
    ),
    Lake(
        "numbered tables that differ",
        """
        t1 | csv | id:int name birthday:date | exports/table1.csv
        t1 | csv | sku price:float stock:int | exports/table2.csv
        t1 | csv | lat:float lon:float city | exports/table3.csv
    """,
    ),
    Lake(
        "numbered tables that are alike",
        """
        t | csv | id:int name birthday:date | exports/table{1..4}.csv
    """,
    ),
    Lake(
        "formats side by side",
        """
        orders | csv | id:int total:float | out/orders.csv
        orders | json | id:int total:float | out/orders.json
        users | csv | id:int name | out/users.csv
        users | json | id:int name | out/users.json
    """,
    ),
    Lake(
        "formats side by side, by day",
        """
        orders | csv | id:int total:float | csv/orders/2024-01-0{1..5}.csv
        orders | parquet | id:int total:float | parquet/orders/2024-01-0{1..5}.parquet
    """,
    ),
    Lake(
        "copies",
        """
        orders | csv | id:int total:float | dl/orders.csv; dl/orders (1).csv; dl/orders (2).csv; dl/orders_copy.csv
        users | csv | id:int name email | dl/users.csv; dl/users - Copy.csv
    """,
    ),
    Lake(
        "shards",
        """
        emb | parquet | id:int vector | emb/shard_{00..15}.parquet
        tok | json | text meta | tok/data-{00000..00009}-of-00010.jsonl
        img | csv | id:int label | img/chunk{1..5}.csv
    """,
    ),
    Lake(
        "run folders",
        """
        features | parquet | user:int f1:float f2:float | features/run_{20240105T0101,20240106T0101,20240107T0101}/part-{00000..00001}.parquet
        scores | parquet | user:int score:float | scores/run-{1..12}/out.parquet
        metrics | json | step:int loss:float | metrics/{uuid}/metrics.jsonl
    """,
    ),
    Lake(
        "runs above tables",
        """
        orders | csv | id:int total:float | loads/batch_{0017..0020}/orders.csv
        users | csv | id:int name email | loads/batch_{0017..0020}/users.csv
        lines | csv | order_id:int sku qty:int | loads/batch_{0017..0020}/lines/part-0000{0..2}.csv
    """,
    ),
    Lake(
        "days above tables",
        """
        orders | csv | id:int total:float | landing/2024-01-{01..05}/orders.csv
        users | csv | id:int name email | landing/2024-01-{01..05}/users.csv
        lines | json | order_id:int sku qty:int | landing/2024-01-{01..05}/order_lines.json
    """,
    ),
    Lake(
        "days above tables that are alike",
        """
        clicks | csv | user:int at:time | landing/2024-01-{01..05}/clicks.csv
        views | csv | user:int at:time | landing/2024-01-{01..05}/views.csv
    """,
    ),
    Lake(
        "layers",
        """
        raw orders | json | id total | raw/orders/2024/01/{01..03}/orders.json
        clean orders | parquet | id:int total:float | silver/orders/part-{00000..00002}-{uuid}-c000.snappy.parquet
        gold orders | parquet | id:int total:float | gold/orders/part-{00000..00002}-{uuid}-c000.snappy.parquet
        raw users | json | id name | raw/users/2024/01/{01..03}/users.json
        clean users | parquet | id:int name | silver/users/part-{00000..00002}-{uuid}-c000.snappy.parquet
        gold users | parquet | id:int name | gold/users/part-{00000..00002}-{uuid}-c000.snappy.parquet
    """,
    ),
    Lake(
        "environments",
        """
        prod orders | parquet | id:int total:float | prod/orders.parquet
        dev orders | parquet | id:int total:float | dev/orders.parquet
        test orders | parquet | id:int total:float | test/orders.parquet
        prod users | parquet | id:int name | prod/users.parquet
        dev users | parquet | id:int name | dev/users.parquet
        test users | parquet | id:int name | test/users.parquet
    """,
    ),
    Lake(
        "tenants",
        """
        orders | csv | id:int total:float | tenants/{acme,globex,initech}/orders.csv
        users | csv | id:int name | tenants/{acme,globex,initech}/users.csv
    """,
    ),
    Lake(
        "tenants by id",
        """
        events | json | id kind payload | tenants/{4711,4712,4800}/events/2024/01/{05..06}/events.json
        bills | csv | bill:int due:date | tenants/{4711,4712,4800}/bills.csv
    """,
    ),
    Lake(
        "tenants with letters",
        """
        events | json | id kind payload | tenant_{a,b}/events/2024-01-0{1..3}.json
        bills | csv | bill:int due:date | tenant_{a,b}/bills/2024-01.csv
    """,
    ),
    Lake(
        "regions as folders",
        """
        orders | parquet | id:int total:float | lake/{us-east-1,eu-central-1}/orders/part-{00000..00002}-{uuid}-c000.parquet
        stock | parquet | sku count:int | lake/{us-east-1,eu-central-1}/stock/part-{00000..00002}-{uuid}-c000.parquet
    """,
    ),
    Lake(
        "devices",
        """
        telemetry | csv | ts:time temperature:float humidity:float | iot/device_{001..040}/2024-01-0{1..3}.csv
        devices | csv | device model firmware installed:date | iot/devices.csv
    """,
    ),
    Lake(
        "sensors in rooms",
        """
        climate | csv | ts:time temperature:float humidity:float | climate/{kitchen,bedroom,garage,attic}.csv
    """,
    ),
    Lake(
        "splits as folders",
        """
        images | parquet | id:int label path | ml/images/{train,validation,test}/part-{00000..00002}.parquet
    """,
    ),
    Lake(
        "splits of different columns",
        """
        train | csv | id:int x1:float x2:float x3:float target:int | comp/train.csv
        test | csv | id:int x1:float x2:float x3:float | comp/test.csv
        sub | csv | id:int target:int | comp/sample_submission.csv
    """,
    ),
    Lake(
        "same table in two systems",
        """
        crm | csv | id:int first_name last_name phone segment | crm/customers.csv
        shop | csv | customer_no company vat_id discount:float | shop/customers.csv
    """,
    ),
    Lake(
        "sales and returns alike",
        """
        sales | csv | id:int sku amount:float at:date | shop/sales.csv
        returns | csv | id:int sku amount:float at:date | shop/returns.csv
    """,
    ),
    Lake(
        "employees now and before",
        """
        current | csv | id:int name title since:date | hr/current_employees.csv
        former | csv | id:int name title since:date | hr/former_employees.csv
    """,
    ),
    Lake(
        "versions of an interface, apart",
        """
        v1 | json | id name | api/v1/users/part-{00000..00002}.json
        v2 | json | uuid given_name family_name address created_at | api/v2/users/part-{00000..00002}.json
    """,
    ),
    Lake(
        "version folders of one table",
        """
        m | parquet | id:int a:float b:float | models/scores/v1/part-0.parquet; models/scores/v2/part-0.parquet; models/scores/v3/part-0.parquet
    """,
    ),
    Lake(
        "version keys",
        """
        m | parquet | id:int a:float b:float | models/churn/version={1..4}/part-0.parquet
    """,
    ),
    Lake(
        "hive keys with word values",
        """
        sales | parquet | id:int amount:float | sales/region={eu,us,apac}/channel={web,shop}/part-0.parquet
        sales | parquet | id:int amount:float note | sales/region=eu/channel=phone/part-0.parquet
    """,
    ),
    Lake(
        "a table beside partitions",
        """
        o | parquet | a:int | o/k={1..3}/part-0.parquet
        other | parquet | b:int | o/other.parquet
    """,
    ),
    Lake(
        "free names in a partition",
        """
        t | parquet | a:int b | t/dt=2024-01-01/{alpha,beta}.parquet; t/dt=2024-01-02/gamma.parquet
    """,
    ),
    Lake(
        "stray files above date folders",
        """
        orders | csv | id:int total:float | orders/part-0.csv; orders/2024/01/part-{0..2}.csv; orders/2024/02/part-{0..2}.csv
    """,
    ),
    Lake(
        "date folders that changed their form",
        """
        orders | csv | id:int total:float | orders/2023/{01..12}/part-0.csv; orders/2024-{01..06}/part-0.csv
    """,
    ),
    Lake(
        "junk all around",
        """
        orders | csv | id:int total:float | orders/2024-01-{01..03}.csv
        - | - | | orders/.DS_Store; orders/_SUCCESS; orders/README.md; orders/logo.png; notes.docx; orders/2024-01-01.csv.md5
        - | json | name version license | orders/datapackage.json; orders/metadata.json; orders/schema.json
        - | csv | id:int total:float | orders/2024-01-01.csv.bak
        - | json | files | orders/manifest.json; orders/2024-01-01.manifest
        dictionary | csv | column description | orders/data_dictionary.csv
    """,
    ),
    Lake(
        "a warehouse export",
        """
        dim_customer | parquet | customer_sk:int name city | dwh/dim_customer/part-0.parquet
        dim_date | parquet | date_sk:int day:date month:int | dwh/dim_date/part-0.parquet
        fact_sales | parquet | sale_sk:int customer_sk:int date_sk:int amount:float | dwh/fact_sales/year={2022..2024}/part-{0..3}.parquet
        fact_returns | parquet | return_sk:int customer_sk:int date_sk:int amount:float | dwh/fact_returns/year={2022..2024}/part-{0..3}.parquet
        stg_orders | csv | id customer total loaded_at | dwh/stg_orders_202401{01..03}.csv
    """,
    ),
    Lake(
        "database dumps",
        """
        users | csv | id:int name | dump/public.users.csv
        orders | csv | id:int user_id:int total:float | dump/public.orders.csv
        roles | csv | id:int name | dump/auth.roles.csv
    """,
    ),
    Lake(
        "lookup tables of one shape",
        """
        colors | csv | id:int name | lookup/colors.csv
        sizes | csv | id:int name | lookup/sizes.csv
        brands | csv | id:int name | lookup/brands.csv
    """,
    ),
    Lake(
        "hundreds of customers' names",
        """
        letters | csv | date:date subject text | letters/{adams,baker,clark,davis,evans,frank,ghosh,hills,irwin,jones,klein,lopez,mason,nolan,ortiz,perez,quinn,reyes,smith,tyler,upton,vance,white,young,zhang}.csv
    """,
    ),
    Lake(
        "a day's folder with parts and a table",
        """
        orders | csv | id:int total:float | data/20240101/part-{0..2}.csv; data/20240102/part-{0..2}.csv
        rates | csv | currency rate:float | data/rates.csv
    """,
    ),
    Lake(
        "epoch folders",
        """
        ticks | json | symbol price:float at:int | ticks/17044{12800,13400,14000}/data.json
    """,
    ),
    Lake(
        "weeks",
        """
        hours | csv | employee:int hours:float project | hours/2024-W{01..09}.csv
        plan | csv | project week planned:float | plan/2024/W{01..09}/plan.csv
    """,
    ),
    Lake(
        "lettered dates",
        """
        a | csv | x:int y:int | a/y2024m{01..06}/data.csv
        b | csv | u v | b/y2024/m{01..06}/d{01..03}/data.csv
        c | csv | p:float q:float r | c/2024_{01..06}/data.csv
    """,
    ),
    Lake(
        "days below entities",
        """
        prices | csv | at:time bid:float ask:float | quotes/{AAPL,MSFT,SAP}/2024-01-{01..05}.csv
    """,
    ),
    Lake(
        "entities below days",
        """
        prices | csv | at:time bid:float ask:float | quotes/2024/01/{01..05}/{AAPL,MSFT,SAP}.csv
    """,
    ),
    Lake(
        "countries and states",
        """
        census | csv | tract people:int income:float | census/US/{CA,NY,TX}/data.csv; census/DE/BE/data.csv; census/FR/IDF/data.csv
    """,
    ),
    Lake(
        "names with the folder's name",
        """
        orders | csv | id:int total:float | us/us_orders.csv; de/de_orders.csv; fr/fr_orders.csv
    """,
    ),
    Lake(
        "stores",
        """
        receipts | csv | receipt:int sku qty:int price:float | stores/{berlin-mitte,hamburg-altona}/receipts/2024-01.csv
        staff | csv | person:int name role | stores/{berlin-mitte,hamburg-altona}/staff.csv
    """,
    ),
    Lake(
        "compressed and not",
        """
        orders | csv | id:int total:float | orders_2022.csv.gz; orders_2023.csv.gz; orders_2024.csv
    """,
    ),
    Lake(
        "old files with fewer columns",
        """
        orders | csv | id:int total:float | orders/orders_{2019..2021}.csv
        orders | csv | id:int total:float currency channel shop:int | orders/orders_{2022..2024}.csv
    """,
    ),
    Lake(
        "sparse events",
        """
        events | json | id kind at user | events/2024/01/0{1..3}/e-{0..3}.json
        events | json | id kind page | events/2024/01/0{4..5}/e-{0..3}.json
        events | json | id price:float | events/2024/01/06/e-{0..3}.json
    """,
    ),
    Lake(
        "tables below a kind of thing",
        """
        stocks | csv | date:date open:float close:float | stocks_and_funds/stocks/{AAPL,MSFT}.csv
        funds | csv | date:date open:float close:float | stocks_and_funds/funds/{SPY,QQQ}.csv
        sales | csv | id:int sku at:date | tpc/store_sales.csv
        returns | csv | id:int sku at:date | tpc/store_returns.csv
    """,
    ),
    Lake(
        "deep mixture",
        """
        web | json | ip url ua at | lake/raw/web/logs/2024/01/{05..07}/{00..03}/web-{0..2}.log.gz
        app | json | device screen at | lake/raw/app/logs/2024/01/{05..07}/{00..03}/app-{0..2}.log.gz
        users | parquet | id:int email | lake/curated/users/snapshot=2024-01-0{5..7}/part-0.parquet
        geo | csv | zip city lat:float lon:float | lake/ref/geo.csv
        fx | csv | currency rate:float day:date | lake/ref/fx_2024{01..06}.csv
        - | - | | lake/raw/web/logs/_temporary/0/part-0
    """,
    ),
]
