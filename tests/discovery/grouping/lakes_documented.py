"""Lakes written from docs/GROUPING.md alone, before they were first grouped."""

from .lakes import Lake

DOCUMENTED: list[Lake] = []

# ---- 1: the table of examples and the first paragraph
DOCUMENTED += [
    Lake(
        "example_orders_both_sides",
        """
orders | parquet | id:int amount:float at:time | orders/dt=2024-03-{01..04}/part-{0..1}.parquet
orders | parquet | id:int amount:float at:time | 2024-03-{05..06}/orders/part-0.parquet
""",
    ),
    Lake(
        "example_event_names",
        """
checkout_started | json | id user at:time | checkout_started/dt=2024-03-01/a7.json
signed_up | json | id user at:time | signed_up/dt=2024-03-01/b2.json
""",
    ),
    Lake(
        "example_trips",
        """
yellow | parquet | pickup:time dropoff:time fare:float | trips/yellow_2024-{01..06}.parquet
green | parquet | pickup:time dropoff:time fare:float | trips/green_2024-{01..06}.parquet
rates | csv | zone:int rate:float | rates_{01..04}.csv
""",
    ),
    Lake(
        "example_versions_and_hosts",
        """
orders_v1 | parquet | id:int amount:float | orders_v1/part-0.parquet
orders_v2 | parquet | id:int amount:float | orders_v2/part-0.parquet
host01 | csv | at:time load:float | host01/cpu.csv
host02 | csv | at:time load:float | host02/cpu.csv
""",
    ),
    Lake(
        "example_cloudtrail",
        """
trail | json | eventName eventTime:time awsRegion sourceIPAddress | AWSLogs/{123456789012,210987654321}/CloudTrail/{us-east-1,eu-west-1}/2024/03/{01..03}/{digits12}_CloudTrail_us-east-1_20240301T0930Z_{rand16}.json
config | json | eventName eventTime:time awsRegion sourceIPAddress | AWSLogs/{123456789012,210987654321}/Config/{us-east-1,eu-west-1}/2024/03/{01..03}/{uuid}.json
""",
    ),
    Lake(
        "eight_events_identical_columns",
        """
cart_viewed | json | id user at:time props | data/events/cart_viewed/dt=2024-03-{01..03}/{uuid}.json
checkout_started | json | id user at:time props | data/events/checkout_started/dt=2024-03-{01..03}/{uuid}.json
item_added | json | id user at:time props | data/events/item_added/dt=2024-03-{01..03}/{uuid}.json
item_removed | json | id user at:time props | data/events/item_removed/dt=2024-03-{01..03}/{uuid}.json
signed_up | json | id user at:time props | data/events/signed_up/dt=2024-03-{01..03}/{uuid}.json
signed_in | json | id user at:time props | data/events/signed_in/dt=2024-03-{01..03}/{uuid}.json
page_viewed | json | id user at:time props | data/events/page_viewed/dt=2024-03-{01..03}/{uuid}.json
search | json | id user at:time props | data/events/search/dt=2024-03-{01..03}/{uuid}.json
""",
    ),
    Lake(
        "tickers_are_words",
        """
AAPL | csv | day:date open:float close:float | prices/AAPL.csv
MSFT | csv | day:date open:float close:float | prices/MSFT.csv
GOOG | csv | day:date open:float close:float | prices/GOOG.csv
NVDA | csv | day:date open:float close:float | prices/NVDA.csv
TSLA | csv | day:date open:float close:float | prices/TSLA.csv
AMZN | csv | day:date open:float close:float | prices/AMZN.csv
""",
    ),
    Lake(
        "countries_are_words_unless_keyed",
        """
germany | csv | id:int city pop:int | cities/germany/2024-{01..03}.csv
france | csv | id:int city pop:int | cities/france/2024-{01..03}.csv
de | csv | id:int city pop:int | cities/de/2024-{01..03}.csv
keyed | csv | id:int city pop:int | keyed/cities/country={de,fr,it}/2024-{01..03}.csv
""",
    ),
    Lake(
        "train_test_words_unless_keyed",
        """
train | parquet | x:float y:float label:int | iris/train/part-{0..2}.parquet
test | parquet | x:float y:float label:int | iris/test/part-{0..2}.parquet
validation | parquet | x:float y:float label:int | iris/validation/part-0.parquet
mnist | parquet | x:float y:float label:int | mnist/split={train,test,validation}/part-{0..1}.parquet
ctrain | csv | x:float y:float label:int | cifar/train.csv
ctest | csv | x:float y:float label:int | cifar/test.csv
""",
    ),
    Lake(
        "adding_a_table_before",
        """
orders | parquet | id:int amount:float at:time | shop/orders/{01..05}.parquet
items | parquet | id:int amount:float at:time | shop/items/{01..05}.parquet
""",
    ),
    Lake(
        "adding_a_table_after",
        """
orders | parquet | id:int amount:float at:time | shop/orders/{01..05}.parquet
items | parquet | id:int amount:float at:time | shop/items/{01..05}.parquet
returns | parquet | id:int amount:float at:time | shop/returns/{01..05}.parquet
refunds | parquet | id:int amount:float at:time | shop/refunds/{01..05}.parquet
""",
    ),
    Lake(
        "customer_folders",
        """
acme_orders | csv | id:int amount:float | customers/acme/orders.csv
acme_items | csv | id:int amount:float | customers/acme/items.csv
globex_orders | csv | id:int amount:float | customers/globex/orders.csv
globex_items | csv | id:int amount:float | customers/globex/items.csv
initech_orders | csv | id:int amount:float | customers/initech/orders.csv
initech_items | csv | id:int amount:float | customers/initech/items.csv
""",
    ),
]

