"""Owners: users and groups, assignment by pattern, CODEOWNERS and dbt."""

import json
from pathlib import Path
from typing import Any

import pytest

from lumos import Lumos
from lumos.annotations.owner_import import CodeOwners
from lumos.errors import MisuseError
from lumos.lineage.header_comments import header_of
from lumos.lineage.reported_lineage import ReportedAnnotations, UrnReference
from lumos.model.catalog import Group, User
from lumos.model.dataset import Owner
from lumos.store.history import EventFilter
from recorded_lake import RecordedLake


@pytest.fixture
def lake(seen: RecordedLake) -> RecordedLake:
    seen.see_all(["sales/orders", "sales/items", "raw/clicks", "tmp/x"], "id INT64")
    return seen


def owners(seen: RecordedLake, name: str) -> list[tuple[str, str, str]]:
    dataset = seen.store.get(f"lumos://file/lake/{name}")
    found = dataset.ownership.owners if dataset.ownership else ()
    return [(owner.name, owner.kind, owner.type) for owner in found]


def test_owners_are_assigned_by_pattern_and_counted(lake: RecordedLake) -> None:
    owners_feature = lake.lumos.annotations.owners
    assert owners_feature.add("jane.smith", email="jane@example.com").created
    assert owners_feature.add("analytics-team", group=True, members=["jane.smith", "li"]).created
    report = owners_feature.assign("analytics-team", "sales/*", type="data_steward")
    assert (report.matched, report.changed) == (2, 2)
    owners_feature.assign("jane.smith", "orders")
    assert owners(lake, "sales/orders") == [
        ("analytics-team", "group", "DATA_STEWARD"),
        ("jane.smith", "user", "TECHNICAL_OWNER"),
    ]
    listed = owners_feature.list()
    assert (listed.datasets, listed.unowned, listed.unowned_share) == (4, 2, 0.5)
    assert [(each.name, each.kind, each.datasets) for each in listed.owners] == [
        ("analytics-team", "group", {"DATA_STEWARD": 2}),
        ("jane.smith", "user", {"TECHNICAL_OWNER": 1}),
        ("li", "user", {}),
    ]
    assert [each.name for each in owners_feature.list(unowned=True).owned] == ["clicks", "x"]
    assert owners_feature.list("sales/*").unowned == 0
    (event,) = lake.store.change_log.events(EventFilter(limit=1))
    assert event.summary == "owner jane.smith (TECHNICAL_OWNER) added"


def test_an_owner_is_no_longer_one(lake: RecordedLake) -> None:
    owners_feature = lake.lumos.annotations.owners
    owners_feature.add("jane")
    owners_feature.assign("jane", "*")
    assert owners_feature.assign("jane", "sales/*", remove=True).changed == 2
    assert owners_feature.assign("jane", "sales/*", remove=True).changed == 0
    assert (owners(lake, "sales/orders"), len(owners(lake, "raw/clicks"))) == ([], 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("jnae", "orders"), "No owner named 'jnae'.*Did you mean 'jane'"),
        (("jane", "ordrs"), "Did you mean 'orders'"),
        (("jane", "no/*"), "No dataset matches"),
    ],
)
def test_unknown_owners_and_datasets_are_reported(
    lake: RecordedLake, arguments: tuple[str, str], words: str
) -> None:
    lake.lumos.annotations.owners.add("jane")
    with pytest.raises(MisuseError, match=words):
        lake.lumos.annotations.owners.assign(*arguments)


def test_types_are_known_ones(lake: RecordedLake) -> None:
    lake.lumos.annotations.owners.add("jane")
    with pytest.raises(MisuseError, match="Did you mean 'DATA_STEWARD'"):
        lake.lumos.annotations.owners.assign("jane", "orders", type="DATA_STEWRAD")


def test_a_name_is_a_user_or_a_group(lake: RecordedLake) -> None:
    owners_feature = lake.lumos.annotations.owners
    owners_feature.add("jane")
    with pytest.raises(MisuseError, match="'jane' is already a user"):
        owners_feature.add("jane", group=True)
    with pytest.raises(MisuseError, match="Only groups have members"):
        owners_feature.add("jane", members=["li"])
    assert not owners_feature.add("jane").changed
    assert owners_feature.add("jane", title="Engineer").changed


