"""A ninth collection: what is published, traded and measured, written down before it was run."""

from .lakes import Lake

NINTH = [
    Lake(
        "two shops no hint",
        """
        a | csv | sku qty:int price:float | data/amazon/orders_2024-0{1..3}.csv
        b | csv | sku qty:int price:float | data/ebay/orders_2024-0{1..3}.csv
    """,
    ),
    Lake(
        "stream per table",
        """
        a | avro | id:int name | kafka/topics/users/partition={0..2}/users+{0..2}+000000{0000..0002}.avro
        b | avro | id:int total:float | kafka/topics/orders/partition={0..2}/orders+{0..2}+000000{0000..0002}.avro
    """,
    ),
    Lake(
        "logs of services, once more",
        """
        a | json | ts level msg service | logs/api-gateway/2024/01/0{1..3}/log-{00..03}.jsonl
        b | json | ts level msg service | logs/checkout/2024/01/0{1..3}/log-{00..03}.jsonl
        c | json | ts level msg service | logs/inventory/2024/01/0{1..3}/log-{00..03}.jsonl
    """,
    ),
    Lake(
        "hive with drift",
        """
        e | parquet | id:int a b | ev/year=2023/month={1..12}/part-0.parquet
        e | parquet | id:int a b c d | ev/year=2024/month={1..3}/part-0.parquet
    """,
    ),
    Lake(
        "flat hive",
        """
        e | parquet | id:int a b | ev/country={US,DE}/year={2023,2024}/data.parquet
    """,
    ),
    Lake(
        "kaggle folder",
        """
        a | csv | PassengerId:int Survived:int Name | titanic/train.csv
        b | csv | PassengerId:int Name | titanic/test.csv
        c | csv | PassengerId:int Survived:int | titanic/gender_submission.csv
    """,
    ),
    Lake(
        "HF dataset",
        """
        d | parquet | text label:int | imdb/plain_text/train-00000-of-00002.parquet; imdb/plain_text/train-00001-of-00002.parquet; imdb/plain_text/test-00000-of-00001.parquet; imdb/plain_text/unsupervised-00000-of-00001.parquet
    """,
    ),
    Lake(
        "HF configs",
        """
        en | json | text timestamp url | c4/en/c4-train.{00000..00004}-of-01024.json.gz; c4/en/c4-validation.{00000..00001}-of-00008.json.gz
        rn | json | text timestamp url | c4/realnewslike/c4-train.{00000..00004}-of-00512.json.gz; c4/realnewslike/c4-validation.00000-of-00001.json.gz
    """,
    ),
    Lake(
        "NYC open data",
        """
        a | csv | unique_key created_date:time agency | nyc/311_Service_Requests_from_2010_to_Present.csv
        b | csv | camis dba boro | nyc/DOHMH_New_York_City_Restaurant_Inspection_Results.csv
        c | csv | bbl address units:int | nyc/pluto_24v1.csv; nyc/pluto_23v3.csv
    """,
    ),
    Lake(
        "Zillow",
        """
        a | csv | RegionID:int RegionName 2020-01-31:float 2020-02-29:float | zillow/Metro_zhvi_uc_sfrcondo_tier_0.33_0.67_sm_sa_month.csv
        b | csv | RegionID:int RegionName State 2020-01-31:float 2020-02-29:float | zillow/Zip_zhvi_uc_sfrcondo_tier_0.33_0.67_sm_sa_month.csv
    """,
    ),
    Lake(
        "EIA bulk",
        """
        a | json | series_id name data | eia/{ELEC,NG,PET,COAL}.txt
    """,
    ),
    Lake(
        "FRED series",
        """
        f | csv | DATE VALUE:float | fred/data/{GDPC1,UNRATE,CPIAUCSL,DFF,T10Y2Y}.csv
        l | csv | id title units | fred/series_list.csv
    """,
    ),
    Lake(
        "OWID",
        """
        a | csv | entity code year:int value:float | owid/co2/co2.csv
        b | csv | entity code year:int value:float | owid/energy/energy.csv
    """,
    ),
    Lake(
        "GDELT, once more",
        """
        e | csv | GLOBALEVENTID:int SQLDATE:int Actor1 | gdelt/v2/202401050{0..3}{00,15,30,45}00.export.CSV
        m | csv | GLOBALEVENTID:int EventTimeDate:int MentionType | gdelt/v2/202401050{0..3}{00,15,30,45}00.mentions.CSV
        g | csv | GKGRECORDID DATE:int Themes | gdelt/v2/202401050{0..3}{00,15,30,45}00.gkg.csv
    """,
    ),
    Lake(
        "Lending",
        """
        a | csv | id:int amnt:float status | lc/LoanStats_2016Q{1..4}.csv
        a | csv | id:int amnt:float status | lc/LoanStats_2017Q{1..4}.csv
        r | csv | amount date title | lc/RejectStats_2016Q{1..4}.csv; lc/RejectStats_2017Q{1..4}.csv
    """,
    ),
    Lake(
        "Fannie",
        """
        a | csv | column_1 column_2:int column_3:float | fnma/Acquisition_{2005..2007}Q{1..4}.txt
        p | csv | column_1 column_2:int column_3:float column_4 column_5 | fnma/Performance_{2005..2007}Q{1..4}.txt
    """,
    ),
    Lake(
        "PUMS",
        """
        h | csv | SERIALNO PUMA:int WGTP:int | pums/{2021,2022}/psam_h{01,02,04,06}.csv
        p | csv | SERIALNO SPORDER:int AGEP:int | pums/{2021,2022}/psam_p{01,02,04,06}.csv
    """,
    ),
    Lake(
        "Hadoop jobs",
        """
        a | csv | column_1 column_2:int | jobs/wordcount/run_{1..3}/part-r-{00000..00002}
        b | csv | column_1 column_2:int column_3:int | jobs/pagerank/run_{1..3}/part-r-{00000..00002}
    """,
    ),
    Lake(
        "Databricks volumes",
        """
        b | parquet | id:int name | bronze/crm/customers/part-{00000..00002}-tid-{digits19}-{uuid}-{1..2}-1-c000.snappy.parquet
        s | parquet | id:int name | silver/crm/customers/part-{00000..00002}-tid-{digits19}-{uuid}-1-1-c000.snappy.parquet
    """,
    ),
    Lake(
        "SaaS exports with dates in folder",
        """
        a | json | id email | stripe/customers/2024-01-05T00-00-00/page_{1..4}.json; stripe/customers/2024-01-06T00-00-00/page_{1..4}.json
        b | json | id amount:int | stripe/charges/2024-01-05T00-00-00/page_{1..4}.json; stripe/charges/2024-01-06T00-00-00/page_{1..4}.json
    """,
    ),
    Lake(
        "zendesk cursor",
        """
        t | json | id subject status | zd/tickets_{digits10}.json; zd/tickets_{digits10}.json; zd/tickets_{digits10}.json
        u | json | id name role | zd/users_{digits10}.json; zd/users_{digits10}.json
    """,
    ),
    Lake(
        "user files",
        """
        a | csv | id:int name | share/customers final.csv; share/customers final (2).csv; share/customers.csv
        b | csv | item price:float | share/Price List 2023.csv; share/Price List 2024.csv
        c | csv | date:date amount:float | share/Budget - Copy.csv; share/Budget.csv
    """,
    ),
    Lake(
        "bank statements",
        """
        s | csv | date:date text amount:float balance:float | bank/statement_{12345678,87654321}_2024-0{1..6}.csv
    """,
    ),
    Lake(
        "trading days per symbol",
        """
        t | csv | time price:float size:int | ticks/{AAPL,MSFT,GOOG}/2024-01-0{2..5}_trades.csv.gz
        q | csv | time bid:float ask:float | ticks/{AAPL,MSFT,GOOG}/2024-01-0{2..5}_quotes.csv.gz
    """,
    ),
    Lake(
        "coins",
        """
        c1m | json | t o:float h:float l:float c:float | candles/{btcusdt,ethusdt,solusdt}/1m/2024-01.json
        c5m | json | t o:float h:float l:float c:float | candles/{btcusdt,ethusdt,solusdt}/5m/2024-01.json
        c1h | json | t o:float h:float l:float c:float | candles/{btcusdt,ethusdt,solusdt}/1h/2024-01.json
    """,
    ),
    Lake(
        "games",
        """
        m | json | match_id players duration:int | dota/matches/{7012345601..7012345609}.json
        h | json | id name | dota/heroes.json
    """,
    ),
    Lake(
        "telemetry by device type",
        """
        a | json | ts temp:float hum:float | iot/thermostat/dev-{0001..0004}/2024-01-05.json
        b | json | ts open batt:float | iot/door/dev-{0101..0104}/2024-01-05.json
    """,
    ),
    Lake(
        "images with labels",
        """
        l | csv | file label | cats/labels.csv
        - | - | - | cats/img/{0001..0004}.jpg
    """,
    ),
    Lake(
        "geo tiles",
        """
        r | parquet | id kind geom | tiles/z=10/x={500..503}/y={300..302}.parquet
    """,
    ),
    Lake(
        "nested regions",
        """
        a | csv | id:int v:float | stats/europe/germany/2024.csv; stats/europe/france/2024.csv; stats/asia/japan/2024.csv; stats/asia/china/2024.csv
    """,
    ),
    Lake(
        "departments",
        """
        a | csv | employee salary:float | hr/{sales,engineering,legal,finance}/payroll_2024-0{1..3}.csv
        b | csv | employee days:int | hr/{sales,engineering,legal,finance}/absences_2024-0{1..3}.csv
    """,
    ),
    Lake(
        "clinical trials, once more",
        """
        dm | csv | STUDYID USUBJID AGE:int | trials/STUDY{101,102,103}/sdtm/dm.csv
        ae | csv | STUDYID USUBJID AETERM | trials/STUDY{101,102,103}/sdtm/ae.csv
        lb | csv | STUDYID USUBJID LBTEST LBVAL:float | trials/STUDY{101,102,103}/sdtm/lb.csv
    """,
    ),
    Lake(
        "two tables and readme",
        """
        a | csv | a:int b | x/alpha.csv
        b | csv | c:int d:float | x/beta.csv
        - | csv | t | x/README.txt
    """,
    ),
    Lake(
        "feature of days in name and hive",
        """
        a | parquet | id:int v:float | f/ds=2024-01-0{1..5}/f_2024010{1..5}_{000..001}.parquet
    """,
    ),
    Lake(
        "Glue temp",
        """
        a | parquet | id:int v:float | out/run-{digits13}-part-r-{00000..00003}
    """,
    ),
    Lake(
        "flink",
        """
        a | json | id v | sink/2024-01-05--{00..05}/part-{uuid}-{0..2}
    """,
    ),
    Lake(
        "hudi-like names plain",
        """
        a | parquet | id:int v:float | tbl/{uuid}-0_{0..2}-21-{20..22}_20240105010203.parquet
    """,
    ),
    Lake(
        "orders split by status",
        """
        a | csv | id:int total:float status | shop/orders_open.csv
        b | csv | id:int total:float status | shop/orders_closed.csv
        c | csv | id:int name | shop/customers.csv
    """,
    ),
    Lake(
        "yearly tables",
        """
        a | csv | zone pop:int | census/population_2010.csv; census/population_2020.csv
        b | csv | zone houses:int | census/housing_2010.csv; census/housing_2020.csv
    """,
    ),
    Lake(
        "hourly wiki",
        """
        p | csv | column_1 column_2 column_3:int | pv/2024/2024-01/pageviews-20240105-{00..05}0000.gz
        q | csv | column_1 column_2 column_3:int | pv/2024/2024-01/projectviews-20240105-{00..05}0000
    """,
    ),
    Lake(
        "reddit dumps",
        """
        c | json | id body author | reddit/comments/RC_2024-0{1..4}.zst
        s | json | id title author | reddit/submissions/RS_2024-0{1..4}.zst
    """,
    ),
    Lake(
        "openlibrary",
        """
        a | csv | type key json | ol/ol_dump_authors_2024-01-31.txt.gz; ol/ol_dump_authors_2024-02-29.txt.gz
        w | csv | type key json | ol/ol_dump_works_2024-01-31.txt.gz; ol/ol_dump_works_2024-02-29.txt.gz
        e | csv | type key json | ol/ol_dump_editions_2024-01-31.txt.gz; ol/ol_dump_editions_2024-02-29.txt.gz
    """,
    ),
    Lake(
        "geonames",
        """
        c | csv | geonameid:int name lat:float | geonames/{DE,FR,US,AT}.txt
        z | csv | country postal place | geonames/zip/{DE,FR,US,AT}.txt
        f | csv | code name desc | geonames/featureCodes_en.txt
    """,
    ),
    Lake(
        "police uk",
        """
        s | csv | crime_id month lat:float | police/2024-0{1..3}/2024-0{1..3}-{kent,essex,avon-and-somerset}-street.csv
        o | csv | crime_id month outcome | police/2024-0{1..3}/2024-0{1..3}-{kent,essex,avon-and-somerset}-outcomes.csv
    """,
    ),
    Lake(
        "hurricane models",
        """
        a | parquet | lat:float lon:float wind:float | gfs.2024010{1..3}/{00,06,12,18}/atmos/gfs.t{00,06,12,18}z.pgrb2.f{000..003}.parquet
    """,
    ),
    Lake(
        "goes",
        """
        a | parquet | x y rad:float | GOES16/ABI-L1b-RadC/2024/{001..003}/{00..02}/OR_ABI-L1b-RadC-M6C01_G16_s{digits14}_e{digits14}.parquet
    """,
    ),
]
