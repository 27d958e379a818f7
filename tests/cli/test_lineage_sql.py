"""lumos lineage sql"""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lumos.cli.lineage import app
from lumos.errors import LumosError

SQL = "insert into mart.t select a, b + 1 from raw.s where c = 1;\nselect nothing from a, b;\n"


def run(*words: str, input: str | None = None) -> str:
    result = CliRunner().invoke(app, ["sql", *words], input=input)
    if result.exception is not None:
        raise result.exception
    return result.stdout


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "load.sql"
    path.write_text(SQL)
    return path


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "columns.yaml"
    path.write_text("mart.t: [x, y]\nraw.s:\n  - {name: a, type: INT}\n  - name: b\n  - c: INT\n")
    return path


def test_the_contract_of_the_json(file: Path, schema: Path) -> None:
    report = json.loads(run(str(file), "--schema", str(schema), "--json"))
    assert report["format_version"] == "1.0"
    assert [(edge["from"], edge["to"], edge["kind"], edge["usage"], edge["expression"], edge["line"]) for edge in report["edges"]] == [
        ("raw.s.a", "mart.t.x", "DIRECT", "PROJECTION", "a", 1),
        ("raw.s.b", "mart.t.y", "DIRECT", "PROJECTION", "b + 1", 1),
        ("raw.s.c", "mart.t", "INDIRECT", "FILTER", "where c = 1", 1),
    ]  # fmt: skip
    (unresolved,) = report["unresolved"]
    assert (unresolved["statement"], unresolved["line"]) == (2, 2)
    assert "'nothing'" in unresolved["reason"]
    assert report["coverage"] == pytest.approx(2 / 3, abs=0.001)


def test_a_query_that_writes_nothing_leads_to_its_columns() -> None:
    report = json.loads(run("-", "--json", input="select s.a as b from s join t on s.i = t.i"))
    assert {(edge["from"], edge["to"]) for edge in report["edges"]} == {
        ("s.a", "b"),
        ("s.i", "*"),
        ("t.i", "*"),
    }


def test_people_see_edges_problems_and_coverage(file: Path) -> None:
    shown = CliRunner().invoke(app, ["sql", str(file)])
    assert "raw.s.b  -> mart.t.b + 1  TRANSFORMATION  b + 1  :1" in shown.stdout
    assert "line 2: column 'nothing' is ambiguous: it may come from a, b" in shown.stderr
    assert "2 of 3 output columns resolved (67%)." in shown.stdout


def test_nothing_in_gives_nothing_out() -> None:
    report = json.loads(run("-", "--json", input=""))
    assert (report["edges"], report["unresolved"], report["coverage"]) == ([], [], 1.0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("-", "--dialect", "snowflak"),
            "No SQL dialect named 'snowflak'.*Did you mean 'snowflake'",
        ),
        (("-", "--schema", "absent.yaml"), "The schema file absent.yaml does not exist"),
        (("absent.sql",), "There is no file absent.sql. For a folder use: lumos lineage ingest"),
    ],
)
def test_a_wrong_word_is_reported(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(LumosError, match=message):
        run(*words, input="select 1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("s: 3", "s must be a list of columns"),
        ("s: [[a]]", "must be a column's name"),
        ("s: [a", "not valid YAML"),
        ("s: !!python/object/apply:os.system [ls]", "tag"),
        ("- a", "mapping"),
    ],
)
def test_a_broken_schema_is_reported_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "columns.yaml"
    path.write_text(text)
    with pytest.raises(LumosError, match=rf"columns.yaml:\d+.*{message}"):
        run("-", "--schema", str(path), input="select 1")


@pytest.mark.parametrize("key", ["s", "raw.s", "lake.raw.s", "RAW.S", '"raw"."s"'])
def test_a_schema_finds_a_table_by_as_much_as_it_says(tmp_path: Path, key: str) -> None:
    path = tmp_path / "columns.yaml"
    path.write_text(f"'{key}': {{a: int, b: text}}")
    report = json.loads(run("-", "--schema", str(path), "--json", input="select * from raw.s"))
    assert [edge["to"] for edge in report["edges"]] == ["a", "b"]