@pytest.mark.parametrize(
    ("pattern", "hits", "misses"),
    [
        ("*", ["a", "a/b/c"], []),
        ("*.sql", ["a.sql", "m/a.sql"], ["a.sqlx", "a.py"]),
        ("/build/logs/", ["build/logs/x", "build/logs"], ["a/build/logs/x"]),
        ("docs/*", ["docs/a.md"], ["docs/a/b.md", "x/docs/a.md"]),
        ("apps/", ["apps/x", "a/apps/x/y"], ["app/x"]),
        ("/docs/", ["docs/x/y"], ["a/docs/x"]),
        ("/scripts", ["scripts", "scripts/a/b"], ["scriptsx", "a/scripts"]),
        ("**/logs", ["logs", "a/logs", "a/b/logs/x"], ["logsx"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b/c"], ["b", "x/a/b"]),
        ("/models/**", ["models/a", "models/a/b"], ["xmodels/a"]),
        ("sales/orders", ["sales/orders", "sales/orders/part"], ["x/sales/orders", "sales/orders2"]),
        ("data?.csv", ["data1.csv", "x/data2.csv"], ["data.csv", "data/.csv"]),
        (r"my\ data/", ["my data/x"], ["my/x"]),
    ],
)  # fmt: skip
def test_paths_fit_patterns_as_on_github(pattern: str, hits: list[str], misses: list[str]) -> None:
    (rule,) = CodeOwners(f"{pattern} @me").rules
    assert [path for path in (*hits, *misses) if rule.matches(path)] == hits


def test_the_last_rule_that_fits_wins_and_may_name_nobody() -> None:
    rules = CodeOwners(
        "# all\n* @org/all  # the rest\n/a/ @jane x@example.com\n/a/free\n[Section]\n!a @x\n/b nobody\n"
    )
    assert [(rule.pattern, rule.owners) for rule in rules.rules] == [
        ("*", ("@org/all",)), ("/a/", ("@jane", "x@example.com")), ("/a/free", ()),
    ]  # fmt: skip
    assert [problem.line for problem in rules.problems] == [5, 6, 7]
    free, other, rest = (rules.rule_for([path]) for path in ("a/free/x", "a/x", "c"))
    assert (free and free.owners, other and other.line, rest and rest.line) == ((), 3, 2)


def test_owners_come_from_codeowners_and_go_with_it(lake: RecordedLake, tmp_path: Path) -> None:
    file = tmp_path / "CODEOWNERS"
    file.write_text(
        "* @acme/platform\nsales/ @acme/sales @jane\n/lake/raw/ raw@example.com\ntmp/\nx/y/ @z\n"
    )
    lake.lumos.annotations.owners.add("by-hand")
    lake.lumos.annotations.owners.add("ray", email="RAW@example.com")
    lake.lumos.annotations.owners.assign("by-hand", "orders")
    planned = lake.lumos.annotations.owners.load(file, dry_run=True)
    assert (planned.changed, owners(lake, "raw/clicks")) == (3, [])
    report = lake.lumos.annotations.owners.load(file)
    assert (report.kind, report.rules, report.changed) == ("codeowners", 5, 3)
    assert owners(lake, "sales/items") == [
        ("sales", "group", "TECHNICAL_OWNER"), ("jane", "user", "TECHNICAL_OWNER"),
    ]  # fmt: skip
    assert owners(lake, "raw/clicks") == [("ray", "user", "TECHNICAL_OWNER")]
    assert owners(lake, "tmp/x") == []
    assert any("x/y/ applies to no dataset" in remark for remark in report.remarks)
    assert {"group sales", "user jane"} <= set(report.items)
    assert lake.lumos.annotations.owners.load(file).changed == 0
    file.write_text("/lake/raw/ raw@example.com\n")
    lake.lumos.annotations.owners.load(file)
    assert owners(lake, "sales/orders") == [("by-hand", "user", "TECHNICAL_OWNER")]


def test_files_of_sql_say_who_owns_what_they_make(lake: RecordedLake, tmp_path: Path) -> None:
    from lumos.model.lineage import Edge

    edge = Edge(
        upstream="lumos://file/lake/raw/clicks",
        downstream="lumos://file/lake/sales/orders",
        origin="sql:models/sales/orders.sql",
        at=lake.at,
    )
    with lake.store.transaction() as transaction:
        transaction.lineage.report(edge.origin, [edge], [], at=lake.at)
    (tmp_path / "CODEOWNERS").write_text("/models/sales/ @acme/sales\n")
    lake.lumos.annotations.owners.load(tmp_path / "CODEOWNERS")
    assert owners(lake, "sales/orders") == [("sales", "group", "TECHNICAL_OWNER")]
    assert owners(lake, "sales/items") == []


def node(name: str, **facts: Any) -> dict[str, Any]:
    return {
        "unique_id": f"model.shop.{name}", "resource_type": "model", "name": name,
        "database": "lake", "schema": "sales", "alias": name, **facts,
    }  # fmt: skip


def test_owners_come_from_a_dbt_manifest(lake: RecordedLake, tmp_path: Path) -> None:
    manifest = {
        "metadata": {"project_name": "shop"},
        "nodes": {
            "a": node("ORDERS", config={"meta": {"owner": "analytics-team"}}),
            "b": node("items", group="finance"),
            "c": node("nowhere", meta={"owner": "x"}),
            "d": {"resource_type": "test", "name": "t", "meta": {"owner": "y"}},
        },
        "sources": {
            "s": {"name": "clicks", "schema": "raw", "database": "lake", "identifier": "clicks",
                  "meta": {"owners": ["@acme/web", {"email": "li@example.com"}]}},
        },
        "groups": {"g": {"name": "finance", "owner": {"name": "Ann", "email": "ann@example.com"}}},
    }  # fmt: skip
    file = tmp_path / "manifest.json"
    file.write_text(json.dumps(manifest))
    report = lake.lumos.annotations.owners.load(file, type="BUSINESS_OWNER")
    assert (report.kind, report.changed, report.unmatched) == ("dbt", 3, ("model.shop.nowhere",))
    assert owners(lake, "sales/orders") == [("analytics-team", "group", "BUSINESS_OWNER")]
    assert owners(lake, "sales/items") == [
        ("finance", "group", "BUSINESS_OWNER"), ("Ann", "user", "BUSINESS_OWNER"),
    ]  # fmt: skip
    assert [name for name, _, _ in owners(lake, "raw/clicks")] == ["web", "li@example.com"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "is not valid JSON"),
        (b"{}", "not a dbt manifest"),
        (b"\xff\xfe\x00", "neither a CODEOWNERS file nor JSON"),
        (b"# nothing\n", "contains no rule"),
    ],
)
def test_files_that_are_neither_are_reported(
    lake: RecordedLake, tmp_path: Path, content: bytes, words: str
) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(MisuseError, match=words):
        lake.lumos.annotations.owners.load(tmp_path / "file")


