"""One run over a change of a fork that attacks every reader of the gate at once.

The environment has secrets, as in CI. The run must execute and open nothing of the change, print no
secret, find the break that the change also contains, and end soon.
"""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from typer.testing import CliRunner

from gate.sample import USERS, SampleRepository
from gate.test_bad_input import HOSTILE
from lumos.cli.main import app

SECRETS = {
    "GITHUB_TOKEN": "ghp_plantedToken0123456789abcdefABCDEF",
    "AWS_SECRET_ACCESS_KEY": "plantedAwsKey/0123456789+abcdefABCDEF",
    "LUMOS_DB_PASSWORD": "planted-password-of-the-store",
    "DBT_ENV_SECRET_TOKEN": "planted-dbt-secret",
}
OUTSIDE_SECRET = "planted-in-a-file-outside"
FORMATS = ("text", "json", "markdown", "github", "gitlab", "junit", "sarif")
SHELL = "touch hacked; $(touch hacked) `touch hacked`"
# One reference to a variable or file for each template and configuration language.
STEAL = " ".join(
    f"{{{{ env_var('{name}') }}}} ${{{name}}} ${name} %{name}% {{{{ var('{name}') }}}}"
    for name in SECRETS
)


def hostile_files(outside: Path) -> dict[str, str]:
    """The files of the change; `outside` is a file that none of them may reach."""
    named = {
        f"hostile/{number}/{path}": text for number, (path, text) in enumerate(HOSTILE.values())
    }
    return named | {
        "schemas/users.schema": USERS.replace("email STRING\n", ""),
        "schemas/stolen.schema": f"# urn: lumos://s3/lake/${{GITHUB_TOKEN}}\na STRING COMMENT '{STEAL}'\n",
        "models/env.sql": f"select '{STEAL.replace(chr(39), chr(34))}' as a, email from users",
        "models/env_name.sql": "create table {{ env_var('GITHUB_TOKEN') }}.t as select email from users",
        "models/macro.sql": "{% macro m() %}{{ env_var('DBT_ENV_SECRET_TOKEN') }}{% endmacro %}select {{ m() }} as a from users",
        "models/include.sql": f"{{% include '{outside}' %}} select email from users",
        "models/import.sql": f"{{% from '{outside}' import x %}}{{% extends '{outside}' %}}select 1 as a",
        "models/globals.sql": "{{ cycler.__init__.__globals__.os.popen('touch hacked').read() }} select 1 as a",
        "models/modules.sql": "select {{ modules.os.environ['GITHUB_TOKEN'] }} as a, {{ run_query('x') }} as b",
        "models/attributes.sql": "{{ (''|attr('format'))|attr('__globals__') }}{{ ''.format.__self__.__class__.__base__.__subclasses__() }}select 1 as a",
        "models/power.sql": "select {{ 9 ** 9 ** 9 }} as a, {{ 'x' * 10 ** 10 }} as b, {{ range(10 ** 12) | list }} as c",
        "models/recursion.sql": "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}select {{ m() }} as a",
        "macros/evil.sql": "{% macro loop() %}{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}{% endmacro %}",
        "models/loop.sql": "select {{ loop() }} as a from users",
        "models/copy.sql": f"copy into t from '{outside}'; copy t from program 'touch hacked'; \\! touch hacked\n",
        "models/load.sql": f"create table t as select * from read_csv('{outside}'); load 'hacked.so'; attach '{outside}' as x;",
        "models/case.sql": "select " + "case when 1 = 1 then " * 800 + "1" + " end" * 800 + " as a from users",
        "models/wide.sql": "select " + ", ".join(f"email as c{n}" for n in range(5_000)) + " from users",
        "models/regex.sql": "create table " + "a." * 5_000 + "b" + " " * 20_000 + "as select email from users",
        "models/quotes.sql": "select " + "'" * 40_001 + " from users",
        "models/comment.sql": f"-- owner: {STEAL} @everyone <script>alert(1)</script> ![x](https://evil.example/{'x' * 50})\nselect email from users",
        "models/schema.yml": f"models:\n- name: customer_360\n  description: \"{STEAL.replace(chr(34), '')}\"\n  meta: {{owner: '${{GITHUB_TOKEN}}'}}\n",
        "models/merge.yml": "models: &m\n- <<: *m\n  name: x\n",
        "profiles.yml": "x:\n  outputs:\n    dev:\n      type: !!python/object/apply:os.system ['touch hacked']\n",
        "dbt_project.yml": "name: x\non-run-start: 'touch hacked'\nmacro-paths: ['../..', '/etc']\n",
        "target/manifest.json": json.dumps({
            "metadata": {"dbt_schema_version": "https://schemas.getdbt.com/dbt/manifest/v12.json", "project_name": "../../hacked"},
            "nodes": {"model.x.y": {"resource_type": "model", "raw_code": STEAL, "compiled_code": "select email from users", "path": "../../../hacked", "original_file_path": str(outside)}},
            "sources": {"a": "b"},
        }),
        "contract.yaml": f"kind: DataContract\napiVersion: v3.0.0\nid: x\nschema:\n- name: ${{GITHUB_TOKEN}}\n  description: '{STEAL.replace(chr(39), '')}'\n  properties:\n  - {{name: a, logicalType: string}}\n  - {{name: ${{LUMOS_DB_PASSWORD}}, logicalType: string}}\n",
        "include.yaml": f"kind: DataContract\napiVersion: v3.0.0\nschema: !include {outside}\n",
        "remote.schema.json": json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", "properties": {"a": {"$ref": f"file://{outside}"}, "b": {"$ref": "http://169.254.169.254/latest/meta-data"}}}),
        "entity.schema.json": '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
        "bomb.schema.json": json.dumps({"$defs": {f"d{n}": {"type": "object", "properties": {"a": {"$ref": f"#/$defs/d{n + 1}"}, "b": {"$ref": f"#/$defs/d{n + 1}"}}} for n in range(30)} | {"d30": {"type": "string"}}, "$ref": "#/$defs/d0"}),
        "import.proto": f'syntax = "proto3"; import "{outside}"; import "../../../../etc/passwd"; message A {{ B b = 1; }}',
        "loop_a.proto": 'import "loop_b.proto"; message A { B b = 1; }',
        "loop_b.proto": 'import "loop_a.proto"; message B { A a = 1; }',
        "bomb.proto": "".join(f"message M{n} {{ M{n + 1} a = 1; M{n + 1} b = 2; }}\n" for n in range(30)) + "message M30 { int32 a = 1; }",
        "recursive.avsc": json.dumps({"type": "record", "name": "A", "fields": [{"name": "a", "type": ["null", "A"]}]}),
        "bomb.avsc": json.dumps(_nested_records(25)),
        "named.avsc": json.dumps({"type": "record", "name": "::error::x", "namespace": "a\r\n::set-output name=x::y", "fields": []}),
        "s.jsonl": '{"format": "lumos-snapshot", "version": 1}\n{"urn": "lumos://s3/../../etc"}\n',
        ".gitattributes": "* filter=evil diff=evil textconv=evil\n*.sql export-subst ident\n",
        ".gitmodules": "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c touch% hacked\n\tupdate = !touch hacked\n",
        ".pre-commit-config.yaml": "repos: [{repo: local, hooks: [{id: x, entry: touch hacked, language: system}]}]\n",
        "sitecustomize.py": "open('hacked', 'w').close()\n",
        "lumos/__init__.py": "open('hacked', 'w').close()\n",
        "conftest.py": "open('hacked', 'w').close()\n",
        "models/$(touch hacked).sql": "select email from users",
        "models/`touch hacked`; touch hacked.sql": "select email from users",
        "models/--upload-pack=touch hacked.sql": "select email from users",
        "models/\u202egnp.sql": "select email from users",
        "models/a\n::error::injected.sql": "select email from users",
        "models/${GITHUB_TOKEN}.sql": "select email from users",
        "--help.sql": "select email from users",
        ":(glob)**.sql": "select email from users",
    }  # fmt: skip


