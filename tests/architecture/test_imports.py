"""What a command may import, and that wrong-way imports are caught."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
HEAVY = ("pyspark", "pyarrow", "pandas", "sqlglot")


def imported_by(*words: str, cwd: Path) -> set[str]:
    """The top-level modules that a command imports in a process of its own."""
    return {name.partition(".")[0] for name in modules_of(*words, cwd=cwd)}


def modules_of(*words: str, cwd: Path) -> set[str]:
    """All modules that a command imports in a process of its own."""
    code = (
        "import sys\n"
        "from lumos.cli.main import main\n"
        f"sys.argv = ['lumos', *{list(words)!r}]\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        "sys.stderr.write('MODULES ' + ' '.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=True
    )
    return set(done.stderr.rpartition("MODULES ")[2].split())


@pytest.mark.parametrize(
    "words",
    [("--help",), ("ingest", "--help"), ("config", "check"), ("init",), ("--version",)],
    ids=" ".join,
)
def test_help_and_configuration_import_no_database_and_no_spark(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    found = imported_by(*words, cwd=tmp_path)
    assert found.isdisjoint({*HEAVY, "sqlalchemy", "alembic"})


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("show", "x"),
        ("history", "x"),
        ("db", "status"),
        ("watch",),
        ("notify", "status"),
        ("ingest", "nowhere"),
        ("lineage", "show", "x"),
        ("impact", "x", "--drop", "y"),
        ("owner", "list"),
        ("tag", "list"),
    ],
    ids=" ".join,
)
def test_commands_that_need_no_spark_import_neither_spark_nor_arrow(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    from lumos.store import Database, Store

    Store.open(Database.sqlite(tmp_path / ".lumos/lumos.db"), create=True).close()
    assert imported_by(*words, cwd=tmp_path).isdisjoint({*HEAVY, "alembic"})


@pytest.mark.parametrize(
    "words", [("cost", "top"), ("cost", "report", "x"), ("cost", "by", "team")], ids=" ".join
)
def test_reports_on_cost_load_neither_readers_of_logs_nor_rules_nor_masked_arrays(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    from lumos.store import Database, Store
    from schema_histories import day, record

    store = Store.open(Database.sqlite(tmp_path / ".lumos/lumos.db"), create=True)
    record(store, "lumos://file/lake/x", "a INT32", day("2024-01-01"))
    store.close()
    prices = "cost_model: {storage: {local: {cost_per_gb_month: 0.02}}}"
    (tmp_path / "lumos.yaml").write_text(prices)
    found = modules_of(*words, cwd=tmp_path)
    assert "lumos.cost.ledger" in found
    in_vain = {"numpy.ma", "lumos.usage.query_log", "lumos.snapshots.store_entries"}
    assert found.isdisjoint({*in_vain, *HEAVY, "alembic"})


@pytest.mark.parametrize(
    "words",
    [
        ("diff", "a.schema", "a.schema"),
        ("diff", "x@1.0.0", "x"),
        ("history", "x"),
        ("timeline", "x"),
        ("evolution",),
        ("export", "schemas"),
        ("predict", "x", "p.json"),
        ("predict", "x", "p.sql"),
        ("predict", "x", "p.yml"),
    ],
    ids=" ".join,
)
def test_commands_on_schemas_import_neither_spark_nor_arrow(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    from lumos.store import Database, Store
    from schema_histories import day, record

    store = Store.open(Database.sqlite(tmp_path / ".lumos/lumos.db"), create=True)
    record(store, "lumos://file/lake/x", "a INT32", day("2024-01-01"))
    store.close()
    (tmp_path / "a.schema").write_text("a INT32\n")
    (tmp_path / "p.json").write_text('{"properties": {"a": {"type": "string"}}}')
    (tmp_path / "p.sql").write_text("CREATE TABLE x (a int)")
    (tmp_path / "p.yml").write_text("models: [{name: x, columns: [{name: a}]}]")
    assert imported_by("schema", *words, cwd=tmp_path).isdisjoint({*HEAVY, "alembic"})


def test_explaining_a_file_needs_no_spark(tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("id,name\n1,Ann\n")
    assert "pyspark" not in imported_by("explain", "users.csv", cwd=tmp_path)


@pytest.mark.parametrize(
    ("place", "line"),
    [
        pytest.param("model/urn.py", "import lumos.store", id="up"),
        pytest.param("store/tables.py", "import lumos.schemas.comparison", id="sideways"),
        pytest.param("cost/ledger.py", "import lumos.profiles.service", id="an unlisted feature"),
        pytest.param("sdk.py", "import pyspark", id="Spark outside of jobs"),
        pytest.param("schemas/rules.py", "import sqlalchemy", id="a database in the rules"),
    ],
)
def test_a_planted_wrong_import_breaks_the_layers(tmp_path: Path, place: str, line: str) -> None:
    shutil.copytree(PROJECT / "src/lumos", tmp_path / "lumos")
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    check = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    environment = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"}
    kept = subprocess.run(check, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert kept.returncode == 0
    with (tmp_path / "lumos" / place).open("a") as file:
        file.write(f"\n{line}\n")
    broken = subprocess.run(check, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert broken.returncode == 1