def test_people_are_carried_by_snapshots(lake: RecordedLake) -> None:
    owners_feature = lake.lumos.annotations.owners
    owners_feature.add("team", group=True, members=["jane"])
    assert {each.kind: each.key for each in lake.store.entries.items()} == {
        "groups": "team", "users": "jane",
    }  # fmt: skip
    from lumos.annotations.items import ItemStore

    items = ItemStore(lake.lumos.annotation_writer)
    assert items.all(Group)["team"] == Group(name="team", members=("jane",))
    assert items.all(User)["jane"] == User(name="jane")
    assert items.new_owners([Owner(name="jane"), Owner(name="x@example.com")]) == [
        User(name="x@example.com", email="x@example.com")
    ]


@pytest.fixture
def real_lake(seen: RecordedLake, workplace: Path) -> Lumos:
    """Folders of files below folders whose names are those of rules."""
    root = workplace / "tmp/repo/lake"
    root.mkdir(parents=True)
    seen.see_below(str(root), ["sales/orders", "sales/items", "tmp/scratch.csv"])
    return seen.lumos


def owned(lumos: Lumos) -> dict[str, list[str]]:
    report = lumos.annotations.owners.list("*")
    return {each.name: [owner["name"] for owner in each.owners] for each in report.owned}


@pytest.mark.parametrize(
    ("rule", "decided"),
    [
        ("/tmp/", []),
        ("tmp/", ["scratch"]),
        ("/lake/tmp/", ["scratch"]),
        ("/repo/", []),
        ("/lake/sales/orders/**", ["orders"]),
        ("/lake/sales/items/*", ["items"]),
        ("*.csv", ["items", "orders", "scratch"]),
        ("*.parquet", []),
        ("/lake/sales/**/*.csv", ["items", "orders"]),
        ("/lake/sales", ["items", "orders"]),
        ("*", ["items", "orders", "scratch"]),
    ],
)
def test_a_rule_means_data_where_its_files_lie_in_the_repository(
    real_lake: Lumos, workplace: Path, rule: str, decided: list[str]
) -> None:
    file = workplace / "tmp/repo/CODEOWNERS"
    file.write_text(f"{rule} @jane\n")
    real_lake.annotations.owners.load(file)
    assert sorted(name for name, who in owned(real_lake).items() if who) == decided


