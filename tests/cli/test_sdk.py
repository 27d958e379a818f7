"""Every command with --json prints what a method of the SDK returns."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer.main

from lumos import Lumos
from lumos.cli.main import app
from lumos.model.json_codec import to_json
from lumos.site import write_site

CONFIG = """
sources:
  - {type: file, name: shop, path: lake}
  - {type: file, name: sheets, path: sheets}
notifications:
  channels: {nobody: "json://127.0.0.1:1"}
  nudge: {schedule: weekly}
usage: {retention_days: 3650}
documentation: {required_fields: [description]}
path_patterns: {"/lake/*": What the shop wrote}
cost_model:
  storage: {file: {cost_per_gb_month: 1000}}
  compute: {emr: {cost_per_instance_hour: 0.5}}
"""
INVENTORY = "datasets:\n  - {urn: raw, costs: {storage: 10}}\n  - {urn: core}\nedges: [{from: raw, to: core}]\n"
FILES = {
    "lumos.yaml": CONFIG,
    "lake/orders.csv": "id,amount,country\n1,2.5,NO\n2,3.5,SE\n",
    "lake/tickets.jsonl": '{"id": 1, "meta": {"priority": 2}}\n',
    "models/totals.sql": "-- Owner: sales-team\nselect country, sum(amount) as total from orders group by country\n",
    "sheets/later.csv": "id\n1\n",
    "log.csv": "QUERY_ID,QUERY_TEXT,START_TIME,USER_NAME,EXECUTION_STATUS\n"
    "1,SELECT amount FROM orders,2024-01-05 10:00:00,ANN,SUCCESS\n",
    "emr.csv": "job,period,engine,quantity,unit\nnightly,2024-01,emr,3,instance-hours\n",
    "estate.yaml": INVENTORY,
    "enrich.yaml": "datasets:\n  - dataset: orders\n    description: Every order\n",
    "lake/visits/dt=2026-01-01/part.csv": "id,page\n1,home\n",
    "CODEOWNERS": "/lake/ @acme/shop\n",
    "proposed.schema": "id INT64\n",
}


# Jobs run in processes of their own, with a JVM each.
SLOW = {"worker --once"}


class Pair(NamedTuple):
    """A command line, and the method of the SDK behind it."""

    words: str
    method: Callable[[Lumos], object]


def people(words: str, service: str, *names: str) -> list[Pair]:
    """The commands of a kind of annotation that is a list of names."""
    return [
        Pair(f"{words} add orders x", lambda lumos: getattr(lumos.annotations, service).set("orders", "x")),
        Pair(f"{words} remove orders {names[0]}",
             lambda lumos: getattr(lumos.annotations, service).remove("orders", names[0])),
        Pair(f"{words} list", lambda lumos: getattr(lumos.annotations, service).list()),
    ]  # fmt: skip


# The working folder is the one of `folder`; every pair begins with it as it was.
PAIRS = [
    Pair("ingest", lambda lumos: lumos.ingest()),
    Pair("site public", lambda lumos: write_site(lumos, "public")),
    Pair("discover lake", lambda lumos: lumos.discover("lake")),
    Pair("overview", lambda lumos: lumos.overview()),
    Pair("list", lambda lumos: lumos.list()),
    Pair("show orders", lambda lumos: lumos.show("orders")),
    Pair("history orders", lambda lumos: lumos.history("orders")),
    Pair("changes", lambda lumos: lumos.changes()),
    Pair("release schedule set orders daily --lag 6h",
         lambda lumos: lumos.annotations.schedules.set("orders", "daily", lag="6h")),
    Pair("release schedule list", lambda lumos: lumos.releases.schedules()),
    Pair("release schedule learn orders", lambda lumos: lumos.releases.learn("orders")),
    Pair("release notify 1.0", lambda lumos: lumos.releases.notify("1.0")),
    Pair("release show 0.9", lambda lumos: lumos.releases.show("0.9")),
    Pair("release backfill visits --from 2026-01-01 --to 2026-01-02",
         lambda lumos: lumos.releases.backfill("visits", first="2026-01-01", last="2026-01-02")),
    Pair("release list", lambda lumos: lumos.releases.list()),
    Pair("release refresh 0.9", lambda lumos: lumos.releases.refresh("0.9")),
    Pair("release schedule remove orders",
         lambda lumos: lumos.annotations.schedules.remove("orders")),
    Pair("changes --dataset orders --type created --limit 1",
         lambda lumos: lumos.changes(dataset="orders", types=["created"], limit=1)),
    Pair("impact orders --drop amount", lambda lumos: lumos.impact.of("orders", drop=["amount"])),
    Pair("search priority", lambda lumos: lumos.search("priority")),
    Pair("search ordesr", lambda lumos: lumos.search("ordesr")),
    Pair("export --output new.json", lambda lumos: lumos.snapshot.export("new.json")),
    Pair("validate --input all.json", lambda lumos: lumos.snapshot.validate("all.json")),
    Pair("import --input all.json --platform datahub-file:estate.json",
         lambda lumos: lumos.snapshot.load("all.json", platform="datahub-file:estate.json")),
    Pair("import --input all.json --dry-run", lambda lumos: lumos.snapshot.try_load("all.json")),
    Pair("diff --source all.json --target local",
         lambda lumos: lumos.snapshot.diff("all.json", "local")),
    Pair("migrate local datahub-file:estate.json --plan",
         lambda lumos: lumos.migration.plan("local", "datahub-file:estate.json")),
    Pair("migrate --source local --target datahub-file:estate.json",
         lambda lumos: lumos.migration.migrate("local", "datahub-file:estate.json")),
    Pair("migrate --source local --target datahub-file:estate.json --dry-run",
         lambda lumos: lumos.migration.try_migrate("local", "datahub-file:estate.json")),
    Pair("sync --output datahub-file:estate.json",
         lambda lumos: lumos.migration.sync(outputs=["datahub-file:estate.json"], scan=False)),
    Pair("enrich --file enrich.yaml", lambda lumos: lumos.annotations.enrich("enrich.yaml")),
    Pair("enrich --infer", lambda lumos: lumos.annotations.infer()),
    Pair("explain lake/orders.csv", lambda lumos: lumos.explain("lake/orders.csv")),
    Pair("profile orders", lambda lumos: lumos.profiles.profile("orders")),
    Pair("doctor", lambda lumos: lumos.doctor()),
    Pair("init new.yaml", lambda lumos: lumos.init("new.yaml")),
    Pair("schema diff orders tickets", lambda lumos: lumos.schema.diff("orders", "tickets")),
    Pair("schema predict orders proposed.schema",
         lambda lumos: lumos.schema.predict("orders", "proposed.schema")),
    Pair("schema impact --changes changes.json",
         lambda lumos: lumos.impact.of_changes("changes.json")),
    Pair("schema history orders", lambda lumos: lumos.schema.history("orders")),
    Pair("schema timeline orders", lambda lumos: lumos.schema.timeline("orders")),
    Pair("schema evolution --since 2024-01-01 --until 2024-02-01",
         lambda lumos: lumos.schema.evolution(since="2024-01-01", until="2024-02-01")),
    Pair("schema export schemas", lambda lumos: lumos.schema.export("schemas")),
    Pair("schema comment --pr 7 --base HEAD --dry-run",
         lambda lumos: lumos.gate.comment(lumos.gate.check("HEAD"), pr=7, dry_run=True)),
    Pair("version show orders", lambda lumos: lumos.version.show("orders")),
    Pair("version map orders", lambda lumos: lumos.version.map("orders")),
    Pair("version bump orders --type SCHEMA_CHANGE --level minor --reason x --key k",
         lambda lumos: lumos.version.bump(
             "orders", "SCHEMA_CHANGE", level="minor", reason="x", key="k")),
    Pair("version scan", lambda lumos: lumos.version.scan()),
    Pair("version update --auto-increment",
         lambda lumos: lumos.version.update(auto_increment=True)),
    Pair("lineage ingest models", lambda lumos: lumos.lineage.ingest("models")),
    Pair("lineage add tickets orders", lambda lumos: lumos.lineage.add("tickets", "orders")),
    Pair("lineage remove orders tickets", lambda lumos: lumos.lineage.remove("orders", "tickets")),
    Pair("lineage show orders", lambda lumos: lumos.lineage.view.show("orders")),
    Pair("lineage path orders id tickets id",
         lambda lumos: lumos.lineage.view.paths(("orders", "id"), ("tickets", "id"))),
    Pair("lineage sql models/totals.sql", lambda lumos: lumos.lineage.sql("models/totals.sql")),
    Pair("hint add lake/x/*", lambda lumos: lumos.hints.add("lake/x/*")),
    Pair("hint list", lambda lumos: lumos.hints.list()),
    Pair("hint remove 1", lambda lumos: lumos.hints.remove(1)),
    Pair("owner add ann --email ann@example.com",
         lambda lumos: lumos.annotations.owners.add("ann", email="ann@example.com")),
    Pair("owner show bob", lambda lumos: lumos.annotations.owners.show("bob")),
    Pair("owner list", lambda lumos: lumos.annotations.owners.list()),
    Pair("owner assign orders bob", lambda lumos: lumos.annotations.owners.assign("bob", "orders")),
    Pair("owner remove orders bob",
         lambda lumos: lumos.annotations.owners.assign("bob", "orders", remove=True)),
    Pair("owner import CODEOWNERS", lambda lumos: lumos.annotations.owners.load("CODEOWNERS")),
    *people("tag", "tags", "pii"),
    *people("compliance", "compliance", "gdpr"),
    Pair("doc set orders Bought", lambda lumos: lumos.annotations.docs.set("orders", "Bought")),
    Pair("doc remove orders --domain",
         lambda lumos: lumos.annotations.docs.remove("orders", domain=True)),
    Pair("doc list", lambda lumos: lumos.annotations.docs.list()),
    Pair("doc list --missing", lambda lumos: lumos.annotations.missing()),
    Pair("doc check", lambda lumos: lumos.gate.documentation()),
    Pair("property set orders tier=1",
         lambda lumos: lumos.annotations.properties.set("orders", {"tier": "1"})),
    Pair("property remove orders sla",
         lambda lumos: lumos.annotations.properties.remove("orders", "sla")),
    Pair("property list", lambda lumos: lumos.annotations.properties.list()),
    *people("term", "terms", "Order"),
    Pair("term set Sale --definition Sold",
         lambda lumos: lumos.annotations.terms.define("Sale", definition="Sold")),
    Pair("term remove x", lambda lumos: lumos.annotations.terms.undefine("x")),
    Pair("config check", lambda lumos: lumos.config_check()),
    Pair("db upgrade", lambda lumos: lumos.upgrade_store()),
    Pair("db status", lambda lumos: lumos.store_status()),
    Pair("db prune --older-than 0d", lambda lumos: lumos.change_history.forget_old("0d")),
    Pair("notify status", lambda lumos: lumos.notifications.status()),
    Pair("notify send", lambda lumos: lumos.notifications.send()),
    Pair("notify remind nudge --dry-run",
         lambda lumos: lumos.notifications.remind("nudge", dry_run=True)),
    Pair("notify test nobody", lambda lumos: lumos.notifications.test("nobody")),
    Pair("usage ingest log.csv --name log", lambda lumos: lumos.usage.ingest("log.csv", name="log")),
    Pair("usage show orders", lambda lumos: lumos.usage.show("orders")),
    Pair("usage unread", lambda lumos: lumos.usage.unread()),
    Pair("usage top", lambda lumos: lumos.usage.top()),
    Pair("usage list", lambda lumos: lumos.usage.logs()),
    Pair("usage remove kept", lambda lumos: lumos.usage.forget("kept")),
    Pair("cost report orders --period 2024-01",
         lambda lumos: lumos.cost.report("orders", period="2024-01")),
    Pair("cost top --period 2024-01", lambda lumos: lumos.cost.top(period="2024-01")),
    Pair("cost by team --period 2024-01", lambda lumos: lumos.cost.by("team", period="2024-01")),
    Pair("cost trend --period 2024-01", lambda lumos: lumos.cost.trend(period="2024-01")),
    Pair("cost explain orders --period 2024-01",
         lambda lumos: lumos.cost.explain("orders", period="2024-01")),
    Pair("cost record --period 2024-01", lambda lumos: lumos.cost.record("2024-01")),
    Pair("cost savings orders --period 2024-01",
         lambda lumos: lumos.cost.savings("orders", period="2024-01")),
    Pair("cost retire --period 2024-01", lambda lumos: lumos.cost.retire(period="2024-01")),
    Pair("cost model estate.yaml", lambda lumos: lumos.cost.model("estate.yaml")),
    Pair("cost ingest emr.csv --name more",
         lambda lumos: lumos.cost_sources.ingest("emr.csv", name="more", replace=True)),
    Pair("cost meters", lambda lumos: lumos.cost_sources.meters()),
    Pair("cost remove --meter emr", lambda lumos: lumos.cost_sources.forget("emr")),
    Pair("cost set tickets compute=3",
         lambda lumos: lumos.cost_sources.set("tickets", {"compute": "3"})),
    Pair("cost remove orders", lambda lumos: lumos.cost_sources.unset("orders")),
    Pair("cost list", lambda lumos: lumos.cost_sources.overrides()),
    Pair("gate waive 0123456789abcdef --reason retired --approver ann --from-ci",
         lambda lumos: lumos.gate.waive(
             "0123456789abcdef", reason="retired", approver="ann", from_ci=True
         )),
    Pair("token create bi", lambda lumos: lumos.tokens.create("bi")),
    Pair("token list", lambda lumos: lumos.tokens.list()),
    Pair("token revoke ci", lambda lumos: lumos.tokens.revoke("ci")),
    Pair("audit list", lambda lumos: lumos.audit.list()),
    Pair("audit verify", lambda lumos: lumos.audit.verify()),
    Pair("audit export audit.jsonl", lambda lumos: lumos.audit.export("audit.jsonl")),
    Pair("gate init --forge github", lambda lumos: lumos.gate.init(forge="github")),
    Pair("run version:auto export:new.json",
         lambda lumos: lumos.run("version:auto", "export:new.json")),
    Pair("worker --once", lambda lumos: lumos.jobs.work(once=True)),
    Pair("job list", lambda lumos: lumos.jobs.list()),
    Pair("job show 1", lambda lumos: lumos.jobs.show(1)),
    Pair("job cancel 1", lambda lumos: lumos.jobs.cancel(1)),
    Pair("job retry 2", lambda lumos: lumos.jobs.retry(2)),
    Pair("schedule add nightly daily cost-record",
         lambda lumos: lumos.schedules.add("nightly", "daily", "cost-record")),
    Pair("watch status", lambda lumos: lumos.events.status()),
    Pair("schedule list", lambda lumos: lumos.schedules.list()),
    Pair("schedule pause weekly", lambda lumos: lumos.schedules.pause("weekly")),
    Pair("schedule resume weekly", lambda lumos: lumos.schedules.resume("weekly")),
    Pair("schedule run weekly", lambda lumos: lumos.schedules.run("weekly")),
    Pair("schedule remove weekly", lambda lumos: lumos.schedules.remove("weekly")),
]  # fmt: skip
# They need a bucket or a metastore; tests/cli/test_watch.py and tests/reconcile run them.
OF_SERVERS = {"reconcile", "watch setup", "watch teardown"}


def commands(group: Any, *above: str) -> Iterator[str]:
    """The command lines that print JSON, but for spellings that only stay for old scripts."""
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from commands(command, *above, name)
        elif any("--json" in option.opts for option in command.params):
            yield " ".join((*above, name))


def test_every_command_has_a_method() -> None:
    spoken = [pair.words for pair in PAIRS]
    lacking = {
        command
        for command in commands(typer.main.get_command(app))
        if not any(f"{words} ".startswith(f"{command} ") for words in spoken)
    }
    assert lacking == OF_SERVERS


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, spark: object) -> Path:  # noqa: ARG001
    """A folder with a scanned lake and something of every kind, to be copied to `work`."""
    folder = tmp_path_factory.mktemp("sdk")
    work = folder / "work"
    for name, text in FILES.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    git = ["git", "-c", "user.name=ann", "-c", "user.email=ann@example.com"]
    subprocess.run([*git, "init", "--quiet"], cwd=work, check=True)
    empty = ["commit", "--quiet", "--allow-empty", "-m", "Begin"]
    subprocess.run([*git, *empty], cwd=work, check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(work)
        lumos = Lumos()
        lumos.ingest("lake")
        lumos.lineage.ingest("models")
        lumos.lineage.add("orders", "tickets", columns={"id": "id"})
        lumos.annotations.owners.add("bob")
        lumos.annotations.tags.set("orders", "pii")
        lumos.annotations.compliance.set("orders", "gdpr")
        lumos.annotations.docs.set("orders", "Orders", domain="sales")
        lumos.annotations.properties.set("orders", {"sla": "1h"})
        lumos.annotations.terms.define("Order", definition="What is bought")
        lumos.annotations.terms.define("x", definition="Any")
        lumos.annotations.terms.set("orders", "Order")
        lumos.annotations.schedules.set("*", "daily", lag="6h")
        lumos.hints.add("lake/y/*")
        lumos.usage.ingest("log.csv", name="kept")
        lumos.cost_sources.ingest("emr.csv")
        lumos.cost_sources.set("orders", {"compute": "7"})
        lumos.cost.record("2023-12")
        lumos.tokens.create("ci")
        lumos.snapshot.export("all.json")
        lumos.jobs.submit("version", {"mode": "scan"})
        lumos.jobs.cancel(lumos.jobs.submit("version").id)
        lumos.schedules.add("weekly", "weekly", "cost-record:2023-11")
        lumos.releases.notify("0.9", at="2026-01-01")
        lumos.schema.diff("orders@1.0.0", "tickets", output="changes.json")
        lumos.database.engine.dispose()
    shutil.copytree(work, folder / "kept")
    return folder / "kept"


def restored(kept: Path) -> Path:
    """The folder as it was kept, in its place: URNs and reports hold its path."""
    work = kept.with_name("work")
    shutil.rmtree(work)
    shutil.copytree(kept, work)
    return work


# What differs from run to run: times, and the names of events, scans and journals.
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
PASSING = (
    "id",
    "secret",
    "seconds",
    "event_id",
    "hash",
    "scan_id",
    "import_id",
    "certificate",
    "round_trip",
    "log",
)
SCRATCH = re.compile(r"/lumos-\w{8}/")


def masked(value: Any) -> Any:
    """The value without what differs from run to run."""
    match value:
        case dict():
            return {key: "..." if key in PASSING else masked(each) for key, each in value.items()}
        case list():
            return [masked(each) for each in value]
        case str():
            return SCRATCH.sub("/<scratch>/", MOMENT.sub("<time>", value))
    return value


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(pair, id=pair.words, marks=[pytest.mark.slow] * (pair.words in SLOW))
        for pair in PAIRS
    ],
)
def test_a_method_returns_what_its_command_prints(
    pair: Pair, kept: Path, lumos: Any, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def afresh() -> None:
        monkeypatch.chdir(workplace)
        monkeypatch.chdir(restored(kept))

    afresh()
    printed = lumos(*pair.words.split(), "--json")
    assert printed.out, printed.err
    afresh()
    sdk = Lumos()
    returned = json.loads(to_json(pair.method(sdk)))
    sdk.database.engine.dispose()
    assert masked(returned) == masked(printed.json)
    assert printed.json["format_version"]


ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
# Tested by catalogs/migration/test_documentation.py and server/test_live.py.
_OTHERS = ("PLATFORM_MIGRATION.md", "WRITING_AN_ADAPTER.md", "SERVER.md")
PAGES = sorted(
    page
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    if BLOCK.search(page.read_text(encoding="utf-8")) and page.name not in _OTHERS
)
EXAMPLES = {
    "lumos.yaml": """
