"""Owners and enrichment on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from lumos import Lumos
from recorded_lake import RecordedLake


@pytest.fixture
def shop(workplace: Path) -> Path:
    seen = RecordedLake(Lumos())
    seen.see_all(
        ["sales/orders", "sales/items", "tmp/x"], "id INT64\nemail STRING\na STRUCT<city: STRING>"
    )
    return workplace


pytestmark = pytest.mark.usefixtures("shop")


def test_owners_from_first_to_last(lumos: Any) -> None:
    assert lumos("owner", "add", "jane", "--email", "jane@example.com").out == "user jane: added\n"
    assert lumos("owner", "add", "team", "--group", "--member", "jane").out == "group team: added\n"
    assigned = lumos("owner", "assign", "sales/*", "team", "--type", "DATA_STEWARD")
    assert "owner team (DATA_STEWARD) added" in assigned.out
    assert assigned.out.endswith("2 datasets changed.\n")
    assert "1 of 3 datasets has no owner (33%)." in lumos("owner", "list").out
    assert lumos("owner", "list", "--unowned").out.startswith("x\n")
    report = lumos("owner", "list", "--dataset", "orders", "--json").json
    assert report["owned"][0]["owners"] == [
        {"name": "team", "kind": "group", "type": "DATA_STEWARD"}
    ]
    assert (
        lumos("owner", "assign", "*", "team", "--type", "DATA_STEWARD", "--remove", "--json").json[
            "changed"
        ]
        == 2
    )


def test_a_dry_run_says_what_would_change(lumos: Any) -> None:
    done = lumos("tag", "set", "sales/*", "gold", "--dry-run")
    assert done.out.endswith("2 datasets would change.\n")
    assert lumos("tag", "list").out == "No tag on 3 datasets. Add some with: lumos tag add --help\n"


@pytest.mark.parametrize(
    "words",
    [
        ("tag", "set", "orders", "pii", "--field", "email"),
        ("compliance", "set", "orders", "GDPR", "--field", "email"),
        ("property", "set", "orders", "a=b", "--field", "a.city"),
        ("term", "set", "orders", "City", "--field", "a.city"),
        ("doc", "set", "orders", "text", "--field", "a.city"),
    ],
)
def test_fields_are_set_listed_and_removed(lumos: Any, words: tuple[str, ...]) -> None:
    noun, _, dataset, name, *field = words
    assert lumos(*words, "--json").json["changed"] == 1
    listed = lumos(noun, "list", "orders", "--json").json
    assert [word["field"] for word in listed["words"]] == [field[1]]
    assert lumos(noun, "list", "orders").code == 0
    removed = () if noun == "doc" else (name.partition("=")[0],)
    assert lumos(noun, "remove", dataset, *removed, *field, "--json").json["changed"] == 1
    assert lumos(noun, "list", "orders", "--json").json["words"] == []


def test_documentation_comes_from_text_options_and_files(lumos: Any, shop: Path) -> None:
    (shop / "orders.md").write_text("# Orders\n\nAll of them.\n")
    assert (
        lumos("doc", "set", "orders", "--file", "orders.md", "--context", "c", "--domain", "d").code
        == 0
    )
    shown = lumos("show", "orders", "--json").json["dataset"]["documentation"]
    assert shown == {
        "description": "# Orders\n\nAll of them.",
        "business_context": "c",
        "domain": "d",
    }
    assert lumos("doc", "set", "orders", "text", "--file", "orders.md").code == 2
    assert "no file nothing.md" in lumos("doc", "set", "orders", "--file", "nothing.md").err
    assert lumos("doc", "remove", "orders", "--domain", "--json").json["datasets"][0][
        "changes"
    ] == ["domain removed"]


def test_the_glossary_is_written_and_listed(lumos: Any) -> None:
    assert (
        lumos("term", "define", "Customer", "--definition", "Who buys").out
        == "term Customer: added\n"
    )
    done = lumos(
        "term", "set", "orders", "Buyer", "--definition", "Buys now", "--parent", "Customer"
    )
    assert done.code == 0
    assert "Buyer Customer 1 0 Buys now" in lumos("term", "list").words
    assert lumos("term", "undefine", "Buyer").code == 2
    assert "new term without a definition" in lumos("term", "set", "orders", "Other").err


def test_what_is_said_is_shown(lumos: Any) -> None:
    lumos("doc", "set", "orders", "All orders", "--domain", "sales")
    lumos("tag", "set", "orders", "gold")
    lumos("tag", "set", "orders", "pii", "--field", "a.city")
    lumos("property", "set", "orders", "sla=daily")
    shown = lumos("show", "orders").words
    for words in (
        "description All orders",
        "domain sales",
        "tags gold",
        "properties sla=daily",
        "a.city STRING yes tags: pii",
    ):
        assert words in shown


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("tag", "set", "ordres", "x"), "Did you mean 'orders'?"),
        (("tag", "set", "orders", "x", "--field", "emial"), "Did you mean 'email'?"),
        (("property", "set", "orders", "x"), "'x' is not NAME=VALUE"),
        (("owner", "assign", "orders", "nobody"), "No owner named 'nobody'"),
        (("enrich",), "lumos enrich FILE"),
        (("doc", "list", "--missing"), "No documentation is required"),
    ],
)
def test_misuse_is_one_sentence(lumos: Any, words: tuple[str, ...], sentence: str) -> None:
    done = lumos(*words)
    assert done.code == 2
    assert sentence in done.err


def test_a_file_under_review_is_applied_and_reported(lumos: Any, shop: Path) -> None:
    (shop / "enrich.yaml").write_text(
        "datasets:\n  - {dataset: orders, description: text, owners: [jane]}\n"
    )
    done = lumos("enrich", "--file", "enrich.yaml")
    assert "description written; owner jane (TECHNICAL_OWNER) added" in done.out
    assert done.out.endswith("user jane\n1 dataset changed.\n")
    assert lumos("enrich", "-f", "enrich.yaml").out == "0 datasets changed, 1 unchanged.\n"
    (shop / "enrich.yaml").write_text("datasets:\n  - {dataset: orders, descripton: text}\n")
    assert lumos("enrich", "--file", "enrich.yaml").err.startswith("lumos: enrich.yaml:2")


@pytest.mark.parametrize(("mode", "code"), [("block_on_missing", 10), ("warn_only", 0)])
def test_missing_documentation_fails_where_it_blocks(
    lumos: Any, shop: Path, mode: str, code: int
) -> None:
    (shop / "lumos.yaml").write_text(
        "documentation:\n  required_fields: [description, owner]\n"
        f"  enforcement: {{mode: {mode}}}\n  exceptions: [{{pattern: /tmp/*, reason: Temporary}}]\n"
    )
    done = lumos("doc", "list", "--missing")
    assert (done.code, "orders description, owner -" in done.words) == (code, True)
    assert (
        f"0 of 2 datasets documented, 1 exempt. Required: description, owner ({mode})." in done.out
    )
    assert lumos("doc", "list", "--missing", "--json").json["blocks"] == bool(code)


def test_names_are_interpreted_by_the_configuration(lumos: Any, shop: Path) -> None:
    (shop / "lumos.yaml").write_text("glossary_mappings: {email: E-mail address}\n")
    assert lumos("enrich", "--infer", "--dry-run", "--json").json["changed"] == 3
    assert "3 datasets changed." in lumos("enrich", "--infer").out
    assert "inferred" in lumos("doc", "list", "orders").out


def test_owners_are_taken_from_a_file(lumos: Any, shop: Path) -> None:
    (shop / "CODEOWNERS").write_text("sales/ @acme/sales\nelsewhere/ @acme/x\n")
    done = lumos("owner", "import", "CODEOWNERS")
    assert "2 datasets changed." in done.out
    assert "CODEOWNERS:2: elsewhere/ applies to no dataset" in done.err
    (shop / "manifest.json").write_text(json.dumps({"nodes": {"n": {
        "unique_id": "model.a.b", "resource_type": "model", "name": "b", "meta": {"owner": "x"}}}}))  # fmt: skip
    assert "model.a.b: no dataset" in lumos("owner", "import", "manifest.json").err
