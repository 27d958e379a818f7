"""A fifth collection, once more written down before it was run."""

from .lakes import Lake

FIFTH = [
    Lake(
        "airline on-time by carrier",
        """
        ontime | parquet | FlightDate:date Carrier FlightNum:int Origin Dest ArrDelay:float | ontime/Year={2019..2021}/Month={1..12}/data_0.parquet
        carriers | csv | Code Description | lookup/L_UNIQUE_CARRIERS.csv
        airports | csv | Code Description | lookup/L_AIRPORT_ID.csv
        cancellation | csv | Code Description | lookup/L_CANCELLATION.csv
    """,
    ),
    Lake(
        "census download",
        """
        block | csv | GEOID20 STATEFP20 POP20:int HOUSING20:int | 2020/{01..06}_pl94171.csv
        acs | csv | GEO_ID B01003_001E:int NAME | acs5/2021/state={01,02,04,05,06}/B01003.csv
    """,
    ),
    Lake(
        "covid portals",
        """
        owid | csv | iso_code continent location date:date total_cases:float new_cases:float | owid-covid-data.csv
        nyt states | csv | date:date state fips cases:int deaths:int | us-states.csv
        nyt counties | csv | date:date county state fips cases:int deaths:int | us-counties-{2020..2023}.csv
        mobility | csv | country_region_code country_region sub_region_1 date:date retail:float | {2020..2022}_{DE,US,FR}_Region_Mobility_Report.csv
        vaccinations | csv | location date:date vaccine source_url total_vaccinations:int | country_data/{Germany,France,Japan,Brazil,Kenya}.csv
    """,
    ),
    Lake(
        "genes",
        """
        expression | csv | gene_id gene_name tpm:float fpkm:float | gdc/{uuid}/{uuid}.rna_seq.augmented_star_gene_counts.tsv; gdc/{uuid}/{uuid}.rna_seq.augmented_star_gene_counts.tsv
        clinical | json | case_id demographic diagnoses | gdc/clinical.cases.json
        samples | csv | File_ID File_Name Case_ID Sample_Type | gdc/gdc_sample_sheet.2024-01-05.tsv
    """,
    ),
    Lake(
        "protein tables",
        """
        entries | csv | Entry Entry_Name Protein_names Organism Length:int | uniprot/uniprot_sprot_{human,mouse,rat,yeast,fly}.tsv.gz
    """,
    ),
    Lake(
        "chess",
        """
        games | csv | id rated created_at:float moves winner | lichess/{2013-01,2013-02,2013-03}/games.csv
        openings | csv | eco name pgn | lichess/openings/{a,b,c,d,e}.tsv
        puzzles | csv | PuzzleId FEN Moves Rating:int | lichess/lichess_db_puzzle.csv.zst
    """,
    ),
    Lake(
        "NFL verse",
        """
        pbp | parquet | play_id:int game_id home_team away_team desc | pbp/play_by_play_{2015..2023}.parquet
        rosters | parquet | season:int team position player_id full_name | rosters/roster_{2015..2023}.parquet
        weekly | parquet | season:int week:int team player_id status | weekly_rosters/roster_weekly_{2015..2023}.parquet
        schedule | csv | game_id season:int week:int gameday:date home_score:int | schedules/games.csv
    """,
    ),
    Lake(
        "Wikidata and Wikipedia dumps",
        """
        pagecounts | csv | project title views:int bytes:int | pagecounts-ez/merged/{2015..2016}/2015-{01..03}/pagecounts-2015-{01}-{01..03}.bz2
        clickstream | csv | prev curr type n:int | clickstream/2024-0{1..3}/clickstream-{enwiki,dewiki,frwiki}-2024-0{1}.tsv.gz
    """,
    ),
    Lake(
        "news archives",
        """
        ccnews | json | url title text language published_date | cc_news/{2016..2018}/{01..03}/cc_news_{2016}{01}.jsonl.gz
        headlines | csv | publish_date:int headline_text | abcnews-date-text.csv
        articles | csv | id:int title publication author date content | articles{1..3}.csv
    """,
    ),
    Lake(
        "loans",
        """
        accepted | csv | id:int loan_amnt:float term int_rate grade emp_title | accepted_2007_to_2018Q4.csv
        rejected | csv | Amount_Requested:float Application_Date:date Loan_Title Risk_Score:float | rejected_2007_to_2018Q4.csv
    """,
    ),
    Lake(
        "retail chains",
        """
        sales | csv | Store:int DayOfWeek:int Date:date Sales:int Customers:int | rossmann/train.csv
        test | csv | Id:int Store:int DayOfWeek:int Date:date Open:int | rossmann/test.csv
        store | csv | Store:int StoreType Assortment CompetitionDistance:float | rossmann/store.csv
        walmart | csv | Store:int Dept:int Date:date Weekly_Sales:float IsHoliday | walmart/train.csv
        features | csv | Store:int Date:date Temperature:float Fuel_Price:float | walmart/features.csv
    """,
    ),
    Lake(
        "sensor network",
        """
        raw | csv | timestamp:time sensor:int value:float | raw/gateway-{a,b,c}/sensor-{001..005}/2024-01-{01..03}.csv
        hourly | parquet | hour:time sensor:int avg:float | agg/hourly/2024/01/{01..03}.parquet
        daily | parquet | day:date sensor:int avg:float min:float max:float | agg/daily/2024-01.parquet; agg/daily/2024-02.parquet
        meta | json | sensor:int location installed | meta/sensors.json
    """,
    ),
    Lake(
        "telecom",
        """
        cdr | csv | caller callee start:time seconds:int cell | cdr/CDR_{MSC1,MSC2,MSC3}_2024010{1..5}_{0001..0003}.csv
        cells | csv | cell lat:float lon:float technology | ref/cells_20240101.csv
        tariffs | csv | tariff name price:float | ref/tariffs_20240101.csv
    """,
    ),
    Lake(
        "mobile app analytics",
        """
        ios | json | event user_id ts platform | analytics/ios/2024/01/{05..07}/events_{0..3}.json.gz
        android | json | event user_id ts platform | analytics/android/2024/01/{05..07}/events_{0..3}.json.gz
        web | json | event session url referrer utm ts | analytics/web/2024/01/{05..07}/events_{0..3}.json.gz
    """,
    ),
    Lake(
        "payments",
        """
        settlements | csv | date:date merchant:int gross:float fee:float | psp/settlement_report_batch_{101..109}.csv
        disputes | csv | dispute payment reason amount:float | psp/dispute_report_2024_01_{05..09}.csv
        payouts | json | id amount:int arrival_date | psp/payouts/po_{rand14}.json; psp/payouts/po_{rand14}.json; psp/payouts/po_{rand14}.json
    """,
    ),
    Lake(
        "logistics",
        """
        tracking | json | shipment status ts lat:float lon:float | tracking/carrier={dhl,ups,fedex}/dt=2024-01-0{5..7}/{uuid}.json
        edi | csv | segment qualifier value | edi/inbound/ORDERS_{digits8}.csv; edi/inbound/ORDERS_{digits8}.csv
        asn | csv | shipment carton sku qty:int | edi/inbound/DESADV_{digits8}.csv; edi/inbound/DESADV_{digits8}.csv
    """,
    ),
    Lake(
        "HR",
        """
        payroll | csv | employee:int month gross:float net:float | payroll/2023/payroll_{Jan,Feb,Mar}.csv; payroll/2024/payroll_{Jan,Feb,Mar}.csv
        headcount | csv | date:date department count:int | headcount_{2023-12-31,2024-01-31}.csv
        org | csv | employee:int manager:int title | org_chart.csv
    """,
    ),
    Lake(
        "scientific runs",
        """
        results | csv | step:int energy:float temperature:float | experiments/exp{01..08}/run{1..3}/results.csv
        params | json | seed:int lr:float batch:int | experiments/exp{01..08}/run{1..3}/params.json
        summary | csv | experiment best_energy:float | experiments/summary.csv
    """,
    ),
    Lake(
        "weather models",
        """
        gfs | parquet | lat:float lon:float t2m:float u10:float | gfs/gfs.2024010{1..3}/{00,06,12,18}/gfs.t00z.pgrb2.0p25.f{000..003}.parquet
        hrrr | parquet | x:int y:int refc:float | hrrr/hrrr.2024010{1..3}/conus/hrrr.t{00..03}z.wrfsfcf{00..02}.parquet
    """,
    ),
    Lake(
        "survey waves",
        """
        wave | csv | respondent:int q1:int q2:int q3:int weight:float | survey/wave_{1..6}/responses.csv
        codebook | csv | variable label values | survey/wave_{1..6}/codebook.csv
    """,
    ),
    Lake(
        "legal entities",
        """
        lei | csv | LEI LegalName Country Status | gleif/20240105-0800-gleif-goldencopy-lei2-golden-copy.csv; gleif/20240106-0800-gleif-goldencopy-lei2-golden-copy.csv
        rr | csv | StartNode EndNode RelationshipType | gleif/20240105-0800-gleif-goldencopy-rr-golden-copy.csv; gleif/20240106-0800-gleif-goldencopy-rr-golden-copy.csv
        companies | csv | CompanyName CompanyNumber PostCode Status | ch/BasicCompanyData-2024-01-01-part{1..7}_7.csv
    """,
    ),
    Lake(
        "road traffic",
        """
        counts | csv | count_point_id:int year:int road_name all_motor_vehicles:int | dft_traffic_counts_raw_counts.csv
        aadf | csv | count_point_id:int year:int road_name pedal_cycles:int cars:int | dft_traffic_counts_aadf.csv
        accidents | csv | accident_index accident_year:int location lat:float severity:int | dft-road-casualty-statistics-accident-{2019..2022}.csv
        vehicles | csv | accident_index vehicle_reference:int vehicle_type:int age:int | dft-road-casualty-statistics-vehicle-{2019..2022}.csv
        casualties | csv | accident_index casualty_reference:int sex:int age:int | dft-road-casualty-statistics-casualty-{2019..2022}.csv
    """,
    ),
    Lake(
        "one folder per company",
        """
        income | csv | fiscal_year:int revenue:float net_income:float | financials/{apple,microsoft,alphabet,amazon}/income_statement.csv
        balance | csv | fiscal_year:int assets:float liabilities:float | financials/{apple,microsoft,alphabet,amazon}/balance_sheet.csv
        cash | csv | fiscal_year:int operating:float investing:float | financials/{apple,microsoft,alphabet,amazon}/cash_flow.csv
    """,
    ),
    Lake(
        "exports of a school system",
        """
        grades | csv | student:int course grade:float | exports/{2022-2023,2023-2024}/semester_{1,2}/grades.csv
        attendance | csv | student:int date:date present | exports/{2022-2023,2023-2024}/semester_{1,2}/attendance.csv
        students | csv | student:int name birth:date | exports/students.csv
    """,
    ),
    Lake(
        "ad exports per account",
        """
        campaigns | csv | date:date campaign impressions:int clicks:int cost:float | google_ads/{123-456-7890,234-567-8901}/campaign_performance_2024010{1..3}.csv
        keywords | csv | date:date keyword match_type clicks:int | google_ads/{123-456-7890,234-567-8901}/keyword_performance_2024010{1..3}.csv
        facebook | json | date campaign spend:float reach:int | facebook_ads/act_{1001,1002}/insights_2024-01-0{1..3}.json
    """,
    ),
    Lake(
        "backfills",
        """
        orders | parquet | id:int total:float | orders/dt=2024-01-0{1..3}/part-0.parquet; orders/dt=2024-01-0{1..3}/backfill-0.parquet
        users | parquet | id:int name | users/full/part-{0..2}.parquet
        users inc | parquet | id:int name op ts:time | users/incremental/dt=2024-01-0{1..3}/part-0.parquet
    """,
    ),
    Lake(
        "mixed compression and case",
        """
        a | csv | x:int y:int | Data/Events_2023.CSV; Data/Events_2024.csv.gz; Data/events_2022.csv
        b | json | k v | Data/Items.JSON
    """,
    ),
    Lake(
        "spaces and brackets",
        """
        budget | csv | dept amount:float | Finance/Budget 2022 (final).csv; Finance/Budget 2023 (final).csv; Finance/Budget 2024 (draft).csv
        head | csv | dept heads:int month:int | Finance/Headcount Jan 2024.csv; Finance/Headcount Feb 2024.csv
    """,
    ),
    Lake(
        "subjects of a study",
        """
        eeg | csv | time:float fp1:float fp2:float | study/sub-{01..12}/ses-{1..2}/eeg/sub-01_ses-1_task-rest_eeg.csv
        events | csv | onset:float duration:float trial_type | study/sub-{01..12}/ses-{1..2}/eeg/sub-01_ses-1_task-rest_events.tsv
        participants | csv | participant_id age:int sex | study/participants.tsv
        - | json | Name BIDSVersion License | study/dataset_description.json
    """,
    ),
    Lake(
        "order books",
        """
        book | csv | ts:int bid:float bid_size:float ask:float ask_size:float | tardis/binance/book_ticker/2024-01-0{1..3}/{BTCUSDT,ETHUSDT}.csv.gz
        trades | csv | ts:int id side price:float amount:float | tardis/binance/trades/2024-01-0{1..3}/{BTCUSDT,ETHUSDT}.csv.gz
        kraken | csv | ts:int id side price:float amount:float | tardis/kraken/trades/2024-01-0{1..3}/{XBTUSD,ETHUSD}.csv.gz
    """,
    ),
    Lake(
        "recipes and reviews",
        """
        recipes | csv | id:int name minutes:int tags | RAW_recipes.csv
        interactions | csv | user_id:int recipe_id:int date:date rating:int review | RAW_interactions.csv
        pp recipes | csv | id:int i:int name_tokens calorie_level:int | PP_recipes.csv
        pp users | csv | u:int techniques items n_items:int | PP_users.csv
        itrain | csv | user_id:int recipe_id:int date:date rating:float u:int i:int | interactions_train.csv
        itest | csv | user_id:int recipe_id:int date:date rating:float u:int i:int | interactions_test.csv
        ival | csv | user_id:int recipe_id:int date:date rating:float u:int i:int | interactions_validation.csv
    """,
    ),
    Lake(
        "data mesh",
        """
        orders | parquet | id:int total:float | domains/sales/products/orders/v1/dt=2024-01-0{1..3}/part-0.parquet
        leads | parquet | id:int source score:float | domains/sales/products/leads/v1/dt=2024-01-0{1..3}/part-0.parquet
        tickets | parquet | id:int subject | domains/support/products/tickets/v1/dt=2024-01-0{1..3}/part-0.parquet
    """,
    ),
]
