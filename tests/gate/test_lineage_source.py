"""Lineage from outside of the repository: readers that the repository does not contain."""

import json
from pathlib import Path
from typing import Any

import pytest

from catalogs.local_platform import LocalStorePlatform
from gate.sample import USERS, SampleRepository, code, findings, run_gate
from lumos import Lumos
from lumos.errors import MisuseError
from lumos.model.catalog import CatalogEntry
from lumos.model.schema import parse_schema

CHANGE: dict[str, str | None] = {"schemas/users.schema": USERS.replace("email STRING\n", "")}
SCHEMAS: dict[str, str | None] = {"schemas/users.schema": USERS}


class OutsideStore:
    """A store that knows a reader of `users` which the repository does not contain."""

    def __init__(self, folder: Path, sql: dict[str, str]) -> None:
        self.file = folder / "lumos.db"
        self.lumos = Lumos(environment={}, overrides={"storage.path": str(self.file)})
        platform = LocalStorePlatform(self.lumos.create_store())
        for name, columns in (("users", USERS), ("mailing", "email STRING\n")):
            schema = parse_schema("".join(columns.splitlines(keepends=True)[columns[0] == "#" :]))
            urn = f"lumos://s3/lake/{name}"
            platform.put(CatalogEntry(urn=urn, name=name, platform="s3", schema=schema))
        for name, text in sql.items():
            (folder / name).write_text(text, encoding="utf-8")
            self.lumos.lineage.ingest(folder / name)


@pytest.fixture
def store(tmp_path_factory: pytest.TempPathFactory) -> OutsideStore:
    sql = {"mailing.sql": "-- owner: crm\nselect email from users where email <> ''\n"}
    return OutsideStore(tmp_path_factory.mktemp("outside"), sql)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_it_readers_are_unknown(folder: Path) -> None:
    repository = SampleRepository(folder, SCHEMAS)
    repository.commit(CHANGE)
    report = repository.check()
    assert findings(report) == [("warning", "users.email", None)]
    assert code(report, strict=True) == 11
    assert report.remarks == (
        "No lineage is known: no SQL of the repository reads a table, and --lineage was not "
        "given. Whether anything reads what changed is unknown.",
    )


def test_a_store_knows_readers_outside_of_the_repository(folder: Path, store: OutsideStore) -> None:
    repository = SampleRepository(folder, SCHEMAS)
    repository.commit(CHANGE)
    before = store.file.read_bytes()
    found, report = run_gate("--lineage", str(store.file))
    assert found == 10
    assert [(each["affected"], each["used"]["file"]) for each in report["findings"]] == [
        ("mailing", "mailing.sql")
    ]
    assert store.file.read_bytes() == before
    assert run_gate("--lineage", str(store.file.parent))[0] == 10


def test_a_snapshot_knows_readers_too(folder: Path, store: OutsideStore) -> None:
    snapshot = store.file.with_name("snapshot.json")
    store.lumos.snapshot.export(snapshot)
    repository = SampleRepository(folder, SCHEMAS)
    repository.commit(CHANGE)
    report = repository.check(lineage=snapshot)
    assert findings(report) == [("error", "users.email", "mailing")]


def test_local_is_the_configured_store(folder: Path, store: OutsideStore) -> None:
    repository = SampleRepository(folder, SCHEMAS)
    repository.commit(CHANGE)
    lumos = Lumos(environment={}, overrides={"storage.path": str(store.file)})
    report = lumos.gate.check("main", lineage="local")
    assert findings(report) == [("error", "users.email", "mailing")]


def test_declarations_mean_the_datasets_of_the_store(folder: Path, store: OutsideStore) -> None:
    ddl = "create table lake.users (user_id text, email text, nickname text);\n"
    repository = SampleRepository(folder, {"users.sql": ddl})
    repository.commit({"users.sql": ddl.replace("email text, ", "")})
    report = repository.check(lineage=store.file)
    assert findings(report) == [("error", "users.email", "mailing")]
    assert report.findings[0].urn == "lumos://s3/lake/users"


def test_the_repository_knows_its_own_models_best(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = OutsideStore(
        tmp_path_factory.mktemp("outside"), {"mailing.sql": "select email from users\n"}
    )
    repository = SampleRepository(
        folder, {**SCHEMAS, "dbt/models/mailing.sql": "select email from users\n"}
    )
    assert outside.file.exists()
    repository.commit({**CHANGE, "dbt/models/mailing.sql": "select user_id as email from users\n"})
    assert code(repository.check(lineage=outside.file)) == 0
    repository.commit({"dbt/models/mailing.sql": None})
    report = repository.check(lineage=outside.file)
    assert "users.email" not in [f"{each.dataset}.{each.path}" for each in report.findings
                                 if each.level == "error"]  # fmt: skip


MANIFEST: dict[str, Any] = {
    "metadata": {
        "dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json",
        "project_name": "shop",
        "adapter_type": "postgres",
    },
    "nodes": {
        "model.shop.mailing": {
            "name": "mailing", "resource_type": "model", "package_name": "shop",
            "database": "db", "schema": "marts", "alias": "mailing",
            "relation_name": '"db"."marts"."mailing"', "original_file_path": "models/mailing.sql",
            "compiled_code": 'select email from "db"."raw"."users"', "language": "sql",
            "depends_on": {"nodes": ["source.shop.raw.users"]}, "columns": {},
        },
    },
    "sources": {
        "source.shop.raw.users": {
            "name": "users", "resource_type": "source", "package_name": "shop", "database": "db",
            "schema": "raw", "identifier": "users", "relation_name": '"db"."raw"."users"',
            "original_file_path": "models/sources.yml", "columns": {},
        },
    },
    "exposures": {},
}  # fmt: skip
DDL = "create table raw.users (user_id text, email text);\n"
DROPPED: dict[str, str | None] = {"users.sql": DDL.replace(", email text", "")}


def test_artefacts_of_dbt_are_lineage(folder: Path) -> None:
    repository = SampleRepository(folder, {"users.sql": DDL})
    repository.commit(DROPPED)
    (folder / "target").mkdir()
    (folder / "target/manifest.json").write_text(json.dumps(MANIFEST), encoding="utf-8")
    report = repository.check(lineage="target/manifest.json")
    assert findings(report) == [("error", "users.email", "mailing")]


def test_committed_artefacts_of_dbt_are_lineage_too(folder: Path) -> None:
    manifest = json.dumps(MANIFEST)
    repository = SampleRepository(folder, {"users.sql": DDL, "dbt/target/manifest.json": manifest})
    repository.commit(DROPPED)
    assert findings(repository.check()) == [("error", "users.email", "mailing")]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"name": "an app", "icons": []}', id="manifest of something else"),
        pytest.param(json.dumps(MANIFEST)[:-9], id="broken"),
        pytest.param(json.dumps({"metadata": MANIFEST["metadata"]}), id="empty"),
    ],
)
def test_other_manifests_do_no_harm(folder: Path, text: str) -> None:
    repository = SampleRepository(folder, {"users.sql": DDL, "manifest.json": text})
    repository.commit(DROPPED)
    assert findings(repository.check()) == [("warning", "users.email", None)]


def test_a_file_without_lineage_is_an_error(folder: Path) -> None:
    repository = SampleRepository(folder, SCHEMAS)
    with pytest.raises(MisuseError, match="There is no file nowhere"):
        repository.check(lineage="nowhere")
    (folder / "notes.txt").write_text("hello", encoding="utf-8")
    with pytest.raises(MisuseError, match="contains no lineage"):
        repository.check(lineage="notes.txt")
