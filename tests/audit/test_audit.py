"""The audit log: who did what, and that no row can be changed, removed or inserted unnoticed."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import text

from lumos import Lumos
from lumos.actor import Actor, acting_as, process_actor
from lumos.audit.service import Audit
from lumos.errors import MisuseError
from lumos.model.json_codec import decode_json
from lumos.store import Database, Store
from schema_histories import day, record

ORDERS = "lumos://file/lake/orders"
CI = Actor(kind="token", name="ci", origin="10.0.0.7", request_id="r-1")


@pytest.fixture
def lumos(tmp_path: Path) -> Lumos:
    """Five actions: three tags, a version and a token."""
    lumos = Lumos(overrides={"storage.path": str(tmp_path / "store.db")})
    record(lumos.create_store(), ORDERS, "id INT64\n", day("2024-01-01"))
    lumos.annotations.tags.set("orders", "pii")
    with acting_as(CI):
        lumos.annotations.tags.set("orders", "gold")
        lumos.annotations.tags.remove("orders", "pii")
        lumos.version.bump("orders", "SCHEMA_CHANGE", level="major", reason="x")
    lumos.tokens.create("bi")
    return lumos


def run(lumos: Lumos, statement: str) -> None:
    with lumos.database.writing() as connection:
        connection.execute(text(statement))


def fault(lumos: Lumos) -> tuple[str, int]:
    (problem,) = lumos.audit.verify().problems
    return problem.fault, problem.sequence


def test_an_action_says_who_did_what_from_where_with_both_values(lumos: Lumos) -> None:
    entries = {each.sequence: each for each in lumos.audit.list().entries}
    removed = entries[3]
    assert (removed.kind, removed.actor, removed.origin, removed.request_id) == (
        "token", "ci", "10.0.0.7", "r-1",
    )  # fmt: skip
    assert (removed.action, removed.target) == ("tag remove", "orders")
    assert removed.before == {ORDERS: {"tag pii": ""}}
    assert removed.after == {ORDERS: {"tag pii": None}}
    assert entries[4].before == {"cloud_version": "S-4", "schema_version": "1.0.0"}
    assert entries[4].after == {"cloud_version": "S-5", "schema_version": "2.0.0"}


def test_annotations_and_versions_have_the_actor_as_author(lumos: Lumos) -> None:
    assert {each.author for each in lumos.changes(limit=3).events} == {"ci"}


def test_a_ci_system_is_recognised_by_its_variable() -> None:
    assert process_actor({"CI": "true"}).kind == "ci"
    assert process_actor({"CI": "false"}).kind == "user"


def test_a_log_that_nobody_touched_is_verified(lumos: Lumos) -> None:
    report = lumos.audit.verify()
    assert (report.rows, report.problems) == (5, ())
    assert lumos.audit.verify(head=report.head).problems == ()


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        pytest.param("UPDATE audit SET actor = 'ann' WHERE sequence = 2", ("changed", 2), id="who"),
        pytest.param("UPDATE audit SET details = 'x' WHERE sequence = 1", ("changed", 1), id="first"),
        pytest.param("UPDATE audit SET after = NULL WHERE sequence = 5", ("changed", 5), id="last"),
        pytest.param("UPDATE audit SET recorded_at = recorded_at + 1 WHERE sequence = 3",
                     ("changed", 3), id="when"),
        pytest.param("DELETE FROM audit WHERE sequence = 3", ("removed", 3), id="removed"),
        pytest.param("DELETE FROM audit WHERE sequence = 1", ("removed", 1), id="first removed"),
        pytest.param("DELETE FROM audit WHERE sequence = 5", ("removed", 5), id="last removed"),
        pytest.param("DELETE FROM audit", ("removed", 1), id="all removed"),
        pytest.param("DELETE FROM audit_head", ("removed", 5), id="end removed"),
        pytest.param(
            "INSERT INTO audit (sequence, recorded_at, actor, origin, action, target, details, hash)"
            " SELECT 6, recorded_at, 'ann', origin, action, target, details, hash FROM audit"
            " WHERE sequence = 5", ("changed", 6), id="inserted at the end"),
        pytest.param(
            "INSERT INTO audit (sequence, recorded_at, actor, origin, action, target, details, hash)"
            " SELECT 0, recorded_at, actor, origin, action, target, details, hash FROM audit"
            " WHERE sequence = 1", ("inserted", 0), id="inserted before"),
    ],
)  # fmt: skip
def test_verification_finds_every_manipulation(
    lumos: Lumos, statement: str, found: tuple[str, int]
) -> None:
    run(lumos, statement)
    assert fault(lumos) == found


def test_a_row_with_a_valid_hash_at_the_end_is_found_by_the_recorded_end(lumos: Lumos) -> None:
    before = lumos.audit.verify()
    lumos.annotations.tags.set("orders", "extra")
    run(lumos, f"UPDATE audit_head SET sequence = 5, hash = '{before.head}'")
    assert fault(lumos) == ("inserted", 6)


def test_a_rewritten_log_is_found_by_a_hash_that_was_kept_elsewhere(
    lumos: Lumos, tmp_path: Path
) -> None:
    kept = lumos.audit.verify().head
    other = Lumos(overrides={"storage.path": str(tmp_path / "other.db")})
    other.create_store()
    other.tokens.create("bi")
    assert other.audit.verify().problems == ()
    (problem,) = other.audit.verify(head=kept).problems
    assert f"no longer contains the hash {kept}" in problem.sentence


def test_an_export_has_a_line_for_each_action_oldest_first(lumos: Lumos, tmp_path: Path) -> None:
    report = lumos.audit.export(tmp_path / "audit.jsonl")
    lines = (tmp_path / "audit.jsonl").read_bytes().splitlines()
    assert [decode_json(line)["sequence"] for line in lines] == [1, 2, 3, 4, 5]
    assert (report.rows, report.head) == (5, lumos.audit.verify().head)


def test_rows_of_an_older_store_get_numbers_and_hashes(tmp_path: Path) -> None:
    database = Database.sqlite(tmp_path / "old.db")
    config = Config()
    config.set_main_option("script_location", "lumos.store:migrations")
    with database.writing() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0018")
    columns = "(sequence, recorded_at, actor, origin, action, target, details)"
    with database.writing() as connection:
        for number in (1, 2, 5, 9):
            values = f"({number}, {10**15 + number}, 'ann', 'pc', 'tag set', 'x', 'é')"
            connection.execute(text(f"INSERT INTO audit {columns} VALUES {values}"))
    database.upgrade()
    audit = Audit(lambda: Store.open(database))
    assert [each.sequence for each in audit.entries()] == [1, 2, 3, 4]
    assert audit.verify().problems == ()


def test_filters_narrow_the_list(lumos: Lumos) -> None:
    audit = lumos.audit
    assert [each.sequence for each in audit.list(actor="ci", action="tag add").entries] == [2]
    assert [each.sequence for each in audit.list(target="order", limit=2).entries] == [4, 3]
    assert [each.sequence for each in audit.list(before=3).entries] == [2, 1]
    assert audit.list(since=f"{datetime.now(UTC).year + 1}-01-01").entries == ()


def test_an_account_without_a_name_is_known_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found: 54321")

    monkeypatch.setattr("getpass.getuser", unknown)
    monkeypatch.setattr("os.getuid", lambda: 54321)
    assert process_actor({}).name == "uid 54321"


def test_an_export_creates_its_folder_as_other_exports_do(lumos: Lumos, tmp_path: Path) -> None:
    lumos.audit.export(tmp_path / "new" / "folder" / "audit.jsonl")
    assert (tmp_path / "new" / "folder" / "audit.jsonl").is_file()


def test_owners_lineage_and_schedules_have_their_values(lumos: Lumos) -> None:
    def values(action: str) -> tuple[Any, Any]:
        (entry,) = lumos.audit.list(action=action, limit=1).entries
        return entry.before, entry.after

    lumos.annotations.owners.add("bob")
    assert values("owner add") == (None, {"name": "bob"})
    lumos.annotations.owners.add("bob", email="bob@example.com")
    assert values("owner add") == ({"name": "bob"}, {"name": "bob", "email": "bob@example.com"})

    record(lumos.create_store(), f"{ORDERS}2", "id INT64\n", day("2024-01-01"))
    lumos.lineage.add("orders", "orders2", columns={"id": "id"}, confidence=0.5)
    before, edge = values("lineage add")
    assert (before, edge["upstream"], edge["confidence"]) == (None, ORDERS, 0.5)
    lumos.lineage.remove("orders", "orders2")
    removed, after = values("lineage remove")
    assert {name: removed[name] for name in edge} == edge
    assert after is None

    lumos.schedules.add("nightly", "0 1 * * *", "version:scan", priority=3)
    before, added = values("schedule add")
    assert (before, added["cron"], added["priority"]) == (None, "0 1 * * *", 3)
    assert added["arguments"] == {"mode": "scan"}
    lumos.schedules.remove("nightly")
    assert values("schedule remove") == (added, None)

    lumos.annotations.schedules.set("orders", "daily", lag="6h")
    lumos.releases.notify("2026.11", at="2026-11-17T14:00Z")
    before, announced = values("release notify")
    assert announced["datasets"] == [ORDERS]
    assert announced["release"]["at"] == "2026-11-17T14:00:00Z"
    assert lumos.audit.verify().problems == ()


@pytest.mark.parametrize(
    "name", ["2026\n11", " 2026.11", "2026.11 ", "\t", "", "a\x1b[0m", "x" * 201]
)
def test_names_of_releases_are_one_printable_text(lumos: Lumos, name: str) -> None:
    with pytest.raises(MisuseError, match="release"):
        lumos.releases.notify(name)
