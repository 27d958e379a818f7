"""A third collection: mixtures of layouts, again written down before they were ever run."""

from .lakes import Lake

THIRD = [
    Lake(
        "retailer",
        """
        pos | csv | store_id:int receipt:int sku qty:int price:float | landing/pos/store_{0001..0012}/pos_20240{101..105}.csv
        inventory | csv | store_id:int sku on_hand:int | landing/inventory/inventory_snapshot_2024-01-0{1..5}.csv
        products | csv | sku name category price:float | landing/master/products.csv
        stores | csv | store_id:int city opened:date | landing/master/stores.csv
        web | json | session url ts | landing/web/dt=2024-01-0{1..5}/hour={00..03}/events-{0..3}.json.gz
        - | - | | landing/pos/store_0001/.gitkeep; landing/README.md
    """,
    ),
    Lake(
        "bank",
        """
        tx | parquet | tx_id account amount:float booked:time | core/transactions/booking_date=2024-01-0{1..9}/part-{00000..00003}-{uuid}.c000.snappy.parquet
        accounts | parquet | account iban opened:date | core/accounts/part-{00000..00003}-{uuid}-c000.snappy.parquet
        fx | csv | day:date currency rate:float | market/fx/ECB_FX_{20240102,20240103,20240104}.csv
        prices | csv | isin day:date close:float | market/prices/{DE0007164600,US0378331005,IE00B4L5Y983}.csv
        swift | json | mt sender receiver body | swift/in/2024/01/0{2..4}/MT940_{uuid}.json
        swift out | json | mt sender receiver body | swift/out/2024/01/0{2..4}/MT103_{uuid}.json
    """,
    ),
    Lake(
        "IoT platform",
        """
        telemetry | avro | device ts:int payload | iothub/telemetry/{00..03}/2024/01/05/{10..13}/{00,15,30,45}.avro
        registry | json | deviceId model status | registry/devices.json
        alerts | json | alert device ts severity | alerts/alerts-2024-01.jsonl; alerts/alerts-2024-02.jsonl
    """,
    ),
    Lake(
        "Event Hubs capture",
        """
        orders | avro | SequenceNumber:int Offset EnqueuedTimeUtc Body | ns/orders/{0..3}/2024/01/05/{10..12}/{00,05}/{30}.avro
        clicks | avro | SequenceNumber:int Offset EnqueuedTimeUtc Body | ns/clicks/{0..3}/2024/01/05/{10..12}/{00,05}/{30}.avro
    """,
    ),
    Lake(
        "ad tech",
        """
        impressions | parquet | ts:time campaign:int creative:int user cost:float | adlogs/impressions/y=2024/m=01/d={01..05}/h={00..02}/imp_{uuid}.parquet
        clicks | parquet | ts:time campaign:int creative:int user landing | adlogs/clicks/y=2024/m=01/d={01..05}/h={00..02}/clk_{uuid}.parquet
        conversions | parquet | ts:time campaign:int user value:float | adlogs/conversions/y=2024/m=01/d={01..05}/conv_{uuid}.parquet
        campaigns | csv | campaign:int name budget:float | adlogs/dim/campaigns.csv
        creatives | csv | creative:int campaign:int url | adlogs/dim/creatives.csv
    """,
    ),
    Lake(
        "hospital",
        """
        admissions | csv | subject_id:int hadm_id:int admittime:time dischtime:time | mimic/hosp/admissions.csv.gz
        patients | csv | subject_id:int gender anchor_age:int | mimic/hosp/patients.csv.gz
        labevents | csv | labevent_id:int subject_id:int itemid:int value | mimic/hosp/labevents.csv.gz
        d_labitems | csv | itemid:int label fluid category | mimic/hosp/d_labitems.csv.gz
        chartevents | csv | subject_id:int stay_id:int charttime:time itemid:int value | mimic/icu/chartevents.csv.gz
        icustays | csv | subject_id:int stay_id:int intime:time outtime:time | mimic/icu/icustays.csv.gz
        d_items | csv | itemid:int label abbreviation linksto | mimic/icu/d_items.csv.gz
        - | - | | mimic/LICENSE.txt; mimic/SHA256SUMS.txt
    """,
    ),
    Lake(
        "genomics",
        """
        variants | csv | CHROM POS:int ID REF ALT QUAL:float | vcf_tsv/chr{1..22}.tsv.gz; vcf_tsv/chrX.tsv.gz; vcf_tsv/chrY.tsv.gz
        samples | csv | Sample Family Population Gender | samples.tsv
        counts | csv | gene count:int | counts/{HG00096,HG00097,NA12878,NA12891}.counts.tsv
    """,
    ),
    Lake(
        "astronomy",
        """
        gaia | csv | source_id:int ra:float dec:float parallax:float | gdr3/gaia_source/GaiaSource_{000000-003111,003112-005263,005264-006601}.csv.gz
        rv | csv | source_id:int rv_mean:float rv_error:float | gdr3/rv/RvMean_{000000-003111,003112-005263}.csv.gz
        - | - | | gdr3/gaia_source/_MD5SUM.txt
    """,
    ),
    Lake(
        "election results",
        """
        results | csv | county precinct office party candidate votes:int | 2020/20201103__{al,ak,az,co,ga,mi,wi}__general__precinct.csv
    """,
    ),
    Lake(
        "census tables",
        """
        b01001 | csv | GEO_ID NAME B01001_001E:int B01001_002E:int | acs/ACSDT5Y{2018..2022}.B01001-Data.csv
        b19013 | csv | GEO_ID NAME B19013_001E:int B19013_001M:int | acs/ACSDT5Y{2018..2022}.B19013-Data.csv
        m1 | csv | Column_Name Label | acs/ACSDT5Y{2018..2022}.B01001-Column-Metadata.csv; acs/ACSDT5Y{2018..2022}.B19013-Column-Metadata.csv
    """,
    ),
    Lake(
        "weather radar by site",
        """
        obs | csv | ts:time dbz:float az:float | radar/{KTLX,KABR,KFWS}/{2023,2024}/{01..03}/{KTLX}20230101_{000000,001000}.csv
    """,
    ),
    Lake(
        "power plants",
        """
        scada | csv | timestamp:time power:float wind_speed:float pitch:float | Turbine_Data_Kelmarsh_{1..6}_2019-01-01_-_2020-01-01_22{8..9}.csv
        status | csv | start:time end:time code:int message | Status_Kelmarsh_{1..6}_2019-01-01_-_2020-01-01_22{8..9}.csv
        signals | csv | signal unit description | Kelmarsh_signal_mapping.csv
        static | csv | name latitude:float longitude:float rated_power:int | Kelmarsh_WT_static.csv
    """,
    ),
    Lake(
        "music",
        """
        plays | csv | userid timestamp artid artname traid traname | lastfm/userid-timestamp-artid-artname-traid-traname.tsv
        profile | csv | id gender age:int country registered | lastfm/userid-profile.tsv
        charts | csv | position:int track artist streams:int url | spotify/charts/regional-{global,us,de,gb}-daily-2024-01-0{1..5}.csv
    """,
    ),
    Lake(
        "soccer events",
        """
        events | json | id index:int period:int timestamp minute:int type team | data/events/{15946,15956,15973,7298}.json
        lineups | json | team_id:int team_name lineup | data/lineups/{15946,15956,15973,7298}.json
        matches | json | match_id:int match_date competition season home_team away_team | data/matches/{11,37}/{1,4,90}.json
        competitions | json | competition_id:int season_id:int country_name | data/competitions.json
    """,
    ),
    Lake(
        "tennis",
        """
        matches | csv | tourney_id tourney_name surface winner_id:int loser_id:int score | atp_matches_{2018..2023}.csv
        futures | csv | tourney_id tourney_name surface winner_id:int loser_id:int score | atp_matches_futures_{2018..2023}.csv
        chall | csv | tourney_id tourney_name surface winner_id:int loser_id:int score | atp_matches_qual_chall_{2018..2023}.csv
        players | csv | player_id:int name_first name_last hand dob ioc | atp_players.csv
        rankings | csv | ranking_date:int rank:int player:int points:int | atp_rankings_{00s,10s,20s,current}.csv
    """,
    ),
    Lake(
        "data warehouse on one bucket",
        """
        orders | parquet | o_id:int o_total:float | dw/sales/orders/load_date=2024-01-0{1..3}/{hex32}.parquet
        lines | parquet | l_id:int o_id:int sku | dw/sales/order_lines/load_date=2024-01-0{1..3}/{hex32}.parquet
        customers | parquet | c_id:int c_name | dw/crm/customers/load_date=2024-01-0{1..3}/{hex32}.parquet
        tickets | parquet | t_id:int c_id:int subject | dw/crm/tickets/load_date=2024-01-0{1..3}/{hex32}.parquet
        budget | csv | cost_center month amount:float | dw/finance/budget_2024_v{1..3}.csv
        actuals | csv | cost_center month amount:float | dw/finance/actuals_2024-{01..03}.csv
    """,
    ),
    Lake(
        "SaaS exports",
        """
        contacts | csv | id email created | hubspot/contacts/hubspot-crm-exports-all-contacts-2024-01-{05..07}.csv
        deals | csv | id stage amount:float | hubspot/deals/hubspot-crm-exports-all-deals-2024-01-{05..07}.csv
        charges | csv | id amount:int currency status | stripe/balance_history_{20240101,20240201,20240301}.csv
        zendesk | json | id subject status | zendesk/tickets/tickets_{1704067200,1704153600,1704240000}.json
        jira | json | key fields | jira/issues/page-{1..20}.json
    """,
    ),
    Lake(
        "ML features",
        """
        user | parquet | user_id:int f_age:float f_clicks:float | feature_store/user_features/v3/dt=2024-01-0{1..4}/part-0.parquet
        item | parquet | item_id:int f_price:float | feature_store/item_features/v1/dt=2024-01-0{1..4}/part-0.parquet
        labels | csv | user_id:int item_id:int label:int | training/labels/labels_part{1..4}.csv
        preds | csv | user_id:int item_id:int score:float | predictions/model_a/2024-01-0{1..4}.csv; predictions/model_b/2024-01-0{1..4}.csv
    """,
    ),
    Lake(
        "logs of services",
        """
        api | json | ts level path status:int | logs/api/2024/01/{05..06}/api-{0..3}.log.gz
        auth | json | ts level user outcome | logs/auth/2024/01/{05..06}/auth-{0..3}.log.gz
        billing | json | ts level invoice amount:float | logs/billing/2024/01/{05..06}/billing-{0..3}.log.gz
    """,
    ),
    Lake(
        "logs of services in one form",
        """
        api | json | ts level logger message | logs/api/2024/01/{05..06}/api-{0..3}.log.gz
        auth | json | ts level logger message | logs/auth/2024/01/{05..06}/auth-{0..3}.log.gz
        billing | json | ts level logger message | logs/billing/2024/01/{05..06}/billing-{0..3}.log.gz
    """,
    ),
    Lake(
        "Kinesis and Glue streaming",
        """
        raw | json | id ts body | kinesis/raw/ingest_year=2024/ingest_month=01/ingest_day=05/ingest_hour={10..12}/run-{1704412800123,1704412900123}-part-r-0000{0..2}
        dlq | json | error payload ts | kinesis/errors/processing-failed/2024/01/05/{10..12}/raw-1-2024-01-05-10-00-00-{uuid}
    """,
    ),
    Lake(
        "mixed dates in one folder",
        """
        daily | csv | day:date kpi value:float | reports/kpi_daily_{20240101,20240102,20240103}.csv
        weekly | csv | week kpi value:float target:float | reports/kpi_weekly_2024W0{1..4}.csv
        monthly | csv | month kpi value:float target:float forecast:float | reports/kpi_monthly_2024-0{1..3}.csv
    """,
    ),
    Lake(
        "kpis with one schema",
        """
        daily | csv | period kpi value:float | reports/kpi_daily_{20240101,20240102,20240103}.csv
        weekly | csv | period kpi value:float | reports/kpi_weekly_2024W0{1..4}.csv
        monthly | csv | period kpi value:float | reports/kpi_monthly_2024-0{1..3}.csv
    """,
    ),
    Lake(
        "partner files",
        """
        acme | csv | order sku qty:int | inbox/ACME_ORDERS_2024010{1..5}_{digits6}.csv
        globex | csv | PO item amount:float currency | inbox/GLOBEX_PO_2024010{1..5}_{digits6}.csv
        returns | csv | order sku reason | inbox/ACME_RETURNS_2024010{1..5}_{digits6}.csv
    """,
    ),
    Lake(
        "bronze silver gold",
        """
        b | json | id payload ingested_at | bronze/events/ingest_date=2024-01-0{1..3}/part-0000{0..2}.json
        s | parquet | id:int type at:time | silver/events/event_date=2024-01-0{1..3}/part-0000{0..2}.parquet
        g | parquet | day:date type count:int | gold/events_daily/part-00000.parquet
        gu | parquet | user:int events:int | gold/user_summary/part-00000.parquet
    """,
    ),
    Lake(
        "house prices by region id",
        """
        prices | csv | id:int price:int rooms:int sqft:int | zillow/{94105,10001,60601,98101}.csv
        index | csv | RegionID:int RegionName 2023-01-31:float 2023-02-28:float | zillow/Metro_zhvi_uc_sfrcondo_tier_0.33_0.67_sm_sa_month.csv
        zip | csv | RegionID:int RegionName City 2023-01-31:float 2023-02-28:float | zillow/Zip_zhvi_uc_sfrcondo_tier_0.33_0.67_sm_sa_month.csv
    """,
    ),
    Lake(
        "per-user exports",
        """
        locations | json | timestamp lat:float lon:float | takeout/{alice,bob,carol,dave}/location_history.json
        searches | json | time query | takeout/{alice,bob,carol,dave}/searches.json
    """,
    ),
    Lake(
        "books and pages",
        """
        books | csv | id:int title author | books.csv
        ratings | csv | user:int book:int rating:int | ratings.csv
        toread | csv | user:int book:int | to_read.csv
        booktags | csv | book:int tag:int count:int | book_tags.csv
        tags | csv | tag:int name | tags.csv
        samples | csv | id:int title author | samples/books.csv
    """,
    ),
    Lake(
        "archives and pictures around",
        """
        labels | csv | image label | coco/labels_train.csv
        boxes train | json | image_id:int bbox category_id:int | coco/instances_train2017.json
        boxes val | json | image_id:int bbox category_id:int | coco/instances_val2017.json
        captions train | json | image_id:int caption | coco/captions_train2017.json
        captions val | json | image_id:int caption | coco/captions_val2017.json
        - | - | | coco/train2017/{000000000009,000000000025}.jpg; coco/annotations.zip; coco/load.py
    """,
    ),
    Lake(
        "nested providers",
        """
        noaa | csv | station date:date temp:float | weather/noaa/2024/01/{01..05}.csv
        dwd | csv | STATIONS_ID:int MESS_DATUM:int TT_TU:float RF_TU:float | weather/dwd/2024/01/{01..05}.csv
        metno | json | properties geometry type | weather/metno/2024/01/{01..05}.json
    """,
    ),
    Lake(
        "hourly stock feed by exchange",
        """
        trades | parquet | symbol ts:int price:float size:int | md/trades/{nyse,nasdaq,bats,iex}/2024-01-0{2..5}/{09..11}.parquet
        quotes | parquet | symbol ts:int bid:float ask:float | md/quotes/{nyse,nasdaq,bats,iex}/2024-01-0{2..5}/{09..11}.parquet
    """,
    ),
    Lake(
        "sorted by extension",
        """
        a | csv | id:int v | csv/a.csv
        b | csv | key value | csv/b.csv
        a | parquet | id:int v | parquet/a.parquet
        b | parquet | key value | parquet/b.parquet
        a | json | id:int v | json/a.json
    """,
    ),
    Lake(
        "yearbooks",
        """
        pop | csv | country year:int population:int | un/WPP2022_Population_{1950-2021,2022-2100}.csv
        birth | csv | country year:int births:int rate:float | un/WPP2022_Fertility_{1950-2021,2022-2100}.csv
    """,
    ),
    Lake(
        "backups",
        """
        users | csv | id:int name | db/users.csv
        orders | csv | id:int total:float | db/orders.csv
        users b | csv | id:int name | db/backup_2024-01-0{1..3}/users.csv
        orders b | csv | id:int total:float | db/backup_2024-01-0{1..3}/orders.csv
    """,
    ),
]
