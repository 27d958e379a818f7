"""YAML that is broken, hostile or unusual."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lumos.config import ConfigurationError, Settings, load
from lumos.config.yaml_tree import MAX_BYTES, MAX_DEPTH

Load = Callable[..., Settings]


BROKEN = {
    "a tab": (b"scan:\n\texclude: []\n", 2, 1, "a tab is used where YAML requires spaces"),
    "an open bracket": (b"scan: {exclude: [a\n", 2, 1, "not valid YAML"),
    "an open bracket without an end of line": (b"scan: {exclude: [a", None, None, "not valid YAML"),
    "an open bracket and odd line ends": (b"a: [\r\r\r\rb", None, None, "not valid YAML"),
    "a stray colon": (b"a: b: c\n", 1, 5, "mapping values are not allowed"),
    "a bell": (b"scan: \x07\n", None, None, "not valid YAML"),
    "not UTF-8": (b"platform: local\nspark: \xff\n", 2, 8, "not UTF-8 text"),
}


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(("content", "line", "column", "text"), BROKEN.values(), ids=BROKEN)
def test_broken_text_is_one_sentence_with_its_place(
    tmp_path: Path, content: bytes, line: int | None, column: int | None, text: str
) -> None:
    file = tmp_path / "lumos.yaml"
    file.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        load(file, environment={})
    message = str(caught.value)
    assert text in message
    assert "\n" not in message
    if line is not None:
        assert message.startswith(f"{file}:{line}:{column}: ")


REFUSED = {
    "a key given twice": (
        "scan:\n  exclude: [a]\n  exclude: [b]\n",
        3,
        "The key 'exclude' is given twice, first on line 2.",
    ),
    "an alias inside what it names": (
        "glossary_mappings: &a\n  x: *a\n",
        2,
        "The alias '*a' refers to a value that contains it.",
    ),
    "an alias of nothing": (
        "spark: *a\n",
        1,
        "The alias '*a' has no preceding anchor '&a'.",
    ),
    "a list as a key": ("? [a]\n: b\n", 1, "A key must be text, not a list or a mapping."),
    "a second document": ("platform: local\n---\nplatform: local\n", 2, "A second document"),
    "a list at the top": ("- a\n", 1, "must be a mapping of keys to values"),
    "a text at the top": ("hello\n", 1, "must be a mapping of keys to values"),
    "a merge of no mapping": ("scan:\n  <<: text\n", 2, "'<<' takes a mapping"),
    "a tag of another program": (
        "spark: {master: !env X}\n",
        1,
        "The tag '!env' is not known here. Leave it out.",
    ),
    "a tag that makes objects": (
        "spark: {master: !!python/object/apply:os.getcwd []}\n",
        1,
        "The tag 'python/object/apply:os.getcwd' is not known here.",
    ),
}


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(("text", "line", "message"), REFUSED.values(), ids=REFUSED)
def test_unusual_yaml_is_refused_with_its_line(
    load_text: Load, text: str, line: int, message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_text(text)
    assert caught.value.line == line
    assert message in str(caught.value)


def bomb(levels: int) -> str:
    """Aliases of aliases: a few lines that stand for billions of values."""
    lines = ["spark:", "  config:", "    a0: &a0 [" + ", ".join(["x"] * 10) + "]"]
    lines += [f"    a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 10) + "]" for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.usefixtures("parser")
def test_a_bomb_of_aliases_is_refused(load_text: Load) -> None:
    with pytest.raises(ConfigurationError, match="more than 500000 values after expanding aliases"):
        load_text(bomb(12))


@pytest.mark.usefixtures("parser")
def test_a_chain_of_aliases_is_refused_where_it_is_too_deep(load_text: Load) -> None:
    links = [f"    a{n}: &a{n} [*a{n - 1}]" for n in range(1, 2000)]
    text = "\n".join(["spark:", "  config:", "    a0: &a0 [x]", *links])
    with pytest.raises(ConfigurationError, match=f"deeper than {MAX_DEPTH} levels"):
        load_text(text)


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ("{a: ", "}")])
def test_deep_nesting_is_refused(load_text: Load, opened: str, closed: str) -> None:
    with pytest.raises(ConfigurationError, match=f"deeper than {MAX_DEPTH} levels"):
        load_text(f"spark: {opened * 500}x{closed * 500}")


@pytest.mark.usefixtures("registered")
def test_nesting_within_bounds_is_read(load_text: Load) -> None:
    settings = load_text(f"sources: [{{type: buoys, deep: {'[' * 90}x{']' * 90}}}]")
    assert "x" in str(settings.sources[0])


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "lumos.yaml"
    with file.open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    with pytest.raises(ConfigurationError, match="larger than 5 MB"):
        load(file, environment={})


@pytest.mark.usefixtures("parser")
def test_anchors_and_merges_are_read(load_text: Load) -> None:
    settings = load_text(
        """
sources:
  - &lake
    type: s3
    bucket: landing
    region: eu-west-1
  - <<: *lake
    bucket: curated
  - <<: [{region: us-east-1}, *lake]
    name: &name third
spark: {master: *name}
glossary_mappings: {*name : a key}
"""
    )
    shown = settings.to_masked_dict()
    assert [source["buckets"] for source in shown["sources"]] == [
        ["landing"],
        ["curated"],
        ["landing"],
    ]
    assert [source["region"] for source in shown["sources"]] == [
        "eu-west-1",
        "eu-west-1",
        "us-east-1",
    ]
    assert settings.spark.master == "third"
    assert settings.glossary_mappings == {"third": "a key"}


def test_a_mistake_behind_an_alias_is_reported_where_it_is_written(load_text: Load) -> None:
    text = "scan: {exclude: &list\n  [[a]]}\ndocumentation: {required_fields: *list}\n"
    with pytest.raises(ConfigurationError) as caught:
        load_text(text)
    assert [problem.position.line for problem in caught.value.problems] == [2, 2]


def test_a_byte_order_mark_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "lumos.yaml"
    file.write_bytes(b"\xef\xbb\xbfplatform: local\r\nspark:\r\n  master: local\r\n")
    assert load(file, environment={}).spark.master == "local"


def test_explicit_types_are_taken_at_their_word(load_text: Load) -> None:
    settings = load_text(
        "sources: [{type: postgres, host: !!str 7, port: !!int '6432', name: ! x}]"
    )
    assert settings.to_masked_dict()["sources"][0]["port"] == 6432
