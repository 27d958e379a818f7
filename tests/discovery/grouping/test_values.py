"""Which parts of a name are values."""

import pytest

from lumos.discovery.grouping.values import file_template, folder_template, to_sortable

_UUID = "3b1f0c1e-1c1a-4b1e-9b0a-0123456789ab"


@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("users", "users"),
        ("events_20240101", "events_{date}"),
        ("events20240101", "events{date}"),
        ("yellow_tripdata_2024-01", "yellow_tripdata_{yyyy-mm}"),
        ("report_2019_1", "report_{yyyy-mm}"),
        ("season_2012-13", "season_{yyyy-mm}"),
        ("2024-01-orders", "{yyyy-mm}-orders"),
        ("orders_2024Q1", "orders_{quarter}"),
        ("orders_Q1-2024", "orders_{quarter}"),
        ("hours-2024-W05", "hours-{week}"),
        ("sales-jan-2024", "sales-{yyyy-mm}"),
        ("sales-january", "sales-january"),
        ("05 January 2024", "{date}"),
        ("01-22-2020", "{date}"),
        ("2024_01_05", "{date}"),
        ("y2024m01", "{yyyy-mm}"),
        ("FY2024_budget", "{yyyy}_budget"),
        ("run_20240105T0101", "run_{time}"),
        ("20240105120000.export", "{time}.export"),
        ("1704412800", "{epoch}"),
        ("1704412800123", "{epoch}"),
        (f"stream-1-2024-01-05-13-01-02-{_UUID}", "stream-{n}-{date}-{n}-{n}-{n}-{uuid}"),
        ("orders_2024-01-05_01", "orders_{date}_{n}"),
        ("orders_2024-01-05_99", "orders_{date}_{n}"),
        (f"part-00000-{_UUID}-c000", "part-{n}-{uuid}-c{n}"),
        ("data-00001-of-00010", "data-{n}-of-{n}"),
        ("0001_part_00", "{n}_part_{n}"),
        ("accounts-part3_7", "accounts-part{n}_{n}"),
        ("topic+0+0000000000", "topic+{n}+{n}"),
        ("20240105_010203_00042_x7k2p", "{id}"),
        ("123456789012_CloudTrail_us-east-1_20240105T0101Z_Xa9bcDEF123456Qq",
         "{number}_CloudTrail_{region}_{time}_{id}"),
        ("app.web.e0f7754d3b5b604f_20240105T0005Z_10.0.2.7_olROLezv", "app.web.{id}_{time}_{ip}_{id}"),
        ("bucket_usage_2024_01_06_02_00_00_b6775_v0", "bucket_usage_{date}_{n}_{n}_{n}_{id}_v0"),
        ("USW00094728", "{id}"),
        ("US1COAD0001", "{id}"),
        ("9f86d081884c7d65", "{id}"),
        ("events-3f2a9c81", "events-{id}"),
        ("events-aab81681", "events-{id}"),
        ("w5x8k", "{id}"),
        ("20sg8hgm", "{id}"),
        ("GW-7F3A", "GW-{id}"),
        ("la1WtjclBMM7", "{id}"),
        ("14100287", "{number}"),
        ("europe-west1", "{region}"),
        ("table1", "table{n}"),
        ("export_20240301T093000_OrderItems", "export_{time}_OrderItems"),
        ("eu-sales2024-gross", "eu-sales2024-gross"),
        ("checkout-7d9f8b6c5-x2k4p", "checkout-{id}"),
        ("orders_23-12-31", "orders_{date}"),
        ("backup_2024-03-01_09-30-00", "backup_{date}_{n}-{n}-{n}"),
        ("rates_01", "rates_{n}"),
        ("LOAD00000001", "LOAD{n}"),
        ("part-10000004", "part-{n}"),
        ("orders_Mar-01-2024", "orders_{date}"),
        ("orders_2024030109", "orders_{time}"),
        ("{date}", "{open}date{close}"),
        *((word, word) for word in (
            "AAPL", "BRK.B", "sales_EU", "sales_germany", "transfers_in", "orders_v1", "orders_V12",
            "b2b_orders", "k8s_logs", "i18n", "covid19_cases", "ga4_events", "ml-25m", "CUSTOMERS",
            "AdventureWorks2019DW", "Office365Users", "LoanStats3a", "utf8mb4_text", "train", "DEMO20Q",
            "SaleLineItem", "UserRoleMap", "CorpUserInfo", "CustBankAcct", "SalQtr_Usd", "Top10NbaMen",
            "tpcds10gb", "tpch100gb", "html2pdf", "db2mssql", "face2face", "feed2db", "ordersv1",
            "eu-sales_gross", "OrderItemsOfCustomers", "kraftfahrzeughaftpflicht", "eBayPayPalTx",
            "objednavkyzakazniku", "a" * 251,
        )),
    ],
)  # fmt: skip
def test_values_of_a_file_name_become_placeholders(name: str, template: str) -> None:
    found = file_template(name)
    assert found.text == template
    assert len(found.kinds) == len(found.values)
    text = template
    for kind, value in zip(found.kinds, found.values, strict=True):
        text = text.replace(f"{{{kind}}}", value, 1)
    assert text == name