sources:
  - {type: file, path: lake}
cost_model:
  storage: {file: {cost_per_gb_month: 1000}, s3: {classes: {standard: 0.023}}}
  features: {recommendations: {datasets: [recommendations]}}
documentation: {required_fields: [description]}
""",
    "lake/orders.csv": "id,email,amount\n1,a@example.com,2.5\n",
    "lake/sales/items.csv": "id,email,cust_id\n1,a@example.com,7\n",
    "lake/ml/recommendations.csv": "id,score\n1,0.5\n",
    "lake/clicks.csv": "id,at\n1,2024-01-01\n",
    "lake/user_events.csv": "user_id\nx\n",
    "enrich.yaml": FILES["enrich.yaml"],
    "CODEOWNERS": FILES["CODEOWNERS"],
    "proposed.sql": "create table orders (id bigint)",
    "proposed.avsc": '{"type": "record", "name": "orders", "fields": '
    '[{"name": "id", "type": "long"}]}',
}


@pytest.fixture(scope="module")
def scanned(tmp_path_factory: pytest.TempPathFactory, spark: object) -> Path:  # noqa: ARG001
    """A folder with all that the examples name."""
    folder = tmp_path_factory.mktemp("examples")
    work = folder / "work"
    for name, text in EXAMPLES.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(work)
        lumos = Lumos()
        lumos.ingest()
        lumos.schema_inventory.snapshot("tuesday.parquet")
        lumos.schema.export("schemas")
        lumos.snapshot.load(_exported(lumos), platform="datahub-file:estate.json")
        for words in ("init --quiet --initial-branch main", "add schemas", "commit --quiet -m x"):
            identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
            subprocess.run(["git", *identity, *words.split()], check=True, capture_output=True)
        lumos.database.engine.dispose()
    shutil.copytree(work, folder / "kept")
    return folder / "kept"


def _exported(lumos: Lumos) -> str:
    lumos.snapshot.export("all.json")
    return "all.json"


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_example_in_python_runs(
    page: Path, scanned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page.stem != "QUICK_START":
        monkeypatch.chdir(restored(scanned))
    names: dict[str, Any] = {"__name__": page.stem, "Lumos": Lumos, "lumos": Lumos()}
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if "gms.example.com" in block:
            continue
        # Nobody is there to end the watch, and the lake was scanned today.
        text = block.replace("lumos.watch(", "stop.set()\nlumos.watch(")
        text = text.replace('as_of="2024-01-15"', f'as_of="{datetime.now(UTC):%Y-%m-%d}"')
        exec(compile(text, page.name, "exec"), names)
        if "def first_days" in block:
            names["first_days"]()
