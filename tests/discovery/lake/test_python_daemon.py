"""The daemon that Spark's Python workers fork from."""

from pathlib import Path

import pyspark
import pytest

from lumos.discovery.lake.python_daemon import without_zips

INSTALLED = Path(pyspark.__file__).parent


@pytest.mark.parametrize(
    ("path", "left"),
    [
        (["/site/pyspark/python/lib/pyspark.zip", "/site"], ["/site"]),
        (["/spark/python/lib/pyspark.zip", "/site"], ["/spark/python/lib/pyspark.zip", "/site"]),
        (["/site/job.zip.d", "/site"], ["/site/job.zip.d", "/site"]),
    ],
    ids=["installed beside the zip", "a Spark of its own", "no zip"],
)
def test_zips_of_an_installed_spark_are_passed_over(path: list[str], left: list[str]) -> None:
    assert without_zips(path) == left


def test_the_installed_spark_holds_the_zips_that_are_passed_over() -> None:
    zips = [str(each) for each in (INSTALLED / "python" / "lib").glob("*.zip")]
    assert zips
    assert without_zips([*zips, str(INSTALLED.parent)]) == [str(INSTALLED.parent)]