# ---- 2: dates in folders and files
DOCUMENTED += [
    Lake(
        "date_spellings_as_folders",
        """
orders | csv | id:int amount:float | orders/{2024-03-01,20240302,03.03.2024,2024-04,202405,2023,2024-W09,2024Q1,H1-2024,FY2022,mar-2024,y2024m03,20240301T0930Z,1709280000}/part-0.csv
items | csv | id:int amount:float | items/{2024-03-01,20240302,03.03.2024,2024-04,202405,2023,2024-W09,2024Q1,H1-2024,FY2022,mar-2024,y2024m03,20240301T0930Z,1709280000}/part-0.csv
""",
    ),
    Lake(
        "date_spellings_as_folders_above",
        """
orders | csv | id:int amount:float | {2024-03-01,20240302,03.03.2024,2024-04,202405,2023,2024-W09,2024Q1,H1-2024,FY2022,mar-2024,y2024m03}/orders.csv
items | csv | id:int amount:float | {2024-03-01,20240302,03.03.2024,2024-04,202405,2023,2024-W09,2024Q1,H1-2024,FY2022,mar-2024,y2024m03}/items.csv
""",
    ),
    Lake(
        "date_spellings_in_files",
        """
iso | csv | id:int v:float | f/iso_2024-03-{01..03}.csv
compact | csv | id:int v:float | f/compact_202403{01..03}.csv
dotted | csv | id:int v:float | f/dotted_{01..03}.03.2024.csv
month | csv | id:int v:float | f/month_2024-{01..03}.csv
cmonth | csv | id:int v:float | f/cmonth_2024{01..03}.csv
year | csv | id:int v:float | f/year_{2021..2024}.csv
week | csv | id:int v:float | f/week_2024-W{09..11}.csv
quarter | csv | id:int v:float | f/quarter_2024Q{1..4}.csv
half | csv | id:int v:float | f/half_H{1..2}-2024.csv
fiscal | csv | id:int v:float | f/fiscal_FY{2022..2024}.csv
named | csv | id:int v:float | f/named_{jan,feb,mar,apr}-2024.csv
ym | csv | id:int v:float | f/ym_y2024m{01..03}.csv
stamp | csv | id:int v:float | f/stamp_20240301T{09..11}30Z.csv
epoch | csv | id:int v:float | f/epoch_17092{80..84}000.csv
""",
    ),
    Lake(
        "date_spellings_in_folder_names",
        """
iso | parquet | id:int v:float | iso_2024-03-{01..03}/part-0.parquet
compact | parquet | id:int v:float | compact_202403{01..03}/part-0.parquet
month | parquet | id:int v:float | month_2024-{01..03}/part-0.parquet
cmonth | parquet | id:int v:float | cmonth_2024{01..03}/part-0.parquet
year | parquet | id:int v:float | year_{2021..2024}/part-0.parquet
week | parquet | id:int v:float | week_2024-W{09..11}/part-0.parquet
quarter | parquet | id:int v:float | quarter_2024Q{1..4}/part-0.parquet
fiscal | parquet | id:int v:float | fiscal_FY{2022..2024}/part-0.parquet
named | parquet | id:int v:float | named_{jan,feb,mar}-2024/part-0.parquet
stamp | parquet | id:int v:float | stamp_20240301T{09..11}30Z/part-0.parquet
epoch | parquet | id:int v:float | export_17092{80..84}000/part-0.parquet
""",
    ),
    Lake(
        "below_a_year",
        """
days | csv | id:int v:float | days/2024/{01..03}/{01..03}.csv
months | csv | id:int v:float | months/2024/{January,February,March}/data.csv
quarters | csv | id:int v:float | quarters/{2023,2024}/{Q1,Q2,Q3,Q4}/part-0.csv
doy | csv | id:int v:float | doy/2024/{060..063}/part-0.csv
""",
    ),
    Lake(
        "below_a_year_above_the_table",
        """
orders | csv | id:int v:float | {2023,2024}/{January,March,May}/orders.csv
items | csv | id:int v:float | {2023,2024}/{January,March,May}/items.csv
refunds | csv | id:int v:float | 2024/{Q1,Q2,Q3}/refunds/part-0.csv
""",
    ),
    Lake(
        "months_without_a_year_are_words",
        """
january | csv | id:int v:float | sales/January/part-0.csv
march | csv | id:int v:float | sales/March/part-0.csv
may | csv | id:int v:float | sales/May/part-0.csv
people_april | csv | id:int v:float | people/april.csv
people_june | csv | id:int v:float | people/june.csv
people_august | csv | id:int v:float | people/august.csv
""",
    ),
    Lake(
        "months_next_to_a_year",
        """
sales | csv | id:int v:float | s/sales_2024_{January,February,March}.csv
costs | csv | id:int v:float | s/costs_{January,February,March}_2024.csv
reports | csv | id:int v:float | r/{2024-January,2024-February,2024-March}/reports.csv
file_in_year | csv | id:int v:float | y/2024/{January,February,March}.csv
named_in_year | csv | id:int v:float | n/2024/visits_{January,February,March}.csv
""",
    ),
    Lake(
        "daily_monthly_yearly",
        """
daily | parquet | id:int v:float | trips/yellow_2024-01-{01..05}.parquet
monthly | parquet | id:int v:float | trips/yellow_2024-{01..05}.parquet
yearly | parquet | id:int v:float | trips/yellow_{2020..2023}.parquet
""",
    ),
    Lake(
        "daily_monthly_yearly_folders",
        """
daily | parquet | id:int v:float | yellow_2024-01-{01..05}/part-0.parquet
monthly | parquet | id:int v:float | yellow_2024-{01..05}/part-0.parquet
yearly | parquet | id:int v:float | yellow_{2020..2023}/part-0.parquet
plain | parquet | id:int v:float | yellow/part-{0..2}.parquet
""",
    ),
    Lake(
        "years_and_numbers_in_files_are_one",
        """
census | csv | id:int v:float | census_{1990..1993}.csv
census | csv | id:int v:float | census_{01..04}.csv
plain | csv | id:int v:float | census.csv
""",
    ),
    Lake(
        "years_in_folder_names",
        """
orders_y | parquet | id:int v:float | orders_{2022..2024}/part-{0..1}.parquet
orders | parquet | id:int v:float | orders/part-{0..1}.parquet
dash | parquet | id:int v:float | orders-{2022..2024}/part-{0..1}.parquet
ds2022 | parquet | id:int v:float | ds2022/part-{0..1}.parquet
ds2023 | parquet | id:int v:float | ds2023/part-{0..1}.parquet
ds2024 | parquet | id:int v:float | ds2024/part-{0..1}.parquet
middle | parquet | id:int v:float | orders_{2022..2024}_eu/part-{0..1}.parquet
""",
    ),
    Lake(
        "glued_years_folder_against_file",
        """
ds_files | csv | id:int v:float | files/ds{2022..2024}.csv
ds2022 | csv | id:int v:float | folders/ds2022/part-0.csv
ds2023 | csv | id:int v:float | folders/ds2023/part-0.csv
ds2024 | csv | id:int v:float | folders/ds2024/part-0.csv
""",
    ),
    Lake(
        "one_dated_folder_is_enough",
        """
orders_m | parquet | id:int v:float | orders_2024-03/part-0.parquet
orders | parquet | id:int v:float | orders/part-0.parquet
""",
    ),
]

