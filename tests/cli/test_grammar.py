"""One grammar for all commands: what help shows, and earlier spellings that stay valid."""

import inspect
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from lumos import Lumos
from lumos.cli.main import app
from recorded_lake import RecordedLake

VERBS = {"add", "remove", "list", "set", "show", "assign", "check"}


@cache
def root() -> Any:
    return typer.main.get_command(app)


def commands(group: Any = None, *words: str) -> Iterator[tuple[str, Any]]:
    """All commands that help shows, by their names."""
    for name, command in (root() if group is None else group).commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *words, name)
        elif not command.hidden:
            yield " ".join((*words, name)), command


def parsed(line: str) -> tuple[Any, dict[str, Any]]:
    """What a command line runs, and with which values."""
    command, words = root(), shlex.split(line)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    return inspect.unwrap(command.callback), command.make_context("lumos", words).params


def shown(command: Any, kind: str) -> list[Any]:
    return [each for each in command.params if each.param_type_name == kind and not each.hidden]


@pytest.mark.parametrize(
    ("earlier", "today"),
    [
        # As the first documents of the project spell them.
        ("export --platform datahub --output backup.json", "export -o backup.json --platform datahub"),
        ("validate --input backup.json", "validate backup.json"),
        ("import --input backup.json --platform openmetadata", "import backup.json --platform openmetadata"),
        ("diff --source datahub --target openmetadata", "diff datahub openmetadata"),
        ("sync --all --output datahub", "sync --all --platform datahub"),
        ("schema impact --changes schema_diff.json", "schema impact schema_diff.json"),
        # As earlier versions do.
        ("validate -i backup.json --spark", "validate backup.json --spark"),
        ("validate --input=backup.json", "validate backup.json"),
        ("import -i backup.json --dry-run", "import backup.json --dry-run"),
        ("diff --target b.json a.json", "diff a.json b.json"),
        ("diff --source a.json b.json", "diff a.json b.json"),
        ("diff --target b --aspect schema --source a", "diff a b --aspect schema"),
        ("migrate --source a --target b --keep s.json", "migrate a b --output s.json"),
        ("sync shop --output a --output b", "sync shop --platform a --platform b"),
        ("discover lake --write-config sources.yaml", "discover lake -o sources.yaml"),
        ("enrich --file enrich.yaml", "enrich enrich.yaml"),
        ("enrich -f enrich.yaml --dry-run", "enrich enrich.yaml --dry-run"),
        ("changes --dataset 'sales/*' --breaking", "changes 'sales/*' --breaking"),
        ("owner list --dataset orders", "owner list orders"),
        ("list --platform s3", "list --data-platform s3"),
        ("tag set orders pii", "tag add orders pii"),
        ("compliance set orders GDPR --field email", "compliance add orders GDPR --field email"),
        ("term define Order --definition x", "term set Order --definition x"),
        ("usage logs", "usage list"),
        ("usage forget log", "usage remove log"),
        ("cost overrides", "cost list"),
        ("cost unset orders egress", "cost remove orders egress"),
        ("cost retire --top 3", "cost retire --limit 3"),
        ("token add ci --role write", "token create ci --role write"),
        ("token remove ci", "token revoke ci"),
        # The same file, whichever way it is named.
        ("init --output other.yaml", "init other.yaml"),
        ("schema export -o schemas", "schema export schemas"),
        ("site -o public", "site public"),
        ("audit export -o audit.jsonl", "audit export audit.jsonl"),
        ("reconcile hive --html page.html", "reconcile hive -o page.html"),
    ],
)  # fmt: skip
def test_an_earlier_spelling_means_the_same(earlier: str, today: str) -> None:
    assert parsed(earlier) == parsed(today)


@pytest.mark.parametrize(
    ("command", "hidden"),
    [
        ("validate", "--input"),
        ("import", "--input"),
        ("diff", "--source"),
        ("migrate", "--keep"),
        ("discover", "--write-config"),
        ("list", "--platform"),
        ("owner assign", "--remove"),
        ("term", "define"),
        ("cost", "overrides"),
        ("usage", "forget"),
    ],
)
def test_help_shows_no_earlier_spelling(lumos: Any, command: str, hidden: str) -> None:
    done = lumos(*command.split(), "--help")
    assert done.code == 0
    assert hidden not in done.out.replace("--data-platform", "").split()


def test_an_earlier_option_without_its_value_is_refused(lumos: Any) -> None:
    done = lumos("validate", "--input")
    assert done.code == 2
    assert "Option '--input' requires an argument." in done.err


