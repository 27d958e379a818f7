"""Which parts of a name are values."""

import pytest

from lumos.pipeline.variables import sortable, template_of

_UUID = "3b1f0c1e-1c1a-4b1e-9b0a-0123456789ab"


@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("users", "users"),
        ("events_20240101", "events_{date}"),
        ("events20240101", "events{date}"),
        ("yellow_tripdata_2024-01", "yellow_tripdata_{yyyy-mm}"),
        ("2024-01-orders", "{yyyy-mm}-orders"),
        ("orders_2024Q1", "orders_{quarter}"),
        ("orders_Q1-2024", "orders_{quarter}"),
        ("hours-2024-W05", "hours-{week}"),
        ("sales-jan-2024", "sales-{yyyy-mm}"),
        ("05 January 2024", "{date}"),
        ("01-22-2020", "{date}"),
        ("2024_01_05", "{date}"),
        ("y2024m01", "{yyyy-mm}"),
        ("FY2024_budget", "{yyyy}_budget"),
        ("run_20240105T0101", "run_{time}"),
        ("2015-01-01-15", "{time}"),
        ("2024-01-05--13", "{time}"),
        ("20240105120000.export", "{time}.export"),
        ("pageviews-20240105-010000", "pageviews-{time}"),
        ("1704412800", "{time}"),
        ("1704412800123", "{time}"),
        (f"stream-1-2024-01-05-13-01-02-{_UUID}", "stream-{n}-{time}-{uuid}"),
        (f"part-00000-{_UUID}-c000", "{part}"),
        (f"part-{_UUID}-0-17", "part-{uuid}-{n}-{n}"),
        ("data-00001-of-00010", "data-{n}-of-{n}"),
        ("0001_part_00", "{n}_part_{n}"),
        ("topic+0+0000000000", "topic+{n}+{n}"),
        ("run-1704412800123-part-r-00000", "run-{time}-part-r-{n}"),
        ("20240105_010203_00042_x7k2p", "{id}"),
        ("123456789012_CloudTrail_us-east-1_20240105T0101Z_Xa9bcDEF123456Qq",
         "{n}_CloudTrail_{region}_{time}_{id}"),
        ("123456789012_CloudTrail_us-east-1_20240105T0101Z_KIiUhcSrFYmyGdbW",
         "{n}_CloudTrail_{region}_{time}_{id}"),
        ("USW00094728", "{id}"),
        ("9f86d081884c7d65", "{hash}"),
        ("AAPL", "{code}"),
        ("BRK.B", "{code}"),
        ("sales_EU", "sales_{code}"),
        ("USER_DATA", "USER_DATA"),
        ("PROD", "PROD"),
        ("CUSTOMERS", "CUSTOMERS"),
        ("SUBSCRIPTIONS", "SUBSCRIPTIONS"),
        ("table1", "table{n}"),
        ("ml-25m", "ml-25m"),
        ("sf10", "sf10"),
        ("{date}", "{open}date{close}"),
    ],
)  # fmt: skip
def test_values_become_placeholders(name: str, template: str) -> None:
    found = template_of(name)
    assert found.text == template
    assert len(found.kinds) == len(found.values)
    text = template
    for kind, value in zip(found.kinds, found.values, strict=True):
        text = text.replace(f"{{{kind}}}", value, 1)
    assert text == name


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
    assert sortable(kind, value) == expected