def test_data_outside_of_the_repository_is_meant_from_the_folder_that_was_scanned(
    real_lake: Lumos, workplace: Path
) -> None:
    (workplace / "elsewhere").mkdir()
    file = workplace / "elsewhere/CODEOWNERS"
    file.write_text(
        "/tmp/repo/ @never\nrepo/ @never\n/lake/sales/orders/ @jane\n/sales/items @li\n"
    )
    real_lake.annotations.owners.load(file)
    assert owned(real_lake) == {"items": ["li"], "orders": ["jane"], "scratch": []}


def test_a_root_may_lead_upwards_and_has_to_be_there(real_lake: Lumos, workplace: Path) -> None:
    (workplace / "tmp/repo/docs").mkdir()
    file = workplace / "tmp/repo/docs/CODEOWNERS"
    file.write_text("/sales/orders @jane\n")
    root = workplace / "tmp/repo/docs/../lake"
    real_lake.annotations.owners.load(file, root=root)
    assert owned(real_lake)["orders"] == ["jane"]
    with pytest.raises(MisuseError, match="There is no folder"):
        real_lake.annotations.owners.load(file, root=workplace / "nowhere")


def test_two_repositories_do_not_take_each_others_owners_back(
    real_lake: Lumos, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, rule in (("a", "orders"), ("b", "items")):
        (workplace / name).mkdir()
        (workplace / name / "CODEOWNERS").write_text(f"/lake/sales/{rule} @{name}\n")
        monkeypatch.chdir(workplace / name)
        real_lake.annotations.owners.load("CODEOWNERS")
    assert owned(real_lake) == {"items": ["b"], "orders": ["a"], "scratch": []}
    monkeypatch.chdir(workplace)
    (workplace / "a/CODEOWNERS").write_text("/lake/tmp/ @a\n")
    real_lake.annotations.owners.load("a/CODEOWNERS")
    assert owned(real_lake) == {"items": ["b"], "orders": [], "scratch": ["a"]}


def test_a_file_that_moves_is_known_by_its_name(real_lake: Lumos, workplace: Path) -> None:
    first, second = workplace / "CODEOWNERS", workplace / "OWNERS"
    first.write_text("orders @a\n")
    second.write_text("items @a\n")
    real_lake.annotations.owners.load(first, name="shop")
    real_lake.annotations.owners.load(second, name="shop")
    assert owned(real_lake) == {"items": ["a"], "orders": [], "scratch": []}


def test_an_emptied_file_takes_its_owners_back(lake: RecordedLake, tmp_path: Path) -> None:
    file = tmp_path / "CODEOWNERS"
    file.write_text("* @jane\n")
    lake.lumos.annotations.owners.load(file)
    file.write_text("[Section]\n")
    with pytest.raises(MisuseError, match="contains no rule"):
        lake.lumos.annotations.owners.load(file)
    file.write_text("# nobody any more\n")
    assert lake.lumos.annotations.owners.load(file).changed == 4
    assert owners(lake, "sales/orders") == []


def kinds(lumos: Lumos) -> dict[str, str]:
    listed = [(each.name, each.kind) for each in lumos.annotations.owners.list().owners]
    assert len({name for name, _ in listed}) == len(listed), "a name is a user or a group"
    return dict(listed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* @streaming", {"streaming": "group"}),
        ("* @acme/streaming", {"streaming": "group"}),
        ("* @acme/jane @jane", {"streaming": "group", "acme/jane": "group", "jane": "user"}),
        ("* @jane\nx @acme/jane", {"streaming": "group", "jane": "user"}),
        ("* @Streaming Events@Example.com", {"streaming": "group"}),
    ],
)
def test_a_name_in_codeowners_is_a_user_or_a_group(
    lake: RecordedLake, tmp_path: Path, text: str, expected: dict[str, str]
) -> None:
    lake.lumos.annotations.owners.add("streaming", group=True, email="events@example.com")
    (tmp_path / "CODEOWNERS").write_text(f"{text}\n")
    for _ in range(2):
        lake.lumos.annotations.owners.load(tmp_path / "CODEOWNERS")
        assert kinds(lake.lumos) | {"acme/jane": "group"} == expected | {"acme/jane": "group"}


