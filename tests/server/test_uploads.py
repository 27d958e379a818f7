"""Files and folders that clients send: SQL, query logs, enrichment files and snapshots."""

import base64
from pathlib import Path
from typing import Any

import pytest

from lumos import Lumos
from lumos.errors import LumosError, MisuseError
from lumos.server import client as client_module
from lumos.server.client import connect
from served_store import remote_of

LOG = (
    "QUERY_ID,QUERY_TEXT,START_TIME,USER_NAME,EXECUTION_STATUS\n"
    "7,SELECT country FROM orders,2024-01-06 10:00:00,EVE,SUCCESS\n"
)


def content(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def folder_of(*files: tuple[str, str], name: str = "/home/ann/models") -> dict[str, Any]:
    sent = [{"name": path, "content": content(text)} for path, text in files]
    return {"paths": [{"name": name, "is_folder": True, "files": sent}]}


@pytest.fixture
def served(client: Any) -> Lumos:
    """Lumos on a server; tests go to another folder than that of its store."""
    return remote_of(client)


def test_sql_logs_and_enrichment_files_of_another_machine_are_read(
    served: Lumos, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "laptop"
    models = work / "models"
    models.mkdir(parents=True)
    monkeypatch.chdir(work)
    (models / "by_country.sql").write_text("select country, id from orders")
    (models / "by_id.sql").write_text("select id from orders")
    (models / ".hidden.sql").write_text("select secret from orders")
    (models / "data.bin").write_bytes(b"\0" * 100)
    report = served.lineage.ingest("models")
    assert (report.files, report.failed) == ({"sql": 2}, ())
    assert {each.reporter for each in report.reporters} == {
        f"sql:{models}/by_country.sql",
        f"sql:{models}/by_id.sql",
    }
    tables = Lumos(folder / "lumos.yaml").list(lineage_only=True).lineage_only
    names = [each.rpartition("/")[2] for each in tables]
    assert {"by_country", "by_id"} <= {each.rpartition(".")[2] for each in names}
    # What a folder no longer contains is removed, by the same name in the next upload.
    (models / "by_id.sql").unlink()
    again = served.lineage.ingest(models)
    assert again.gone == (f"sql:{models}/by_id.sql",)

    (work / "july.csv").write_text(LOG)
    logged = served.usage.ingest("july.csv")
    assert "july" in {each.log.removeprefix("log:") for each in served.usage.logs().logs}
    (counted,) = logged.logs
    (repeated,) = served.usage.ingest("july.csv").logs
    assert (counted.counted, repeated.counted, repeated.counted_before) == (1, 0, 1)
    readers = [each.name for each in served.usage.show("orders").readers]
    assert "EVE" in readers

    (work / "enrich.yaml").write_text(
        "datasets:\n  - dataset: orders\n    description: From afar\n"
    )
    assert served.annotations.enrich("enrich.yaml").changed == 1
    shown: Any = served.show("orders").dataset
    assert shown["documentation"]["description"] == "From afar"
    actions = [each.action for each in served.audit.list().entries]
    assert "enrich" in " ".join(actions)


def test_snapshots_are_imported_and_rolled_back_over_http(
    served: Lumos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    served.snapshot.export("before.json")
    served.annotations.tags.set("orders", "later")
    other = Lumos(overrides={"storage.path": str(tmp_path / "other.db")})
    other.snapshot.load("before.json")
    other.annotations.tags.set("orders", "imported")
    other.snapshot.export("after.json")
    planned = served.snapshot.try_load("after.json")
    assert planned.dry_run
    assert planned.file == "after.json"
    report = served.snapshot.load("after.json")
    assert report.sums.refused == 0
    tags: Any = served.show("orders").dataset["governance"]["tags"]
    assert "imported" in tags
    assert "later" in tags
    undone = served.snapshot.roll_back("after.json")
    assert undone.file.endswith("after.json")
    assert "lumos-request" not in undone.file
    tags = served.show("orders").dataset["governance"]["tags"]
    assert ("imported" in tags, "later" in tags) == (False, True)
    Path("broken.json").write_text("{}")
    with pytest.raises(LumosError, match=r"broken\.json"):
        served.snapshot.load("broken.json")
    with pytest.raises(MisuseError, match="there is no such file"):
        served.snapshot.load("none.json")
    with pytest.raises(MisuseError, match="is an address"):
        served.snapshot.load("before.json", platform="datahub-file:/tmp/anywhere.json")


@pytest.mark.parametrize(
    "name", ["../up.sql", "/etc/up.sql", "a//b.sql", "a/./b.sql", "", "x\0.sql", "n" * 300]
)
def test_no_file_is_written_outside_of_its_folder(client: Any, name: str) -> None:
    answer = client.post("/api/v1/lineage/files", json=folder_of((name, "select 1 from orders")))
    assert answer.status_code == 400
    assert "is not a path in the folder" in answer.json()["detail"]


def test_reports_show_the_names_of_the_client(client: Any) -> None:
    sent = folder_of(
        ("broken.sql", "select from where ((("), ("good/x.sql", "select id from orders")
    )
    answer = client.post("/api/v1/lineage/files", json=sent)
    assert answer.status_code == 200
    assert "/home/ann/models/broken.sql" in answer.text
    assert "/home/ann/models/good/x.sql" in answer.text
    assert "lumos-request" not in answer.text
    two = {"name": "a.sql", "is_folder": False, "files": []}
    refused = client.post("/api/v1/lineage/files", json={"paths": [two]})
    assert (refused.status_code, "exactly one file" in refused.text) == (400, True)


def test_uploads_are_bounded(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    too_large = folder_of(("a.sql", "x" * 1_000_000))
    assert client.post("/api/v1/lineage/files", json=too_large).status_code == 413
    many = folder_of(*((f"{number}.sql", "") for number in range(10_001)))
    answer = client.post("/api/v1/lineage/files", json=many)
    assert (answer.status_code, "at most 10,000 files" in answer.text) == (400, True)
    monkeypatch.setattr(client_module, "_MAX_UPLOAD_FILES", 2)
    for number in range(3):
        (tmp_path / f"{number}.sql").write_text("select 1")
    with pytest.raises(MisuseError, match="Send smaller folders"):
        connect("http://127.0.0.1:1").lineage.ingest(tmp_path)