def _nested_records(depth: int) -> Any:
    """A record with two fields of a record with two fields and so on; each is defined once."""
    inner: Any = "string"
    for level in range(depth):
        name = f"R{level}"
        fields = [{"name": "a", "type": inner}]
        fields.append({"name": "b", "type": inner["name"] if isinstance(inner, dict) else inner})
        inner = {"type": "record", "name": name, "fields": fields}
    return inner


@pytest.fixture
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("outside") / "secret.sql"
    file.write_text(f"select '{OUTSIDE_SECRET}' as {OUTSIDE_SECRET.replace('-', '_')}\n")
    return file


@pytest.fixture
def repository(tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch) -> SampleRepository:
    folder = tmp_path / "repository"
    folder.mkdir()
    repository = SampleRepository(folder)
    monkeypatch.chdir(repository.folder)
    for name, text in hostile_files(outside).items():
        file = repository.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    links = {
        "models/linked.sql": outside,
        "schemas/linked.schema": outside,
        "macros/linked.sql": outside,
        "models/environ.sql": Path("/proc/self/environ"),
        "linked_folder": outside.parent,
        ".lumos/waivers.yaml": outside,
        ".lumos/baseline.yaml": outside,
        "models/zero.sql": Path("/dev/zero"),
    }
    for name, target in links.items():
        file = repository.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.symlink_to(target)
    repository.git("add", "--all")
    message = f"{SHELL}\n\n{STEAL}\n::set-output name=x::y\nSigned-off-by: $(touch hacked)"
    repository.git("commit", "-q", "-m", message)
    return repository


