"""Two collections of lakes whose truth was written before they were first grouped.

One was written from docs/GROUPING.md alone (first sight: F1 0.998, no merge), the other from experience
with real lakes, without that page (first sight: F1 0.791 without hints, merges in two lakes).
"""

from statistics import mean

import pytest

from lumos.storage import FileHint
from lumos.storage.interface import is_hidden

from .lakes import ROOT, Lake, found_sets, grouped
from .lakes_documented import DOCUMENTED
from .lakes_experienced import EXPERIENCED

# Keys such as segment_type= name tables there, but most columns are the same: they are partitions.
_MERGED_BY_KEYS = {"segment_data_lake", "snowplow_shredded"}
# One hint each for lakes whose author gave none, or one that does not cover most of the lake.
_HINTS = {
    "alb_access_logs": ("lb-logs/AWSLogs/*/elasticloadbalancing/**", "alb"),
    "central_logging_bucket": ("AWSLogs/*/Config/**/ConfigHistory/**", "config_history"),
    "noaa_storm_events": ("stormevents/csvfiles/StormEvents_{key}-ftp*.csv.gz", "storm_events"),
    "lehd_lodes": ("lodes8/*/{key}/*.csv.gz", "lodes"),
    "citibike_tripdata": ("tripdata/2*-citibike-tripdata*.csv", "citibike_tripdata"),
    "market_data_by_kind": ("market/{key}/*", "market"),
    "sensor_folders": ("iot/readings/sensor-*/**", "readings"),
    "rotated_logs_dateext": ("nginx/{key}.log*", "nginx"),
    "names_differ_in_case": ("up/returns/*", "returns"),
}


def found(lake: Lake, hint: tuple[str, str] | None = None) -> set[frozenset[str]]:
    """The datasets of a lake; hidden files and folders are never listed."""
    hints = [] if hint is None else [FileHint(*hint)]
    every = found_sets(lake, grouped(lake, hints=hints), hints)
    return {files for files in every if not all(map(_is_hidden, files))}


def _is_hidden(path: str) -> bool:
    return any(map(is_hidden, path.removeprefix(f"{ROOT}/").split("/")))


def f1(lake: Lake, datasets: set[frozenset[str]]) -> float:
    expected = lake.expected()
    return 2 * len(expected & datasets) / (len(expected) + len(datasets))


@pytest.mark.parametrize("lake", DOCUMENTED, ids=lambda lake: lake.name)
def test_a_lake_is_grouped_as_the_documentation_says(lake: Lake) -> None:
    assert found(lake) == lake.expected()


@pytest.mark.parametrize("lake", EXPERIENCED, ids=lambda lake: lake.name)
def test_no_dataset_of_a_real_lake_holds_files_of_two_tables(lake: Lake) -> None:
    tables = lake.expected()
    merged = [
        files for files in found(lake) if sum(not files.isdisjoint(table) for table in tables) > 1
    ]
    assert bool(merged) == (lake.name in _MERGED_BY_KEYS)


def test_one_hint_for_a_lake_is_enough_for_most() -> None:
    without = mean(f1(lake, found(lake)) for lake in EXPERIENCED)
    hinted = mean(f1(lake, found(lake, _HINTS.get(lake.name, lake.hint))) for lake in EXPERIENCED)
    assert without >= 0.79
    assert hinted >= 0.95