@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("host01", "host01"), ("ds0001", "ds0001"), ("ds2024", "ds2024"), ("feed2024", "feed2024"),
        ("store_0042", "store_0042"), ("store_1234567", "store_1234567"), ("01_raw", "01_raw"),
        ("orders_2024", "orders_{yyyy}"), ("orders_2024-03", "orders_{yyyy-mm}"),
        ("orders_20240301", "orders_{date}"), ("2024_orders", "{yyyy}_orders"),
        ("shard-3", "shard-{n}"), ("batch_7", "batch_{n}"), ("17", "{n}"),
        ("account-123456789012", "account-{number}"), ("GW-7F3A", "GW-{id}"),
        ("sensor-abc12345", "sensor-abc12345"), ("sensor-3f2a9c81", "sensor-{id}"),
        ("orders_20240301_093000", "orders_{date}_{n}"), ("orders_2024_7", "orders_{yyyy-mm}"),
        ("20240301_093000_orders", "{date}_{n}_orders"), ("orders_20240301_7", "orders_{date}_{n}"),
    ],
)  # fmt: skip
def test_a_number_after_a_word_belongs_to_the_name_of_a_folder(name: str, template: str) -> None:
    assert folder_template(name).text == template


@pytest.mark.parametrize(
    "name",
    [f"part-00000-{_UUID}-c000", "data", "Part", "data_0_1", "00001-of-00010", "part-m-00000", "7", "run-3",
     "000000_0_copy_1", "2024-01-05-13"],
)  # fmt: skip
def test_values_and_writers_words_are_no_name(name: str) -> None:
    assert file_template(name).is_writer_name


@pytest.mark.parametrize(
    "name", ["m_01", "c4", "m", "data_m", "$1", "🎉1", "orders", "export_01", "part_list"]
)
def test_words_are_a_name(name: str) -> None:
    assert not file_template(name).is_writer_name


def test_months_are_values_in_the_folder_of_a_year() -> None:
    assert file_template("payroll_Jan", below_year=True).text == "payroll_{mm}"
    assert file_template("payroll_Jan").text == "payroll_Jan"


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("date", "20240105", "2024-01-05"),
        ("date", "2024_1_5", "2024-01-05"),
        ("date", "01-22-2020", "2020-01-22"),
        ("date", "22.01.2020", "2020-01-22"),
        ("date", "5-Jan-2024", "2024-01-05"),
        ("yyyy-mm", "jan-2024", "2024-01"),
        ("yyyy-mm", "01_2024", "2024-01"),
        ("time", "20240105T0101Z", "202401050101"),
    ],
)
def test_times_are_kept_in_a_form_that_sorts(kind: str, value: str, expected: str) -> None:
    assert to_sortable(kind, value) == expected
