"""`lumos --server URL` prints what the same command prints with the store itself."""

import getpass
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import typer.main

from lumos import Lumos
from lumos.cli import main as cli
from lumos.errors import LumosError, MisuseError
from lumos.model.json_codec import to_json
from lumos.server.client import NotOnServer, ServerUnreachable, connect
from lumos.server.routes import ROUTES, TABLE
from lumos.store.errors import UnknownDataset
from server.live_server import LiveServer, live_server

_made_once = cache(typer.main.get_command)
# What differs from one run to the next, and who acts: a server knows nobody without a token.
PASSING = re.compile(
    rf"\b(?:local|{re.escape(getpass.getuser())})\b *|"
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)|\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?(?= |$)"
    r'|"seconds": ?[\d.]+|"hash": ?"\w+"|"created_by": ?"\w+"|"author": ?"\w+"|\d+ (seconds|minutes) ago',
    re.MULTILINE,
)
READS = """
list
list --format parquet --limit 1
list nothing
list --data-platform nowhere
show orders
show tickets
show ordesr
show lumos://file/lake/orders
search order
search ordesr
search order --owner bob --tag pii
search priority --limit 1
history orders
history orders --as-of 1.0.0
changes
changes --type CREATED --limit 1
changes --dataset orders --breaking
changes --since soon
schema history orders
schema timeline orders
schema evolution --since 2024-01-01 --until 2024-02-01
schema evolution orders
schema diff orders@1.0.0 orders
schema predict orders proposed.schema
schema predict orders missing.schema
schema impact --changes changes.json
impact orders --drop amount
impact orders --rename amount=total
impact orders --drop nothing
version show orders
version map orders
version scan
lineage show orders
lineage show orders --column amount
lineage show orders --downstream --depth 1
lineage path orders id tickets id
owner list
owner list --unowned
owner show bob
owner show nobody
tag list
tag list orders
compliance list
term list
doc list
doc list --missing
property list orders
usage show orders
usage top
usage unread --since 2023-01-01
usage list
cost report orders --period 2024-01
cost report orders --period 2024-01 --price emr.instance_hour=3
cost top --period 2024-01
cost by team --period 2024-01
cost trend --period 2024-01
cost explain orders --period 2024-01
cost savings orders --period 2024-01
cost retire --period 2024-01
cost list
cost meters
hint list
notify status
notify remind --dry-run
db status
audit list
audit verify
token list
""".strip().splitlines()
WRITES = """
tag add orders gold
tag add orders gold
tag add 'no*thing' gold
tag remove orders gold
compliance add orders sox
doc set orders Bought --domain shop
doc remove orders --domain
property set orders tier=1
property remove orders sla
term set Sale --definition Sold
term add orders Sale
term remove Sale
owner add ann --email ann@example.com
owner assign orders ann
owner remove orders bob
version bump orders --type SCHEMA_CHANGE --level minor --reason x --key k
lineage add tickets orders
lineage remove tickets orders
cost set tickets compute=3
cost remove orders
cost record --period 2024-02
usage remove kept
tag add orders
""".strip().splitlines()


class Printed(NamedTuple):
    out: str
    err: str
    code: int


@pytest.fixture
def run(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Printed]:
    """Runs a command line in this process."""
    monkeypatch.setattr(typer.main, "get_command", _made_once)
    monkeypatch.setenv("COLUMNS", "100")

    def run(*words: str) -> Printed:
        monkeypatch.setattr("sys.argv", ["lumos", *words])
        capfd.readouterr()
        code = 0
        try:
            cli.main()
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        out, err = (PASSING.sub("<passing>", text) for text in capfd.readouterr())
        return Printed(out, err, code)

    return run


@pytest.fixture(scope="module")
def read_only(
    filled: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, LiveServer]]:
    """A folder and a server of its store, for commands that only read."""
    folder = tmp_path_factory.mktemp("remote") / "work"
    shutil.copytree(filled, folder)
    with live_server(folder) as server:
        yield folder, server


