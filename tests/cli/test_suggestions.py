"""The line that suggests to join datasets with the same columns."""

from collections.abc import Sequence

import pytest

from lumos.cli.scan_text import print_suggestions
from lumos.model.discovery import Suggestion


def suggestion(hint: Sequence[str], *, join_similar: bool = False) -> Suggestion:
    return Suggestion(
        datasets=("lumos://file/raw/a", "lumos://file/raw/b"),
        names=("a", "b"),
        columns=3,
        hint=tuple(hint),
        name="my raw",
        join_similar=join_similar,
    )


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        (suggestion(["/raw/*_log"]), "Join them with: lumos hint add '/raw/*_log' --name 'my raw'"),
        (suggestion(["/raw/a", "/raw/b"]), "Join them with: lumos hint add /raw/a /raw/b --name 'my raw'"),
        (suggestion([], join_similar=True), "Join them with 'join_similar: true' on the source."),
        (suggestion(map(str, range(11)), join_similar=True), "Join them with 'join_similar: true' on the source."),
        (suggestion(map(str, range(11))), "No short pattern matches only these datasets; --json lists them."),
        (suggestion([]), "No short pattern matches only these datasets; --json lists them."),
    ],
)  # fmt: skip
def test_the_advice_is_a_command_that_works_or_no_command(
    given: Suggestion, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_suggestions([given])
    words = " ".join(capsys.readouterr().out.split())
    assert words == f"2 datasets have the same columns (a, b). {advice}"