# ---- 3: numbers, codes, identifiers, accounts, regions, addresses
DOCUMENTED += [
    Lake(
        "dates_before_and_after_words",
        """
before | csv | id:int v:float | d/2024-01-{01..03}_orders.csv
after | csv | id:int v:float | d/orders_2024-01-{01..03}.csv
inside | csv | id:int v:float | d/orders_2024-01-{01..03}_eu.csv
range | csv | id:int v:float | d/orders_2024-01-{01..03}_2024-02-01.csv
plain | csv | id:int v:float | d/orders.csv
fbefore | csv | id:int v:float | 2024-01-{01..03}_orders/part-0.csv
fafter | csv | id:int v:float | orders_2024-01-{01..03}/part-0.csv
finside | csv | id:int v:float | orders_2024-01-{01..03}_eu/part-0.csv
""",
    ),
    Lake(
        "numbers_in_files",
        """
before | csv | id:int v:float | n/{01..03}_orders.csv
after | csv | id:int v:float | n/orders_{01..03}.csv
glued | csv | id:int v:float | n/orders{01..03}.csv
inside | csv | id:int v:float | n/orders_{01..03}_eu.csv
plain | csv | id:int v:float | n/orders.csv
""",
    ),
    Lake(
        "numbers_after_words_in_folders",
        """
store_17 | csv | id:int v:float | store_17/sales.csv
store_18 | csv | id:int v:float | store_18/sales.csv
store_12345 | csv | id:int v:float | store_12345/sales.csv
ds0001 | csv | id:int v:float | ds0001/sales.csv
ds0002 | csv | id:int v:float | ds0002/sales.csv
lot_987654 | csv | id:int v:float | lot_987654/sales.csv
lot_987655 | csv | id:int v:float | lot_987655/sales.csv
stage1_orders | csv | id:int v:float | stage1_orders/sales.csv
stage2_orders | csv | id:int v:float | stage2_orders/sales.csv
orders_1_eu | csv | id:int v:float | orders_1_eu/sales.csv
orders_2_eu | csv | id:int v:float | orders_2_eu/sales.csv
""",
    ),
    Lake(
        "number_folders_are_partitions",
        """
orders | csv | id:int v:float | shop/{7,8,00042}/orders.csv
orders | csv | id:int v:float | {3..5}/shop/orders.csv
items | csv | id:int v:float | shop/items/{1..3}/{10..11}/part-0.csv
""",
    ),
    Lake(
        "top10_folder_against_file",
        """
top_files | csv | id:int v:float | charts/{top10,top40,top100}.csv
top10 | csv | id:int v:float | lists/top10/part-0.csv
top40 | csv | id:int v:float | lists/top40/part-0.csv
top100 | csv | id:int v:float | lists/top100/part-0.csv
area51 | csv | id:int v:float | lists/area51/part-0.csv
""",
    ),
    Lake(
        "numbered_folders_times_tables",
        """
h1cpu | csv | at:time v:float | metrics/host01/cpu.csv
h1mem | csv | at:time v:float | metrics/host01/mem.csv
h2cpu | csv | at:time v:float | metrics/host02/cpu.csv
h2mem | csv | at:time v:float | metrics/host02/mem.csv
h3cpu | csv | at:time v:float | metrics/host03/cpu.csv
h3mem | csv | at:time v:float | metrics/host03/mem.csv
hosts_cpu | csv | at:time v:float | keyed/host={host01,host02,host03}/cpu.csv
hosts_mem | csv | at:time v:float | keyed/host={host01,host02,host03}/mem.csv
""",
    ),
    Lake(
        "versions_are_words",
        """
v1 | csv | id:int v:float | api/v1/orders.csv
v2 | csv | id:int v:float | api/v2/orders.csv
v10 | csv | id:int v:float | api/v10/orders.csv
f1 | csv | id:int v:float | flat/orders_v1.csv
f2 | csv | id:int v:float | flat/orders_v2.csv
keyed | csv | id:int v:float | keyed/version={v1,v2}/orders.csv
below1 | csv | id:int v:float | orders/v1/2024-01-{01..03}.csv
below2 | csv | id:int v:float | orders/v2/2024-01-{01..03}.csv
""",
    ),
    Lake(
        "identifiers_as_file_names",
        """
uuids | json | id v:float | 5x uuids/{uuid}.json
hashes | json | id v:float | 5x hashes/{hex32}.json
short | json | id v:float | 5x short/{hex8}.json
random | json | id v:float | 5x random/{rand16}.json
mixed | json | id v:float | 2x mixed/{uuid}.json ; 2x mixed/{hex32}.json ; mixed/9f86d081884c7d65.json ; mixed/3f2a9c81.json ; mixed/Xa9bcDEF123456Qq.json
""",
    ),
    Lake(
        "identifiers_inside_names",
        """
orders | json | id v:float | 5x in/orders_{uuid}.json
items | json | id v:float | 5x in/items_{uuid}.json
plain | json | id v:float | in/orders.json
exports | json | id v:float | 4x export_{uuid}/part-0.json
sessions | json | id v:float | 4x session-{hex32}/part-0.json
devices | json | id v:float | device_{3f2a9c81,9b04e7d2,5c61a0f3}/part-0.json
""",
    ),
    Lake(
        "identifier_folders",
        """
readings | csv | at:time v:float | 4x devices/{uuid}/readings.csv
status | csv | at:time v:float | 4x devices/{uuid}/status.csv
below | csv | at:time v:float | 4x readings/{hex32}/part-0.csv
""",
    ),
    Lake(
        "codes",
        """
stations | csv | at:time v:float | daily/{USW00094728,USW00014739,CAW00064757}.csv
pods | csv | at:time v:float | pods/{w5x8k,q7z3m,t4v9p}/cpu.csv
pods_mem | csv | at:time v:float | pods/{w5x8k,q7z3m,t4v9p}/mem.csv
runs | csv | at:time v:float | jobs/{20sg8hgm,41kd7pqz}/result.csv
named | csv | at:time v:float | pod-{w5x8k,q7z3m,t4v9p}/cpu.csv
station_named | csv | at:time v:float | station_{USW00094728,USW00014739}/obs.csv
hexcodes | csv | at:time v:float | units/{7F3A,2B9C}/part-0.csv
""",
    ),
    Lake(
        "accounts_regions_addresses",
        """
costs | csv | at:time v:float | costs/{123456789012,210987654321}/part-0.csv
usage | csv | at:time v:float | {us-east-1,eu-west-1,ap-southeast-2,europe-west1}/usage.csv
flows | csv | at:time v:float | flows/{10.0.2.7,10.0.2.8,192.168.1.20}/part-0.csv
bills | csv | at:time v:float | 4x account-{digits12}/bills.csv
tenant_4711 | csv | at:time v:float | tenant_4711/bills.csv
tenant_4712 | csv | at:time v:float | tenant_4712/bills.csv
inv | csv | at:time v:float | 4x inventory/{digits12}.csv
""",
    ),
    Lake(
        "words_that_look_short_or_hex",
        """
kxqp | csv | at:time v:float | t/kxqp/part-0.csv
zwtr | csv | at:time v:float | t/zwtr/part-0.csv
facade | csv | at:time v:float | t/facade/part-0.csv
decade | csv | at:time v:float | t/decade/part-0.csv
us | csv | at:time v:float | t/us/part-0.csv
eu | csv | at:time v:float | t/eu/part-0.csv
""",
    ),
    Lake(
        "numbered_stages",
        """
raw | parquet | id:int v:float | 01_raw/orders/dt=2024-01-{01..03}/part-0.parquet
clean | parquet | id:int v:float | 02_clean/orders/dt=2024-01-{01..03}/part-0.parquet
mart | parquet | id:int v:float | 03_mart/orders/dt=2024-01-{01..03}/part-0.parquet
""",
    ),
]

