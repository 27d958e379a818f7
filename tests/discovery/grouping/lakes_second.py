"""A second collection, written down before the rules had ever seen it."""

from .lakes import Lake

SECOND = [
    Lake(
        "Lahman baseball",
        """
        batting | csv | playerID yearID:int stint:int teamID lgID G:int AB:int R:int H:int | core/Batting.csv
        batting post | csv | yearID:int round playerID teamID lgID G:int AB:int R:int H:int | core/BattingPost.csv
        pitching | csv | playerID yearID:int stint:int teamID lgID W:int L:int ERA:float | core/Pitching.csv
        pitching post | csv | playerID yearID:int round teamID lgID W:int L:int ERA:float | core/PitchingPost.csv
        people | csv | playerID birthYear:int birthMonth:int birthCountry nameFirst nameLast | core/People.csv
        teams | csv | yearID:int lgID teamID franchID divID Rank:int G:int | core/Teams.csv
        salaries | csv | yearID:int teamID lgID playerID salary:int | contrib/Salaries.csv
        awards | csv | playerID awardID yearID:int lgID | contrib/AwardsPlayers.csv
        - | - | | core/readme2014.txt
    """,
    ),
    Lake(
        "Formula 1",
        """
        circuits | csv | circuitId:int circuitRef name location country | circuits.csv
        drivers | csv | driverId:int driverRef number code forename surname dob:date | drivers.csv
        races | csv | raceId:int year:int round:int circuitId:int name date:date | races.csv
        results | csv | resultId:int raceId:int driverId:int constructorId:int grid:int points:float | results.csv
        sprint | csv | resultId:int raceId:int driverId:int constructorId:int grid:int points:float | sprint_results.csv
        driver standings | csv | driverStandingsId:int raceId:int driverId:int points:float position:int wins:int | driver_standings.csv
        constructor standings | csv | constructorStandingsId:int raceId:int constructorId:int points:float position:int wins:int | constructor_standings.csv
        laps | csv | raceId:int driverId:int lap:int position:int time milliseconds:int | lap_times.csv
        pits | csv | raceId:int driverId:int stop:int lap:int time duration milliseconds:int | pit_stops.csv
    """,
    ),
    Lake(
        "Santander competition",
        """
        train | csv | ID_code target:int var_0:float var_1:float var_2:float | train.csv
        test | csv | ID_code var_0:float var_1:float var_2:float | test.csv
        sub | csv | ID_code target:int | sample_submission.csv
    """,
    ),
    Lake(
        "M5 forecasting",
        """
        calendar | csv | date:date wm_yr_wk:int weekday wday:int event_name_1 | calendar.csv
        validation | csv | id item_id dept_id cat_id store_id state_id d_1:int d_2:int | sales_train_validation.csv
        evaluation | csv | id item_id dept_id cat_id store_id state_id d_1:int d_2:int d_3:int | sales_train_evaluation.csv
        prices | csv | store_id item_id wm_yr_wk:int sell_price:float | sell_prices.csv
        sub | csv | id F1:int F2:int | sample_submission.csv
    """,
    ),
    Lake(
        "ASHRAE energy",
        """
        train | csv | building_id:int meter:int timestamp:time meter_reading:float | train.csv
        test | csv | row_id:int building_id:int meter:int timestamp:time | test.csv
        weather train | csv | site_id:int timestamp:time air_temperature:float cloud_coverage:float | weather_train.csv
        weather test | csv | site_id:int timestamp:time air_temperature:float cloud_coverage:float | weather_test.csv
        buildings | csv | site_id:int building_id:int primary_use square_feet:int | building_metadata.csv
    """,
    ),
    Lake(
        "ERA5 style model output in parquet",
        """
        t2m | parquet | time:time lat:float lon:float t2m:float | era5/{2019..2021}/{01..12}/data/air_temperature_at_2_metres.parquet
        u10 | parquet | time:time lat:float lon:float u10:float | era5/{2019..2021}/{01..12}/data/eastward_wind_at_10_metres.parquet
        tp | parquet | time:time lat:float lon:float tp:float | era5/{2019..2021}/{01..12}/data/precipitation_amount_1hour.parquet
    """,
    ),
    Lake(
        "Sentinel catalog",
        """
        tiles | json | id timestamp geometry tile_path | products/2024/1/{5..9}/S2A_MSIL1C_20240105T103421_N0510_R108_T32TQM_20240105T123007/productInfo.json
    """,
    ),
    Lake(
        "NEXRAD index",
        """
        scans | csv | station time:time size:int key | index/2024/01/{05..08}/{KTLX,KABR,KBGM}/scans.csv
    """,
    ),
    Lake(
        "GTFS feed",
        """
        agency | csv | agency_id agency_name agency_url agency_timezone | gtfs/agency.txt
        stops | csv | stop_id stop_name stop_lat:float stop_lon:float | gtfs/stops.txt
        routes | csv | route_id agency_id route_short_name route_type:int | gtfs/routes.txt
        trips | csv | route_id service_id trip_id direction_id:int | gtfs/trips.txt
        times | csv | trip_id arrival_time departure_time stop_id stop_sequence:int | gtfs/stop_times.txt
        calendar | csv | service_id monday:int tuesday:int start_date:int end_date:int | gtfs/calendar.txt
        dates | csv | service_id date:int exception_type:int | gtfs/calendar_dates.txt
        shapes | csv | shape_id shape_pt_lat:float shape_pt_lon:float shape_pt_sequence:int | gtfs/shapes.txt
    """,
    ),
    Lake(
        "GTFS of several agencies by day",
        """
        stops | csv | stop_id stop_name stop_lat:float stop_lon:float | feeds/{bvg,rnv,vbb,hvv}/2024-01-{05..06}/stops.txt
        routes | csv | route_id agency_id route_short_name route_type:int | feeds/{bvg,rnv,vbb,hvv}/2024-01-{05..06}/routes.txt
        trips | csv | route_id service_id trip_id direction_id:int | feeds/{bvg,rnv,vbb,hvv}/2024-01-{05..06}/trips.txt
    """,
    ),
    Lake(
        "BTS T-100 and on-time extracts",
        """
        segments | csv | DEPARTURES_SCHEDULED:float PASSENGERS:float CARRIER ORIGIN DEST YEAR:int MONTH:int | t100/T_T100_SEGMENT_{2018..2022}.csv
        markets | csv | PASSENGERS:float FREIGHT:float MAIL:float CARRIER ORIGIN DEST YEAR:int | t100/T_T100_MARKET_{2018..2022}.csv
    """,
    ),
    Lake(
        "HMDA loans",
        """
        lar | csv | activity_year:int lei derived_msa:int state_code county_code loan_amount:float | {2018..2021}_lar.txt
        ts | csv | activity_year:int calendar_quarter:int lei tax_id agency_code:int | {2018..2021}_ts.txt
        panel | csv | activity_year:int lei respondent_name respondent_state assets:float | {2018..2021}_panel.txt
    """,
    ),
    Lake(
        "FDIC and call reports",
        """
        bulk | csv | IDRSSD:int FDIC:int RCFD2170:int RCON2170:int | FFIEC CDR Call Bulk Schedule RC {03,06,09,12}312023.txt
        income | csv | IDRSSD:int FDIC:int RIAD4340:int RIAD4301:int RIAD4300:int | FFIEC CDR Call Bulk Schedule RI {03,06,09,12}312023.txt
    """,
    ),
    Lake(
        "Medicare provider data",
        """
        by provider | csv | Rndrng_NPI:int Rndrng_Prvdr_Last_Org_Name Tot_Benes:int Tot_Srvcs:float | MUP_PHY_R2{1..3}_P05_V10_D{19..21}_Prov.csv
        by service | csv | Rndrng_NPI:int HCPCS_Cd HCPCS_Desc Tot_Srvcs:float Avg_Mdcr_Pymt_Amt:float | MUP_PHY_R2{1..3}_P05_V10_D{19..21}_Prov_Svc.csv
    """,
    ),
    Lake(
        "Chicago portal",
        """
        crimes | csv | ID:int Case_Number Date:time Block IUCR Primary_Type | Crimes_-_2001_to_Present_20240105.csv
        permits | csv | ID:int PERMIT# PERMIT_TYPE ISSUE_DATE:date | Building_Permits_20240105.csv
        licenses | csv | ID LICENSE_ID:int ACCOUNT_NUMBER:int LEGAL_NAME | Business_Licenses_20240105.csv
        taxi | csv | Trip_ID Taxi_ID Trip_Start_Timestamp:time Trip_Seconds:int Fare:float | Taxi_Trips_-_{2021..2023}.csv
    """,
    ),
    Lake(
        "Eurostat",
        """
        gdp | csv | DATAFLOW freq unit na_item geo TIME_PERIOD OBS_VALUE:float | estat_nama_10_gdp.tsv.gz
        pop | csv | DATAFLOW freq sex age geo TIME_PERIOD OBS_VALUE:float | estat_demo_pjan.tsv.gz
        unemployment | csv | DATAFLOW freq s_adj age unit sex geo TIME_PERIOD OBS_VALUE:float | estat_une_rt_m.tsv.gz
    """,
    ),
    Lake(
        "Met Office stations",
        """
        stations | csv | yyyy:int mm:int tmax:float tmin:float af:int rain:float sun:float | stationdata/{aberporthdata,armaghdata,ballypatrickdata,bradforddata,braemardata,cambornedata,cambridgedata,cardiffdata,chivenordata,cwmystwythdata}.txt
    """,
    ),
    Lake(
        "Land registry",
        """
        pp | csv | c1 c2:int c3:date c4 c5 c6 | pp-{2015..2023}.csv
    """,
    ),
    Lake(
        "Stack Exchange dump in parquet",
        """
        posts | parquet | Id:int PostTypeId:int CreationDate:time Score:int Body Title | {stackoverflow,superuser,serverfault}/Posts.parquet
        users | parquet | Id:int Reputation:int CreationDate:time DisplayName | {stackoverflow,superuser,serverfault}/Users.parquet
        votes | parquet | Id:int PostId:int VoteTypeId:int CreationDate:time | {stackoverflow,superuser,serverfault}/Votes.parquet
        tags | parquet | Id:int TagName Count:int | {stackoverflow,superuser,serverfault}/Tags.parquet
    """,
    ),
    Lake(
        "Wikipedia on Hugging Face",
        """
        wikipedia | parquet | id url title text | 20231101.{en,de,fr,ab,ceb}/train-000{00..04}-of-00005.parquet
    """,
    ),
    Lake(
        "FineWeb",
        """
        fineweb | parquet | text id dump url date language token_count:int | data/CC-MAIN-{2013-20,2014-10,2023-50,2024-10}/train-000{00..03}-of-00004.parquet
        sample | parquet | text id dump url date language token_count:int | sample/10BT/{000..003}_00000.parquet
    """,
    ),
    Lake(
        "GLUE benchmark",
        """
        cola | parquet | sentence label:int idx:int | cola/train-00000-of-00001.parquet; cola/validation-00000-of-00001.parquet; cola/test-00000-of-00001.parquet
        mrpc | parquet | sentence1 sentence2 label:int idx:int | mrpc/train-00000-of-00001.parquet; mrpc/validation-00000-of-00001.parquet; mrpc/test-00000-of-00001.parquet
        qqp | parquet | question1 question2 label:int idx:int | qqp/train-00000-of-00001.parquet; qqp/validation-00000-of-00001.parquet; qqp/test-00000-of-00001.parquet
    """,
    ),
    Lake(
        "The Pile style jsonl",
        """
        train | json | text meta | train/{00..09}.jsonl.zst
        val | json | text meta | val.jsonl.zst
        test | json | text meta | test.jsonl.zst
    """,
    ),
    Lake(
        "Common Voice",
        """
        train | csv | client_id path sentence up_votes:int down_votes:int age gender | cv-corpus-17.0/{en,de,fr}/train.tsv
        dev | csv | client_id path sentence up_votes:int down_votes:int age gender | cv-corpus-17.0/{en,de,fr}/dev.tsv
        test | csv | client_id path sentence up_votes:int down_votes:int age gender | cv-corpus-17.0/{en,de,fr}/test.tsv
        validated | csv | client_id path sentence up_votes:int down_votes:int age gender | cv-corpus-17.0/{en,de,fr}/validated.tsv
        invalidated | csv | client_id path sentence up_votes:int down_votes:int age gender | cv-corpus-17.0/{en,de,fr}/invalidated.tsv
        other | csv | client_id path sentence up_votes:int down_votes:int age gender | cv-corpus-17.0/{en,de,fr}/other.tsv
    """,
    ),
    Lake(
        "Criteo logs",
        """
        days | csv | c1:int c2:int c3:int c4 c5 c6 | day_{0..23}.gz
    """,
    ),
    Lake(
        "Azure public VM traces",
        """
        vmtable | csv | vmid subscriptionid deploymentid created:int deleted:int maxcpu:float | trace_data/vmtable/vmtable.csv.gz
        readings | csv | timestamp:int vmid mincpu:float maxcpu:float avgcpu:float | trace_data/vm_cpu_readings/vm_cpu_readings-file-{1..125}-of-125.csv.gz
        deployments | csv | deploymentid size:int | trace_data/deployments/deployment.csv.gz
    """,
    ),
    Lake(
        "Google cluster data",
        """
        events | json | time:int type:int collection_id machine_id alloc_id | clusterdata_2019_{a,b,c,d}/instance_events-{000000000000..000000000004}.json.gz
        usage | json | start_time:int end_time:int collection_id average_usage maximum_usage | clusterdata_2019_{a,b,c,d}/instance_usage-{000000000000..000000000004}.json.gz
        machines | json | time:int machine_id type:int capacity | clusterdata_2019_{a,b,c,d}/machine_events-000000000000.json.gz
    """,
    ),
    Lake(
        "Fannie Mae quarters",
        """
        acquisitions | csv | loan_id channel seller rate:float upb:int | Acquisition_{2018..2019}Q{1..4}.txt
        performance | csv | loan_id period servicer rate:float age:int status | Performance_{2018..2019}Q{1..4}.txt
    """,
    ),
    Lake(
        "Kaggle store sales",
        """
        holidays | csv | date:date type locale locale_name description | holidays_events.csv
        oil | csv | date:date dcoilwtico:float | oil.csv
        stores | csv | store_nbr:int city state type cluster:int | stores.csv
        train | csv | id:int date:date store_nbr:int family sales:float onpromotion:int | train.csv
        test | csv | id:int date:date store_nbr:int family onpromotion:int | test.csv
        transactions | csv | date:date store_nbr:int transactions:int | transactions.csv
    """,
    ),
    Lake(
        "Crypto history",
        """
        minutes | csv | unix:int date:time symbol open:float high:float low:float close:float volume:float | Binance_{BTCUSDT,ETHUSDT,XRPUSDT}_minute.csv
        daily | csv | unix:int date:date symbol open:float high:float low:float close:float volume:float tradecount:int | Binance_{BTCUSDT,ETHUSDT,XRPUSDT}_d.csv
    """,
    ),
    Lake(
        "Fitbit people",
        """
        activity | csv | Id:int ActivityDate:date TotalSteps:int TotalDistance:float Calories:int | Fitabase Data {3.12.16-4.11.16,4.12.16-5.12.16}/dailyActivity_merged.csv
        sleep | csv | Id:int date:date value:int logId:int | Fitabase Data {3.12.16-4.11.16,4.12.16-5.12.16}/minuteSleep_merged.csv
        heart | csv | Id:int Time:time Value:int | Fitabase Data {3.12.16-4.11.16,4.12.16-5.12.16}/heartrate_seconds_merged.csv
    """,
    ),
    Lake(
        "WESAD subjects",
        """
        e4 | csv | t:float x:float y:float z:float | S{2..17}/S{2}_E4_Data/ACC.csv
        bvp | csv | t:float bvp:float | S{2..17}/S{2}_E4_Data/BVP.csv
        hr | csv | hr:float | S{2..17}/S{2}_E4_Data/HR.csv
    """,
    ),
    Lake(
        "Billing exports",
        """
        cur | parquet | identity_line_item_id bill_payer_account_id line_item_unblended_cost:float | cur/mycur/mycur/year=2024/month={1..3}/mycur-0000{1..3}.snappy.parquet
        - | json | assemblyId account columns charset | cur/mycur/20240101-20240201/mycur-Manifest.json
    """,
    ),
    Lake(
        "GA4 exports",
        """
        events | json | event_date event_timestamp:int event_name event_params user_pseudo_id | ga4/events_202401{01..09}/part-{000000000000..000000000002}.json
        intraday | json | event_date event_timestamp:int event_name event_params user_pseudo_id | ga4/events_intraday_20240110/part-{000000000000..000000000002}.json
        users | json | pseudo_user_id stream_id user_info device | ga4/pseudonymous_users_202401{01..09}/part-000000000000.json
    """,
    ),
    Lake(
        "Debezium to S3",
        """
        customers | json | before after source op ts_ms:int customer_id:int | cdc/inventory.customers/2024/01/05/{00..02}/inventory.customers+0+{0000000000,0000000100}.json
        orders | json | before after source op ts_ms:int order_number:int | cdc/inventory.orders/2024/01/05/{00..02}/inventory.orders+0+{0000000000,0000000100}.json
        products | json | before after source op ts_ms:int sku | cdc/inventory.products/2024/01/05/{00..02}/inventory.products+0+{0000000000,0000000100}.json
    """,
    ),
    Lake(
        "Fivetran and dbt layers",
        """
        raw contact | parquet | id email _fivetran_synced:time | raw/salesforce/contact/part-{0..2}.parquet
        raw account | parquet | id name industry _fivetran_synced:time | raw/salesforce/account/part-{0..2}.parquet
        hub contact | parquet | vid email lifecycle_stage _fivetran_synced:time | raw/hubspot/contact/part-{0..2}.parquet
        stg contact | parquet | contact_id email | staging/stg_salesforce__contact/part-0.parquet
        mart | parquet | customer_id lifetime_value:float | marts/customers/part-0.parquet
    """,
    ),
    Lake(
        "MLflow runs",
        """
        predictions | csv | id:int y:float y_hat:float | mlruns/0/{hex32}/artifacts/predictions.csv; mlruns/1/{hex32}/artifacts/predictions.csv
        importance | json | feature importance:float | mlruns/0/{hex32}/artifacts/importance.json; mlruns/1/{hex32}/artifacts/importance.json
    """,
    ),
    Lake(
        "Prometheus and app logs",
        """
        access | csv | ip user time request status:int bytes:int | var/log/nginx/access.log; var/log/nginx/access.log.{1..9}.gz
        error | csv | time level pid:int message client | var/log/nginx/error.log; var/log/nginx/error.log.{1..9}.gz
        app | json | ts level msg trace_id | var/log/app/app-2024-01-{01..09}.jsonl
    """,
    ),
    Lake(
        "OPSD time series",
        """
        t15 | csv | utc_timestamp:time AT_load:float DE_load:float | time_series_15min_singleindex.csv
        t30 | csv | utc_timestamp:time GB_load:float IE_load:float | time_series_30min_singleindex.csv
        t60 | csv | utc_timestamp:time AL_load:float AT_load:float BE_load:float CH_load:float DE_load:float | time_series_60min_singleindex.csv
        - | json | name title description resources | datapackage.json
    """,
    ),
    Lake(
        "Smart meters in London",
        """
        blocks | csv | LCLid tstp:time energy:float | halfhourly_dataset/block_{0..111}.csv
        daily | csv | LCLid day:date energy_median:float energy_mean:float energy_max:float | daily_dataset/block_{0..111}.csv
        weather | csv | time:time visibility:float windBearing:int temperature:float | weather_hourly_darksky.csv
        weather daily | csv | temperatureMax:float windBearing:int icon dewPoint:float | weather_daily_darksky.csv
        households | csv | LCLid stdorToU Acorn Acorn_grouped file | informations_households.csv
    """,
    ),
]
