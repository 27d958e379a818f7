"""A sixth collection: small lakes with few files each, written down before they were run."""

from .lakes import Lake

SIXTH = [
    Lake(
        "two months",
        """
        sales | csv | id:int amount:float day:date | sales_2024_01.csv; sales_2024_02.csv
        costs | csv | id:int amount:float category | costs_2024_01.csv; costs_2024_02.csv
    """,
    ),
    Lake(
        "two months, one schema",
        """
        income | csv | id:int amount:float day:date | income_2024_01.csv; income_2024_02.csv
        expenses | csv | id:int amount:float day:date | expenses_2024_01.csv; expenses_2024_02.csv
    """,
    ),
    Lake(
        "two stations",
        """
        met | csv | time:time temp:float wind:float | stations/EGLL.csv; stations/EDDF.csv
    """,
    ),
    Lake(
        "two named stations",
        """
        met | csv | time:time temp:float wind:float | stations/heathrow.csv; stations/gatwick.csv
        list | csv | code name lat:float lon:float | stations.csv
    """,
    ),
    Lake(
        "two account ids",
        """
        balances | json | date currency amount:float | accounts/acc_839201.json; accounts/acc_552817.json
    """,
    ),
    Lake(
        "one partition",
        """
        events | parquet | id:int kind | events/dt=2024-01-01/part-00000.parquet
        users | parquet | id:int name | users/part-00000.parquet
    """,
    ),
    Lake(
        "one day",
        """
        clicks | json | user url | clicks/2024/01/05/00/clicks-0001.json
        views | json | user page | views/2024/01/05/00/views-0001.json
    """,
    ),
    Lake(
        "one of everything",
        """
        a | csv | x:int y | a.csv
        b | json | x:int y | b.json
        c | parquet | x:int y | c.parquet
        d | avro | x:int y | d.avro
        e | orc | x:int y | e.orc
    """,
    ),
    Lake(
        "one trail file",
        """
        trail | json | Records | AWSLogs/123456789012/CloudTrail/us-east-1/2024/01/05/123456789012_CloudTrail_us-east-1_20240105T0101Z_{rand16}.json.gz
    """,
    ),
    Lake(
        "one Firehose file",
        """
        orders | json | id total:float | orders/2024/01/05/13/orders-stream-1-2024-01-05-13-01-02-{uuid}
        clicks | json | user url | clicks/2024/01/05/13/clicks-stream-1-2024-01-05-13-01-02-{uuid}
    """,
    ),
    Lake(
        "two shards",
        """
        train | json | text label:int | reviews/reviews-00000-of-00002.jsonl; reviews/reviews-00001-of-00002.jsonl
    """,
    ),
    Lake(
        "customers and vendors of one shape",
        """
        customers | csv | id:int name address phone | customers.csv
        vendors | csv | id:int name address phone | vendors.csv
    """,
    ),
    Lake(
        "fact tables of two years",
        """
        fact | parquet | id:int value:float | fact_sales_2023.parquet; fact_sales_2024.parquet
        dim | parquet | id:int name | dim_product.parquet
        store | parquet | id:int city | dim_store.parquet
    """,
    ),
    Lake(
        "table and its archive",
        """
        orders | csv | id:int total:float | orders.csv
        archive | csv | id:int total:float | archive/orders_2022.csv; archive/orders_2023.csv
    """,
    ),
    Lake(
        "old and new system",
        """
        old | csv | custno custname street | legacy/customers.csv
        new | csv | id:int first_name last_name email | crm/customers.csv
    """,
    ),
    Lake(
        "three regions as folders",
        """
        sales | csv | id:int amount:float | north/sales.csv; south/sales.csv; west/sales.csv
    """,
    ),
    Lake(
        "three shops as folders",
        """
        sales | csv | id:int amount:float | shop_berlin/sales.csv; shop_munich/sales.csv; shop_cologne/sales.csv
        stock | csv | sku count:int | shop_berlin/stock.csv; shop_munich/stock.csv; shop_cologne/stock.csv
    """,
    ),
    Lake(
        "two environments of one file",
        """
        prod | json | id name value | prod/settings_table.json
        stage | json | id name value | staging/settings_table.json
    """,
    ),
    Lake(
        "run ids",
        """
        out | parquet | id:int score:float | predictions/run_id=abc123/part-0.parquet; predictions/run_id=def456/part-0.parquet
    """,
    ),
    Lake(
        "uuid files",
        """
        msgs | json | id body | queue/{uuid}.json; queue/{uuid}.json; queue/{uuid}.json
        dead | json | id body error | dead-letter/{uuid}.json
    """,
    ),
    Lake(
        "quarterly workbook exports",
        """
        revenue | csv | region q1:float q2:float | FY23/Revenue.csv; FY24/Revenue.csv
        costs | csv | department amount:float | FY23/Costs.csv; FY24/Costs.csv
    """,
    ),
    Lake(
        "week folders",
        """
        shifts | csv | person day hours:float | week01/shifts.csv; week02/shifts.csv; week03/shifts.csv
    """,
    ),
    Lake(
        "double dates",
        """
        rates | csv | from to rate:float | rates_20240101_20240131.csv; rates_20240201_20240229.csv
    """,
    ),
    Lake(
        "time of day",
        """
        snap | csv | sku price:float | snapshot_2024-01-05_0600.csv; snapshot_2024-01-05_1800.csv; snapshot_2024-01-06_0600.csv
    """,
    ),
    Lake(
        "version in the name",
        """
        model | csv | feature weight:float | coefficients_v1.csv; coefficients_v2.csv
        eval | csv | fold:int auc:float | evaluation_v1.csv; evaluation_v2.csv
    """,
    ),
    Lake(
        "languages",
        """
        strings | json | key text | i18n/en.json; i18n/de.json; i18n/fr.json
    """,
    ),
    Lake(
        "currencies",
        """
        fx | csv | date:date close:float | fx/EURUSD.csv; fx/GBPUSD.csv; fx/USDJPY.csv
    """,
    ),
    Lake(
        "hive with junk",
        """
        t | parquet | a:int b | t/year=2024/month=01/part-0.parquet; t/year=2024/month=02/part-0.parquet
        - | - | | t/year=2024/month=01/_SUCCESS; t/_metadata; t/_common_metadata; t/year=2024/month=02/.part-0.parquet.crc; t/README.md
    """,
    ),
    Lake(
        "nested tables",
        """
        parent | parquet | id:int name | orders/part-0.parquet; orders/part-1.parquet
        child | parquet | order_id:int sku qty:int | orders/items/part-0.parquet; orders/items/part-1.parquet
        grandchild | parquet | item_id:int discount:float | orders/items/discounts/part-0.parquet
    """,
    ),
    Lake(
        "wide and narrow",
        """
        wide | csv | id:int jan:float feb:float mar:float | budget_wide.csv
        long | csv | id:int month amount:float | budget_long.csv
    """,
    ),
    Lake(
        "same name, two folders, one schema",
        """
        eu | parquet | id:int total:float | warehouse/finance/invoices/part-0.parquet
        us | parquet | id:int total:float | warehouse/procurement/invoices/part-0.parquet
    """,
    ),
    Lake(
        "web logs of two hosts",
        """
        logs | csv | ip time request status:int | logs/web01/access_20240101.log; logs/web02/access_20240101.log
    """,
    ),
    Lake(
        "web logs of two named hosts",
        """
        logs | csv | ip time request status:int | hosts/apollo/access_20240101.log; hosts/zeus/access_20240101.log
    """,
    ),
    Lake(
        "daily dumps of several tables",
        """
        users | csv | id:int email | dump_20240101/users.csv; dump_20240102/users.csv
        orders | csv | id:int user_id:int total:float | dump_20240101/orders.csv; dump_20240102/orders.csv
    """,
    ),
    Lake(
        "part numbers after dots",
        """
        big | csv | a:int b c | export.csv.001; export.csv.002; export.csv.003
    """,
    ),
    Lake(
        "extensionless parts with a schema each",
        """
        users | avro | id:int name | tables/users/part-0; tables/users/part-1
        orders | avro | id:int total:float | tables/orders/part-0; tables/orders/part-1
    """,
    ),
    Lake(
        "kinesis analytics",
        """
        out | json | k v | processed/2024/01/05/app-output-1-2024-01-05-10-00-00-{uuid}; processed/2024/01/05/app-output-1-2024-01-05-11-00-00-{uuid}
        ref | csv | k label | processed/reference.csv
    """,
    ),
    Lake(
        "photo catalogue",
        """
        photos | csv | photo_id photo_url width:int height:int | unsplash/photos.tsv000; unsplash/photos.tsv001
        keywords | csv | photo_id keyword confidence:float | unsplash/keywords.tsv000; unsplash/keywords.tsv001
        colors | csv | photo_id hex red:int green:int | unsplash/colors.tsv000
    """,
    ),
    Lake(
        "cars by brand",
        """
        cars | csv | model year:int price:int transmission mileage:int | {audi,bmw,ford,hyundi,merc,skoda,toyota,vauxhall,vw}.csv
        unclean | csv | model year price fuel_type engine_size reference | unclean cclass.csv
    """,
    ),
    Lake(
        "two brands only",
        """
        cars | csv | model year:int price:int mileage:int | brands/audi.csv; brands/bmw.csv
    """,
    ),
]