# ---- 4: partitions, file names, writers' words
DOCUMENTED += [
    Lake(
        "partitions_everywhere",
        """
orders | parquet | id:int v:float | tenant={acme,globex}/dt=2024-01-{01..02}/orders/hour={00..01}/part-0.parquet
items | parquet | id:int v:float | tenant={acme,globex}/dt=2024-01-{01..02}/items/hour={00..01}/part-0.parquet
""",
    ),
    Lake(
        "partitions_at_different_heights",
        """
orders | parquet | id:int v:float | country=de/orders/part-0.parquet ; orders/country=fr/part-0.parquet ; 2024/orders/country=it/part-0.parquet ; orders/2024/03/country=es/part-0.parquet
""",
    ),
    Lake(
        "keyed_tables_same_columns",
        """
all | parquet | id:int v:float | lake/table={orders,orders_archive,orders_v2}/part-{0..1}.parquet
""",
    ),
    Lake(
        "odd_partition_values",
        """
orders | parquet | id:int v:float | orders/dt=__HIVE_DEFAULT_PARTITION__/part-0.parquet ; orders/dt=2024-01-01/part-0.parquet ; orders/dt=2024-01-02/part-0.parquet
logs | parquet | id:int v:float | logs/ts=2024-03-01%20{09..11}%3A00/part-0.parquet
""",
    ),
    Lake(
        "files_named_in_partitions",
        """
orders | csv | id:int v:float | shop/dt=2024-01-{01..03}/orders.csv
items | csv | id:int v:float | shop/dt=2024-01-{01..03}/items.csv
folder | csv | id:int v:float | shop/dt=2024-01-{01..03}/part-{0..1}.csv
""",
    ),
    Lake(
        "writers_words_with_numbers",
        """
t | parquet | id:int v:float | t/part-0.parquet ; t/parts_1.parquet ; t/partition-2.parquet ; t/data_3.parquet ; t/load-4.parquet ; t/chunk_5.parquet ; t/shard-6.parquet ; t/batch_7.parquet ; t/bucket-8.parquet ; t/slice_9.parquet ; t/split-10.parquet ; t/file11.parquet ; t/files_12.parquet ; t/output-13.parquet ; t/out_14.parquet ; t/run-15.parquet ; t/attempt_16.parquet ; t/copy-17.parquet ; t/data.parquet
u | parquet | id:int v:float | u/part-0000{0..3}-of-00004.parquet ; u/run-1-part-{0..2}.parquet ; u/attempt_{1..2}_chunk_0.parquet
""",
    ),
    Lake(
        "writers_words_with_identifiers",
        """
t | parquet | id:int v:float | t/part-0000{0..3}-{uuid}.parquet ; 2x t/data-{hex32}.parquet ; 2x t/{uuid}.parquet ; t/00000{0..2}_0.parquet ; t/part-2024-01-{01..02}.parquet
""",
    ),
    Lake(
        "writers_words_joined_to_names",
        """
orders | csv | id:int v:float | shop/orders_{1..3}.csv
orders_part | csv | id:int v:float | shop/orders_part_{1..3}.csv
data_orders | csv | id:int v:float | shop/data_orders.csv
export | csv | id:int v:float | shop/export_{1..3}.csv
page | csv | id:int v:float | shop/page-{1..3}.csv
folder | csv | id:int v:float | shop/part_{1..3}.csv
""",
    ),
    Lake(
        "writers_words_in_folders",
        """
orders | csv | id:int v:float | orders/shard-{0..3}/part-0.csv
items | csv | id:int v:float | items/part{0..3}/part-0.csv
metrics | csv | id:int v:float | run_{1..4}/metrics.csv
losses | csv | id:int v:float | run_{1..4}/losses.csv
b | csv | id:int v:float | b/batch_{001..003}/b.csv
host1 | csv | id:int v:float | orders/host-1/part-0.csv
host2 | csv | id:int v:float | orders/host-2/part-0.csv
""",
    ),
    Lake(
        "data_files",
        """
orders | csv | id:int v:float | orders/data.csv
items | csv | id:int v:float | items/data.csv
returns | csv | id:int v:float | returns/data.csv ; returns/part-{0..1}.csv ; returns/2024-01-{01..02}.csv
""",
    ),
    Lake(
        "folder_and_file_of_the_same_name",
        """
folder | csv | id:int v:float | orders/part-{0..1}.csv
named | csv | id:int v:float | orders/orders_2024-{01..02}.csv
plain | csv | id:int v:float | orders/orders.csv
""",
    ),
    Lake(
        "numbers_that_name_tables",
        """
table | csv | id:int name | db/table1.csv
table | csv | sku price:float | db/table2.csv
table | csv | city country | db/table3.csv
""",
    ),
    Lake(
        "separators",
        """
a | csv | id:int v:float | s/rates-{01..03}.csv
b | csv | id:int v:float | s/rates_{01..03}.csv
c | csv | id:int v:float | s/rates{01..03}.csv
d | csv | id:int v:float | s/exchange_rates.csv
e | csv | id:int v:float | s/exchange-rates.csv
f | csv | id:int v:float | s/exchange rates.csv
g | csv | id:int v:float | s/exchangerates.csv
fa | csv | id:int v:float | orders-2024/part-0.csv
fb | csv | id:int v:float | orders_2024/part-0.csv
""",
    ),
    Lake(
        "spaces_and_brackets",
        """
report | csv | id:int v:float | Sales Data/2024/Report {01..03}.csv
down | csv | id:int v:float | Downloads/export ({1..3}).csv
down0 | csv | id:int v:float | Downloads/export.csv
""",
    ),
]