def test_arguments_have_the_same_names_everywhere() -> None:
    names = {
        word.strip("[].")
        for _, command in commands()
        for argument in shown(command, "argument")
        for word in (argument.metavar or argument.name).replace("|", " ").split()
    }
    assert "URN" not in names
    assert {"DATASET", "FILE", "PATH", "OWNER", "TAG", "TERM"} <= names


def test_the_dataset_comes_first() -> None:
    for name, command in commands():
        metavars = [each.metavar for each in shown(command, "argument")]
        behind = [each for each in metavars[1:] if each in ("DATASET", "[DATASET]")]
        assert not behind, name


def test_one_option_has_one_meaning() -> None:
    catalogs = set()
    for name, command in commands():
        for option in shown(command, "option"):
            if "--platform" in option.opts:
                assert option.help.startswith("The catalog"), name
                catalogs.add(name)
            if "--output" in option.opts:
                assert "-o" in option.opts, name
                assert option.metavar in ("FILE", "FORMAT=FILE"), name
    assert catalogs == {"changes", "export", "import", "search", "show", "sync"}


@pytest.mark.parametrize("group", ["tag", "compliance", "doc", "property", "term"])
def test_groups_about_datasets_have_the_same_verbs(group: str) -> None:
    assert {name.split()[1] for name, _ in commands() if name.startswith(f"{group} ")} <= VERBS


@pytest.fixture
def shop(workplace: Path) -> Path:
    seen = RecordedLake(Lumos())
    seen.see_all(["sales/orders", "sales/items"], "id INT64\nemail STRING")
    return workplace


@pytest.mark.usefixtures("shop")
def test_an_owner_may_have_the_name_of_a_dataset(lumos: Any) -> None:
    for name in ("jane", "team", "items"):
        lumos("owner", "add", name)
    for words in (("orders", "jane"), ("orders", "team"), ("items", "team"), ("sales/*", "items")):
        assert lumos("owner", "assign", *words).code == 0, words
    owners = {
        each["name"]: {owner["name"] for owner in each["owners"]}
        for each in lumos("owner", "list", "*", "--json").json["owned"]
    }
    # `items` is a dataset and an owner: as the first of two it is the dataset.
    assert owners == {"orders": {"jane", "team", "items"}, "items": {"team", "items"}}
    assert lumos("owner", "remove", "sales/*", "items").out.endswith("2 datasets changed.\n")


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("tag add pii orders", "lumos tag add orders pii"),
        ("tag remove pii orders", "lumos tag remove orders pii"),
        ("compliance add GDPR 'sales/*'", "lumos compliance add 'sales/*' GDPR"),
        ("doc set text orders", "lumos doc set orders text"),
        ("term add Order orders", "lumos term add orders Order"),
        ("owner assign newteam orders", "lumos owner assign orders newteam"),
        ("owner remove jane orders", "lumos owner remove orders jane"),
        ("property set sla=1 orders", "lumos property set DATASET NAME=VALUE"),
    ],
)  # fmt: skip
def test_a_dataset_that_comes_last_is_refused_with_the_right_order(
    lumos: Any, line: str, advice: str
) -> None:
    done = lumos(*shlex.split(line))
    assert done.code == 2
    assert done.err.endswith(f": {advice}\n")


