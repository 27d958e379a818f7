"""What files are called for good, and whose words an ingest takes back."""

from pathlib import Path

import pytest

from lumos import Lumos
from lumos.storage.file_names import FileNames, is_inside
from lumos.store import Store


def repository(folder: Path, url: str | None) -> Path:
    (folder / ".git").mkdir(parents=True)
    remote = f'[remote "origin"]\n\turl = {url}\n\tfetch = +refs/heads/*\n' if url else ""
    (folder / ".git" / "config").write_text(f"[core]\n\tbare = false\n{remote}")
    return folder


def sql(file: Path, table: str, *, source: str = "raw") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"create table {table} as select id from {source}")
    return file


def origins(store: Path) -> set[str]:
    lumos = Lumos(overrides={"storage.path": str(store)})
    return {edge.origin for edge in Store.open(lumos.database).lineage.all()}


def ingest(store: Path, *paths: str | Path) -> set[str]:
    Lumos(overrides={"storage.path": str(store)}).lineage.ingest(*paths)
    return origins(store)


@pytest.mark.parametrize("store", [".lumos", "."])
def test_files_beside_the_store_are_called_by_their_path_from_there(workplace, store, monkeypatch):
    monkeypatch.chdir("/")
    names = FileNames(workplace / store)
    assert names.of(workplace / "models" / "a.sql") == "models/a.sql"
    assert names.of(workplace) == "."
    assert names.of(workplace.parent / "b.sql") == str(workplace.parent / "b.sql")


def test_a_link_to_the_folder_of_the_store_makes_no_difference(workplace):
    (workplace / "real").mkdir()
    (workplace / "link").symlink_to(workplace / "real")
    assert FileNames(workplace / "real").of(workplace / "link" / "a.sql") == "a.sql"


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example.com/acme/shop.git",
        "https://ci-token:secret@git.example.com/acme/shop",
        "git@git.example.com:acme/shop.git",
        "ssh://git@git.example.com:2222/acme/shop.git",
    ],
)
def test_every_checkout_of_a_repository_calls_its_files_alike(workplace, url):
    root = repository(workplace / "builds" / "17", url)
    name = FileNames(None).of(root / "models" / "a.sql")
    assert name == "git.example.com/acme/shop//models/a.sql"


def test_a_linked_work_tree_belongs_to_its_repository(workplace):
    root = repository(workplace / "main", "git@git.example.com:acme/shop.git")
    linked = root / ".git" / "worktrees" / "other"
    linked.mkdir(parents=True)
    (linked / "commondir").write_text("../..\n")
    (workplace / "other").mkdir()
    (workplace / "other" / ".git").write_text(f"gitdir: {linked}\n")
    assert FileNames(None).of(workplace / "other" / "a.sql") == "git.example.com/acme/shop//a.sql"


@pytest.mark.parametrize("url", [None, "../elsewhere", "/srv/git/shop.git"])
def test_without_a_shared_address_the_whole_path_counts(workplace, url):
    file = repository(workplace / "shop", url) / "a.sql"
    assert FileNames(None).of(file) == file.as_posix()


@pytest.mark.parametrize(
    ("name", "folder", "expected"),
    [
        ("m/a.sql", "m", True),
        ("m/a.sql", ".", True),
        ("mart/a.sql", "m", False),
        ("/data/a.sql", ".", False),
        ("/data/a.sql", "/data", True),
        ("/data/a.sql", "/", True),
        ("host/shop//a.sql", ".", False),
        ("host/shop//a.sql", "host", False),
        ("host/shop//m/a.sql", "host/shop//", True),
        ("host/shop//m/a.sql", "host/shop//m", True),
        ("host/shop//m/a.sql", "host/shop//n", False),
    ],
)
def test_a_folder_covers_what_lies_in_it(name, folder, expected):
    assert is_inside(name, folder) is expected


def test_another_working_folder_erases_nothing_and_doubles_nothing(workplace, monkeypatch):
    store = workplace / ".lumos" / "lumos.db"
    sql(workplace / "m" / "a.sql", "a")
    sql(workplace / "m" / "b.sql", "b")
    (workplace / "e.yaml").write_text("lineage:\n  - {from: b, to: c}\n")
    before = ingest(store, "m", "e.yaml")
    assert before == {"sql:m/a.sql", "sql:m/b.sql", "declared:e.yaml"}
    monkeypatch.chdir(workplace / "m")
    assert ingest(store, ".") == before
    (workplace / "m" / "b.sql").unlink()
    assert ingest(store, ".") == before - {"sql:m/b.sql"}


def test_two_projects_with_files_of_one_name_share_a_store(workplace, monkeypatch):
    store = workplace / "store" / "lumos.db"
    for name in ("one", "two"):
        sql(workplace / name / "m.sql", name)
        monkeypatch.chdir(workplace / name)
        ingest(store, ".")
    assert origins(store) == {f"sql:{workplace}/{name}/m.sql" for name in ("one", "two")}


def test_a_repository_in_a_folder_is_looked_through_with_it(workplace):
    store = workplace / "store" / "lumos.db"
    work = workplace / "work"
    shop = repository(work / "shop", "https://git.example.com/acme/shop.git")
    sql(shop / "a.sql", "a")
    gone = sql(shop / "b.sql", "b")
    sql(work / "c.sql", "c")
    here = {"sql:git.example.com/acme/shop//a.sql", f"sql:{work}/c.sql"}
    assert ingest(store, work) == here | {"sql:git.example.com/acme/shop//b.sql"}
    gone.unlink()
    assert ingest(store, work) == here