# ---- 5: nesting, formats, case, Unicode, skipped files
DOCUMENTED += [
    Lake(
        "nested_tables",
        """
sales | parquet | id:int v:float | sales/part-0.parquet
orders | parquet | id:int v:float | sales/orders/part-{0..1}.parquet
items | parquet | id:int v:float | sales/orders/items/part-{0..1}.parquet
dated | parquet | id:int v:float | log/dt=2024-01-{01..03}/part-0.parquet
dated_errors | parquet | id:int v:float | log/dt=2024-01-{01..03}/errors/part-0.parquet
""",
    ),
    Lake(
        "zones_same_tables",
        """
raw_orders | parquet | id:int v:float | raw/orders/dt=2024-01-{01..03}/part-0.parquet
raw_items | parquet | id:int v:float | raw/items/dt=2024-01-{01..03}/part-0.parquet
clean_orders | parquet | id:int v:float | clean/orders/dt=2024-01-{01..03}/part-0.parquet
clean_items | parquet | id:int v:float | clean/items/dt=2024-01-{01..03}/part-0.parquet
archive_orders | parquet | id:int v:float | archive/orders/dt=2024-01-{01..03}/part-0.parquet
""",
    ),
    Lake(
        "several_formats_in_a_folder",
        """
orders | parquet | id:int v:float | orders/part-{0..2}.parquet
orders | csv | id:int v:float | orders/part-{0..2}.csv
orders | json | id:int v:float | orders/part-{0..2}.json
orders | avro | id:int v:float | orders/part-{0..2}.avro
orders | orc | id:int v:float | orders/part-{0..2}.orc
""",
    ),
    Lake(
        "several_formats_of_a_name",
        """
rates | csv | id:int v:float | ref/rates_{01..03}.csv
rates | json | id:int v:float | ref/rates_{01..03}.json
rates | parquet | id:int v:float | ref/rates_{01..03}.parquet
dated | csv | id:int v:float | log/dt=2024-01-{01..02}/part-0.csv
dated | parquet | id:int v:float | log/dt=2024-01-{03..04}/part-0.parquet
""",
    ),
    Lake(
        "compression_does_not_matter",
        """
rates | csv | id:int v:float | ref/rates_{01..02}.csv.gz ; ref/rates_{03..04}.csv
log | json | id:int v:float | log/2024-01-{01..02}.json.gz ; log/2024-01-{03..04}.json
plain | csv | id:int v:float | ref/rates.csv.gz
""",
    ),
    Lake(
        "letter_case",
        """
Orders | csv | id:int v:float | Orders/part-{0..1}.csv
orders | csv | id:int v:float | orders/part-{0..1}.csv
ORDERS | csv | id:int v:float | ORDERS/part-{0..1}.csv
Items | csv | id:int v:float | f/Items_{01..02}.csv
items | csv | id:int v:float | f/items_{01..02}.csv
""",
    ),
    Lake(
        "unicode_normal_forms",
        """
nfc | csv | id:int v:float | caf\u00e9/part-{0..1}.csv
nfd | csv | id:int v:float | cafe\u0301/part-{0..1}.csv
plain | csv | id:int v:float | cafe/part-{0..1}.csv
umsatz | csv | id:int v:float | Ums\u00e4tze/M\u00fcnchen_2024-{01..03}.csv
jp | csv | id:int v:float | \u58f2\u4e0a/2024-01-{01..03}.csv
ru | csv | id:int v:float | \u043f\u0440\u043e\u0434\u0430\u0436\u0438/2024-01-{01..03}.csv
""",
    ),
    Lake(
        "rotated_logs",
        """
access | json | at:time status:int path | web/access.log
access_old | json | at:time status:int path | web/access.log.{1..4}
error | json | at:time status:int path | web/error.log
error_old | json | at:time status:int path | web/error.log.{1..4}
""",
    ),
    Lake(
        "hidden_and_temporary",
        """
orders | parquet | id:int v:float | orders/part-{0..2}.parquet
- | - | | orders/_SUCCESS ; orders/.part-0.parquet.crc
- | parquet | id:int v:float | orders/_temporary/0/part-3.parquet ; .trash/orders/part-0.parquet ; orders/part-4.parquet.tmp
- | csv | id:int v:float | _staging/orders.csv ; .orders.csv ; _orders.csv ; ref/rates.csv.bak
rates | csv | id:int v:float | ref/rates.csv
""",
    ),
    Lake(
        "accompanying_files",
        """
orders | csv | id:int v:float | orders/part-{0..2}.csv
- | - | | orders/README ; orders/README.md ; orders/part-0.csv.md5 ; orders/part-0.csv.sha256 ; logo.png ; old.zip ; setup.exe
- | json | name version | orders/metadata.json ; orders/schema.json ; orders/manifest.json
metadata | json | name version | metadata/part-0.json
schema | json | name version | schema/part-0.json
""",
    ),
    Lake(
        "dbt_artifacts",
        """
- | json | metadata args | project/target/manifest.json ; project/target/run_results.json ; project/target/catalog.json
seed | csv | id:int v:float | project/seeds/countries.csv
seed2 | csv | id:int v:float | project/seeds/currencies.csv
""",
    ),
    Lake(
        "hive_acid",
        """
acid | orc | id:int v:float | warehouse/orders/base_0000005/bucket_0000{0..1} ; warehouse/orders/delta_0000006_0000006/bucket_0000{0..1} ; warehouse/orders/delta_0000007_0000007/bucket_00000
acid2 | orc | id:int v:float | warehouse/items/dt=2024-01-{01..02}/base_0000005/bucket_00000 ; warehouse/items/dt=2024-01-{01..02}/delta_0000006_0000006/bucket_00000
plain | orc | id:int v:float | warehouse/returns/00000{0..2}_0
""",
    ),
]

