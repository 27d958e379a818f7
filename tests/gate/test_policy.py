"""The policy of the gate in lumos.yaml: what blocks, who may approve, and what may break."""

from decimal import Decimal
from pathlib import Path

import pytest

from catalogs.local_platform import LocalStorePlatform
from gate.sample import FILES, ORDERS, USERS, SampleRepository, code, run_gate
from lumos import Lumos
from lumos.config.yaml_tree import ConfigurationError
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Documentation, Governance
from lumos.model.schema import parse_schema

BREAKING: dict[str, str | None] = {
    "schemas/users.schema": USERS.replace("user_id STRING", "user_id INT64")
}
UNREAD: dict[str, str | None] = {"schemas/users.schema": USERS.replace("nickname STRING\n", "")}
REQUIRED: dict[str, str | None] = {"schemas/users.schema": USERS + "country STRING NOT NULL\n"}
UNKNOWN: dict[str, str | None] = {
    "schemas/lonely.schema": "# urn: lumos://s3/lake/lonely\nid INT64\n"
}
LONELY = "# urn: lumos://s3/lake/lonely\nid INT64\nold STRING\n"


def with_policy(folder: Path, policy: str) -> SampleRepository:
    files = {**FILES, "schemas/lonely.schema": LONELY, "lumos.yaml": f"gate:\n{policy}"}
    return SampleRepository(folder, files)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("policy", "change", "plain", "strict"),
    [
        ("  block: [breaking]", BREAKING, 10, 10),
        ("  block: []", BREAKING, 0, 0),
        ("  warn_only: true", BREAKING, 0, 0),
        ("  block: [breaking]", UNKNOWN, 0, 11),
        ("  block: [undetermined]", UNKNOWN, 11, 11),
        ("  block: [undetermined]", BREAKING, 0, 0),
        ("  block: [breaking]", UNREAD, 0, 0),
        ("  block: [unread]", UNREAD, 10, 10),
        ("  block: [breaking]", REQUIRED, 0, 0),
        ("  block: [storage]", REQUIRED, 10, 10),
        ("  rules: [{paths: ['models/*'], block: []}]", BREAKING, 0, 0),
        ("  rules: [{path: schemas/users.schema, block: []}]", BREAKING, 0, 0),
        ("  rules: [{paths: ['other/*'], block: []}]", BREAKING, 10, 10),
        ("  rules: [{path: '*', block: []}, {path: '*', block: [breaking]}]", BREAKING, 0, 0),
        ("  rules: [{path: 'schemas/lonely*', block: []}]", UNKNOWN, 0, 0),
        ("  rules: [{environments: [prod], block: []}]", BREAKING, 0, 0),
        ("  rules: [{environments: [dev], block: []}]", BREAKING, 10, 10),
        ("  rules: [{tags: [pii], block: []}]", BREAKING, 10, 10),
    ],
)
def test_the_policy_decides_what_blocks(
    folder: Path, policy: str, change: dict[str, str | None], plain: int, strict: int
) -> None:
    repository = with_policy(folder, policy)
    repository.commit(change)
    report = repository.check()
    assert (code(report), code(report, strict=True)) == (plain, strict)


CONTRACT = """apiVersion: v3.0.2
kind: DataContract
domain: {domain}
tags: [{tag}]
schema:
- name: payments
  properties: [{{name: id, physicalType: bigint}}, {{name: iban, physicalType: text}}]
"""


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("domain: sales", 0),
        ("domain: marketing", 10),
        ("tag: pii", 0),
        ("tag: public", 10),
        ("domain: sales, tag: public", 10),
    ],
)
def test_a_rule_applies_by_domain_and_tag(folder: Path, rule: str, expected: int) -> None:
    contract = CONTRACT.format(domain="sales", tag="pii")
    repository = SampleRepository(
        folder,
        {
            "payments.yaml": contract,
            "models/ibans.sql": "select iban from payments\n",
            "lumos.yaml": f"gate: {{rules: [{{{rule}, block: []}}]}}\n",
        },
    )
    repository.commit({"payments.yaml": contract.replace("name: iban", "name: account")})
    assert code(repository.check()) == expected


