"""A twelfth collection: keys of series, periods, products, places that no list holds, runs with words."""

from .lakes import Lake

TWELFTH = [
    Lake(
        "countries whose codes are words",
        """
        a | csv | year:int yield:float | crops/2021_{AT,BR,IN,QA}_wheat_yields.csv; crops/2022_{AT,BR,IN,QA}_wheat_yields.csv
        b | csv | flock:int eggs:int | farm/flock_{ME,NO,IN}.csv
    """,
    ),
    Lake(
        "what comes in and goes out",
        """
        a | csv | parcel weight:float | dock/parcels_IN_2024.csv
        b | csv | parcel weight:float | dock/parcels_OUT_2024.csv
    """,
    ),
    Lake(
        "quarters, some of them together",
        """
        a | csv | gate visitors:int day:date | zoo/Visitors_2019_Q{1Q2,3Q4}.csv; zoo/Visitors_2020_Q{1,2,3,4}.csv
        b | csv | animal keeper | zoo/Keepers_2020_Q{1,2}.csv
    """,
    ),
    Lake(
        "sequences by length, cut by letters and digits",
        """
        a | csv | column_1 column_2:int column_3:int | kmers/genome-3mers-2021-{0,1,a,c,g,t}.tsv
        b | csv | column_1 column_2:int column_3:int | kmers/genome-4mers-2021-{aa,ac,ag,ca,cg}.tsv
    """,
    ),
    Lake(
        "keys of series",
        """
        a | csv | KEY PERIOD:date VALUE:float STATUS | bank/LFS/LFS.Q.{DE,FR,I9}.S.{000000,YAB120}.7.TOT.csv
        b | csv | KEY PERIOD:date VALUE:float | bank/FXS/FXS.D.{CHF,JPY,SEK}.SP.csv
        c | csv | KEY PERIOD:date VALUE:float UNIT | bank/STS/STS.M.{QX,QY,I9}.W.{000000,YAB120}.csv
    """,
    ),
    Lake(
        "folders of periods that changed their names",
        """
        a | csv | day:date turbine power:float wind:float | wind/2016/2016-03-0{1..4}.csv
        a | csv | day:date turbine power:float wind:float | wind/scada_2018_H1/2018-02-0{1..4}.csv
        a | csv | day:date turbine power:float wind:float farm | wind/readings_Q1_2022/2022-01-0{1..4}.csv; wind/readings_Q2_2022/2022-04-0{1..4}.csv
    """,
    ),
    Lake(
        "folders of one period each by kind",
        """
        a | csv | day:date turbine power:float | wind/onshore_2022/2022-02-0{1..4}.csv
        b | csv | day:date turbine power:float | wind/offshore_2022/2022-02-0{1..4}.csv
    """,
    ),
    Lake(
        "products by number, each with columns of its own",
        """
        a | csv | PERIOD REGION UNIT Crop Soil VALUE:float | bureau/31200144-de/31200144.csv
        b | csv | PERIOD REGION UNIT Vessel VALUE:float | bureau/46331905-de/46331905.csv
        c | csv | PERIOD REGION UNIT Faculty Degree VALUE:float | bureau/21311007-de/21311007.csv
        m | csv | Member_ID:int Label Parent:int | bureau/31200144-de/31200144_Members.csv; bureau/46331905-de/46331905_Members.csv; bureau/21311007-de/21311007_Members.csv
    """,
    ),
    Lake(
        "stations by number",
        """
        a | csv | time level:float flow:float | gauges/48110203-raw/48110203.csv; gauges/48110977-raw/48110977.csv; gauges/48120455-raw/48120455.csv
    """,
    ),
    Lake(
        "domains of a publisher",
        """
        a | csv | AreaCode:int Area ItemCode:int Item Year:int Unit Value:float Flag Grade | agri/Forestry_All_Data/Forestry_All_Data.csv
        b | csv | AreaCode:int Area ItemCode:int Item Year:int Unit Value:float Flag Vessel | agri/Fishery_All_Data/Fishery_All_Data.csv
        c | csv | AreaCode:int Area ItemCode:int Item Year:int Unit Value:float Flag Source | agri/Fertilizer_All_Data/Fertilizer_All_Data.csv
        d | csv | Area M49 Name | agri/Forestry_All_Data/Forestry_AreaCodes.csv; agri/Fishery_All_Data/Fishery_AreaCodes.csv; agri/Fertilizer_All_Data/Fertilizer_AreaCodes.csv
        e | csv | Flag Meaning Since:date | agri/Forestry_All_Data/Forestry_Flags.csv; agri/Fishery_All_Data/Fishery_Flags.csv; agri/Fertilizer_All_Data/Fertilizer_Flags.csv
    """,
    ),
    Lake(
        "lookups without a header",
        """
        a | csv | column_1:int column_2 | fleet/cargo_kind.csv
        b | csv | column_1:int column_2 | fleet/crew_kind.csv
        c | csv | column_1:int column_2 | fleet/engine_kind.csv
        d | csv | column_1:int column_2 | fleet/hull_kind.csv
        e | csv | column_1:int column_2 | fleet/port_kind.csv
        f | csv | column_1:int column_2 | fleet/sail_kind.csv
        g | csv | column_1:int column_2:int column_3 column_4 | fleet/voyage.csv
    """,
    ),
    Lake(
        "features of a graph, one column each",
        """
        a | csv | column_1:int | graph/node-class.csv
        b | csv | column_1:int | graph/node_age.csv
        c | csv | column_1:int column_2:int | graph/links.csv
    """,
    ),
    Lake(
        "filings with a description in each folder",
        """
        a | csv | FILING_ID OWNER | filings/{2021q1,2021q2,2021q3}_form4/OWNERS.tsv
        b | csv | FILING_ID SHARES:int PRICE:float | filings/{2021q1,2021q2,2021q3}_form4/TRADES.tsv
        - | json | @context tables | filings/{2021q1,2021q2,2021q3}_form4/FORM4_metadata.json
    """,
    ),
    Lake(
        "authors of books and of the project",
        """
        a | json | name born:int books | library/authors.json
        b | csv | version released:date notes | library/changes.csv
        - | csv | text | library/AUTHORS; library/CHANGES.md
    """,
    ),
    Lake(
        "parliaments by state and term",
        """
        a | csv | motion:int title state | acts/{BE,HH}/2019-2023_Wahlperiode/csv/motions.csv; acts/BY/2018-2023_18te_Legislatur/csv/motions.csv
        b | csv | member party seat:int | acts/{BE,HH}/2019-2023_Wahlperiode/csv/members.csv; acts/BY/2018-2023_18te_Legislatur/csv/members.csv
        c | csv | motion:int yes:int no:int | acts/{BE,HH}/2019-2023_Wahlperiode/csv/ballots.csv; acts/BY/2018-2023_18te_Legislatur/csv/ballots.csv
    """,
    ),
    Lake(
        "quotes by market and drawer",
        """
        a | csv | T D:int O:float C:float V:int | quotes/hourly/uk/lse stocks/1/{barc,hsba,tsco}.uk.txt; quotes/hourly/uk/lse stocks/2/{ulvr,vod}.uk.txt
        b | csv | T D:int O:float C:float V:int | quotes/hourly/uk/lse etfs/{isf,vusa}.uk.txt
    """,
    ),
    Lake(
        "months between capitals",
        """
        a | csv | practice street town | clinic/M202101ADDRESS LIST.CSV; clinic/M202102ADDRESS LIST.CSV; clinic/M202103ADDRESS LIST.CSV
        b | csv | drug items:int cost:float | clinic/M202101DRUGS LIST.CSV; clinic/M202102DRUGS LIST.CSV; clinic/M202103DRUGS LIST.CSV
    """,
    ),
    Lake(
        "statements before and after quarters",
        """
        a | csv | loan:int amount:float grade rate:float | p2p/LoanBook2{a,b,c,d}.csv; p2p/LoanBook_{2018Q1,2018Q2,2018Q3}.csv
        b | csv | applicant reason day:date | p2p/Declined_{2018Q1,2018Q2,2018Q3}.csv
    """,
    ),
    Lake(
        "cities of which one is small",
        """
        a | parquet | ride:int fare:float at:time | rides/europe/france/paris/{uuid}.parquet; rides/europe/spain/madrid/{uuid}.parquet; rides/asia/japan/otaru/{uuid}.parquet
        b | parquet | driver:int rating:float name | drivers/{uuid}.parquet
    """,
    ),
    Lake(
        "trees by country, state and town",
        """
        a | csv | lon:float lat:float species height:float | trees/us/wa/{seattle,yakima}.csv; trees/us/or/bend.csv; trees/it/{milan,lecce}.csv; trees/at/graz.csv
    """,
    ),
    Lake(
        "tables below countries",
        """
        a | csv | lon:float lat:float species height:float | trees/us/trees.csv; trees/it/trees.csv
        b | csv | id:int crew day:date cost:float | trees/us/prunings.csv; trees/it/prunings.csv
    """,
    ),
    Lake(
        "inventory by qualified type",
        """
        a | json | type id tags seen:time | inventory/2024/2/{3,4}/120034005600_Inventory_eu-west-1_{AWS::RDS::Cluster,AWS::SQS::Queue,AWS::ECS::Task}_20240203T011500Z_1.json.gz
    """,
    ),
    Lake(
        "results of queries",
        """
        a | csv | branch turnover:float | results/2024/02/05/{uuid}.csv
        a | csv | customer:int since:date value:float | results/2024/02/06/{uuid}.csv
        a | csv | page hits:int bounce:float | results/2024/02/07/{uuid}.csv
        a | csv | sku stock:int shelf | results/2024/02/08/{uuid}.csv
    """,
    ),
    Lake(
        "tables of a dump by number",
        """
        a | csv | column_1:int column_2 column_3:float | dump/5101.dat
        a | csv | column_1:int column_2:int column_3 column_4:time column_5 | dump/5103.dat
        a | csv | column_1 column_2:date | dump/5104.dat
    """,
    ),
    Lake(
        "runs with words before their tables",
        """
        a | csv | url hits:int median:float p95:float | perf/cold_50vu_summary.csv; perf/cold_200vu_summary.csv; perf/warm_up_200vu_summary.csv; perf/warm_up_800vu_summary.csv
        b | csv | at:time url code:int message | perf/cold_50vu_faults.csv; perf/cold_200vu_faults.csv; perf/warm_up_200vu_faults.csv; perf/warm_up_800vu_faults.csv
        c | csv | at:time cpu:float memory:float | perf/cold_50vu_load.csv; perf/cold_200vu_load.csv; perf/warm_up_200vu_load.csv; perf/warm_up_800vu_load.csv
    """,
    ),
    Lake(
        "figures of apps by dimension",
        """
        a | csv | Date:date Package Crashes:int Users:int | store/crashes_org.acorn.maps_20230{7..9}_overview.csv
        b | csv | Date:date Package Device Crashes:int Users:int | store/crashes_org.acorn.maps_20230{7..9}_device.csv
        c | csv | Date:date Package Country Crashes:int Users:int | store/crashes_org.acorn.maps_20230{7..9}_country.csv
    """,
    ),
    Lake(
        "lists by a code of the day",
        """
        a | csv | column_1:int column_2 | ranks/list_{K3TV9,ZQ0AD,MMXP2,BD7FQ}.csv
    """,
    ),
    Lake(
        "parts of town",
        """
        a | parquet | bin:int emptied:time crew weight:float | waste/pickups/{Harbour Side,Old Mill,Westbank}/part-0.parquet
        b | parquet | truck:int plate tons:float | waste/trucks/part-0.parquet
    """,
    ),
    Lake(
        "peoples of a game",
        """
        a | csv | unit_key hp:int damage:float cost:int | balance/units_{dwarves,goblins,trolls,undead}.csv
    """,
    ),
    Lake(
        "companies before a dollar",
        """
        a | csv | No Name City Terms | erp/{NORDIC AS,NORDIC GmbH,NORDIC Ltd_}$Customer.csv
        b | csv | No Amount:float Posted:date | erp/{NORDIC AS,NORDIC GmbH,NORDIC Ltd_}$Ledger Entry.csv
        c | csv | No Item Quantity:float | erp/{NORDIC AS,NORDIC GmbH,NORDIC Ltd_}$Item Entry.csv
    """,
    ),
    Lake(
        "documents by number of their kind",
        """
        a | json | control:int sender receiver city order lines | edi/ACME/850/ACME_850_00000{1..4}.json; edi/BOLT/850/BOLT_850_00000{1..4}.json
        b | json | control:int sender receiver city shipment carrier cartons | edi/ACME/856/ACME_856_00000{1..4}.json; edi/BOLT/856/BOLT_856_00000{1..4}.json
    """,
    ),
]