# ---- 6: rule 6, both sides
DOCUMENTED += [
    Lake(
        "drift_along_dates",
        """
events | json | id user at:time | events/dt=2024-01-{01..03}/part-0.json
events | json | sku price:float stock:int | events/dt=2024-01-{04..05}/part-0.json
logs | csv | a b c | logs/2023/{01..02}/part-0.csv
logs | csv | d e f | logs/2024/{01..02}/part-0.csv
trips | csv | a b c | trips_2024-{01..02}.csv
trips | csv | d e f | trips_2024-{03..04}.csv
folder | csv | a b c | rides_2024-{01..02}/part-0.csv
folder | csv | d e f | rides_2024-{03..04}/part-0.csv
""",
    ),
    Lake(
        "drift_along_times",
        """
hours | json | a b c | hours/dt=2024-01-01/hour={00..03}/part-0.json
hours | json | d e f | hours/dt=2024-01-01/hour={04..06}/part-0.json
epoch | json | a b c | epoch/17092{80..82}000.json
epoch | json | d e f | epoch/17092{83..84}000.json
stamp | json | a b c | stamp/20240301T{09..10}30Z.json
stamp | json | d e f | stamp/20240301T{11..12}30Z.json
""",
    ),
    Lake(
        "drift_along_sequences",
        """
rates | csv | a b c | rates_{01..03}.csv
rates | csv | d e f | rates_{04..05}.csv
parts | csv | a b c | parts_table/part-{0..1}.csv
parts | csv | d e f | parts_table/part-{2..3}.csv
census | csv | a b c | census_{1990..1992}.csv
census | csv | d e f | census_{2000..2001}.csv
""",
    ),
    Lake(
        "types_all_different",
        """
click | json | id page button | events/type=click/part-{0..1}.json
purchase | json | sku price:float currency | events/type=purchase/part-{0..1}.json
signup | json | email plan country | events/type=signup/part-{0..1}.json
""",
    ),
    Lake(
        "types_below_half",
        """
click | json | id user page button colour | events/type=click/part-{0..1}.json
purchase | json | id user sku price:float currency | events/type=purchase/part-{0..1}.json
""",
    ),
    Lake(
        "types_above_half",
        """
events | json | id user at:time page | events/type=click/part-{0..1}.json
events | json | id user at:time sku | events/type=purchase/part-{0..1}.json
events | json | id user at:time plan | events/type=signup/part-{0..1}.json
""",
    ),
    Lake(
        "types_exactly_half",
        """
events | json | id user page | events/type=click/part-{0..1}.json
events | json | id user sku | events/type=purchase/part-{0..1}.json
""",
    ),
    Lake(
        "types_contained",
        """
events | json | id at:time | events/type=ping/part-{0..1}.json
events | json | id at:time page button user sku price:float currency | events/type=purchase/part-{0..1}.json
""",
    ),
    Lake(
        "types_largest_group_and_one",
        """
events | json | id user at:time page | events/type={click,view,scroll}/dt=2024-01-{01..02}/part-0.json
purchase | json | sku price:float currency stock:int | events/type=purchase/dt=2024-01-{01..02}/part-0.json
""",
    ),
    Lake(
        "types_largest_group_and_two",
        """
events | json | id user at:time page | events/type={click,view,scroll}/part-0.json
purchase | json | sku price:float currency stock:int | events/type=purchase/part-0.json
weather | json | temp:float wind:float rain:float | events/type=weather/part-0.json
""",
    ),
    Lake(
        "types_below_dates_and_regions",
        """
click | json | a b c d | events/region={eu,us}/dt=2024-01-{01..02}/type=click/part-0.json
purchase | json | e f g h | events/region={eu,us}/dt=2024-01-{01..02}/type=purchase/part-0.json
""",
    ),
    Lake(
        "types_above_the_table",
        """
click | json | a b c d | type=click/events/dt=2024-01-{01..02}/part-0.json
purchase | json | e f g h | type=purchase/events/dt=2024-01-{01..02}/part-0.json
""",
    ),
    Lake(
        "keyed_tables_different_columns",
        """
orders | parquet | id:int amount:float customer:int | db=shop/table=orders/part-{0..1}.parquet
customers | parquet | name street city | db=shop/table=customers/part-{0..1}.parquet
stock | parquet | sku depot quantity:int | db=shop/table=stock/part-{0..1}.parquet
""",
    ),
    Lake(
        "numbered_folders_different_columns",
        """
one | csv | temp:float wind:float rain:float | sensors/1/part-{0..1}.csv
two | csv | volts:float amps:float watts:float | sensors/2/part-{0..1}.csv
""",
    ),
    Lake(
        "numbered_folders_same_columns",
        """
sensors | csv | temp:float wind:float rain:float | sensors/{1..4}/part-{0..1}.csv
sensors | csv | temp:float wind:float rain:float sun:float | sensors/5/part-{0..1}.csv
""",
    ),
    Lake(
        "devices_different_columns",
        """
d1 | csv | temp:float wind:float rain:float | devices/3f2a9c81/part-{0..1}.csv
d2 | csv | volts:float amps:float watts:float | devices/9b04e7d2/part-{0..1}.csv
""",
    ),
    Lake(
        "devices_mostly_same_columns",
        """
devices | csv | temp:float wind:float rain:float | devices/{3f2a9c81,5c61a0f3,8d17b2e4}/part-{0..1}.csv
d2 | csv | volts:float amps:float watts:float | devices/9b04e7d2/part-{0..1}.csv
""",
    ),
    Lake(
        "regions_different_columns",
        """
us | json | a b c | usage/us-east-1/2024-01-{01..02}.json
eu | json | d e f | usage/eu-west-1/2024-01-{01..02}.json
""",
    ),
    Lake(
        "identifiers_in_files_different_columns",
        """
a | csv | temp:float wind:float rain:float | daily/9f86d081884c7d65.csv
b | csv | volts:float amps:float watts:float | daily/3b1f0c1e-1c1a-4b1e-9b0a-0123456789ab.csv
""",
    ),
    Lake(
        "drift_below_types",
        """
click | json | a b c d | events/type=click/dt=2024-01-{01..02}/part-0.json
click | json | a b c d e | events/type=click/dt=2024-01-{03..04}/part-0.json
purchase | json | p q r s | events/type=purchase/dt=2024-01-{01..02}/part-0.json
purchase | json | p q r s t | events/type=purchase/dt=2024-01-{03..04}/part-0.json
""",
    ),
    Lake(
        "words_with_different_or_same_columns",
        """
a | csv | a b c | x/alpha/part-0.csv
b | csv | a b c | x/beta/part-0.csv
c | csv | d e f | x/gamma/part-0.csv
d | csv | a b c d | x/delta/part-0.csv
""",
    ),
]

