"""Hints come and go in a configuration file, and every other byte stays."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lumos.config import STARTER, Settings, load
from lumos.config.hint_file import FileNotWritable, HintFile, NotEditable, edit_hint_file
from lumos.config.sources import DatasetHint, FileSourceSettings, FileStoreSettings
from lumos.config.starter import write_sources

HINT = DatasetHint(path="raw/*_log/**", name="logs")
SPLIT = DatasetHint(path="lake/{table}/**", split=True)
SEVERAL = DatasetHint(path=("a b/**", "c"), name="it's")


def read(file: Path, text: str | None = None) -> Settings:
    return load(file, environment={}, text=text)


def add(file: Path, section: str, *hints: DatasetHint) -> None:
    with edit_hint_file(file, lambda text: read(file, text)) as opened:
        for hint in hints:
            opened.add(section, hint)


def remove(file: Path, section: str, index: int) -> None:
    with edit_hint_file(file, lambda text: read(file, text)) as opened:
        opened.remove(section, index)


BEFORE_AND_AFTER = {
    "no section yet": (
        "scan",
        "# mine\nsources:\n  - {type: file, path: data}\n# the end\n",
        "# mine\nsources:\n  - {type: file, path: data}\n# the end\n"
        "scan:\n  datasets:\n    - path: raw/*_log/**\n      name: logs\n",
    ),
    "an empty section": (
        "scan",
        "scan:   # nothing yet\n#  exclude: [x]\nenvironment: dev",
        "scan:   # nothing yet\n  datasets:\n    - path: raw/*_log/**\n      name: logs\n"
        "#  exclude: [x]\nenvironment: dev",
    ),
    "a section without hints, indented by four": (
        "scan",
        "scan:\n    max_removed_share:   0.30\n\n# next\nenvironment: dev\n",
        "scan:\n    max_removed_share:   0.30\n    datasets:\n      - path: raw/*_log/**\n"
        "        name: logs\n\n# next\nenvironment: dev\n",
    ),
    "a list": (
        "scan",
        "scan:\n  datasets:\n  - 'a'  # first\n  # behind it\n\nenvironment: dev\n",
        "scan:\n  datasets:\n  - 'a'  # first\n  - path: raw/*_log/**\n    name: logs\n"
        "  # behind it\n\nenvironment: dev\n",
    ),
    "an empty list": (
        "scan",
        "scan:\n  datasets:\n  exclude: [x]\n",
        "scan:\n  datasets:\n    - path: raw/*_log/**\n      name: logs\n  exclude: [x]\n",
    ),
    "a list in brackets": (
        "scan",
        "scan: {datasets: [a,  {path: b}, ], tables: true}\n",
        "scan: {datasets: [a,  {path: b}, {path: raw/*_log/**, name: logs}, ], tables: true}\n",
    ),
    "empty brackets": (
        "scan",
        "scan: {datasets: []}\n",
        "scan: {datasets: [{path: raw/*_log/**, name: logs}]}\n",
    ),
    "a source": (
        "sources[1]",
        "sources:\n- type: file\n  path: one\n- type: file\n  path: two   # second\n\nscan:\n",
        "sources:\n- type: file\n  path: one\n- type: file\n  path: two   # second\n"
        "  datasets:\n  - path: raw/*_log/**\n    name: logs\n\nscan:\n",
    ),
    "a source in braces": (
        "sources[0]",
        "sources: [{type: file, path: one}]\n",
        "sources: [{type: file, path: one, datasets: [{path: raw/*_log/**, name: logs}]}]\n",
    ),
    "a watched source": (
        "change_detection.sources[0]",
        "change_detection:\n  sources:\n    - type: file\n      path: one\n",
        "change_detection:\n  sources:\n    - type: file\n      path: one\n"
        "      datasets:\n        - path: raw/*_log/**\n          name: logs\n",
    ),
    "settings below lumos_config": (
        "scan",
        "lumos_config:\n  scan:\n    tables: true\n  environment: dev\n",
        "lumos_config:\n  scan:\n    tables: true\n    datasets:\n      - path: raw/*_log/**\n"
        "        name: logs\n  environment: dev\n",
    ),
    "an empty file": (
        "scan",
        "",
        "scan:\n  datasets:\n    - path: raw/*_log/**\n      name: logs\n",
    ),
    "JSON": (
        "scan",
        '{"environment": "dev"}\n',
        '{"environment": "dev", scan: {datasets: [{path: raw/*_log/**, name: logs}]}}\n',
    ),
    "a document with an end": (
        "scan",
        "---\nenvironment: dev\n...\n",
        "---\nenvironment: dev\nscan:\n  datasets:\n    - path: raw/*_log/**\n      name: logs\n...\n",
    ),
    "windows line ends": (
        "scan",
        "environment: dev\r\nscan:\r\n  tables: true\r\n",
        "environment: dev\r\nscan:\r\n  tables: true\r\n  datasets:\r\n"
        "    - path: raw/*_log/**\r\n      name: logs\r\n",
    ),
    "a mark of the byte order and tabs before comments": (
        "scan",
        "\ufeffscan:\n  tables: true\t# tab\n",
        "\ufeffscan:\n  tables: true\t# tab\n  datasets:\n    - path: raw/*_log/**\n"
        "      name: logs\n",
    ),
    "an anchor that others do not share": (
        "scan",
        "scan: &scan\n  tables: true\n",
        "scan: &scan\n  tables: true\n  datasets:\n    - path: raw/*_log/**\n      name: logs\n",
    ),
}


@pytest.mark.parametrize(
    ("section", "before", "after"), BEFORE_AND_AFTER.values(), ids=BEFORE_AND_AFTER.keys()
)
def test_a_hint_is_added_and_nothing_else_changes(
    tmp_path: Path, section: str, before: str, after: str
) -> None:
    file = tmp_path / "lumos.yaml"
    file.write_bytes(before.encode())
    add(file, section, HINT)
    assert file.read_bytes().decode() == after
    read(file)


@pytest.mark.parametrize("name", BEFORE_AND_AFTER)
def test_a_hint_that_was_added_can_be_removed_again(tmp_path: Path, name: str) -> None:
    section, before, _ = BEFORE_AND_AFTER[name]
    file = tmp_path / "lumos.yaml"
    file.write_bytes(before.encode())
    unhinted = read(file).to_masked_dict()
    add(file, section, HINT)
    number = sum(key.startswith(f"{section}.datasets[") for key in read(file).origin.lines)
    remove(file, section, number - 1)
    assert read(file).to_masked_dict() == unhinted
    # Elsewhere a key stays behind with an empty list, or goes that had nothing below it.
    leaves = ("an empty section", "an empty list", "a source in braces", "JSON")
    assert (file.read_bytes().decode() == before) == (name not in leaves)


@pytest.mark.parametrize(
    ("before", "index", "after"),
    [
        ("scan: {datasets: [a, b, c]}\n", 0, "scan: {datasets: [b, c]}\n"),
        ("scan: {datasets: [a, b, c]}\n", 2, "scan: {datasets: [a, b]}\n"),
        ("scan: {datasets: [a]}\n", 0, "scan: {datasets: []}\n"),
        (
            "scan:\n  datasets:\n    - a\n    # of b\n    - path: b\n      name: x # y\n    - c\n",
            1,
            "scan:\n  datasets:\n    - a\n    # of b\n    - c\n",
        ),
        (
            "scan:\n  datasets:\n    -\n      path: b\n  tables: true\n",
            0,
            "scan:\n  tables: true\n",
        ),
    ],
)
def test_one_hint_of_several_is_removed(
    tmp_path: Path, before: str, index: int, after: str
) -> None:
    file = tmp_path / "lumos.yaml"
    file.write_bytes(before.encode())
    remove(file, "scan", index)
    assert file.read_bytes().decode() == after


def test_every_kind_of_hint_is_read_back_as_it_was_added(tmp_path: Path) -> None:
    file = tmp_path / "lumos.yaml"
    file.write_text("environment: dev\n", encoding="utf-8")
    odd = DatasetHint(path="2024/${HOME}: #x/**", name="true")
    add(file, "scan", HINT, SPLIT, SEVERAL, odd)
    assert read(file).scan.datasets == (HINT, SPLIT, SEVERAL, odd)
    assert read(file).origin.lines["scan.datasets[1]"] == 6


@pytest.mark.parametrize(
    ("section", "text", "words"),
    [
        ("sources[0]", "environment: dev\n", "no section"),
        (
            "sources[0]",
            "sources:\n  - &one {type: file, path: x}\n  - {<<: *one, path: y}\n",
            "anchor",
        ),
        (
            "sources[1]",
            "sources:\n  - &one {type: file, path: x, datasets: [a]}\n  - {<<: *one, path: y}\n",
            "anchor",
        ),
        ("sources[1]", "sources:\n  - &one {type: file, path: x}\n  - *one\n", "not a mapping"),
        (
            "scan",
            "sources: [{type: file, path: x, datasets: &h [a]}]\nscan: {datasets: *h}\n",
            "not a list",
        ),
    ],
)
def test_a_hint_that_would_change_something_else_is_refused(
    tmp_path: Path, section: str, text: str, words: str
) -> None:
    file = tmp_path / "lumos.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(NotEditable, match=words):
        add(file, section, HINT)
    assert file.read_text(encoding="utf-8") == text


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    real = tmp_path / "real.yaml"
    real.write_text("environment: dev\n", encoding="utf-8")
    real.chmod(0o640)
    link = tmp_path / "lumos.yaml"
    link.symlink_to(real)
    add(link, "scan", HINT)
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["lumos.yaml", "real.yaml"]


def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "lumos.yaml"
    file.write_text("environment: dev\n", encoding="utf-8")
    file.chmod(0o444)
    with pytest.raises(FileNotWritable, match=r"read-only.*--in-store"):
        add(file, "scan", HINT)
    assert file.read_text(encoding="utf-8") == "environment: dev\n"


def test_a_change_by_another_program_is_not_lost(tmp_path: Path) -> None:
    file = tmp_path / "lumos.yaml"
    file.write_text("environment: dev\n", encoding="utf-8")

    def interrupted() -> None:
        with edit_hint_file(file, lambda text: read(file, text)) as opened:
            opened.add("scan", HINT)
            file.write_text("environment: test\n", encoding="utf-8")

    with pytest.raises(FileNotWritable, match="changed by another program"):
        interrupted()
    assert file.read_text(encoding="utf-8") == "environment: test\n"


def test_hints_that_are_added_at_once_are_all_kept(tmp_path: Path) -> None:
    file = tmp_path / "lumos.yaml"
    file.write_text("environment: dev\n", encoding="utf-8")
    hints = [DatasetHint(path=f"raw/t{number}") for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda hint: add(file, "scan", hint), hints))
    assert set(read(file).scan.datasets) == set(hints)


SAMPLES = {
    "the starter": STARTER,
    **{
        file.stem: file.read_text(encoding="utf-8")
        for file in sorted((Path(__file__).parent / "blocks").glob("*.yaml"))
        # Its sources exist only while they are registered.
        if file.stem != "plugins"
    },
}


class AnyVariable(dict[str, str]):
    """An environment in which every variable that a configuration names is set."""

    def get(self, key: str, default: Any = None) -> Any:
        return default if key.startswith("LUMOS") else "x"


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_every_layout_takes_a_hint_and_gives_it_back(
    tmp_path: Path, name: str, ending: str
) -> None:
    file = tmp_path / "lumos.yaml"
    text = SAMPLES[name].replace("\n", ending)

    def reload(text: str) -> Settings:
        return load(file, environment=AnyVariable(), text=text)

    opened = HintFile(text, reload)
    unhinted = opened.settings.to_masked_dict()
    sources = [
        f"sources[{at}]"
        for at, source in enumerate(opened.settings.sources)
        if isinstance(source, FileStoreSettings)
    ]
    for section in ("scan", *sources):
        opened.add(section, HINT)
        shared = len(os.path.commonprefix([text, opened.text]))  # noqa: RUF071 - not of paths
        assert opened.text.endswith(text[shared:]), "something was only inserted"
        hints = [key for key in opened.settings.origin.lines if key.startswith(f"{section}.data")]
        opened.remove(section, len(hints) - 1)
        assert opened.settings.to_masked_dict() == unhinted
        text = opened.text


def test_a_configuration_with_hints_is_written_for_other_folders(tmp_path: Path) -> None:
    source = FileSourceSettings(paths=(str(tmp_path),), datasets=(HINT, SPLIT, SEVERAL))
    write_sources(tmp_path / "lumos.yaml", [source], datasets=[])
    assert read(tmp_path / "lumos.yaml").sources == (source,)
