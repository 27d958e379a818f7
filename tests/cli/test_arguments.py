"""Arguments, variables and files that cannot be used: one sentence each, and no secret in it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lumos import Lumos
from lumos.config.secret import mask_arguments
from recorded_lake import RecordedLake

NOT_UTF8 = "bad\udcff"
URL = "postgresql://ann:hunter2@127.0.0.1:1/sales"
DEPTH = 100_000


@pytest.fixture
def store(workplace: Path) -> Path:
    lumos = Lumos()
    RecordedLake(lumos).see_all(["sales/orders.csv"], "id INT64")
    return workplace


@pytest.mark.parametrize(
    "words",
    [
        ("list", NOT_UTF8),
        ("list", "--format", NOT_UTF8),
        ("show", NOT_UTF8),
        ("term", "define", NOT_UTF8, "--definition", "x"),
        ("ingest", NOT_UTF8),
        (NOT_UTF8,),
    ],
)
@pytest.mark.usefixtures("store")
def test_arguments_have_to_be_utf8(lumos: Any, words: tuple[str, ...]) -> None:
    result = lumos(*words)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith(r"lumos: The argument 'bad\udcff' is not valid UTF-8.")
    assert len(result.err.splitlines()) == 1


@pytest.mark.usefixtures("store")
def test_variables_have_to_be_utf8(lumos: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUMOS_CONFIG", NOT_UTF8)
    result = lumos("list")
    assert result.code == 2
    assert "The environment variable LUMOS_CONFIG is not valid UTF-8." in result.err


def test_a_folder_whose_name_is_not_utf8_is_not_scanned(
    lumos: Any, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = workplace / NOT_UTF8 / "lake"
    lake.mkdir(parents=True)
    (lake / "a.csv").write_text("a\n1\n")
    monkeypatch.chdir(lake.parent)
    result = lumos("ingest", "lake")
    assert result.code == 2
    assert "is not valid UTF-8" in result.err


@pytest.mark.parametrize("words", [("list",), ("ingest", "."), ("init",), ("owner", "list")])
def test_a_deleted_working_directory_is_named(tmp_path: Path, words: tuple[str, ...]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = (
        "import os, sys; os.chdir(sys.argv[1]); os.rmdir(sys.argv[1]); "
        "sys.argv[1:] = sys.argv[2:]; from lumos.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(gone), *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("lumos: The working directory no longer exists.")


@pytest.mark.parametrize(
    "words",
    [
        ("list", "--store", URL),
        ("list", f"--store={URL}"),
        ("list", "--limit", URL),
        ("show", URL),
        ("tag", "set", URL, "pii"),
        ("config", "check", "--config", URL),
        ("discover", "--write-config", URL),
        ("export", "--output", URL),
        ("schema", "export", URL),
        ("history", "orders", "--as-of", URL),
        ("doctor", "--store", URL),
        (URL,),
        ("--debug", "show", URL),
        ("lineage", "ingest", URL),
        ("search", URL, "--json"),
    ],
)
@pytest.mark.parametrize("password", ["hunter2", "hun/ter2", "hun@ter2", "hun//ter2", r"hun\ter2"])
def test_a_password_in_a_url_is_not_repeated(
    lumos: Any, store: Path, words: tuple[str, ...], password: str
) -> None:
    result = lumos(*(word.replace("hunter2", password) for word in words))
    # Long lines are broken and framed.
    printed = "".join((result.out + result.err).replace("│", "").split())
    assert "ter2" not in printed
    assert "***" in printed
    folders = {str(path.relative_to(store)) for path in store.rglob("*")}
    assert not any("ter2" in name for name in folders)


@pytest.mark.usefixtures("store")
def test_a_database_in_lineage_is_named_without_its_password(lumos: Any) -> None:
    report = lumos("lineage", "add", URL, "orders", "--allow-dangling", "--json").json
    assert report["upstream"]["name"] == "postgresql://ann:***@127.0.0.1:1/sales"


@pytest.mark.parametrize(
    ("argument", "text", "shown"),
    [
        (URL, f"No {URL}.", "No postgresql://ann:***@127.0.0.1:1/sales."),
        ("https://token@h/x", "at https:/token@h", "at https:/***@h"),
        ("s3://b/k?sig=abc&role=r", "s3://b/k?sig=abc&role=r", "s3://b/k?sig=***&role=r"),
        ("abfss://lake@x.net/a", "abfss://lake@x.net/a", "abfss://lake@x.net/a"),
        ("lumos://pg@eu/x", "lumos://pg@eu/x", "lumos://pg@eu/x"),
        ("https://h/a@b", "https://h/a@b", "https://h/a@b"),
        ("s3://bucket/orders", "s3://bucket/orders", "s3://bucket/orders"),
    ],
)
def test_only_what_is_secret_in_a_url_is_masked(argument: str, text: str, shown: str) -> None:
    assert mask_arguments([argument], text) == shown


def _nested(text: str) -> str:
    return text.replace("DEEP", "[" * DEPTH + "]" * DEPTH)


EVENT = (
    '{"eventTime":"2024-01-01T00:00:00Z","eventType":"COMPLETE","job":{"namespace":"n","name":"j"},'
    '"inputs":[{"namespace":"n","name":"a"}],"outputs":[{"namespace":"n","name":"b"%s}]}\n'
)


@pytest.mark.parametrize(
    ("name", "content", "words", "message"),
    [
        ("manifest.json", '{"nodes":DEEP}', ("owner", "import"), "nested too deeply"),
        ("manifest.json", '{"nodes":DEEP}', ("lineage", "ingest"), "nested too deeply"),
        ("log.jsonl", '{"user":DEEP}', ("usage", "ingest"), "is not a known kind of query log"),
        ("log.yaml", "DEEP", ("usage", "ingest"), "is not a known kind of query log"),
        ("edges.yaml", "lineage: DEEP", ("lineage", "ingest"), "nests deeper than"),
        ("diff.json", '{"x":DEEP}', ("schema", "impact", "--changes"), "nested too deeply"),
    ],
)
@pytest.mark.usefixtures("store")
def test_deeply_nested_files_are_refused(
    lumos: Any, name: str, content: str, words: tuple[str, ...], message: str
) -> None:
    Path(name).write_text(_nested(content))
    result = lumos(*words, name)
    assert result.code in (1, 2)
    assert message in result.out + result.err
    assert "Traceback" not in result.err


@pytest.mark.usefixtures("store")
def test_one_nested_event_does_not_hide_the_others(lumos: Any) -> None:
    Path("events.json").write_text(_nested(EVENT % ',"x":DEEP') + EVENT % "")
    result = lumos("lineage", "ingest", "events.json", "--json")
    assert result.json["edges"]["added"] == 1
    assert result.json["problems"][0]["reason"] == (
        "Not an OpenLineage event: JSON is nested too deeply."
    )


@pytest.mark.usefixtures("store")
def test_statements_of_a_query_log_beside_a_nested_one_are_counted(lumos: Any) -> None:
    row = '{"user_name":"ann","start_time":"2024-01-01","query_text":"select id from orders"'
    Path("log.jsonl").write_text(f"{row}}}\n" + _nested(row + ',"x":DEEP}\n'))
    result = lumos("usage", "ingest", "log.jsonl", "--json")
    assert result.code == 0
    (log,) = result.json["logs"]
    assert (log["counted"], log["left_out"]) == (1, {"unreadable": 1})


@pytest.mark.parametrize("words", [("owner", "import"), ("lineage", "ingest")])
@pytest.mark.usefixtures("store")
def test_a_manifest_that_is_not_utf8_is_refused(lumos: Any, words: tuple[str, ...]) -> None:
    Path("manifest.json").write_bytes(b'{"metadata":{},"nodes":{"a":{"name":"\xff"}}}')
    result = lumos(*words, "manifest.json")
    assert "JSON is not UTF-8 text" in result.out + result.err


@pytest.mark.usefixtures("store")
def test_a_binary_file_is_no_query_log(lumos: Any) -> None:
    Path("log.bin").write_bytes(b"a\rb,c\n" + os.urandom(64))
    result = lumos("usage", "ingest", "log.bin")
    assert result.code == 2
    assert "is not a known kind of query log" in result.err


def test_sql_files_whose_names_are_not_utf8_are_problems(lumos: Any, workplace: Path) -> None:
    folder = workplace / "models"
    (folder / NOT_UTF8).mkdir(parents=True)
    (folder / "good.sql").write_text("CREATE TABLE n AS SELECT a FROM t")
    (folder / f"{NOT_UTF8}.sql").write_text("CREATE TABLE m AS SELECT a FROM t")
    result = lumos("lineage", "ingest", "models")
    assert result.code == 0
    assert "sql:models/good.sql" in result.out
    for name in ("bad\\xff", "bad\\xff.sql"):
        assert f"models/{name}: The name is not valid UTF-8." in result.err


def test_a_working_directory_whose_name_is_not_utf8_is_named(
    lumos: Any, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workplace / NOT_UTF8).mkdir()
    monkeypatch.chdir(workplace / NOT_UTF8)
    result = lumos("config", "check")
    assert result.code == 2
    assert "The name of the working directory is not valid UTF-8." in result.err


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://bob@db.example/sales?password=hunter2&sslkey=hunter2",
        "s3://bucket/x.parquet?X-Amz-Signature=hunter2",
    ],
)
@pytest.mark.usefixtures("store")
def test_parameters_of_an_address_are_no_part_of_a_urn(lumos: Any, url: str) -> None:
    result = lumos("lineage", "add", "orders", url, "--allow-dangling")
    assert result.code == 0
    assert "hunter2" not in result.out + result.err
    assert "hunter2" not in lumos("lineage", "show", "orders", "--json").out


@pytest.mark.parametrize(
    ("argument", "shown"),
    [
        ("//bob:HUSH@h/x", "//bob:***@h/x"),
        ("bob:HUSH@host/x", "bob:***@host/x"),
        ("bob:HU@SH@host:5432/x", "bob:***@host:5432/x"),
        ("--store=bob:HUSH@[::1]/x", "--store=bob:***@[::1]/x"),
        ("bob@example.com", "bob@example.com"),
        ("lake:raw", "lake:raw"),
        ("12:30@noon", "12:30@noon"),
        ("user_id: STRING -> INT64", "user_id: STRING -> INT64"),
        ("owner: bob@example.com", "owner: bob@example.com"),
    ],
)
def test_a_password_in_an_address_without_a_scheme_is_masked(argument: str, shown: str) -> None:
    assert mask_arguments([argument], f"'{argument}' is nothing.") == f"'{shown}' is nothing."