@pytest.mark.usefixtures("shop")
def test_terms_are_put_on_data_and_written_in_the_glossary(lumos: Any) -> None:
    assert lumos("term", "set", "Order", "--definition", "A purchase").out == "term Order: added\n"
    assert lumos("term", "add", "orders", "Order", "--json").json["changed"] == 1
    used = lumos("term", "remove", "Order")
    assert used.code == 2
    assert used.err.endswith("Remove it with: lumos term remove orders Order\n")
    assert lumos("term", "remove", "orders", "Order", "--json").json["changed"] == 1
    assert lumos("term", "remove", "Order").out == "term Order: removed\n"
    # Two words were a dataset and a term before.
    assert lumos("term", "set", "orders", "Order", "--field", "id", "--json").json["changed"] == 1
    unknown = lumos("term", "set", "Sale", "--parent", "Ordr")
    assert unknown.err.endswith("Did you mean 'Order'? Add it with: lumos term set Ordr\n")


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("show ordrs", "No dataset ordrs in the store. Did you mean 'orders'? See all with: lumos list"),
        ("history sales/order", "Did you mean 'orders'? See all with: lumos list"),
        ("lineage show ordrs.id", "Did you mean 'orders'? See all with: lumos list"),
        ("changes order", "Did you mean 'orders'? See all with: lumos list"),
        ("version scan order", "Did you mean 'orders'? See all with: lumos list"),
        ("profile item", "Did you mean 'items'? See all with: lumos list"),
        ("show lumos://file/lake/sales/order", "Did you mean 'lumos://file/lake/sales/orders'? See all with: lumos list"),
        ("show qqqqqq", "Look for it with: lumos search qqqqqq, or see all with: lumos list"),
        ("lineage show orders.emial", "Did you mean 'email'? See its columns with: lumos show orders"),
        ("owner assign orders jnae", "No owner named 'jnae'. Add one (--group or --user) with: lumos owner add jnae"),
        ("validate no.json", "There is no snapshot no.json. Write one with: lumos export no.json"),
        ("import no.json", "There is no snapshot no.json. Write one with: lumos export no.json"),
        ("diff no.json local", "There is no snapshot no.json. Write one with: lumos export no.json"),
        ("enrich no.yaml", "There is no file no.yaml. Name one that exists: lumos enrich FILE"),
        ("export x.json --platform datahubb", "Did you mean 'datahub'?"),
        ("list --data-platform fil", "No data platform named 'fil'. Datasets are on: file. Did you mean 'file'?"),
        ("list --platform datahub", "To search a catalog: lumos search TEXT --platform datahub"),
        ("usage remove nothing", "See all with: lumos usage list"),
        ("cost remove --meter nothing", "See all with: lumos cost meters"),
        ("cost remove", "lumos cost remove DATASET"),
        ("export", "Name one file to write: lumos export FILE"),
        ("lineage path orders.id", "lumos lineage path orders.amount revenue.total"),
        ("explain nothing/at/all", "or see all with: lumos list"),
        ("list --format parquett", "Did you mean 'parquet'? See all with: lumos list"),
        ("search orders --format parquett", "Did you mean 'parquet'? See all with: lumos list"),
        ("export x --format ymal", "Did you mean 'yaml'? See: lumos export --help"),
        ("cost by tem", "Did you mean 'team'? See: lumos cost by --help"),
        ("job list --kind ingst", "Did you mean 'ingest'?"),
        ("compliance add orders GDPR --field nothing", "No field 'nothing' in orders. See its fields with: lumos show orders"),
        ("doc set orders.nothing text", "No field 'nothing' in orders. See its fields with: lumos show orders"),
        ("schema predict orders no.json", "no.json: there is no such file. To start from the current schemas, write them with: lumos schema export FOLDER"),
        ("schema predict .lumos/lumos.db orders", "'.lumos/lumos.db' is a file. The dataset comes first: lumos schema predict orders .lumos/lumos.db"),
        ("impact orders --change 'id: INT64 -> NOTHING'", "See the types of a dataset with: lumos show DATASET"),
        ("impact orders", "lumos impact DATASET --drop COLUMN"),
        ("cost set orders 5", "as in: lumos cost set orders storage=120 other=-12.50"),
        ("cost set orders storge=5", "Did you mean 'storage'?"),
        ("xyzzy", "No such command 'xyzzy'. See: lumos --help"),
        ("lst", "No such command 'lst'. Did you mean 'list'? See: lumos --help"),
        ("notify test slack", "then run: lumos config check"),
        ("token set ci", "No such command 'set'. Commands: create, list, revoke. See: lumos token --help"),
        ("impact orders --type x", "No such option: --type. See: lumos impact --help. Example: lumos impact user_events --change 'user_id: STRING -> INT64'"),
        ("list --limt 3", "No such option: --limt. Did you mean '--limit'? See: lumos list --help"),
        ("show orders sales", "Unexpected argument 'sales'. See: lumos show --help. Example: lumos show orders"),
        ("show", "Missing argument 'DATASET'. See: lumos show --help. Example: lumos show orders"),
        ("reconcile", "No metastore (glue, hive, iceberg, nessie) has been scanned with this store. Add one to 'sources' of lumos.yaml, then run: lumos ingest"),
    ],
)  # fmt: skip
def test_an_error_ends_with_the_next_command(lumos: Any, line: str, sentence: str) -> None:
    done = lumos(*shlex.split(line))
    assert done.code == 2
    assert done.err.endswith(f"{sentence}\n"), done.err


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("search orders --tag nothing", "No dataset matches 'orders' with --tag nothing. See all with: lumos tag list"),
        ("search orders --owner nobody", "No dataset matches 'orders' with --owner nobody. See all with: lumos owner list"),
        ("list ordrs", "No dataset matches. Did you mean orders? See all datasets and their formats with: lumos list"),
        ("audit list --action nothing", "No recorded action matches. See the newest ones with: lumos audit list"),
        ("export all.json --tag nothing", "no dataset matches the selection. See what there is with: lumos tag list"),
        ("export all.json --owner nobody", "no dataset matches the selection. See what there is with: lumos owner list"),
    ],
)  # fmt: skip
def test_a_filter_that_matches_nothing_names_the_next_command(
    lumos: Any, line: str, sentence: str
) -> None:
    done = lumos(*line.split())
    assert done.code == 0
    assert sentence in " ".join(f"{done.out} {done.err}".split())


