"""Lakes of real files, from disk through Spark, fall into the datasets that people see in them."""

import gzip
import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discovery.grouping.lakes import ROOT, Lake, LakeFile
from discovery.grouping.lakes_company import COMPANY
from discovery.grouping.lakes_public import PUBLIC
from discovery.grouping.lakes_writers import WRITERS
from lumos import Lumos
from lumos.model.types import DATE, FLOAT64, INT64, DataType

pytestmark = pytest.mark.usefixtures("spark", "workplace")

_CHOSEN = (
    "New York taxi trips", "NOAA daily climate", "Covid daily reports", "Spark by date",
    "Titanic", "CloudTrail", "Firehose", "Kafka Connect, same schema in two topics",
    "database migration service", "runs above tables", "days above tables", "junk all around",
    "numbered tables that differ", "formats side by side",
)  # fmt: skip
_LAKES = [lake for lake in (*PUBLIC, *WRITERS, *COMPANY) if lake.name in _CHOSEN]


def value(type: DataType, row: int) -> Any:
    if type == INT64:
        return row * 7 + 1
    if type == FLOAT64:
        return row + 0.5
    if type == DATE:
        return date(2024, 1, row + 1)
    return datetime(2024, 1, row + 1, 3) if type.text.startswith("TIMESTAMP") else f"text {row}"


def write(file: LakeFile, place: Path) -> None:
    """The file with three rows, in its format and compression; what is no data is one document."""
    place.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {each.name: value(each.type, row) for each in file.schema.fields}
        for row in range(1 if file.dataset == "-" else 3)
    ]
    if file.format is None:
        place.write_bytes(b"\x89PNG\r\n\x1a\n")
        return
    if file.format == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), place)
        return
    names = [each.name for each in file.schema.fields]
    lines = (
        [",".join(names), *(",".join(str(row[name]) for name in names) for row in rows)]
        if file.format == "csv"
        else [json.dumps(row, default=str) for row in rows]
    )
    data = ("\n".join(lines) + "\n").encode()
    place.write_bytes(gzip.compress(data) if place.suffix == ".gz" else data)


@pytest.mark.parametrize("lake", _LAKES, ids=lambda lake: lake.name)
def test_a_lake_of_real_files_is_found(lake: Lake, tmp_path: Path) -> None:
    root = tmp_path / "lake"
    files = lake.files()
    for file in files:
        write(file, root / file.path.removeprefix(f"{ROOT}/"))
    lumos = Lumos()
    report = lumos.ingest(root)
    found: dict[str, set[str]] = {}
    for file in files:
        explanation = lumos.explain(root / file.path.removeprefix(f"{ROOT}/"))
        for dataset in explanation.datasets:
            found.setdefault(dataset.urn, set()).add(file.path)
    assert set(map(frozenset, found.values())) == lake.expected()
    assert {dataset.urn for dataset in report.datasets} == set(found)


def test_all_chosen_lakes_are_there() -> None:
    assert sorted(lake.name for lake in _LAKES) == sorted(_CHOSEN)
