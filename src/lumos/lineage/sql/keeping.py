"""What of a text of SQL is kept to be read again: what tells of lineage, and nothing else."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from lumos.lineage.sql.secrets import without_literals

# Statements that later ones build upon, though they may move no data themselves.
_DATA: Final = (
    exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.MultitableInserts, exp.Alter, exp.Drop,
    exp.Declare, exp.Cache,
)  # fmt: skip
_MADE: Final = frozenset({"TABLE", "VIEW"})


class Keeper:
    """Notes of each statement whether it is needed, while a text is read."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._needless: list[Sequence[Token]] = []
        self._doubtful: list[Sequence[Token]] = []

    def leave_out(self, tokens: Sequence[Token]) -> None:
        """These words tell nothing."""
        self._needless.append(tokens)

    def doubt(self, tokens: Sequence[Token]) -> None:
        """These words were not understood: they are kept, but for what their literals say."""
        self._doubtful.append(tokens)

    def end(self, text: str, tokens: Sequence[Token]) -> None:
        """A part of the text is read; its words keep their lines, comments go."""
        needless = {id(token) for some in self._needless for token in some}
        doubtful = [token for some in self._doubtful for token in some if id(token) not in needless]
        safe = without_literals(text, doubtful)
        self._parts.append("".join(_stretches(safe, tokens, needless)))
        self._needless, self._doubtful = [], []

    def leave_out_part(self, text: str) -> None:
        """A part of the text has no words at all."""
        self._parts.append(_blank(text))

    @property
    def text(self) -> str:
        """All that is kept; parts that were read by themselves are statements."""
        return ";".join(self._parts)


def is_needed(node: exp.Expr, *, writes: bool, in_routine: bool, is_tsql: bool) -> bool:
    """Whether a statement, or a later one that builds upon it, tells of lineage."""
    if writes or isinstance(node, _DATA):
        return True
    if isinstance(node, exp.Create):
        return str(node.args.get("kind")).upper() in _MADE or node.expression is not None
    if isinstance(node, exp.Query):
        # Variables are filled by queries, too.
        fills = node.args.get("into") is not None or node.find(exp.Parameter) is not None
        return in_routine or fills
    if isinstance(node, exp.Set):
        return in_routine or is_tsql or node.find(exp.Query) is not None
    return False


def _stretches(text: str, tokens: Iterable[Token], needless: set[int]) -> Iterator[str]:
    at = 0
    for token in tokens:
        # What lies between words is white space and comments.
        yield _blank(text[at : max(at, token.start)])
        at = max(at, token.start)
        if at <= token.end:
            word = text[at : token.end + 1]
            yield _blank(word) if id(token) in needless else word
            at = token.end + 1
    yield _blank(text[at:])


def _blank(text: str) -> str:
    """Nothing but the line breaks of a stretch; white space is left as it is."""
    if not text or text.isspace():
        return text
    return "\n" * text.count("\n") or " "