def test_deleting_the_policy_does_not_loosen_it_either(folder: Path) -> None:
    repository = with_policy(folder, "  block: [breaking, unread]\n")
    dropped = USERS.replace("nickname STRING\n", "")
    repository.commit({"schemas/users.schema": dropped, "lumos.yaml": None})
    assert code(repository.check()) == 10


def test_a_change_cannot_loosen_the_policy_that_judges_it(folder: Path) -> None:
    repository = with_policy(folder, "  block: [breaking]\n")
    repository.commit({**BREAKING, "lumos.yaml": "gate: {warn_only: true}\n"})
    report = repository.check()
    assert code(report) == 10
    assert report.remarks == (
        "lumos.yaml changes the policy of the gate; that of the merge base applies.",
    )


def test_a_change_cannot_add_a_loose_policy(folder: Path) -> None:
    repository = SampleRepository(folder)
    repository.commit({**BREAKING, "lumos.yaml": "gate: {block: []}\n"})
    assert code(repository.check()) == 10


def test_other_changes_of_the_configuration_need_no_remark(folder: Path) -> None:
    repository = with_policy(folder, "  block: [unread]\n")
    repository.commit(
        {**UNREAD, "lumos.yaml": "gate:\n  block: [unread]\ncloud_version_prefix: R-\n"}
    )
    report = repository.check()
    assert (code(report), report.remarks) == (10, ())


def test_only_required_approvers_can_waive(folder: Path) -> None:
    repository = with_policy(folder, "  approvers: [data-platform]\n")
    repository.commit(BREAKING)
    (finding,) = repository.check().findings
    gate = Lumos(environment={}).gate
    gate.waive(finding.fingerprint, reason="Agreed", approver="analytics-team")
    repository.commit({})
    report = repository.check()
    assert code(report) == 10
    assert [each.reason for each in report.waivers] == [
        "analytics-team may not approve it. Approvers: data-platform."
    ]
    repository.commit({".lumos/waivers.yaml": None})
    gate.waive(finding.fingerprint, reason="Agreed", approver="data-platform")
    repository.commit({})
    assert code(repository.check()) == 0


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("{block: [everything]}", "block"),
        ("{rules: [{block: []}]}", "needs 'paths', 'domains', 'tags' or 'environments'"),
        ("{max_monthly_cost: -1}", "max_monthly_cost"),
        ("{blocks: []}", "Did you mean 'block'"),
    ],
)
def test_an_invalid_policy_is_an_error(folder: Path, policy: str, words: str) -> None:
    (folder / "lumos.yaml").write_text(f"gate: {policy}\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=words):
        Lumos(environment={})


def priced_store(folder: Path) -> str:
    """A store in which the dataset `paid` costs 100 a month."""
    store = folder / "store.db"
    lumos = Lumos(environment={}, overrides={"storage.path": str(store)})
    platform = LocalStorePlatform(lumos.create_store())
    for name in ("orders", "paid"):
        platform.put(
            CatalogEntry(
                urn=f"lumos://s3/lake/{name}",
                name=name,
                platform="s3",
                schema=parse_schema("order_id INT64\namount DECIMAL(10,2)\n"),
                governance=Governance(tags=("finance",)),
                documentation=Documentation(domain="sales"),
            )
        )
    lumos.cost_sources.set("paid", {"compute": Decimal(100)})
    return str(store)


def test_the_cost_threshold_has_its_own_exit_code(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = priced_store(tmp_path_factory.mktemp("store"))
    repository = with_policy(folder, "  block: []\n  max_monthly_cost: 99\n")
    change = ORDERS.replace("status ENUM('new','paid')", "status INT32")
    repository.commit({"schemas/orders.schema": change})
    found, report = run_gate("--lineage", store)
    assert found == 12
    assert [each["monthly_cost"] for each in report["findings"] if each["affected"] == "paid"] == [
        100
    ]
    assert code(repository.check()) == 0
    assert "No costs are known" in repository.check().remarks[-1]
    repository.change_main({"lumos.yaml": "gate: {block: [], max_monthly_cost: 100}\n"})
    repository.commit({"schemas/orders.schema": change})
    assert run_gate("--lineage", store)[0] == 0
    repository.change_main({"lumos.yaml": "gate: {max_monthly_cost: 1}\n"})
    repository.commit({"schemas/orders.schema": change})
    assert run_gate("--lineage", store)[0] == 10
