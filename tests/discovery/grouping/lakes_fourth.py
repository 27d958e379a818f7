"""A fourth collection: more services, portals and habits, written down before they were run."""

from .lakes import Lake

FOURTH = [
    Lake(
        "bike share of two cities",
        """
        nyc | csv | ride_id rideable_type started_at:time ended_at:time start_station_id end_station_id | tripdata/2023/202301-citibike-tripdata_{1..3}.csv; tripdata/2023/202302-citibike-tripdata_{1..2}.csv
        jc | csv | ride_id rideable_type started_at:time ended_at:time start_station_id end_station_id | tripdata/JC-2023{01..06}-citibike-tripdata.csv
        stations | csv | station_id name lat:float lon:float capacity:int | tripdata/station_information.csv
    """,
    ),
    Lake(
        "Capital Bikeshare",
        """
        trips | csv | Duration:int Start_date:time End_date:time Start_station_number:int Bike_number Member_type | {2010..2012}-capitalbikeshare-tripdata.csv; 2018{01..12}-capitalbikeshare-tripdata.csv
    """,
    ),
    Lake(
        "ISD lite",
        """
        isd | csv | year:int month:int day:int hour:int temp:int dew:int slp:int | isd-lite/data/{2019..2021}/0{10010,10014,10016}-99999-2019.gz
        inventory | csv | USAF WBAN YEAR:int JAN:int FEB:int | isd-lite/isd-inventory.csv
    """,
    ),
    Lake(
        "tide gauges",
        """
        levels | csv | Date_Time:time Water_Level:float Sigma:float | water_level/{8454000,8443970,9414290,8518750}/2024{01..03}.csv
        predictions | csv | Date_Time:time Prediction:float | predictions/{8454000,8443970,9414290,8518750}/2024{01..03}.csv
        stations | json | id name lat:float lng:float | stations.json
    """,
    ),
    Lake(
        "river gauges with parameter codes",
        """
        daily | csv | agency_cd site_no datetime:date value:float code | usgs/{01646500,09380000,11447650}_00060_dv.csv
    """,
    ),
    Lake(
        "organisation trail",
        """
        trail | json | Records | logs/AWSLogs/o-a1b2c3d4e5/{111111111111,222222222222}/CloudTrail/{us-east-1,us-west-2}/2024/01/{05..06}/111111111111_CloudTrail_us-east-1_20240105T{0005,0010}Z_{rand16}.json.gz
        insight | json | Records | logs/AWSLogs/o-a1b2c3d4e5/{111111111111,222222222222}/CloudTrail-Insight/{us-east-1,us-west-2}/2024/01/{05..06}/111111111111_CloudTrail-Insight_us-east-1_20240105T{0005,0010}Z_{rand16}.json.gz
    """,
    ),
    Lake(
        "AWS Config and WAF",
        """
        history | json | fileVersion configurationItems | AWSLogs/111111111111/Config/us-east-1/2024/1/{5..7}/ConfigHistory/111111111111_Config_us-east-1_ConfigHistory_AWS::EC2::Instance_20240105T010203Z_20240105T020304Z_1.json.gz
        snapshot | json | fileVersion configSnapshotId configurationItems | AWSLogs/111111111111/Config/us-east-1/2024/1/{5..7}/ConfigSnapshot/111111111111_Config_us-east-1_ConfigSnapshot_20240105T010203Z_{uuid}.json.gz
        waf | json | timestamp:int formatVersion:int webaclId action httpRequest | AWSLogs/111111111111/WAFLogs/us-east-1/my-acl/2024/01/{05..07}/{00..02}/{00,05}/111111111111_waflogs_us-east-1_my-acl_20240105T0005Z_{hex8}.log.gz
        dns | json | version account_id region query_name query_type | AWSLogs/111111111111/vpcdnsquerylogs/vpc-{hex17}/2024/01/{05..07}/vpc-0123456789abcdef0_vpcdnsquerylogs_111111111111_20240105T0000Z_{hex8}.log.gz
    """,
    ),
    Lake(
        "Firehose with keys and errors",
        """
        orders | parquet | order_id:int total:float | data/orders/customer_region={eu,us}/year=2024/month=01/day={05..06}/stream-orders-1-2024-01-05-{00..01}-01-02-{uuid}.parquet
        errors | json | attemptsMade:int errorCode errorMessage rawData | errors/orders/format-conversion-failed/2024/01/{05..06}/{00..02}/stream-orders-1-2024-01-05-00-01-02-{uuid}
    """,
    ),
    Lake(
        "Kafka Connect with dotted topics",
        """
        payments | avro | id:int amount:float currency | topics/acme.payments.v1/year=2024/month=01/day=05/hour={00..02}/acme.payments.v1+{0..2}+0000000{100,200}.avro
        refunds | avro | id:int payment_id:int reason | topics/acme.refunds.v1/year=2024/month=01/day=05/hour={00..02}/acme.refunds.v1+{0..2}+0000000{100,200}.avro
        dlq | json | topic partition:int offset:int error | topics/acme.dlq/partition=0/acme.dlq+0+0000000{100,200}.json
    """,
    ),
    Lake(
        "MSK to buckets by date",
        """
        inventory | json | sku qty:int warehouse ts | kafka/inventory-updates/dt=2024-01-{05..07}/inventory-updates-{0..3}-{0000000000,0000001000}.json.gz
        prices | json | sku price:float currency ts | kafka/price-updates/dt=2024-01-{05..07}/price-updates-{0..3}-{0000000000,0000001000}.json.gz
    """,
    ),
    Lake(
        "Spark streaming",
        """
        clicks | parquet | user:int url ts:time | streaming/clicks/part-{00000..00005}-{uuid}-c000.snappy.parquet
        agg | parquet | window_start:time url count:int | streaming/clicks_per_minute/part-{00000..00002}-{uuid}-c000.snappy.parquet
        - | - | | streaming/clicks/_spark_metadata/0; streaming/clicks/_spark_metadata/1; streaming/clicks/._spark_metadata.crc
    """,
    ),
    Lake(
        "Databricks writes",
        """
        t | parquet | id:int v:float | dbfs/t/part-{00000..00003}-tid-{digits19}-{uuid}-{12}-1-c000.snappy.parquet
        u | parquet | key payload | dbfs/u/date=2024-01-0{1..3}/part-{00000..00001}-tid-{digits19}-{uuid}-{12}-1-c000.snappy.parquet
        - | - | | dbfs/t/_started_{digits19}; dbfs/t/_committed_{digits19}
    """,
    ),
    Lake(
        "Hive by date and hour",
        """
        logs | orc | ts:int host msg | warehouse/logs.db/web_logs/ds=2024-01-{01..03}/hr={00..03}/00000{0..1}_0
        sessions | orc | session user:int start:int | warehouse/logs.db/sessions/ds=2024-01-{01..03}/00000{0..1}_0.snappy
        tmp | orc | ts:int host msg | warehouse/logs.db/web_logs_backup/000000_0
    """,
    ),
    Lake(
        "Flink hive sink",
        """
        fact | parquet | id:int v:float | out/fact/dt=2024-01-05/hour={10..12}/part-{uuid}-0-{0..2}
        dim | orc | id:int name | out/dim/part-{uuid}-{0..1}-0
        - | - | | out/fact/dt=2024-01-05/hour=12/.part-{uuid}-0-3.inprogress.{uuid}; out/fact/dt=2024-01-05/hour=10/_SUCCESS
    """,
    ),
    Lake(
        "NiFi and Logstash",
        """
        nifi | json | id ts msg | nifi/{digits16}.json; nifi/{digits16}.json; nifi/{digits17}.json
        logstash | json | @timestamp host message | logstash/ls.s3.{uuid}.2024-01-05T{10,11}.00.tag_hello.part{0..3}.txt
        fluentd | json | time host log | fluentd/2024/01/05/{10..12}_{0..3}.gz
        vector | json | timestamp host message | vector/date=2024-01-0{5..6}/{1704412800,1704412900}-{uuid}.log.gz
    """,
    ),
    Lake(
        "LLM corpora",
        """
        c4 | json | text timestamp url | c4/en/c4-train.0000{0..4}-of-01024.json.gz; c4/en/c4-validation.0000{0..1}-of-00008.json.gz
        redpajama | json | text meta red_pajama_subset | redpajama/{arxiv,github,stackexchange,wikipedia,book}/{hex32}.jsonl
        oscar | json | content metadata warc_headers | oscar/{en,de,fr}_meta/{en}_part_{1..5}.jsonl.zst
    """,
    ),
    Lake(
        "embeddings and shards",
        """
        vectors | parquet | id:int vector | embeddings/batch={000..004}/vectors.parquet
        ids | parquet | id:int url | embeddings/batch={000..004}/ids.parquet
        laion | parquet | url caption width:int height:int | laion/part-{00000..00007}-5b54c5d5-bbcf-484d-a2ce-0d6f73df1a36-c000.snappy.parquet
        tfds | json | text label:int | tfds/imdb/imdb-{train,test}.jsonl-0000{0..3}-of-00004
    """,
    ),
    Lake(
        "house of representatives",
        """
        disbursements | csv | ORGANIZATION PROGRAM VENDOR AMOUNT:float | {2016..2019}Q{1..4}-house-disburse-detail.csv
        summary | csv | ORGANIZATION PROGRAM YTD:float | {2016..2019}Q{1..4}-house-disburse-summary.csv
    """,
    ),
    Lake(
        "UK spending",
        """
        spend | csv | Department Entity Date Expense_Type Supplier Amount:float | spending-over-25000-{january,february,march,april}-{2022,2023}.csv
    """,
    ),
    Lake(
        "German open data",
        """
        stops | csv | EVA_NR:int DS100 IFOPT NAME Verkehr Laenge:float Breite:float | bahn/D_Bahnhof_2020_alle.CSV
        lifts | csv | Standort_Equipment TechnPlatzBezeichng Equipment:int | bahn/DBSuS-Uebersicht_Aufzuege-Stand2020-03.csv
        air | csv | Station Datum Uhrzeit PM10:float NO2:float | luft/{DEBE010,DEBE034,DEBW005}_2023.csv
    """,
    ),
    Lake(
        "open food and drugs",
        """
        products | csv | code product_name brands countries energy_kcal:float | en.openfoodfacts.org.products.csv.gz
        events | json | safetyreportid patient receivedate serious | drug/event/2023q{1..4}/drug-event-000{1..3}-of-0003.json
        labels | json | set_id id version openfda | drug/label/drug-label-000{1..9}-of-0009.json
    """,
    ),
    Lake(
        "FAERS quarters",
        """
        demo | csv | primaryid:int caseid:int sex age:float | faers_ascii_2023q{1..4}/ASCII/DEMO23Q{1..4}.txt
        drug | csv | primaryid:int drug_seq:int drugname route | faers_ascii_2023q{1..4}/ASCII/DRUG23Q{1..4}.txt
        reac | csv | primaryid:int caseid:int pt | faers_ascii_2023q{1..4}/ASCII/REAC23Q{1..4}.txt
    """,
    ),
    Lake(
        "NHANES",
        """
        demo | csv | SEQN:int RIAGENDR:int RIDAGEYR:int | {2013-2014,2015-2016,2017-2018}/DEMO_{H,I,J}.csv
        bmx | csv | SEQN:int BMXWT:float BMXHT:float BMXBMI:float | {2013-2014,2015-2016,2017-2018}/BMX_{H,I,J}.csv
    """,
    ),
    Lake(
        "Zillow and Redfin",
        """
        zhvi | csv | RegionID:int SizeRank:int RegionName StateName 2023-01-31:float | zillow/Metro_zhvi_month.csv
        zori | csv | RegionID:int SizeRank:int RegionName StateName 2023-01-31:float | zillow/Metro_zori_month.csv
        redfin | csv | period_begin:date region median_sale_price:int homes_sold:int | redfin/weekly_housing_market_data_most_recent.tsv
    """,
    ),
    Lake(
        "Steam and games",
        """
        games | csv | app_id:int title date_release:date rating price_final:float | games.csv
        users | csv | user_id:int products:int reviews:int | users.csv
        recs | csv | app_id:int helpful:int date:date is_recommended user_id:int | recommendations.csv
        meta | json | app_id:int description tags | games_metadata.json
    """,
    ),
    Lake(
        "credit risk competition",
        """
        train | csv | SK_ID_CURR:int TARGET:int NAME_CONTRACT_TYPE AMT_INCOME_TOTAL:float AMT_CREDIT:float | application_train.csv
        test | csv | SK_ID_CURR:int NAME_CONTRACT_TYPE AMT_INCOME_TOTAL:float AMT_CREDIT:float | application_test.csv
        bureau | csv | SK_ID_CURR:int SK_ID_BUREAU:int CREDIT_ACTIVE DAYS_CREDIT:int | bureau.csv
        balance | csv | SK_ID_BUREAU:int MONTHS_BALANCE:int STATUS | bureau_balance.csv
        card | csv | SK_ID_PREV:int SK_ID_CURR:int MONTHS_BALANCE:int AMT_BALANCE:float | credit_card_balance.csv
        cash | csv | SK_ID_PREV:int SK_ID_CURR:int MONTHS_BALANCE:int CNT_INSTALMENT:float | POS_CASH_balance.csv
        previous | csv | SK_ID_PREV:int SK_ID_CURR:int NAME_CONTRACT_TYPE AMT_ANNUITY:float | previous_application.csv
        columns | csv | Table Row Description Special | HomeCredit_columns_description.csv
    """,
    ),
    Lake(
        "electricity market",
        """
        prices | csv | MTU DayAheadPrice:float Currency | entsoe/DayAheadPrices/2024_{01..06}_DayAheadPrices_12.1.D.csv
        load | csv | DateTime:time ResolutionCode AreaCode TotalLoadValue:float | entsoe/ActualTotalLoad/2024_{01..06}_ActualTotalLoad_6.1.A.csv
        generation | csv | DateTime:time ProductionType ActualGenerationOutput:float | entsoe/AggregatedGenerationPerType/2024_{01..06}_AggregatedGenerationPerType_16.1.B_C.csv
    """,
    ),
    Lake(
        "satellite fires",
        """
        modis | csv | latitude:float longitude:float brightness:float acq_date:date confidence:int | firms/modis_{2019..2022}_{Australia,Brazil,Canada}.csv
        viirs | csv | latitude:float longitude:float bright_ti4:float acq_date:date confidence frp:float type:int | firms/viirs-snpp_{2019..2022}_{Australia,Brazil,Canada}.csv
    """,
    ),
    Lake(
        "ship positions",
        """
        ais | csv | MMSI:int BaseDateTime:time LAT:float LON:float SOG:float | AIS_2023_{01..02}_{01..05}.csv
        vessels | csv | MMSI:int VesselName IMO CallSign VesselType:int | vessels.csv
    """,
    ),
    Lake(
        "flights by airport",
        """
        departures | json | icao24 firstSeen:int estDepartureAirport callsign | opensky/departures/{EDDF,EGLL,KJFK}/2024-01-{05..07}.json
        states | csv | time:int icao24 lat:float lon:float velocity:float | opensky/states/2024-01-01/{00..03}/states_2024-01-01-{00}.csv.gz
    """,
    ),
    Lake(
        "clinical trials",
        """
        studies | json | protocolSection derivedSection hasResults | studies/NCT0{0000,0001,0002}{102,115,137}.json
        conditions | csv | id:int nct_id name downcase_name | aact/conditions.txt
        interventions | csv | id:int nct_id intervention_type name description | aact/interventions.txt
        outcomes | csv | id:int nct_id outcome_type title time_frame | aact/outcomes.txt
    """,
    ),
    Lake(
        "call centre",
        """
        calls | csv | call_id agent:int started:time duration:int | calls/{2023,2024}/{january,february,march}/calls.csv
        agents | csv | agent:int name team | agents.csv
        surveys | csv | survey call_id score:int comment | surveys/survey_results_wave{1..4}.csv
    """,
    ),
    Lake(
        "versioned reference data",
        """
        countries | csv | iso2 iso3 name region | reference/v1/countries.csv; reference/v2/countries.csv
        currencies | csv | code name minor:int | reference/v1/currencies.csv; reference/v2/currencies.csv
        latest | csv | iso2 iso3 name region | reference/latest/countries.csv
    """,
    ),
    Lake(
        "multi-tenant app",
        """
        events | parquet | event_id ts:time user_id payload | app/tenant_id={101,102,103}/events/date=2024-01-0{1..3}/{uuid}.parquet
        invoices | parquet | invoice_id:int due:date total:float | app/tenant_id={101,102,103}/invoices/date=2024-01-0{1..3}/{uuid}.parquet
    """,
    ),
    Lake(
        "years side by side",
        """
        survey | csv | Respondent:int Country Age:float Salary:float | stackoverflow/{2019..2022}/survey_results_public.csv
        schema | csv | Column QuestionText | stackoverflow/{2019..2022}/survey_results_schema.csv
    """,
    ),
]