@pytest.mark.parametrize("line", READS)
def test_a_command_that_reads_prints_the_same(
    line: str,
    read_only: tuple[Path, LiveServer],
    run: Callable[..., Printed],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, server = read_only
    monkeypatch.chdir(folder)
    for words in (line.split(), [*line.split(), "--json"]):
        here = run(*words)
        assert here.code in (0, 2), here.err
        assert run("--server", server.url, *words) == here


def test_commands_that_write_print_the_same_and_have_the_same_effect(
    folder: Path, tmp_path: Path, run: Callable[..., Printed], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    with live_server(other) as server:
        for line in WRITES:
            words = [each.strip("'") for each in line.split()]
            monkeypatch.chdir(folder)
            here = run(*words)
            there = run("--server", server.url, *words)
            assert there == here, line
        for line in ("show orders --json", "changes --json", "lineage show orders --json"):
            assert run("--server", server.url, *line.split()) == run(*line.split()), line
    assert Lumos(other / "lumos.yaml").audit.verify().problems == ()


def test_the_variable_names_the_server_too(
    read_only: tuple[Path, LiveServer],
    run: Callable[..., Printed],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LUMOS_SERVER", read_only[1].url)
    assert "orders" in run("list").out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("init", "lumos init does not work on a server: it is about this machine."),
        ("doctor", "lumos doctor does not work on a server: it is about this machine."),
        ("watch --once", "lumos watch does not work on a server: it is about this machine."),
        ("ingest lake", "lumos ingest does not work on a server: it is about this machine."),
        ("migrate local datahub-file:x.json", "'migration' does not work on a server"),
        (
            "impact orders --drop amount --check-on-spark",
            "--check-on-spark does not work on a server",
        ),
        ("list --store other.db", "--store and --server contradict each other"),
    ],
)
def test_what_makes_no_sense_on_a_server_is_refused_with_the_reason(
    line: str, sentence: str, read_only: tuple[Path, LiveServer], run: Callable[..., Printed]
) -> None:
    done = run("--server", read_only[1].url, *line.split())
    assert (done.code, sentence in done.err) == (2, True), done.err


def test_the_sdk_works_on_a_server(read_only: tuple[Path, LiveServer]) -> None:
    folder, server = read_only
    here, there = Lumos(folder / "lumos.yaml"), connect(server.url)
    # As JSON: the values of a dataset are plain, so tuples arrive as lists.
    assert to_json(there.show("orders")) == to_json(here.show("orders"))
    assert there.changes(limit=2) == here.changes(limit=2)
    assert there.cost.report("orders", period="2024-01") == here.cost.report(
        "orders", period="2024-01"
    )
    assert list(there.change_history.iterate()) == list(here.change_history.iterate())
    assert there.list(limit=1) == here.list(limit=1)
    with pytest.raises(UnknownDataset, match="Did you mean 'orders'"):
        there.show("ordesr")
    with pytest.raises(
        NotOnServer, match="'doctor' does not work on a server: it checks this machine"
    ):
        there.doctor()


def test_a_server_that_is_not_there_is_reported() -> None:
    with pytest.raises(ServerUnreachable, match="Start it with: lumos serve"):
        connect("http://127.0.0.1:1").tokens.create("x")
    with pytest.raises(MisuseError, match="is not the URL of a server"):
        connect("localhost:8765")
    with pytest.raises(MisuseError, match="contains a password"):
        connect("http://ann:secret@localhost:8765")


def test_tokens_are_sent_and_errors_of_access_arrive(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lumos = Lumos(folder / "lumos.yaml")
    secret = lumos.tokens.create("bi").secret
    with live_server(folder, "--require-token") as server:
        with pytest.raises(LumosError, match="This server needs a token"):
            connect(server.url).list()
        monkeypatch.setenv("LUMOS_TOKEN", secret)
        assert connect(server.url).list() == lumos.list()
        with pytest.raises(LumosError, match="This needs the role write"):
            connect(server.url).annotations.tags.set("orders", "x")


def test_every_verb_is_reached_by_the_client() -> None:
    assert {each.sdk_path for each in ROUTES} <= TABLE.by_sdk_path.keys()
    assert len({(each.method, each.url) for each in ROUTES}) == len(ROUTES)
