"""A seventh collection: exports with papers of their own, hierarchies, grids of names, keys of tables."""

from .lakes import Lake

SEVENTH = [
    Lake(
        "unloaded with manifests",
        """
        visits | csv | id:int page at:time | out/visits_{0000..0003}_part_00.gz
        - | json | entries | out/visits_manifest
        bills | parquet | id:int total:float | out/bills/{0000..0003}_part_00.parquet
        - | json | entries schema | out/bills/manifest
    """,
    ),
    Lake(
        "exports that describe themselves",
        """
        pets | json | Item | exports/{0170..0172}4412800000-{hex8}/data/{rand20}.json.gz
        - | json | itemCount:int md5Checksum | exports/01704412800000-aabbccdd/manifest-files.json
        - | json | version exportArn | exports/01704412800000-aabbccdd/manifest-summary.json
        - | json | exportTaskIdentifier | exports/export_info_zoo-2024.json
        - | json | perTableStatus | exports/export_tables_info_zoo-2024_from_1_to_9.json
    """,
    ),
    Lake(
        "manifests of query results",
        """
        results | csv | id:int n:int | athena/{uuid}.csv; athena/{uuid}.csv; athena/{uuid}.csv
        - | csv | path | athena/0f0f0f0f-1111-2222-3333-444455556666-manifest.csv
    """,
    ),
    Lake(
        "manifests that are freight",
        """
        cargo | csv | ship port boxes:int weight:float | freight/cargo_manifest_{2019..2023}.csv
        ships | csv | ship flag built:int | freight/ships.csv
    """,
    ),
    Lake(
        "tables in each day",
        """
        invoices | parquet | id:int customer total:float | shop/day=2024-03-{01..05}/invoices.parquet
        returns | parquet | id:int customer total:float | shop/day=2024-03-{01..05}/returns.parquet
    """,
    ),
    Lake(
        "unlike tables in each day",
        """
        stock | parquet | sku warehouse quantity:int | erp/load_date=202403{01..05}/stock.parquet
        price | parquet | sku valid_from:date valid_to:date price:float | erp/load_date=202403{01..05}/price.parquet
    """,
    ),
    Lake(
        "any names in each day",
        """
        log | parquet | id:int kind at:time | log/dt=2024-03-01/alpha.parquet; log/dt=2024-03-02/beta.parquet; log/dt=2024-03-03/gamma.parquet
    """,
    ),
    Lake(
        "halves in each day",
        """
        log | parquet | id:int kind at:time | log/dt=2024-03-{01..06}/east.parquet; log/dt=2024-03-{01..06}/west.parquet
    """,
    ),
    Lake(
        "workers in each day",
        """
        log | json | id:int kind at:time | log/dt=2024-03-{01..06}/worker-{a,b,c}.json
    """,
    ),
    Lake(
        "kinds of features",
        """
        road | parquet | id lanes:int surface speed:float | maps/{2024-01-10,2024-02-10}.0/theme=traffic/type=road/part-{00000..00003}-{uuid}-c000.parquet
        lake | parquet | id depth:float area:float | maps/{2024-01-10,2024-02-10}.0/theme=nature/type=lake/part-{00000..00003}-{uuid}-c000.parquet
        tree | parquet | id height:float kind | maps/{2024-01-10,2024-02-10}.0/theme=nature/type=tree/part-{00000..00003}-{uuid}-c000.parquet
    """,
    ),
    Lake(
        "keys of drifting kinds",
        """
        events | json | id at:time user page | ev/type=view/dt=2024-01-{01..03}/p-0.json
        events | json | id at:time user page button | ev/type=click/dt=2024-01-{01..03}/p-0.json
        events | json | id at:time user page query | ev/type=search/dt=2024-01-{01..03}/p-0.json
    """,
    ),
    Lake(
        "one system unlike the others",
        """
        calls | csv | id:int caller callee seconds:int | tel/source={north,south}/dt=2024-01-{01..03}/part-0.csv
        mails | csv | message_id sender subject size:int folder | tel/source=mailbox/dt=2024-01-{01..03}/part-0.csv
    """,
    ),
    Lake(
        "codes of statistical tables",
        """
        t1 | csv | area year:int T1001_A:int T1001_B:int | stat/{2018..2021}/T10010.csv
        t2 | csv | area year:int T2044_M:float | stat/{2018..2021}/T20440.csv
        t3 | csv | area year:int T3101_F:int T3101_G:int T3101_H:int | stat/{2018..2021}/T31010.csv
    """,
    ),
    Lake(
        "meters by year",
        """
        load | csv | at:time kwh:float | meters/{2018..2021}/MX10010.csv; meters/{2018..2021}/MX10011.csv
        load | csv | at:time kwh:float volts:float | meters/{2022..2023}/MX10010.csv; meters/{2022..2023}/MX10011.csv
    """,
    ),
    Lake(
        "country, district, town",
        """
        homes | csv | id:int name price:float rooms:int | rent/{italy/lazio/rome,italy/veneto/venice,peru/cusco/cusco,japan/kansai/kyoto}/2024-0{1,2}-15/raw-data/homes.csv.gz
        dates | csv | home_id:int day:date free | rent/{italy/lazio/rome,italy/veneto/venice,peru/cusco/cusco,japan/kansai/kyoto}/2024-0{1,2}-15/raw-data/dates.csv.gz
        zones | csv | zone parent | rent/{italy/lazio/rome,italy/veneto/venice,peru/cusco/cusco,japan/kansai/kyoto}/2024-0{1,2}-15/maps/zones.csv
    """,
    ),
    Lake(
        "stages above districts",
        """
        r1 | csv | id:int name total:float | raw/crm/leads.csv
        r2 | csv | id:int city zip | raw/crm/sites.csv
        c1 | csv | id:int name total:float | clean/sales/leads.csv
        c2 | csv | id:int city zip | clean/sales/sites.csv
        g1 | csv | id:int name total:float | gold/report/leads.csv
        g2 | csv | id:int city zip | gold/report/sites.csv
    """,
    ),
    Lake(
        "dumps named again",
        """
        text | csv | id:int title size:int | dump/nlwiki/2024{01,02}01/nlwiki-20240101-text.tsv.gz; dump/ptwikinews/2024{01,02}01/ptwikinews-20240101-text.tsv.gz; dump/svquotes/2024{01,02}01/svquotes-20240101-text.tsv.gz
        links | csv | source:int target:int | dump/nlwiki/2024{01,02}01/nlwiki-20240101-links.tsv.gz; dump/ptwikinews/2024{01,02}01/ptwikinews-20240101-links.tsv.gz; dump/svquotes/2024{01,02}01/svquotes-20240101-links.tsv.gz
    """,
    ),
    Lake(
        "databases in a dump",
        """
        u1 | csv | id:int login mail | dump/forum/users.csv
        p1 | csv | id:int body at:time | dump/forum/posts.csv
        u2 | csv | id:int surname phone | dump/shop/users.csv
        o2 | csv | id:int total:float | dump/shop/orders.csv
    """,
    ),
    Lake(
        "a grid of names",
        """
        ratings | json | user item stars:int at:time | corpus/ratings_{Garden_Tools,Cooking,Old_Maps,Board_Games}.json.gz
        items | json | item title price:float brand image | corpus/items_{Garden_Tools,Cooking,Old_Maps,Board_Games}.json.gz
    """,
    ),
    Lake(
        "a grid of names, the other way",
        """
        ratings | csv | user item stars:int | corpus/{garden-tools,cooking,old-maps}_ratings.csv
        items | csv | item title price:float brand | corpus/{garden-tools,cooking,old-maps}_items.csv
    """,
    ),
    Lake(
        "lookups of a kind",
        """
        a | csv | id:int name | dwh/dim_color.csv
        b | csv | id:int name | dwh/dim_size.csv
        c | csv | id:int name | dwh/dim_ship_mode.csv
        f | csv | id:int color:int size:int total:float | dwh/fact_sales.csv
    """,
    ),
    Lake(
        "an odd name among states",
        """
        clinics | csv | id:int name beds:int | health/clinics/{Ohio,Texas,Utah,Iowa,Maine,Oregon,Nevada}.csv; health/clinics/Guam.csv
    """,
    ),
    Lake(
        "a total among states",
        """
        cases | csv | day:date cases:int deaths:int | covid/{Ohio,Texas,Utah,Iowa,Maine,Oregon,Nevada}.csv
        all | csv | day:date cases:int deaths:int | covid/all.csv
    """,
    ),
    Lake(
        "full load and changes",
        """
        staff | csv | column_1 column_2:int column_3 | rep/hr/staff/LOAD00000001.csv; rep/hr/staff/20240105-010203{123..126}.csv
        units | csv | column_1:int column_2 | rep/hr/units/LOAD00000001.csv
        units | csv | column_1 column_2:int column_3 | rep/hr/units/20240105-010203{123..126}.csv
    """,
    ),
    Lake(
        "random words as names",
        """
        sessions | json | Item.id Item.user | store/data/qldezlwfibvejkulkucmivwirr.json.gz; store/data/fadrtxyvpig9ohxgoitkribbuj.json.gz; store/data/szzpcjqfnjlfwpvigjzhofdkwt.json.gz
        sessions | json | Item.id Item.user Item.ttl | store/data/dtno31f1yyvpvuntc93fp759uo.json.gz; store/data/phu866n9xrauokcadvhfc7jgr4.json.gz
    """,
    ),
    Lake(
        "a header that was not seen",
        """
        games | csv | home away result | league/{2019-20,2020-21}/games.csv
        games | csv | column_1 column_2 column_3 | league/2021-22/games.csv
        tables | csv | team points:int | league/{2019-20,2020-21,2021-22}/tables.csv
    """,
    ),
    Lake(
        "long words as names",
        """
        a | csv | id:int day:date | crm/customertransactions.csv
        b | csv | id:int day:date | crm/internationalshipments.csv
    """,
    ),
]
