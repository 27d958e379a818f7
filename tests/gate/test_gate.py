"""The gate on a repository with schemas and models, one branch per kind of change."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from gate.sample import CUSTOMER_360, ORDERS, REPORT, USERS, SampleRepository, findings
from lumos import Lumos
from lumos.errors import LumosError, MisuseError
from lumos.gate.outputs import RENDERERS
from lumos.gate.reports import GateReport


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SampleRepository:
    monkeypatch.chdir(tmp_path)
    return SampleRepository(tmp_path)


@pytest.mark.parametrize(
    ("change", "code", "expected"),
    [
        pytest.param(
            {"schemas/users.schema": USERS + "age INT32\n"},
            0,
            [("note", "users.age", None)],
            id="added column",
        ),
        pytest.param(
            {
                "schemas/users.schema": USERS + "age INT32\n",
                "models/customer_360.sql": CUSTOMER_360.replace(
                    "u.email, count", "u.email, max(u.age) as age, count"
                ),
            },
            0,
            [("note", "customer_360.age", None), ("note", "users.age", None)],
            id="added column that a changed model reads",
        ),
        pytest.param(
            {"schemas/users.schema": USERS.replace("email STRING\n", "")},
            10,
            [("error", "users.email", "customer_360"), ("error", "users.email", "report")],
            id="dropped column with readers",
        ),
        pytest.param(
            {"schemas/users.schema": USERS.replace("nickname STRING\n", "")},
            0,
            [("note", "users.nickname", None)],
            id="dropped column without readers",
        ),
        pytest.param(
            {"schemas/users.schema": USERS.replace("user_id STRING", "user_id INT64")},
            10,
            [("error", "users.user_id", "customer_360")],
            id="type change",
        ),
        pytest.param(
            {
                "schemas/users.schema": USERS.replace("user_id STRING", "user_id INT64"),
                "models/customer_360.sql": CUSTOMER_360.replace(
                    "u.user_id", "cast(u.user_id as varchar)"
                ).replace("select cast(u.user_id as varchar)", "select cast(u.user_id as varchar) as user_id"),
            },
            0,
            [("note", "users.user_id", None)],
            id="type change absorbed by a cast",
        ),
        pytest.param(
            {"models/report.sql": "SELECT  email,\n  orders FROM customer_360 WHERE orders > 1\n"},
            0,
            [],
            id="formatting only",
        ),
        pytest.param(
            {"schemas/users.schema": USERS.replace("email STRING", "email STRING COMMENT 'E-mail'")},
            0,
            [("note", "users.email", None)],
            id="description only",
        ),
        pytest.param(
            {"models/customer_360.sql": CUSTOMER_360.replace(", count(*) as orders", "")},
            10,
            [("error", "customer_360.orders", "report")],
            id="model without a column that another reads",
        ),
        pytest.param(
            {
                "models/customer_360.sql": CUSTOMER_360.replace(", count(*) as orders", ""),
                "models/report.sql": "select email from customer_360\n",
            },
            0,
            [("note", "customer_360.orders", None), ("note", "report.orders", None)],
            id="reader adapted in the same change",
        ),
        pytest.param(
            {
                "models/customer_360.sql": CUSTOMER_360.replace("as orders", "as purchases"),
                "models/report.sql": "select c.email, c.purchases as orders from customer_360 c\n",
            },
            0,
            [("note", "customer_360.orders", None), ("note", "customer_360.purchases", None)],
            id="reader adapted to a renamed column",
        ),
        pytest.param(
            {
                "models/customer_360.sql": CUSTOMER_360.replace("as orders", "as purchases"),
                "models/report.sql": REPORT + "  and email <> ''\n",
            },
            10,
            [
                ("error", "customer_360.orders", "report"),
                ("note", "customer_360.purchases", None),
            ],
            id="changed reader of a renamed column that is not adapted",
        ),
        pytest.param(
            {"models/customer_360.sql": CUSTOMER_360.replace(", sum(o.amount) as total", "")},
            0,
            [("note", "customer_360.total", None)],
            id="model without a column that nobody reads",
        ),
        pytest.param(
            {"models/customer_360.sql": None},
            10,
            [("error", "customer_360.", "report")],
            id="deleted model",
        ),
        pytest.param(
            {"schemas/users.schema": None},
            10,
            [("error", "users.", "customer_360"), ("error", "users.", "report")],
            id="deleted schema",
        ),
    ],
)  # fmt: skip
def test_a_change_is_judged_by_its_readers(
    repository: SampleRepository,
    change: dict[str, str | None],
    code: int,
    expected: list[tuple[str, str, str | None]],
) -> None:
    repository.commit(change)
    report = repository.check()
    assert findings(report) == expected
    assert report.exit_code(strict=False, warn_only=False) == code
    assert report.exit_code(strict=True, warn_only=True) == 0


def test_a_finding_names_reader_owner_reason_and_place(repository: SampleRepository) -> None:
    repository.commit({"schemas/users.schema": USERS.replace("user_id STRING", "user_id INT64")})
    (finding,) = repository.check().findings
    assert finding.message.startswith(
        "users.user_id changed from STRING to INT64 and breaks customer_360"
    )
    assert finding.used is not None
    assert (finding.used.file, finding.used.line) == ("models/customer_360.sql", 4)
    assert finding.declared is not None
    assert finding.declared.file == "schemas/users.schema"


def test_only_the_change_itself_counts(repository: SampleRepository) -> None:
    repository.commit({"schemas/users.schema": USERS + "age INT32\n"})
    repository.git("checkout", "-q", "main")
    repository.commit({"schemas/orders.schema": ORDERS.replace("amount DECIMAL(10,2)\n", "")})
    repository.git("checkout", "-q", "change")
    assert findings(repository.check()) == [("note", "users.age", None)]


def test_without_lineage_a_dropped_column_is_undetermined(repository: SampleRepository) -> None:
    repository.git("checkout", "-q", "main")
    repository.commit({"models/customer_360.sql": None, "models/report.sql": None})
    repository.git("checkout", "-q", "-b", "bare")
    repository.commit({"schemas/users.schema": USERS.replace("nickname STRING\n", "")})
    report = repository.check()
    assert findings(report) == [("warning", "users.nickname", None)]
    assert "no lineage is known" in report.findings[0].message
    assert report.exit_code(strict=False, warn_only=False) == 0
    assert report.exit_code(strict=True, warn_only=False) == 11


def test_avro_and_create_table_are_schemas_too(repository: SampleRepository) -> None:
    avro = {
        "type": "record", "name": "click", "namespace": "web",
        "fields": [{"name": "url", "type": "string"}, {"name": "at", "type": "long"}],
    }  # fmt: skip
    table = "create table shop.stock (sku varchar(20) not null, amount int);\n"
    repository.git("checkout", "-q", "main")
    repository.commit(
        {
            "avro/click.avsc": json.dumps(avro),
            "ddl/stock.sql": table,
            "models/clicks.sql": "select url from click\n",
            "models/low.sql": "select sku from shop.stock where amount < 10\n",
        }
    )
    repository.git("checkout", "-q", "-b", "second")
    avro["fields"] = avro["fields"][1:]
    repository.commit(
        {
            "avro/click.avsc": json.dumps(avro),
            "ddl/stock.sql": table.replace(", amount int", ""),
        }
    )
    assert findings(repository.check()) == [
        ("error", "click.url", "clicks"),
        ("error", "stock.amount", "low"),
    ]


TODAY = datetime.now(UTC).date()


def waive(report: GateReport, **options: Any) -> Path:
    (finding,) = (each for each in report.findings if each.level == "error")
    waived = Lumos(environment={}).gate.waive(
        finding.fingerprint, reason="The reader's days are over", **options
    )
    return Path(waived.file)


def test_a_waiver_needs_the_fingerprint_of_a_finding(repository: SampleRepository) -> None:
    gate = Lumos(environment={}).gate
    unknown = "0123456789abcdef"
    why: dict[str, Any] = {"reason": "Agreed", "approver": "analytics-team"}
    with pytest.raises(MisuseError, match=r"No run in this clone .* lumos gate --base REV"):
        gate.waive(unknown, **why)
    repository.commit({"schemas/users.schema": USERS.replace("user_id STRING", "user_id INT64")})
    (finding,) = repository.check().findings
    with pytest.raises(MisuseError) as refused:
        gate.waive(unknown, **why)
    assert f"Reported in this clone: {finding.fingerprint} (users.user_id" in str(refused.value)
    assert "If CI reported it, add --from-ci" in str(refused.value)
    mistyped = finding.fingerprint[::-1][:2] + finding.fingerprint[2:]
    with pytest.raises(MisuseError, match=f"Did you mean '{finding.fingerprint}'"):
        gate.waive(mistyped, **why)
    with pytest.raises(MisuseError, match="which has 16 hexadecimal digits"):
        gate.waive("abc!", **why)
    assert gate.waive(unknown, from_ci=True, **why).fingerprint == unknown
    assert gate.waive(finding.fingerprint, **why).fingerprint == finding.fingerprint


def test_a_waiver_approves_one_finding_of_one_change(repository: SampleRepository) -> None:
    repository.commit({"schemas/users.schema": USERS.replace("user_id STRING", "user_id INT64")})
    before = repository.check()
    file = waive(before, approver="analytics-team")
    # It counts once it is committed with the change.
    assert repository.check().exit_code(strict=False, warn_only=False) == 10
    text = CUSTOMER_360.replace("\njoin", "\n\n  join")
    repository.commit({"models/customer_360.sql": text, "unrelated.txt": "x"})
    report = repository.check()
    assert (report.verdict, report.summary.waived) == ("passed", 1)
    assert report.findings[0].waived_by == "analytics-team"
    repository.commit({"schemas/users.schema": USERS.replace("user_id STRING", "user_id DATE")})
    other = repository.check()
    assert other.exit_code(strict=False, warn_only=False) == 10
    assert [each.reason for each in other.waivers] == [
        "No finding has this fingerprint. Delete it."
    ]
    with pytest.raises(MisuseError, match="already"):
        waive(before, approver="bob")
    assert file.read_text(encoding="utf-8").count("fingerprint") == 1


def test_a_waiver_from_a_folder_below_is_that_of_the_repository(
    repository: SampleRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"schemas/users.schema": USERS.replace("user_id STRING", "user_id INT64")})
    monkeypatch.chdir(repository.folder / "models")
    file = waive(repository.check(), approver="analytics-team")
    assert file.resolve() == repository.folder.resolve() / ".lumos/waivers.yaml"
    repository.commit({"done.txt": "x"})
    assert repository.check().verdict == "passed"


def test_only_an_owner_may_approve_if_owners_are_known(repository: SampleRepository) -> None:
    repository.commit({"schemas/users.schema": USERS.replace("user_id STRING", "user_id INT64")})
    waive(repository.check(), approver="mallory")
    repository.commit({"done.txt": "x"})
    report = repository.check()
    assert report.exit_code(strict=False, warn_only=False) == 10
    assert [each.reason for each in report.waivers] == [
        "mallory does not own customer_360. Owners: analytics-team."
    ]


def test_a_waiver_that_was_merged_is_used_up(repository: SampleRepository) -> None:
    narrow = USERS.replace("user_id STRING", "user_id INT64")
    repository.commit({"schemas/users.schema": narrow})
    waive(repository.check(), approver="analytics-team")
    repository.commit({"done.txt": "x"})
    repository.git("checkout", "-q", "main")
    waivers = repository.git("show", "change:.lumos/waivers.yaml")
    repository.commit({".lumos/waivers.yaml": waivers})
    repository.git("checkout", "-q", "-b", "again")
    repository.commit({"schemas/users.schema": narrow})
    report = repository.check()
    assert report.exit_code(strict=False, warn_only=False) == 10
    assert [each.reason for each in report.waivers] == [
        "It was used by an earlier change. Delete it."
    ]


def test_a_waiver_expires(repository: SampleRepository) -> None:
    repository.commit({"schemas/users.schema": USERS.replace("user_id STRING", "user_id INT64")})
    yesterday = TODAY - timedelta(days=1)
    waive(repository.check(), approver="analytics-team", expires=yesterday)
    repository.commit({"done.txt": "x"})
    report = repository.check()
    assert report.exit_code(strict=False, warn_only=False) == 10
    assert [each.reason for each in report.waivers] == [f"It expired on {yesterday}."]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("waivers: [{fingerprint: zz, reason: a, approver: b, expires: '2030-01-01'}]", "16 hex"),
        ("waivers:\n- {fingerprint: '0123456789abcdef', reason: a}", "approver"),
        ("waivers: [", "waivers.yaml"),
    ],
)
def test_an_invalid_waiver_file_is_an_error(
    repository: SampleRepository, text: str, words: str
) -> None:
    repository.commit({".lumos/waivers.yaml": text})
    with pytest.raises(LumosError, match=words):
        repository.check()


def test_every_output_contains_the_findings(repository: SampleRepository) -> None:
    repository.commit(
        {
            "schemas/users.schema": USERS.replace("user_id STRING", "user_id INT64")
            .replace("nickname STRING\n", ""),
        }
    )  # fmt: skip
    report = repository.check()
    texts = {name: render(report) for name, render in RENDERERS.items()}
    (error,) = (each for each in report.findings if each.level == "error")
    assert json.loads(texts["json"])["verdict"] == "breaking"
    assert "**Breaking:** `users.user_id` changed from STRING to `INT64` and" in texts["markdown"]
    assert f"fingerprint `{error.fingerprint}`" in texts["markdown"]
    assert "::error file=schemas/users.schema,title=Lumos%3A Breaking::" in texts["github"]
    first = json.loads(texts["gitlab"])[0]
    assert (first["severity"], first["location"]["path"]) == ("major", "schemas/users.schema")
    suite = ElementTree.fromstring(texts["junit"])
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert len(suite.findall(".//failure")) == 1
    sarif = json.loads(texts["sarif"])
    (run,) = sarif["runs"]
    assert sarif["version"] == "2.1.0"
    assert [each["level"] for each in run["results"]] == ["error", "note"]
    related = run["results"][0]["relatedLocations"][0]["physicalLocation"]
    assert related["artifactLocation"]["uri"] == "models/customer_360.sql"
    rules = [each["id"] for each in run["tool"]["driver"]["rules"]]
    assert all(rules[each["ruleIndex"]] == each["ruleId"] for each in run["results"])


def test_text_from_a_fork_cannot_leave_its_cell_or_its_folder(repository: SampleRepository) -> None:
    name = "schemas/a|b%0A<img src=x>.schema"
    repository.commit({name: "# urn: lumos://s3/lake/x%7C%3Cb%3E\nid INT64\nold STRING\n"})
    repository.git("checkout", "-q", "-b", "hostile")
    repository.git("branch", "-f", "main", "change")
    repository.commit({name: "# urn: lumos://s3/lake/x%7C%3Cb%3E\nid INT64\n"})
    report = repository.check()
    assert "<b>" not in RENDERERS["markdown"](report).replace("`x|<b>.old`", "")
    assert RENDERERS["github"](report).count("\n") == len(report.findings)
    ElementTree.fromstring(RENDERERS["junit"](report))


def test_a_file_that_cannot_be_read_is_a_remark(repository: SampleRepository) -> None:
    repository.commit({"schemas/users.schema": USERS + "broken\n", "x.avsc": "{"})
    report = repository.check()
    assert sum("Not compared: " in remark for remark in report.remarks) == 2


def test_a_folder_without_repository_and_an_unknown_revision_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MisuseError, match="not inside a readable git repository"):
        Lumos(environment={}).gate.check("main")
    repository = SampleRepository(tmp_path)
    with pytest.raises(MisuseError, match="There is no revision 'nowhere'"):
        Lumos(environment={}).gate.check("nowhere")
    assert repository.check().verdict == "passed"


def test_the_gate_leaves_no_store(repository: SampleRepository) -> None:
    repository.check()
    assert not (repository.folder / ".lumos").exists()


def test_a_nested_field_and_not_another_column_is_blamed(repository: SampleRepository) -> None:
    columns = "# urn: lumos://s3/lake/baskets\nid INT64\namount INT64\n"
    items = "items ARRAY<STRUCT<sku: STRING, price: INT64>>\n"
    repository.git("checkout", "-q", "main")
    repository.commit(
        {
            "schemas/baskets.schema": columns + items,
            "models/lines.sql": "select id, i.price from baskets lateral view explode(items) t as i",
        }
    )
    repository.git("checkout", "-q", "-b", "nested")
    changed = columns.replace("amount INT64\n", "") + items.replace(", price: INT64", "")
    repository.commit({"schemas/baskets.schema": changed})
    by_path = {each.path: each.affected for each in repository.check(dialect="spark").findings}
    assert by_path == {"items[].price": "lines", "amount": None}


def test_what_could_not_be_resolved_before_is_no_doubt_about_other_columns(
    repository: SampleRepository,
) -> None:
    """Such as the unit of DATE_TRUNC without a dialect, and results of unknown macros."""
    monthly = "select email, date_trunc(orders, month) as m, {{ f('x') }} as y from customer_360\n"
    nested = "with c as (select email from customer_360) select email, c.total from c\n"
    repository.change_main({"models/monthly.sql": monthly, "models/nested.sql": nested})
    wider = CUSTOMER_360.replace("u.email, ", "u.email, 1 as age, ")
    repository.commit({"models/customer_360.sql": wider})
    assert findings(repository.check()) == [("note", "customer_360.age", None)]
    repository.commit({"models/customer_360.sql": wider.replace(", sum(o.amount) as total", "")})
    assert findings(repository.check()) == [
        ("warning", "customer_360.total", "nested"),
        ("note", "customer_360.age", None),
    ]
