"""Public datasets as they lie in buckets and portals."""

from .lakes import Lake

PUBLIC = [
    Lake(
        "New York taxi trips",
        """
        yellow | parquet | VendorID:int tpep_pickup_datetime:time tpep_dropoff_datetime:time passenger_count:float trip_distance:float RatecodeID:float store_and_fwd_flag PULocationID:int DOLocationID:int payment_type:int fare_amount:float total_amount:float | trip-data/yellow_tripdata_2023-{01..12}.parquet
        yellow | parquet | VendorID:int tpep_pickup_datetime:time tpep_dropoff_datetime:time passenger_count:int trip_distance:float RatecodeID:int store_and_fwd_flag PULocationID:int DOLocationID:int payment_type:int fare_amount:float total_amount:float Airport_fee:float | trip-data/yellow_tripdata_2024-{01..02}.parquet
        green | parquet | VendorID:int lpep_pickup_datetime:time lpep_dropoff_datetime:time passenger_count:float trip_distance:float RatecodeID:float store_and_fwd_flag PULocationID:int DOLocationID:int payment_type:int fare_amount:float total_amount:float trip_type:float | trip-data/green_tripdata_2023-{01..12}.parquet
        fhv | parquet | dispatching_base_num pickup_datetime:time dropOff_datetime:time PUlocationID:float DOlocationID:float SR_Flag Affiliated_base_number | trip-data/fhv_tripdata_2023-{01..12}.parquet
        zones | csv | LocationID:int Borough Zone service_zone | misc/taxi_zone_lookup.csv
    """,
    ),
    Lake(
        "taxis with one schema",
        """
        yellow | csv | id:int pickup:time dropoff:time fare:float | yellow_tripdata_2020-{01..03}.csv
        green | csv | id:int pickup:time dropoff:time fare:float | green_tripdata_2020-{01..03}.csv
    """,
    ),
    Lake(
        "NOAA daily climate",
        """
        by_year | csv | ID DATE:int ELEMENT DATA_VALUE:int M_FLAG Q_FLAG S_FLAG OBS_TIME | csv/by_year/{1763..1770}.csv; csv/by_year/{2018..2024}.csv
        by_station | csv | ID DATE:int ELEMENT DATA_VALUE:int M_FLAG Q_FLAG S_FLAG OBS_TIME | csv/by_station/USW000{94728,94846,14739}.csv; csv/by_station/AE000041196.csv; csv/by_station/ASN00086071.csv; csv/by_station/CA001012040.csv
        parquet | parquet | ID DATE DATA_VALUE:int M_FLAG Q_FLAG S_FLAG OBS_TIME | parquet/by_year/YEAR={2020..2023}/ELEMENT={TMAX,TMIN,PRCP}/{hex32}_0.snappy.parquet
    """,
    ),
    Lake(
        "NOAA hourly",
        """
        lcd | csv | STATION DATE:time REPORT_TYPE SOURCE HourlyAltimeterSetting | isd/{2020..2022}/{72}5{030..034}14732.csv
    """,
    ),
    Lake(
        "station files in numbers",
        """
        gsod | csv | STATION:int DATE:date LATITUDE:float LONGITUDE:float TEMP:float | {2021..2023}/{0100}1099999.csv; {2021..2023}/72565003017.csv; {2021..2023}/A0735500241.csv
    """,
    ),
    Lake(
        "station list beside a folder per year",
        """
        gsod | csv | STATION:int DATE:date TEMP:float DEWP:float | gsod/{2021..2023}/01{001..020}099999.csv
        stations | csv | USAF WBAN name country lat:float lon:float | gsod/isd-history.csv
    """,
    ),
    Lake(
        "GDELT",
        """
        export | csv | GLOBALEVENTID:int SQLDATE:int MonthYear:int Year:int Actor1Code Actor1Name | v2/{20240105120000,20240105121500,20240105123000}.export.CSV
        mentions | csv | GLOBALEVENTID:int EventTimeDate:int MentionTimeDate:int MentionType:int | v2/{20240105120000,20240105121500,20240105123000}.mentions.CSV
        gkg | csv | GKGRECORDID DATE:int SourceCollectionIdentifier:int SourceCommonName Themes | v2/{20240105120000,20240105121500,20240105123000}.gkg.csv
    """,
    ),
    Lake(
        "page views",
        """
        pageviews | csv | domain_code page_title count_views:int total_size:int | pageviews/2024/2024-{01..02}/pageviews-2024{01}{01..03}-{00..05}0000.gz
        projectviews | csv | domain_code dash count:int | pageviews/2024/2024-{01..02}/projectviews-2024{01}{01..03}-{00..05}0000
    """,
    ),
    Lake(
        "GitHub archive",
        """
        events | json | id type actor repo payload public created_at | 2015-01-{01..03}-{0..23}.json.gz
    """,
    ),
    Lake(
        "Citi Bike",
        """
        trips | csv | tripduration:int starttime:time stoptime:time bikeid:int usertype | 2019{01..12}-citibike-tripdata.csv
        trips | csv | ride_id rideable_type started_at:time ended_at:time start_station_id usertype | 2021{01..12}-citibike-tripdata.csv
    """,
    ),
    Lake(
        "Divvy bikes",
        """
        trips | csv | trip_id:int start_time:time end_time:time bikeid:int | Divvy_Trips_2019_Q{1..4}.csv; Divvy_Trips_2018_Q{1..4}.csv
        stations | csv | id:int name latitude:float longitude:float dpcapacity:int | Divvy_Stations_2017_Q3Q4.csv
    """,
    ),
    Lake(
        "MovieLens",
        """
        ratings | csv | userId:int movieId:int rating:float timestamp:int | ml-25m/ratings.csv
        movies | csv | movieId:int title genres | ml-25m/movies.csv
        tags | csv | userId:int movieId:int tag timestamp:int | ml-25m/tags.csv
        links | csv | movieId:int imdbId tmdbId:int | ml-25m/links.csv
        scores | csv | movieId:int tagId:int relevance:float | ml-25m/genome-scores.csv
        genome | csv | tagId:int tag | ml-25m/genome-tags.csv
        - | - | | ml-25m/README.txt
    """,
    ),
    Lake(
        "MovieLens in two sizes",
        """
        small | csv | userId:int movieId:int rating:float timestamp:int | ml-latest-small/ratings.csv
        big | csv | userId:int movieId:int rating:float timestamp:int | ml-25m/ratings.csv
        movies small | csv | movieId:int title genres | ml-latest-small/movies.csv
        movies big | csv | movieId:int title genres | ml-25m/movies.csv
    """,
    ),
    Lake(
        "IMDb",
        """
        names | csv | nconst primaryName birthYear:int deathYear:int primaryProfession knownForTitles | name.basics.tsv.gz
        akas | csv | titleId ordering:int title region language types attributes isOriginalTitle:int | title.akas.tsv.gz
        basics | csv | tconst titleType primaryTitle originalTitle isAdult:int startYear:int endYear:int runtimeMinutes:int genres | title.basics.tsv.gz
        crew | csv | tconst directors writers | title.crew.tsv.gz
        episode | csv | tconst parentTconst seasonNumber:int episodeNumber:int | title.episode.tsv.gz
        principals | csv | tconst ordering:int nconst category job characters | title.principals.tsv.gz
        ratings | csv | tconst averageRating:float numVotes:int | title.ratings.tsv.gz
    """,
    ),
    Lake(
        "Titanic",
        """
        train | csv | PassengerId:int Survived:int Pclass:int Name Sex Age:float SibSp:int Parch:int Ticket Fare:float Cabin Embarked | titanic/train.csv
        test | csv | PassengerId:int Pclass:int Name Sex Age:float SibSp:int Parch:int Ticket Fare:float Cabin Embarked | titanic/test.csv
        submission | csv | PassengerId:int Survived:int | titanic/gender_submission.csv
    """,
    ),
    Lake(
        "Instacart",
        """
        aisles | csv | aisle_id:int aisle | aisles.csv
        departments | csv | department_id:int department | departments.csv
        orders | csv | order_id:int user_id:int eval_set order_number:int order_dow:int | orders.csv
        products | csv | product_id:int product_name aisle_id:int department_id:int | products.csv
        prior | csv | order_id:int product_id:int add_to_cart_order:int reordered:int | order_products__prior.csv
        train | csv | order_id:int product_id:int add_to_cart_order:int reordered:int | order_products__train.csv
    """,
    ),
    Lake(
        "Olist shop",
        """
        customers | csv | customer_id customer_unique_id customer_zip_code_prefix customer_city customer_state | olist_customers_dataset.csv
        geolocation | csv | geolocation_zip_code_prefix geolocation_lat:float geolocation_lng:float | olist_geolocation_dataset.csv
        items | csv | order_id order_item_id:int product_id seller_id price:float | olist_order_items_dataset.csv
        payments | csv | order_id payment_sequential:int payment_type payment_value:float | olist_order_payments_dataset.csv
        orders | csv | order_id customer_id order_status order_purchase_timestamp:time | olist_orders_dataset.csv
        sellers | csv | seller_id seller_zip_code_prefix seller_city seller_state | olist_sellers_dataset.csv
        categories | csv | product_category_name product_category_name_english | product_category_name_translation.csv
    """,
    ),
    Lake(
        "Covid daily reports",
        """
        daily | csv | Province/State Country/Region Last_Update:time Confirmed:int Deaths:int Recovered:int | csse_covid_19_daily_reports/0{1..3}-{01..28}-2020.csv
        daily | csv | FIPS:int Admin2 Province_State Country_Region Last_Update:time Lat:float Long_:float Confirmed:int Deaths:int Recovered:int Active:int | csse_covid_19_daily_reports/0{4..6}-{01..28}-2020.csv
        daily us | csv | Province_State Country_Region Last_Update:time Lat:float Long_:float Confirmed:int Deaths:int | csse_covid_19_daily_reports_us/0{4..6}-{12..28}-2020.csv
        confirmed | csv | Province/State Country/Region Lat:float Long:float 1/22/20:int 1/23/20:int | csse_covid_19_time_series/time_series_covid19_confirmed_global.csv
        deaths | csv | Province/State Country/Region Lat:float Long:float 1/22/20:int 1/23/20:int | csse_covid_19_time_series/time_series_covid19_deaths_global.csv
        recovered | csv | Province/State Country/Region Lat:float Long:float 1/22/20:int 1/23/20:int | csse_covid_19_time_series/time_series_covid19_recovered_global.csv
    """,
    ),
    Lake(
        "stocks and funds",
        """
        stocks | csv | Date:date Open:float High:float Low:float Close:float Adj_Close:float Volume:int | stocks/{A,AA,AAPL,MSFT,GOOG,BRK-B,TSLA,ZTS}.csv
        etfs | csv | Date:date Open:float High:float Low:float Close:float Adj_Close:float Volume:int | etfs/{SPY,QQQ,VTI,EEM}.csv
        symbols | csv | Nasdaq_Traded Symbol Security_Name Listing_Exchange ETF | symbols_valid_meta.csv
    """,
    ),
    Lake(
        "lower-case tickers",
        """
        stocks | csv | Date:date Open:float High:float Low:float Close:float Volume:int OpenInt:int | Stocks/{a,aapl,msft,googl,ibm,tsla}.us.txt
        etfs | csv | Date:date Open:float High:float Low:float Close:float Volume:int OpenInt:int | ETFs/{spy,qqq,vti,eem}.us.txt
    """,
    ),
    Lake(
        "Open AQ",
        """
        records | csv | location_id:int sensors_id:int location datetime lat:float lon:float parameter units value:float | records/csv.gz/locationid={2178,2179,3000}/year={2022,2023}/month={01..03}/location-2178-2022{01}{01..03}.csv.gz
    """,
    ),
    Lake(
        "Ookla",
        """
        performance | parquet | quadkey tile avg_d_kbps:int avg_u_kbps:int avg_lat_ms:int tests:int devices:int | parquet/performance/type={fixed,mobile}/year={2019..2021}/quarter={1..4}/2019-01-01_performance_tiles.parquet
    """,
    ),
    Lake(
        "Overture maps",
        """
        place | parquet | id geometry bbox names categories confidence:float websites socials | release/2024-01-17-alpha.0/theme=places/type=place/part-{00000..00003}-{uuid}-c000.zstd.parquet
        building | parquet | id geometry bbox height:float num_floors:int level:int class | release/2024-01-17-alpha.0/theme=buildings/type=building/part-{00000..00003}-{uuid}-c000.zstd.parquet
        segment | parquet | id geometry bbox road connectors subtype width:float | release/2024-01-17-alpha.0/theme=transportation/type=segment/part-{00000..00003}-{uuid}-c000.zstd.parquet
        connector | parquet | id geometry bbox | release/2024-01-17-alpha.0/theme=transportation/type=connector/part-{00000..00003}-{uuid}-c000.zstd.parquet
    """,
    ),
    Lake(
        "OpenAlex",
        """
        works | json | id doi title publication_year:int cited_by_count:int authorships | data/works/updated_date=2024-01-{01..04}/part_{000..002}.gz
        authors | json | id orcid display_name works_count:int cited_by_count:int last_known_institution | data/authors/updated_date=2024-01-{01..04}/part_{000..002}.gz
        venues | json | id issn_l issn display_name publisher works_count:int | data/venues/updated_date=2024-01-{01..04}/part_000.gz
        - | json | entries meta | data/works/manifest.json; data/authors/manifest.json
    """,
    ),
    Lake(
        "public blockchain",
        """
        btc blocks | parquet | hash size:int stripped_size:int weight:int number:int version:int | v1.0/btc/blocks/date=2024-01-{01..05}/{hex40}.snappy.parquet
        btc tx | parquet | hash size:int virtual_size:int version:int lock_time:int block_hash inputs outputs | v1.0/btc/transactions/date=2024-01-{01..05}/{hex40}.snappy.parquet
        eth blocks | parquet | timestamp:time number:int hash parent_hash nonce sha3_uncles miner gas_used:int | v1.0/eth/blocks/date=2024-01-{01..05}/{hex40}.snappy.parquet
        eth tx | parquet | hash nonce:int transaction_index:int from_address to_address value:float gas:int | v1.0/eth/transactions/date=2024-01-{01..05}/{hex40}.snappy.parquet
    """,
    ),
    Lake(
        "Amazon reviews",
        """
        reviews tsv | csv | marketplace customer_id:int review_id product_id star_rating:int review_body review_date:date | tsv/amazon_reviews_us_{Books,Toys,Electronics,Furniture,Grocery,Music}_v1_0{0..2}.tsv.gz
        reviews | parquet | marketplace customer_id review_id product_id star_rating:int review_body review_date:date year:int | parquet/product_category={Books,Toys,Electronics}/part-{00000..00003}-{uuid}-c000.snappy.parquet
    """,
    ),
    Lake(
        "on-time flights",
        """
        flights | csv | Year:int Quarter:int Month:int FlightDate:date Reporting_Airline Origin Dest DepDelay:float | On_Time_Reporting_Carrier_On_Time_Performance_(1987_present)_{2019..2020}_{1..12}.csv
    """,
    ),
    Lake(
        "Beijing air",
        """
        air | csv | No:int year:int month:int day:int hour:int PM2.5:float station | PRSA_Data_{Aotizhongxin,Changping,Dingling,Dongsi,Guanyuan,Gucheng}_20130301-20170228.csv
    """,
    ),
    Lake(
        "wine quality",
        """
        red | csv | fixed_acidity:float volatile_acidity:float citric_acid:float quality:int | winequality-red.csv
        white | csv | fixed_acidity:float volatile_acidity:float citric_acid:float quality:int | winequality-white.csv
    """,
    ),
    Lake(
        "crime by month and force",
        """
        street | csv | Crime_ID Month Reported_by Falls_within Longitude:float Latitude:float Crime_type | 2023-{01..03}/2023-{01}-{avon-and-somerset,bedfordshire,cambridgeshire,cheshire,cleveland}-street.csv
        outcomes | csv | Crime_ID Month Reported_by Outcome_type LSOA_code | 2023-{01..03}/2023-{01}-{avon-and-somerset,bedfordshire,cambridgeshire,cheshire,cleveland}-outcomes.csv
    """,
    ),
    Lake(
        "football seasons",
        """
        results | csv | Div Date HomeTeam AwayTeam FTHG:int FTAG:int FTR | season-{0910,1011,1112,1213}.csv
    """,
    ),
    Lake(
        "seasons in years",
        """
        results | csv | Div Date HomeTeam AwayTeam FTHG:int FTAG:int FTR | england/{2009-10,2010-11,2011-12,2012-13,2018-19,2019-20}.csv
    """,
    ),
    Lake(
        "Hugging Face parquet",
        """
        squad | parquet | id title context question answers | plain_text/train-0000{0..3}-of-00004.parquet; plain_text/validation-00000-of-00001.parquet
    """,
    ),
    Lake(
        "Hugging Face json by language",
        """
        mc4 | json | text timestamp url | multilingual/c4-{en,de,fr,es}.tfrecord-0000{0..4}-of-00005.json.gz
    """,
    ),
    Lake(
        "digits in csv",
        """
        train | csv | label:int p1:int p2:int p3:int | mnist_train.csv
        test | csv | label:int p1:int p2:int p3:int | mnist_test.csv
    """,
    ),
    Lake(
        "SEC filings",
        """
        companyfacts | json | cik:int entityName facts | companyfacts/CIK0000{320193,789019,1018724}.json
        submissions | json | cik:int entityType sic name tickers filings | submissions/CIK0000{320193,789019,1018724}.json
    """,
    ),
    Lake(
        "World Bank indicator",
        """
        data | csv | Country_Name Country_Code Indicator_Name Indicator_Code 1960:float 1961:float | API_SP.POP.TOTL_DS2_en_csv_v2_2445354.csv
        country | csv | Country_Code Region IncomeGroup SpecialNotes TableName | Metadata_Country_API_SP.POP.TOTL_DS2_en_csv_v2_2445354.csv
        indicator | csv | INDICATOR_CODE INDICATOR_NAME SOURCE_NOTE SOURCE_ORGANIZATION | Metadata_Indicator_API_SP.POP.TOTL_DS2_en_csv_v2_2445354.csv
    """,
    ),
    Lake(
        "Common Crawl index",
        """
        index | parquet | url_surtkey url url_host_name fetch_time:time fetch_status:int warc_filename | cc-index/table/cc-main/warc/crawl=CC-MAIN-2024-{10,18,22}/subset={warc,robotstxt}/part-{00000..00002}-{uuid}.c000.gz.parquet
    """,
    ),
    Lake(
        "Airbnb cities",
        """
        listings | csv | id:int name host_id:int neighbourhood latitude:float price:float | {amsterdam,berlin,paris,london}/2024-03-11/listings.csv
        calendar | csv | listing_id:int date:date available price minimum_nights:int | {amsterdam,berlin,paris,london}/2024-03-11/calendar.csv
        reviews | csv | listing_id:int id:int date:date reviewer_id:int comments | {amsterdam,berlin,paris,london}/2024-03-11/reviews.csv
    """,
    ),
    Lake(
        "US states",
        """
        housing | csv | SERIALNO DIVISION:int PUMA REGION:int ST:int | pums/csv_h{al,ak,az,ca,ny,tx}.csv
    """,
    ),
    Lake(
        "Binance candles",
        """
        klines | csv | open_time:int open:float high:float low:float close:float volume:float | spot/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2024-01-{01..05}.csv; spot/daily/klines/ETHUSDT/1h/ETHUSDT-1h-2024-01-{01..05}.csv; spot/daily/klines/ADAUSDT/1h/ADAUSDT-1h-2024-01-{01..05}.csv
        trades | csv | trade_id:int price:float qty:float quote_qty:float time:int is_buyer_maker | spot/daily/trades/BTCUSDT/BTCUSDT-trades-2024-01-{01..05}.csv; spot/daily/trades/ETHUSDT/ETHUSDT-trades-2024-01-{01..05}.csv; spot/daily/trades/ADAUSDT/ADAUSDT-trades-2024-01-{01..05}.csv
    """,
    ),
    Lake(
        "Yelp",
        """
        business | json | business_id name address city state stars:float review_count:int | yelp_academic_dataset_business.json
        checkin | json | business_id date | yelp_academic_dataset_checkin.json
        review | json | review_id user_id business_id stars:float date text | yelp_academic_dataset_review.json
        tip | json | user_id business_id text date compliment_count:int | yelp_academic_dataset_tip.json
        user | json | user_id name review_count:int yelping_since friends fans:int | yelp_academic_dataset_user.json
    """,
    ),
    Lake(
        "Reddit dumps",
        """
        comments | json | id author body subreddit created_utc:int score:int link_id parent_id | comments/RC_2023-{01..06}.zst
        submissions | json | id author title selftext subreddit created_utc:int score:int num_comments:int url | submissions/RS_2023-{01..06}.zst
    """,
    ),
    Lake(
        "NASA turbofan",
        """
        train | csv | unit:int cycle:int setting1:float s1:float s2:float | train_FD00{1..4}.txt
        test | csv | unit:int cycle:int setting1:float s1:float s2:float | test_FD00{1..4}.txt
        rul | csv | RUL:int | RUL_FD00{1..4}.txt
    """,
    ),
]
