"""The gate on odd histories and hostile files."""

import json
import subprocess
from pathlib import Path
from time import process_time

import pytest

from gate.sample import CUSTOMER_360, FILES, ORDERS, USERS, SampleRepository, code, findings
from lumos import Lumos
from lumos.errors import LumosError, MisuseError


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SampleRepository:
    monkeypatch.chdir(tmp_path)
    return SampleRepository(tmp_path)


def clone(source: Path, folder: Path, *options: str) -> None:
    command = ["git", "clone", "-q", *options, f"file://{source}", str(folder)]
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.parametrize("base", ["main", "origin/main"])
def test_a_shallow_clone_names_the_command_that_repairs_it(
    repository: SampleRepository,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    base: str,
) -> None:
    repository.commit({"schemas/users.schema": USERS + "age INT32\n"})
    folder = tmp_path_factory.mktemp("clones") / "shallow"
    clone(repository.folder, folder, "--depth", "1", "--branch", "change")
    monkeypatch.chdir(folder)
    with pytest.raises(MisuseError, match="This clone is shallow") as raised:
        Lumos(environment={}).gate.check(base)
    command = str(raised.value).partition("with: ")[2].partition(" (in")[0]
    assert command == ("git fetch --unshallow origin +refs/heads/main:refs/remotes/origin/main")
    subprocess.run(command.split(), check=True, capture_output=True)
    assert findings(Lumos(environment={}).gate.check(base)) == [("note", "users.age", None)]