@pytest.mark.usefixtures("shop")
def test_cost_overrides_are_listed_by_name(lumos: Any) -> None:
    lumos("cost", "set", "orders", "compute=5")
    for words in (("list",), ("set", "orders", "storage=1")):
        assert "orders compute 5.00 USD" in lumos("cost", *words).words
    assert "lumos://file/lake/sales/orders" in lumos("cost", "list", "--verbose").words


def test_a_snapshot_that_is_not_one_names_the_next_command(lumos: Any, workplace: Path) -> None:
    (workplace / "a.json").write_text("{}")
    done = lumos("validate", "a.json")
    assert done.code == 1
    assert "Write another one with: lumos export FILE" in done.out
    (workplace / "notes.py").write_text("")
    for command in ("import", "validate"):
        done = lumos(command, "notes.py")
        assert done.err.endswith("Write one with: lumos export backup.json\n")


@pytest.mark.usefixtures("workplace")
def test_an_empty_store_asks_for_a_scan(lumos: Any) -> None:
    missing = lumos("show", "orders")
    assert missing.err.endswith("Fill one with: lumos ingest PATH\n")
    RecordedLake(Lumos()).store.close()
    for line in ("list", "tag list"):
        assert "lumos ingest PATH" in lumos(*line.split()).out
    assert lumos("show", "orders").err == (
        "lumos: No dataset orders in the store. The store is empty. "
        "Fill it with: lumos ingest PATH\n"
    )


@pytest.mark.usefixtures("workplace")
def test_a_starter_is_written_into_a_new_folder_and_kept(lumos: Any) -> None:
    assert lumos("init", "conf/lumos.yaml").out.endswith("lumos config check conf/lumos.yaml\n")
    again = lumos("init", "conf/lumos.yaml")
    assert again.err.endswith("Replace it with: lumos init conf/lumos.yaml --force\n")


def test_a_path_that_is_not_there_suggests_one_that_is(lumos: Any, workplace: Path) -> None:
    (workplace / "shop").mkdir()
    for command in ("ingest", "discover"):
        done = lumos(command, "shpo")
        assert done.code == 2
        assert done.err.endswith(f"Did you mean {workplace / 'shop'}?\n")


@pytest.mark.usefixtures("shop")
def test_a_snapshot_goes_to_stdout(lumos: Any) -> None:
    snapshot = lumos("export", "-o", "-").json
    assert [each["name"] for each in snapshot["datasets"]] == ["items", "orders"]
    lines = lumos("export", "-o", "-", "--format", "jsonl").out.splitlines()
    assert lines[0].startswith("{")
    assert len(lines) > 2
    assert lumos("export", "-o", "-", "--format", "parquet").code == 2


@pytest.mark.usefixtures("shop")
def test_a_report_goes_to_a_file_or_to_stdout(lumos: Any, workplace: Path) -> None:
    lumos("export", "a.json")
    lumos("tag", "add", "orders", "gold")
    done = lumos("diff", "a.json", "local", "-o", "diff.json")
    assert done.code == 3
    assert '"differences"' in (workplace / "diff.json").read_text()
    assert lumos("diff", "a.json", "local", "-o", "-").json["summary"]["differences"] == 1
    page = lumos("lineage", "show", "orders", "-o", "-", "--format", "html")
    assert page.out.startswith("<!")


@pytest.mark.usefixtures("shop")
def test_lineage_is_followed_from_a_column(lumos: Any) -> None:
    lumos("lineage", "add", "orders", "items", "--column", "email=id")
    at_once = lumos("lineage", "show", "orders.email", "--json").json
    assert at_once["column"] == "email"
    assert at_once == lumos("lineage", "show", "orders", "--column", "email", "--json").json
    way = lumos("lineage", "path", "orders.email", "items.id", "--json").json
    assert len(way["paths"]) == 1
    assert way == lumos("lineage", "path", "orders", "email", "items", "id", "--json").json
    assert "Name a column of orders" in lumos("lineage", "path", "orders", "items.id").err