def test_members_of_a_group_are_users(lake: RecordedLake) -> None:
    owners_feature = lake.lumos.annotations.owners
    owners_feature.add("ops", group=True)
    for member in ("x", "ops"):
        with pytest.raises(MisuseError, match="only users can be members"):
            owners_feature.add("x", group=True, members=[member])
    assert kinds(lake.lumos) == {"ops": "group"}


def test_every_file_names_the_same_owner_alike(lake: RecordedLake, tmp_path: Path) -> None:
    owners_feature = lake.lumos.annotations.owners
    owners_feature.add("jane.smith", email="jane@example.com")
    meta = ["@acme/data", "jane@example.com", "Data Team", "ann, bob", "TBD"]
    (tmp_path / "manifest.json").write_text(
        json.dumps({"nodes": {"a": node("orders", meta={"owner": meta})}})
    )
    (tmp_path / "enrich.yaml").write_text(
        "datasets: [{dataset: sales/orders, owners: ['@acme/data', jane@example.com, Data Team, ann, bob]}]"
    )
    header = header_of("-- Owner: @acme/data, jane@example.com, Data Team\n-- Owner: ann; bob\n")
    urn = "lumos://file/lake/sales/orders"
    reported = ReportedAnnotations(dataset=UrnReference(urn=urn), owners=header.owners)
    expected = [
        ("data", "group", "TECHNICAL_OWNER"),
        ("jane.smith", "user", "TECHNICAL_OWNER"),
        ("Data Team", "group", "TECHNICAL_OWNER"),
        ("ann", "user", "TECHNICAL_OWNER"),
        ("bob", "user", "TECHNICAL_OWNER"),
    ]
    owners_feature.load(tmp_path / "manifest.json")
    assert owners(lake, "sales/orders") == expected
    assert lake.lumos.annotations.describe("sql:a.sql", [(urn, reported)]).changed == 0
    assert lake.lumos.annotations.enrich(tmp_path / "enrich.yaml").changed == 0
    assert owners(lake, "sales/orders") == expected


def test_an_owner_whom_nobody_knows_cannot_be_taken_off(lake: RecordedLake) -> None:
    owners_feature = lake.lumos.annotations.owners
    owners_feature.add("jane")
    with pytest.raises(MisuseError, match=r"No owner named 'jnae'.*Did you mean 'jane'"):
        owners_feature.assign("jnae", "orders", remove=True)
    assert owners_feature.assign("jane", "orders", remove=True).changed == 0


SQL = "-- Owner: {owner}\nselect id from sales.orders\n"