class Audit:
    """What Python does while it is active, by an audit hook, which cannot be removed again."""

    def __init__(self) -> None:
        self.is_active = False
        self.commands: list[list[str]] = []
        self.opened: list[str] = []
        self.others: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_active:
            return
        if event == "subprocess.Popen":
            self.commands.append([os.fsdecode(each) for each in arguments[1]])
        elif event == "open" and isinstance(arguments[0], str | bytes):
            self.opened.append(os.path.realpath(os.fsdecode(arguments[0])))
        elif event in ("os.system", "os.exec", "os.posix_spawn", "socket.connect", "ctypes.dlopen"):
            self.others.append(f"{event} {arguments}")


_AUDITS: list[Audit] = []


@contextmanager
def audited() -> Iterator[Audit]:
    if not _AUDITS:
        _AUDITS.append(Audit())
        sys.addaudithook(_AUDITS[0])
    audit = _AUDITS[0]
    audit.commands, audit.opened, audit.others = [], [], []
    audit.is_active = True
    try:
        yield audit
    finally:
        audit.is_active = False


def outputs_of(folder: Path) -> dict[str, str]:
    return {each: (folder / f"report.{each}").read_text(encoding="utf-8") for each in FORMATS}


def command(folder: Path) -> list[str]:
    outputs = [f"--output={each}={folder / f'report.{each}'}" for each in FORMATS]
    return ["gate", "--base", "main", "--comment", "--dry-run", "--forge", "github", *outputs]


def assert_no_secret(texts: dict[str, str]) -> None:
    for name, text in texts.items():
        for secret in (*SECRETS.values(), OUTSIDE_SECRET):
            assert secret not in text, name
            assert json.dumps(secret)[1:-1] not in text, name


def test_a_hostile_change_executes_nothing_and_learns_no_secret(
    repository: SampleRepository,
    outside: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    started = process_time()
    with audited() as audit:
        result = CliRunner().invoke(app, command(tmp_path))
    assert process_time() - started < 60
    assert result.exit_code == 10, result.output
    texts = outputs_of(tmp_path) | {"comment": result.output}
    assert_no_secret(texts)
    assert "users.email" in texts["text"]
    assert not [*repository.folder.rglob("hacked*")]
    # Git reads the repository; a text that is nested too deeply is analysed in a child process.
    assert {each[0] for each in audit.commands} <= {"git", sys.executable}
    assert not any("hacked" in word for each in audit.commands for word in each)
    assert not audit.others
    assert str(outside) not in audit.opened
    assert not [each for each in audit.opened if each.startswith(("/dev/zero", "/etc/passwd"))]
    # A file name cannot start a workflow command of its own.
    assert not [line for line in texts["github"].splitlines() if "::error::injected" in line[:20]]


@pytest.mark.slow
def test_a_hostile_change_needs_bounded_time_and_memory(
    repository: SampleRepository, tmp_path: Path
) -> None:
    """The command as CI runs it, with many copies of all hostile files."""
    for number in range(5):
        for name, (path, text) in HOSTILE.items():
            file = repository.folder / f"copies/{number}/{name.replace(' ', '_')}/{path}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    huge = 7 * 1024 * 1024
    for name, text in {
        "huge.sql": "select " + "(" * huge,
        "huge.yml": "models: " + "[" * huge,
        "huge.schema.json": '{"properties":' * (huge // 14),
        "huge.avsc": "[" * huge,
        "huge.proto": "message A {" * (huge // 11),
        "huge.schema": "a STRUCT<" * (huge // 9),
        "migrations/9_huge.sql": "create table t (a int);\n" * (huge // 24),
        "words.sql": "select email from users where " + "x " * (huge // 2),
    }.items():
        file = repository.folder / "huge" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    repository.commit({})
    environment = {**os.environ, **SECRETS, "NO_COLOR": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "lumos", *command(tmp_path)],
        cwd=repository.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 10, done.stderr
    assert after.ru_utime - before.ru_utime < 300
    assert after.ru_maxrss < 1_500 * 1024
    assert_no_secret(outputs_of(tmp_path) | {"stdout": done.stdout, "stderr": done.stderr})
    assert not [*repository.folder.rglob("hacked*")]
