"""The file that a new project starts with."""

import re
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest

from lumos import plugins
from lumos.config import STARTER, Settings, load
from lumos.config.check import check
from lumos.config.sources import FileSourceSettings

Load = Callable[..., Settings]


def test_the_starter_is_the_defaults_with_one_source(load_text: Load, tmp_path: Path) -> None:
    settings = load_text(STARTER)
    assert settings.sources == (FileSourceSettings(paths=(str(tmp_path / "data"),)),)
    assert settings.storage.path == str(tmp_path / ".lumos/lumos.db")
    own = {"sources": None, "storage": None}
    assert settings.to_masked_dict() | own == Settings().to_masked_dict() | own
    assert check(settings, {}) == ()


# Example lines of the starter, each block of them behind a line that is none.
EXAMPLE = re.compile(r"^#(?=\s*(- )?[a-z_.]+:)")
EXAMPLES = [
    [number for number, _ in block]
    for is_example, block in groupby(
        enumerate(STARTER.splitlines()), key=lambda line: EXAMPLE.match(line[1]) is not None
    )
    if is_example
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda lines: f"line {lines[0] + 1}")
def test_every_example_of_the_starter_can_be_used_as_it_stands(
    load_text: Load, example: list[int]
) -> None:
    lines = STARTER.splitlines()
    for number in example:
        lines[number] = EXAMPLE.sub("", lines[number])
    variables = set(re.findall(r"\$\{(\w+)\}", STARTER))
    settings = load_text("\n".join(lines), environment=dict.fromkeys(variables, "x"))
    assert settings != load_text(STARTER)
    assert check(settings, {}) == ()


def test_the_starter_offers_all_that_can_be_scanned_and_published_to_and_nothing_else() -> None:
    assert set(re.findall(r"- type: (\w+)", STARTER)) == plugins.names(plugins.SOURCES)
    assert set(re.findall(r"^#platform: ([\w-]+)", STARTER, re.MULTILINE)) == plugins.names(
        plugins.PLATFORMS
    )


def test_the_starter_is_loaded_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "lumos.yaml").write_text(STARTER)
    assert load(tmp_path / "lumos.yaml", environment={}).origin.lines["sources"] > 1
