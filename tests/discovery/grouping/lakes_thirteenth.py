"""A thirteenth collection: points, species, samples, channels, months in other languages, tables crossed with values."""

from .lakes import Lake

THIRTEENTH = [
    Lake(
        "points on a map",
        """
        a | csv | YEAR:int DOY:int T2M:float RAIN:float | grid/Point_Daily_20200101_20201231_051d50N_000d13W.csv; grid/Point_Daily_20210101_20211231_051d50N_000d13W.csv; grid/Point_Daily_20200101_20201231_048d85N_002d35E.csv
    """,
    ),
    Lake(
        "species with an assembly each",
        """
        a | csv | gene_id protein_id xref db_name | genomes/gallus_gallus/Gallus_gallus.GRCg7b.110.proteins.tsv.gz; genomes/rattus_rattus/Rattus_rattus.Rrattus11.110.proteins.tsv.gz; genomes/apis_mellifera/Apis_mellifera.Amel45.110.proteins.tsv.gz
        b | csv | gene_id synonym source score:int | genomes/gallus_gallus/Gallus_gallus.GRCg7b.110.synonyms.tsv.gz; genomes/rattus_rattus/Rattus_rattus.Rrattus11.110.synonyms.tsv.gz; genomes/apis_mellifera/Apis_mellifera.Amel45.110.synonyms.tsv.gz
        c | csv | band start:int stop:int | genomes/gallus_gallus/Gallus_gallus.GRCg7b.110.karyotype.tsv.gz; genomes/rattus_rattus/Rattus_rattus.Rrattus11.110.karyotype.tsv.gz
    """,
    ),
    Lake(
        "samples with an id each",
        """
        a | csv | gene count:int | series/GSM7700101_wild_rep1_counts.txt; series/GSM7700102_wild_rep2_counts.txt; series/GSM7700103_mutant_rep1_counts.txt; series/GSM7700104_mutant_rep2_counts.txt
        b | csv | sample title tissue | series/samples.csv
    """,
    ),
    Lake(
        "measures of the same stations",
        """
        a | csv | at:time value:float flag | net/ST7700101_ozone_hourly.csv; net/ST7700102_ozone_hourly.csv
        b | csv | at:time value:float flag | net/ST7700101_dust_hourly.csv; net/ST7700102_dust_hourly.csv
    """,
    ),
    Lake(
        "snapshots of a dataflow",
        """
        a | csv | column_1:int column_2 column_3:float | flows/Leases/Leases.csv.snapshots/Leases.csv@snapshot=2024-03-0{1..3}T04:05:06.1234567Z.csv
        - | json | name version entities | flows/model.json; flows/model.json.snapshots/model.json@snapshot=2024-03-01T04:05:06.1234567Z
    """,
    ),
    Lake(
        "channels of a chat beside their list",
        """
        a | json | id name created:int | chat/channels.json
        b | json | type user text ts | chat/{announcements,lunch,offtopic,support}/2024-03-0{1..4}.json
    """,
    ),
    Lake(
        "telemetry under random names",
        """
        a | json | device reading unit sent:time | telemetry/5b1c2d3e-aaaa-bbbb-cccc-0123456789ab/{0,1,2}/2024/03/04/10/{11,12}/{rand8}.json
    """,
    ),
    Lake(
        "months in German and in Spanish",
        """
        a | csv | Ware Land Menge:float Wert:float | waren/Einfuhr_{Januar,Februar,März}_2024.csv
        b | csv | Ware Land Menge:float Wert:float | waren/Ausfuhr_{Januar,Februar,März}_2024.csv
        c | csv | fecha:date tienda importe:float | ventas/cierre_{enero,febrero,marzo}_2024.csv
    """,
    ),
    Lake(
        "a dump with descriptions in between",
        """
        a | csv | column_1:int column_2 column_3:time | dump/zoo@animals@{0..2}.tsv.zst; dump/zoo@animals@@3.tsv.zst
        b | csv | column_1:int column_2 column_3 column_4 | dump/zoo@keepers@@0.tsv.zst
        - | json | version schemas basenames | dump/@.json; dump/@.done.json
        - | json | options includesData includesDdl | dump/zoo.json; dump/zoo@animals.json; dump/zoo@keepers.json
    """,
    ),
    Lake(
        "sources cut into parts",
        """
        a | json | id text source created | corpus/forum-{0000..0003}.json.gz
        b | json | id text source created | corpus/encyclopedia-{0000..0003}.json.gz
        c | json | id text source created | corpus/crawl_head-{0000..0003}.json.gz
        d | json | id text source created | corpus/crawl_tail-{0000..0003}.json.gz
    """,
    ),
    Lake(
        "pairs with bars of an hour and of a day",
        """
        a | csv | time open:float high:float low:float close:float | bars/EURSEK/EURSEK_H1_{202301,202302}.csv; bars/GBPCHF/GBPCHF_H1_{202301,202302}.csv; bars/XAGUSD/XAGUSD_H1_{202301,202302}.csv
        b | csv | time open:float high:float low:float close:float | bars/EURSEK/EURSEK_D1_2023.csv; bars/GBPCHF/GBPCHF_D1_2023.csv; bars/XAGUSD/XAGUSD_D1_2023.csv
    """,
    ),
    Lake(
        "codes of countries and their regions",
        """
        a | csv | date:date key cases:int deaths:int | health/location/{AT,CH,AT_W,CH_ZH}.csv
    """,
    ),
    Lake(
        "extracts of countries, some of their states",
        """
        a | csv | id:int lat:float lon:float name | map/shops/{europe/austria,europe/germany/bremen,europe/germany/hamburg,asia/nepal}/shops-latest.csv
        b | csv | id:int kind name length:float | map/paths/{europe/austria,europe/germany/bremen,europe/germany/hamburg,asia/nepal}/paths-latest.csv
    """,
    ),
    Lake(
        "keys and values in names",
        """
        a | csv | onset:float duration:float kind | brain/sub-01/sub-01_task-listen_events.tsv; brain/sub-02/sub-02_task-listen_events.tsv; brain/sub-01/sub-01_task-move_events.tsv; brain/sub-02/sub-02_task-move_events.tsv
        b | csv | name type units | brain/sub-01/sub-01_task-listen_channels.tsv; brain/sub-02/sub-02_task-listen_channels.tsv; brain/sub-01/sub-01_task-move_channels.tsv; brain/sub-02/sub-02_task-move_channels.tsv
    """,
    ),
    Lake(
        "interfaces with a number each",
        """
        a | json | Report_Entry | hr/INT014_Payslips_2024-02-0{1,2}-07-30-00.json
        b | json | Report_Entry | hr/INT027_Positions_2024-02-0{1,2}-07-30-00.json
    """,
    ),
    Lake(
        "curves of runs, two of each",
        """
        a | csv | wall:float step:int value:float | curves/run-base-tag-train_error.csv; curves/run-wide-tag-train_error.csv; curves/run-deep-tag-train_error.csv
        b | csv | wall:float step:int value:float | curves/run-base-tag-val_error.csv; curves/run-wide-tag-val_error.csv; curves/run-deep-tag-val_error.csv
    """,
    ),
    Lake(
        "kinds of sensors with columns of their own",
        """
        a | csv | at:time pressure:float temp:float humidity:float | air/2024-01-0{5,6}/{bmx77_sensor_11,bmx77_sensor_14}.csv
        b | csv | at:time temp:float humidity:float | air/2024-01-0{5,6}/{dhq22_sensor_12,dhq22_sensor_15}.csv
    """,
    ),
    Lake(
        "statistics by number before a year and a month",
        """
        a | csv | make model fuel new:int | cars/FZ_10_2023_0{1..3}.csv
        b | csv | district cars:int lorries:int bikes:int | cars/FZ_1_{2022,2023}.csv
        c | csv | postcode vans:int electric:int | cars/FZ_3_{2022,2023}.csv
    """,
    ),
    Lake(
        "a year that is not over",
        """
        a | csv | item reader out:date due:date | loans/Loans 2022.csv; loans/Loans 2023.csv; loans/Loans 2024 (until May).csv
        b | csv | item reader reserved:date | loans/Reservations 2022.csv; loans/Reservations 2023.csv
    """,
    ),
    Lake(
        "labels by hand",
        """
        a | csv | photo x:int y:int label | labels/pass_2024-01-05_{anna,zita}.csv; labels/pass_2024-01-06_{anna,carla}.csv
    """,
    ),
    Lake(
        "ports of which one sounds like a table",
        """
        a | csv | imo:int port arrival:time departure:time | calls/{rotterdam,antwerp,hamburg,algeciras,kotka}_2023.csv
    """,
    ),
    Lake(
        "companies as folders",
        """
        a | csv | emp:int gross:float net:float | payroll/{Bolt GmbH,Bolt SAS,Bolt Inc}/2024-0{1,2}.csv
    """,
    ),
    Lake(
        "servers of a game",
        """
        a | json | match:int players events | replays/EUW/EUW1_67000{1..3}.json; replays/KR/KR_68000{1..3}.json
    """,
    ),
    Lake(
        "people in one word",
        """
        a | csv | day:date time reading:int | glucose/{JillSmith,OleHansen,PiaRossi}_glucose_2024-01-05.csv
    """,
    ),
    Lake(
        "processes of a cluster",
        """
        a | json | ts level logger msg | logs/checkout-7d9f8b6c5-x2k4p/app.2024-01-0{5,6}.json; logs/checkout-7d9f8b6c5-q9zv7/app.2024-01-05.json; logs/checkout-5c8d7f9b4-t6wkd/app.2024-01-06.json
    """,
    ),
    Lake(
        "people as folders",
        """
        a | csv | day:date what amount:float | Expenses/Meier, Anna/2024-0{1,2}.csv; Expenses/Okoro, Chidi/2024-0{1,2}.csv; Expenses/Lund, Siv/2024-0{1,2}.csv
    """,
    ),
    Lake(
        "lots of a town",
        """
        a | csv | at:time free:int total:int | parking/lot_{cathedral,fairground,old_mill}_2023{11,12}.csv
        b | csv | plate street fine:float | parking/2023_{Q3,Q4}_tickets.csv
    """,
    ),
    Lake(
        "members of an ensemble",
        """
        a | csv | year:int month:int tas:float | runs/tas_mon_ABC-ESM1-2-LR_ssp126_r1i1p1f1_201501-203412.csv; runs/tas_mon_ABC-ESM1-2-LR_ssp126_r2i1p1f1_201501-203412.csv; runs/tas_mon_XYESM2-0-LL_ssp370_r1i1p1f2_201501-204912.csv
        b | csv | year:int month:int rain:float snow:float | runs/pr_mon_ABC-ESM1-2-LR_ssp126_r1i1p1f1_201501-203412.csv; runs/pr_mon_XYESM2-0-LL_ssp370_r1i1p1f2_201501-204912.csv
    """,
    ),
    Lake(
        "evenings at a theatre",
        """
        a | csv | seat price:float sold:time | box office/2024-02-17 - Opening night.csv; box office/2024-03-02 - Matinee.csv; box office/2024-03-09 - Benefit.csv
    """,
    ),
    Lake(
        "tables of different days",
        """
        a | csv | id:int name at:time | inbox/2024-02-17_visitors.csv
        b | csv | id:int name at:time | inbox/2024-03-02_sponsors.csv
        c | csv | id:int name at:time | inbox/2024-03-09_volunteers.csv
    """,
    ),
    Lake(
        "collars in two seasons",
        """
        a | csv | at:time lat:float lon:float hdop:float | sheep/collar_0{1..4}_{spring,autumn}.csv
    """,
    ),
    Lake(
        "conditions of an experiment in names",
        """
        a | csv | x:float y:float z:float | doe/T=300K_P=1bar.csv; doe/T=300K_P=5bar.csv; doe/T=350K_P=1bar.csv; doe/T=350K_P=5bar.csv
    """,
    ),
    Lake(
        "tables of a yearbook by number",
        """
        a | csv | region births:int deaths:int | yearbook/{2022,2023}/02-01-01.csv
        a | csv | branch staff:int wages:float | yearbook/{2022,2023}/06-03-02.csv
        a | csv | crop area:float harvest:float | yearbook/{2022,2023}/11-02-04.csv
    """,
    ),
    Lake(
        "rooms with two measures",
        """
        a | csv | time value:float | export/Temperature (°C) - {Room 101,Room 102,Lobby}.csv
        b | csv | time value:float | export/Humidity (%) - {Room 101,Room 102,Lobby}.csv
    """,
    ),
    Lake(
        "lines and shifts, some without a stop",
        """
        a | csv | order made:int scrap:int | mes/Line{1..3}/output_2024-01-0{5,6}_{Early,Late,Night}.csv
        b | csv | cause since:time minutes:int | mes/Line1/stops_2024-01-05_Early.csv; mes/Line2/stops_2024-01-06_Late.csv; mes/Line1/stops_2024-01-06_Night.csv
    """,
    ),
    Lake(
        "machines by what they do",
        """
        a | csv | at:time user:float system:float idle:float | sar/20240105/sar_cpu_web01.csv; sar/20240106/sar_cpu_web02.csv; sar/20240105/sar_cpu_db01.csv; sar/20240106/sar_cpu_cache01.csv
        b | csv | at:time free:int used:int | sar/20240105/sar_mem_web01.csv; sar/20240106/sar_mem_web02.csv; sar/20240106/sar_mem_db01.csv
    """,
    ),
    Lake(
        "years after capitals",
        """
        a | csv | state:int case:int vehicles:int | crash/XARS{2016,2017,2018}NationalCSV/ACCIDENT.CSV; crash/XARS2019NationalCSV/accident.csv
        b | csv | state:int case:int age:int sex:int | crash/XARS{2016,2017}NationalCSV/PERSON.CSV; crash/XARS2019NationalCSV/person.csv
    """,
    ),
    Lake(
        "dumps of two languages",
        """
        a | csv | page:int title length:int | dumps/{itwiki,ptwiki}/20240101/page.tsv
    """,
    ),
    Lake(
        "replicates of two conditions",
        """
        a | csv | name length:int tpm:float reads:int | quant/control_rep{1..3}/quant.csv; quant/treated_rep2/quant.csv
    """,
    ),
    Lake(
        "leftovers with a number in hex",
        """
        a | csv | bucket bytes:int | usage/acme_storage_2024_01_05_08_00_00_{f5021,11450,d60f1}_v0
    """,
    ),
    Lake(
        "plugs and rooms of a house",
        """
        a | csv | ts:time watts:float | home/plug_{washer,dryer,fridge}/2024-01-0{5,6}.csv
        b | csv | ts:time temp:float humidity:float | home/climate_{bedroom,kitchen,bath}/2024-01-0{5,6}.csv
    """,
    ),
    Lake(
        "what is measured in a house",
        """
        a | csv | ts:time value:float | home/indoor_temp/2024-01-0{5,6}.csv
        b | csv | ts:time value:float | home/indoor_light/2024-01-0{5,6}.csv
        c | csv | ts:time value:float | home/indoor_noise/2024-01-0{5,6}.csv
    """,
    ),
    Lake(
        "plots of a vineyard",
        """
        a | csv | at:time soil:float leaf:float | vineyard/{Riesling_Nord,Riesling_Süd,Spätburgunder}/logger_{1,2}.csv
    """,
    ),
    Lake(
        "checkpoints of streams",
        """
        a | parquet | id:int amount:float | out/orders/part-0000{0..1}.parquet
        b | parquet | id:int note | out/about/metadata
        - | json | id | checkpoints/orders/metadata; jobs/enrich/checkpoint/metadata
    """,
    ),
]