# ---- 7: mixtures
DOCUMENTED += [
    Lake(
        "mixed_company",
        """
orders | parquet | id:int amount:float at:time | raw/shop/orders/year=2024/month={01..02}/day={01..02}/part-00000-{uuid}.parquet
items | parquet | id:int amount:float at:time | raw/shop/items/year=2024/month={01..02}/day={01..02}/part-00000-{uuid}.parquet
crm | csv | id:int name | raw/crm/contacts_2024-01-{01..04}.csv
crm2 | csv | id:int name | raw/crm/accounts_2024-01-{01..04}.csv
fx | csv | pair rate:float | ref/fx_rates.csv
country | csv | code name | ref/countries.csv
logs | json | at:time msg | logs/2024/01/{01..04}/{hex32}.json
- | - | | raw/shop/orders/_SUCCESS ; README.md
""",
    ),
    Lake(
        "snapshots_above",
        """
orders | csv | id:int amount:float | backup/2024-01-{01..03}/shop/orders.csv
items | csv | id:int amount:float | backup/2024-01-{01..03}/shop/items.csv
live_orders | csv | id:int amount:float | live/shop/orders.csv
live_items | csv | id:int amount:float | live/shop/items.csv
snap | csv | id:int amount:float | snapshot_2024-01-{01..03}/orders.csv
""",
    ),
    Lake(
        "year_folder_with_words",
        """
eu | csv | id:int amount:float | sales/{2022..2024}/eu.csv
us | csv | id:int amount:float | sales/{2022..2024}/us.csv
eu_y | csv | id:int amount:float | flat/eu_{2022..2024}.csv
us_y | csv | id:int amount:float | flat/us_{2022..2024}.csv
eu_f | csv | id:int amount:float | fold/eu_{2022..2024}/part-0.csv
us_f | csv | id:int amount:float | fold/us_{2022..2024}/part-0.csv
""",
    ),
    Lake(
        "exports_with_everything",
        """
orders | csv | id:int amount:float | 3x out/export_{uuid}/2024-01-{01..02}/orders_2024-01-01_{hex32}.csv
items | csv | id:int amount:float | 3x out/export_{uuid}/2024-01-{01..02}/items_2024-01-01_{hex32}.csv
""",
    ),
    Lake(
        "final_and_copies",
        """
sales | csv | id:int amount:float | q/sales_2024-{01..03}.csv
final | csv | id:int amount:float | q/sales_2024-{01..03}_final.csv
draft | csv | id:int amount:float | q/draft_sales_2024-{01..03}.csv
""",
    ),
    Lake(
        "dotted_names",
        """
orders | csv | id:int amount:float | d/shop.orders.csv
items | csv | id:int amount:float | d/shop.items.csv
dated | csv | id:int amount:float | d/shop.orders.2024-01-{01..03}.csv
folder | csv | id:int amount:float | shop.orders/2024-01-{01..03}.csv
folder2 | csv | id:int amount:float | shop.items/2024-01-{01..03}.csv
""",
    ),
    Lake(
        "twenty_tables_in_one_folder",
        "\n".join(
            f"{name} | csv | id:int name at:date | dump/{name}.csv"
            for name in [
                "orders",
                "order_items",
                "customers",
                "products",
                "prices",
                "stock",
                "depots",
                "carriers",
                "returns",
                "refunds",
                "invoices",
                "payments",
                "reviews",
                "coupons",
                "carts",
                "sessions",
                "visits",
                "ads",
                "clicks",
                "views",
            ]
        ),
    ),
    Lake(
        "twenty_tables_of_dates",
        "\n".join(
            f"{name} | parquet | id:int name at:date | lake/{name}/{{2023,2024}}/{{01..02}}/part-0.parquet"
            for name in [
                "orders",
                "order_items",
                "customers",
                "products",
                "prices",
                "stock",
                "depots",
                "carriers",
                "returns",
                "refunds",
                "invoices",
                "payments",
                "reviews",
                "coupons",
                "carts",
                "sessions",
                "visits",
                "ads",
                "clicks",
                "views",
            ]
        ),
    ),
]
