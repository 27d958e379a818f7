"""CODEOWNERS files: which rule names the owners of a path. The last rule that fits wins."""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final, NamedTuple

_WORDS: Final = re.compile(r"(?:\\.|[^\s\\])+")
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+\Z")


class Rule:
    """One line: a pattern of paths from the root of the repository, and who owns them."""

    def __init__(self, pattern: str, owners: tuple[str, ...], line: int) -> None:
        self.pattern = pattern
        self.owners = owners
        self.line = line

    def matches(self, path: str) -> bool:
        """Whether a path, or a folder that it lies in, is meant."""
        return self._expression.match(path.strip("/")) is not None

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        return re.compile(_regular(self.pattern), re.DOTALL)


class Problem(NamedTuple):
    """A line that means nothing here."""

    line: int
    reason: str


class CodeOwners:
    """The rules of one file."""

    def __init__(self, text: str) -> None:
        self.rules: list[Rule] = []
        self.problems: list[Problem] = []
        for number, line in enumerate(text.splitlines(), start=1):
            self._read(number, line)

    def rule_for(self, paths: Iterable[str]) -> Rule | None:
        """The last rule that fits any spelling of a path."""
        spellings = [path.strip("/") for path in paths if path.strip("/")]
        for rule in reversed(self.rules):
            if any(rule.matches(path) for path in spellings):
                return rule
        return None

    def _read(self, number: int, line: str) -> None:
        words = list(_before_comment(_WORDS.findall(line)))
        if not words:
            return
        pattern, *owners = words
        if pattern.startswith(("[", "^[")):
            self.problems.append(Problem(number, "sections are not known here and are passed by"))
            return
        if pattern.startswith("!"):
            self.problems.append(Problem(number, "a rule cannot be turned round with !"))
            return
        strange = [each for each in owners if not _is_owner(each)]
        for each in strange:
            reason = f"'{each}' is no owner; one looks like @user, @org/team or name@example.com"
            self.problems.append(Problem(number, reason))
        known = tuple(each for each in owners if _is_owner(each))
        if known or not strange:
            plain = pattern.replace("\\ ", " ").replace("\\#", "#")
            self.rules.append(Rule(plain, known, number))


def _before_comment(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        if word.startswith("#"):
            return
        yield word


def _is_owner(text: str) -> bool:
    return (text.startswith("@") and len(text) > 1) or _EMAIL.match(text) is not None


def _regular(pattern: str) -> str:
    """The pattern as a regular expression over a whole path without slashes at its ends."""
    is_folder = pattern.endswith("/")
    is_anchored = "/" in pattern.rstrip("/")
    body = pattern.strip("/")
    steps = body.split("/")
    # `docs/*` means what lies in docs, and not what lies deeper.
    is_flat = is_anchored and steps[-1] == "*" and not is_folder
    parts = [".*/" if step == "**" else f"{_step(step)}/" for step in steps[:-1]]
    start = "".join("(?:.*/)?" if part == ".*/" else part for part in parts)
    end = ".*" if steps[-1] == "**" else _step(steps[-1])
    below = "" if is_flat else "(?:/.*)?"
    return f"{'' if is_anchored else '(?:.*/)?'}{start}{end}{below}\\Z"


def _step(text: str) -> str:
    """One name of a path, where * and ? stand for what no slash is in."""
    signs = {"*": "[^/]*", "?": "[^/]"}
    return "".join(signs.get(sign, re.escape(sign)) for sign in text)