def named_in_sql(folder: Path, text: str, **rules: list[str]) -> list[tuple[str, str]]:
    """The owners of a table whose SQL names them, under some rules of the configuration."""
    overrides = {f"owners.{name}": names for name, names in rules.items()}
    lumos = Lumos(overrides={"storage.path": str(folder / "lumos.db"), **overrides})
    seen = RecordedLake(lumos)
    seen.see_all(["sales/orders", "report"], "id INT64")
    (folder / "report.sql").write_text(SQL.format(owner=text))
    lumos.lineage.ingest(folder / "report.sql")
    return [(name, kind) for name, kind, _ in owners(seen, "report")]


@pytest.mark.parametrize(
    ("text", "rules", "expected"),
    [
        pytest.param("analytics-team", {}, "group", id="usual words without a configuration"),
        pytest.param("data-platform", {}, "user", id="another name without one"),
        pytest.param("data-platform", {"groups": ["data-*"]}, "group", id="a group by pattern"),
        pytest.param("Data-Platform", {"groups": ["data-platform"]}, "group", id="any case"),
        pytest.param("analytics-team", {"groups": []}, "user", id="no names are groups"),
        pytest.param("jane", {"groups": ["*"], "users": ["jane"]}, "user", id="users come first"),
        pytest.param("dream-team", {"users": ["dream-team"]}, "user", id="a user all the same"),
        pytest.param("user:data-x", {"groups": ["data-*"]}, "user", id="a mark of users wins"),
        pytest.param("team:jane", {"users": ["jane"]}, "group", id="a mark of groups wins"),
        pytest.param("@acme/data", {"users": ["data"]}, "group", id="a team of a repository"),
    ],
)
def test_the_configuration_says_whether_an_owner_in_sql_is_a_group(
    workplace: Path, text: str, rules: dict[str, list[str]], expected: str
) -> None:
    ((_, kind),) = named_in_sql(workplace, text, **rules)
    assert kind == expected


@pytest.mark.parametrize(
    ("name", "rules", "expected"),
    [
        pytest.param("analytics-team", {}, "group", id="usual words without a configuration"),
        pytest.param("analytics-team", {"groups": ["board"]}, "user", id="not configured"),
        pytest.param("board", {"groups": ["board"]}, "group", id="configured"),
    ],
)
def test_the_configuration_says_whether_an_owner_who_is_added_is_a_group(
    workplace: Path, name: str, rules: dict[str, list[str]], expected: str
) -> None:
    lumos = Lumos(overrides={"storage.path": str(workplace / "lumos.db"), "owners": rules})
    RecordedLake(lumos)
    assert lumos.annotations.owners.add(name).kind == expected


def test_an_owner_keeps_its_kind_when_it_is_updated(workplace: Path) -> None:
    lumos = Lumos(overrides={"storage.path": str(workplace / "lumos.db")})
    RecordedLake(lumos)
    for name, group in (("dream-team", False), ("board", True)):
        kind = lumos.annotations.owners.add(name, group=group).kind
        assert lumos.annotations.owners.add(name, email="a@example.com").kind == kind


def test_an_owner_who_was_added_counts_before_usual_words(workplace: Path) -> None:
    lumos = Lumos(overrides={"storage.path": str(workplace / "lumos.db")})
    RecordedLake(lumos)
    lumos.annotations.owners.add("dream-team", group=False)
    assert named_in_sql(workplace, "dream-team") == [("dream-team", "user")]


def test_a_configuration_that_comes_later_makes_a_user_a_group(workplace: Path) -> None:
    assert named_in_sql(workplace, "data-platform") == [("data-platform", "user")]
    rules = {"groups": ["data-platform"]}
    assert named_in_sql(workplace, "data-platform", **rules) == [("data-platform", "group")]
    lumos = Lumos(overrides={"storage.path": str(workplace / "lumos.db")})
    (owner,) = lumos.annotations.owners.list().owners
    assert (owner.name, owner.kind) == ("data-platform", "group")


def test_somebody_with_an_address_stays_a_user_whatever_is_configured(workplace: Path) -> None:
    lumos = Lumos(overrides={"storage.path": str(workplace / "lumos.db")})
    RecordedLake(lumos)
    lumos.annotations.owners.add("jane", email="jane@example.com")
    assert named_in_sql(workplace, "jane", groups=["*"]) == [("jane", "user")]