def test_a_base_without_common_history_in_a_shallow_clone(
    repository: SampleRepository,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repository.commit({"schemas/users.schema": USERS + "age INT32\n"})
    repository.git("checkout", "-q", "main")
    repository.commit({"x.txt": "x"})
    folder = tmp_path_factory.mktemp("clones") / "shallow"
    clone(repository.folder, folder, "--depth", "1", "--no-single-branch")
    monkeypatch.chdir(folder)
    with pytest.raises(MisuseError, match="git fetch --unshallow origin"):
        Lumos(environment={}).gate.check("main", "origin/change")


def test_merges_and_octopus_merges_count_once(repository: SampleRepository) -> None:
    for name, text in (
        ("one", USERS + "age INT32\n"),
        ("two", None),
        ("three", None),
    ):
        repository.git("checkout", "-q", "-b", name, "main")
        files = {f"notes/{name}.txt": name}
        repository.commit({**files, "schemas/users.schema": text} if text else files)
    repository.git("checkout", "-q", "main")
    repository.commit({"schemas/orders.schema": ORDERS.replace("amount DECIMAL(10,2)\n", "")})
    repository.git("checkout", "-q", "change")
    repository.git("merge", "-q", "-m", "octopus", "one", "two", "three")
    assert len(repository.git("rev-list", "--parents", "-1", "HEAD").split()) >= 4
    assert findings(repository.check()) == [("note", "users.age", None)]
    repository.git("merge", "-q", "-m", "update", "main")
    assert findings(repository.check()) == [("note", "users.age", None)]


def test_a_submodule_is_named_and_not_compared(
    repository: SampleRepository, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = SampleRepository(tmp_path_factory.mktemp("other"))
    repository.git("submodule", "add", "-q", f"file://{other.folder}", "vendor/other")
    repository.commit({})
    report = repository.check()
    assert findings(report) == []
    assert report.remarks == (
        "Not compared: the submodule vendor/other changed. Run the gate in its repository too.",
    )


def test_moved_files_are_not_changes(repository: SampleRepository) -> None:
    repository.git("mv", "schemas/users.schema", "users.schema")
    (repository.folder / "marts").mkdir()
    repository.git("mv", "models/customer_360.sql", "marts/customer_360.sql")
    repository.commit({})
    assert findings(repository.check()) == []


def test_a_renamed_model_is_gone_for_its_readers(repository: SampleRepository) -> None:
    repository.git("mv", "models/customer_360.sql", "models/customers.sql")
    repository.commit({})
    assert findings(repository.check()) == [("error", "customer_360.", "report")]


def test_links_are_not_followed(repository: SampleRepository) -> None:
    outside = repository.folder.parent / "outside.schema"
    outside.write_text("secret STRING\n", encoding="utf-8")
    (repository.folder / "schemas/linked.schema").symlink_to(outside)
    repository.commit({})
    assert repository.check().summary.schemas == 0


DEEP = 5_000
HOSTILE = {
    "deep brackets": ("models/x.sql", "select " + "(" * DEEP + "1" + ")" * DEEP),
    "many unions": ("models/x.sql", "select 1 as a\n" + "union all select 1\n" * 500),
    "doubled unions": (
        "models/x.sql",
        "with a0 as (select email from users)"
        + "".join(f", a{n} as (select * from a{n - 1} union all select * from a{n - 1})" for n in range(1, 40))
        + " select * from a39",
    ),
    "unclosed string": ("models/x.sql", "select 'a from users\n" * 501),
    "endless template": ("models/x.sql", "{% for a in range(10**9) %}{% for b in range(10**9) %}x{% endfor %}{% endfor %}"),
    "template that reads a file": ("models/x.sql", "select {{ ''.__class__.__mro__[1].__subclasses__() }} as a from users"),
    "alias bomb": ("models/schema.yml", "models:\n" + "".join(f"- &a{n} [{','.join([f'*a{n - 1}'] * 9) if n else 1}]\n" for n in range(12))),
    "object in YAML": ("models/schema.yml", "models:\n- !!python/object/apply:os.system [touch hacked]\n"),
    "deep YAML": ("contract.yaml", "kind: DataContract\nx: " + "[" * DEEP + "]" * DEEP),
    "contract of another shape": ("contract.yaml", "kind: DataContract\napiVersion: v3.0.0\nschema: {a: 1}\n"),
    "old contract": ("contract.yaml", "kind: DataContract\napiVersion: v2.2.2\ndataset: []\n"),
    "deep JSON": ("x.schema.json", '{"properties":{"a":' * DEEP + "1" + "}}" * DEEP),
    "JSON that is a list": ("x.schema.json", "[]"),
    "recursive JSON Schema": ("x.schema.json", json.dumps({"$ref": "#"})),
    "deep proto": ("x.proto", "message A {" * DEEP),
    "broken proto": ("x.proto", "message A { int32 a = ; }"),
    "broken snapshot": ("s.json", '{"format": "lumos-snapshot", "datasets": 7}'),
    "not a compressed file": ("s.jsonl.zst", "hello"),
    "deep migration": ("migrations/1_a.sql", "create table t (a " + "array<" * DEEP + ");"),
    "unfinished migration": ("migrations/1_a.sql", "alter table t add column"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_of_a_fork_end_soon_and_harm_nothing(
    repository: SampleRepository, name: str
) -> None:
    path, text = HOSTILE[name]
    repository.commit({path: text, "schemas/users.schema": USERS.replace("email STRING\n", "")})
    started = process_time()
    report = repository.check()
    assert process_time() - started < 30
    assert ("error", "users.email", "customer_360") in findings(report)
    assert not (repository.folder / "hacked").exists()
    assert code(report) == 10


def test_what_cannot_be_read_is_named(repository: SampleRepository) -> None:
    repository.commit({HOSTILE[name][0]: HOSTILE[name][1] for name in ("old contract", "broken proto", "deep JSON")})  # fmt: skip
    remarks = repository.check().remarks
    assert len(remarks) == 3
    assert any("apiVersion v3" in each for each in remarks)
    assert any(each.startswith("Not compared: x.proto:1:23: ") for each in remarks)


def test_a_large_file_is_named_and_not_read(repository: SampleRepository) -> None:
    repository.commit({"data.json": '{"$schema": "' + "x" * (9 * 1024 * 1024) + '"}'})
    assert repository.check().remarks == ("Not compared: data.json is larger than 8 MB.",)


def test_a_large_file_that_the_change_does_not_touch_is_not_named(
    repository: SampleRepository,
) -> None:
    repository.change_main({"data.json": '{"$schema": "' + "x" * (9 * 1024 * 1024) + '"}'})
    repository.commit({"other.json": "{}"})
    assert not repository.check().remarks


def test_names_that_are_not_utf_8_are_harmless(repository: SampleRepository) -> None:
    folder = bytes(repository.folder)
    with open(folder + b"/models/\xff.sql", "wb") as file:
        file.write(b"select email from users")
    repository.commit({"schemas/users.schema": USERS.replace("email STRING\n", "")})
    report = repository.check()
    assert code(report) == 10
    assert report.remarks == ("Not compared: the name of models/\\xff.sql is not valid UTF-8.",)


def test_a_reader_that_cannot_be_parsed_leaves_its_use_undetermined(
    repository: SampleRepository,
) -> None:
    repository.change_main(
        {"models/odd.sql": "create table odd as select nickname frm users !!;\n"}
    )
    repository.commit({"schemas/users.schema": USERS.replace("nickname STRING\n", "")})
    report = repository.check()
    assert report.verdict == "undetermined"
    assert code(report, strict=True) == 11


def test_invalid_waivers_fail_the_gate(repository: SampleRepository) -> None:
    repository.commit({".lumos/waivers.yaml": "waivers: {a: b}"})
    with pytest.raises(LumosError, match=r"waivers\.yaml"):
        repository.check()


def test_the_sample_itself_is_clean(repository: SampleRepository) -> None:
    assert FILES["models/customer_360.sql"] == CUSTOMER_360
    assert code(repository.check(), strict=True) == 0
