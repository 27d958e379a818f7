"""SQL text that may be stored: secrets are masked and irrelevant statements removed.

All other tokens keep their positions: masked literals are padded with blanks.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from sqlglot import Token, TokenType, exp

MASK: Final = "***"
STRINGS: Final = frozenset(
    {
        TokenType.STRING, TokenType.NATIONAL_STRING, TokenType.RAW_STRING, TokenType.BYTE_STRING,
        TokenType.HEREDOC_STRING, TokenType.UNICODE_STRING, TokenType.HEX_STRING,
    }
)  # fmt: skip
# Names whose values are secret.
_KEY: Final = re.compile(
    r"passw|passphrase|secret|credential|identified|authorization|bearer"
    r"|(?:^|_)(?:pass|pwd|token|sas)(?:$|_)"
    r"|(?:api|access|private|master|encryption|account|shared|storage|signing|aws)_?key",
    re.IGNORECASE,
)
# The same before a quote, in a text that cannot be tokenised.
_GIVEN: Final = re.compile(
    r"(\w*(?:passw|passphrase|secret|credential|identified|authorization|bearer|pass|pwd|token|sas"
    r"|(?:api|access|private|master|encryption|account|shared|storage|signing|aws)_?key)"
    r"\w*[\"'`\]]?(?:\s|[=:<>!(]|\b(?:in|not|by|like)\b){0,8})"
    r"(['\"])([^'\"\n]*)",
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"\w+")
# Functions whose arguments are keys or protected values.
_CRYPT: Final = re.compile(r"crypt|hmac|keyset|pgp_sym", re.IGNORECASE)
_BETWEEN: Final = frozenset(
    {"=", ":=", "=>", ":", "==", "<>", "!=", "(", "IN", "NOT", "BY", "LIKE"}
)
_MOST_BETWEEN: Final = 4
# What gives a secret away wherever it stands: settings of connections, headers of requests, users
# in addresses, and keys that are known by how they begin.
_SETTING: Final = re.compile(
    r"((?:passw(?:or)?d|passphrase|pwd|\w*secret\w*|\w*token|sig"
    r"|(?:api|access|private|account|shared|sharedaccess|aws_access|storage)_?key(?:_id)?)"
    r"[\"']*\s*[=:]\s*[\"']*)([^\s;&,\"'}\)]+)",
    re.IGNORECASE,
)
# Headers of requests. Words such as 'basic plan' are no token: that has digits, signs or capitals.
_HEADER: Final = re.compile(
    r"(\bauthorization[\"']*\s*[:=]\s*[\"']*)([^\s\"'][^\"'\n]*)"
    r"|(\b(?:bearer|basic)\s+)(?=[^\s\"']*(?:[\d._~+/=-]|(?-i:[a-z][A-Z])))([^\s\"',;})]{6,})",
    re.IGNORECASE,
)
_IN_ADDRESS: Final = re.compile(r"(\w://[^\s/:@]*:)([^\s/@]+)(?=@)")
_KNOWN: Final = re.compile(
    r"\b(?:AKIA|ASIA)[0-9A-Z]{12,}|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bxox[a-z]-[\w-]{10,}"
    r"|\bglpat-[\w-]{16,}|\bsk-[\w-]{16,}|\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?"
    r"|-----BEGIN[^-]*PRIVATE KEY-----.*",
    re.DOTALL,
)
# As `pwd=x`; most literals are shorter.
_SHORTEST: Final = 5
_QUOTED: Final = re.compile(r"\A(\w*(?P<mark>'''|\"\"\"|\$\w*\$|'|\"))(.*)((?P=mark))\Z", re.DOTALL)


def mask_secrets(text: str, tokens: Sequence[Token]) -> str:
    """The text with its secrets masked."""
    return replace_tokens(text, _masks(text, tokens))


def mask_secrets_without_tokens(text: str) -> str:
    """A text that cannot be tokenised, with all probable secrets masked.

    The value of a key ends at the next quote, or at the end of the line.
    """
    text = _GIVEN.sub(lambda found: f"{found[1]}{found[2]}{_stars(found[3])}", text)
    text = _SETTING.sub(lambda found: f"{found[1]}{_stars(found[2])}", text)
    text = _HEADER.sub(lambda found: f"{found[1] or found[3]}{_stars(found[2] or found[4])}", text)
    text = _IN_ADDRESS.sub(rf"\1{MASK}", text)
    return _KNOWN.sub(lambda found: _stars(found[0]), text)


def has_secret_name(text: str) -> bool:
    """Whether a text contains the name of a secret, so that any word may be part of it."""
    return any(_KEY.search(word) or _CRYPT.search(word) for word in _NAME.findall(text))


def mask_literals(text: str, tokens: Iterable[Token]) -> str:
    """The text with all literals among some tokens masked."""
    strings = (token for token in tokens if token.token_type in STRINGS)
    return replace_tokens(text, ((token, _hidden(_written(text, token))) for token in strings))


def replace_tokens(text: str, new: Iterable[tuple[Token, str]]) -> str:
    """The text with some tokens replaced by shorter or equally long ones."""
    pieces: list[str] = []
    at = 0
    for token, word in new:
        end = token.end + 1
        width = end - token.start
        # More blanks next to a blank do not show in excerpts.
        has_blank = text[max(token.start - 1, 0)].isspace()
        padded = word.rjust(width) if has_blank else word.ljust(width)
        pieces += [text[at : token.start], padded]
        at = end
    return "".join([*pieces, text[at:]]) if pieces else text


def _masks(text: str, tokens: Sequence[Token]) -> Iterator[tuple[Token, str]]:
    around: list[int] = []
    for number, token in enumerate(tokens):
        kind = token.token_type
        if kind is TokenType.L_PAREN:
            around.append(number)
        elif kind is TokenType.R_PAREN:
            if around:
                around.pop()
        elif kind in STRINGS:
            old = _written(text, token)
            bracket = around[-1] if around else None
            is_secret = _is_secret(tokens, number, bracket)
            new = _hidden(old) if is_secret else _partly_hidden(old)
            if new != old:
                yield token, new
        elif kind is TokenType.IDENTIFIER:
            old = _written(text, token)
            new = _IN_ADDRESS.sub(lambda found: f"{found[1]}{_stars(found[2])}", old)
            new = _KNOWN.sub(lambda found: _stars(found[0]), new)
            if new != old:
                yield token, new


def _is_secret(tokens: Sequence[Token], number: int, bracket: int | None) -> bool:
    return (
        _KEY.search(_named_before(tokens, number)) is not None
        or (bracket is not None and _is_secret_list(tokens, bracket))
        or _KEY.search(_named_behind(tokens, number)) is not None
    )


def _is_secret_list(tokens: Sequence[Token], bracket: int) -> bool:
    """Whether a bracket contains arguments of a cryptographic function or secret values."""
    name = _named_before(tokens, bracket)
    return bool(_KEY.search(name) or _CRYPT.search(name))


def _named_before(tokens: Sequence[Token], number: int) -> str:
    """The target of a value: `password = 'x'`, `IDENTIFIED BY 'x'`, `password 'x'`."""
    for before in range(number - 1, max(number - 2 - _MOST_BETWEEN, -1), -1):
        token = tokens[before]
        if token.text.upper() not in _BETWEEN:
            return "" if token.token_type in STRINGS and _is_value(tokens, before) else token.text
    return ""


def _is_value(tokens: Sequence[Token], number: int) -> bool:
    """Whether a literal is a value and not a key, as in {'password': 'x'}."""
    return number + 1 >= len(tokens) or tokens[number + 1].text not in (":", "=>", "=")


def _named_behind(tokens: Sequence[Token], number: int) -> str:
    """The alias of a value: `'x' AS password`."""
    behind = number + 1
    if behind < len(tokens) and tokens[behind].token_type is TokenType.ALIAS:
        behind += 1
        return tokens[behind].text if behind < len(tokens) else ""
    return ""


def _written(text: str, token: Token) -> str:
    return text[token.start : token.end + 1]


def _hidden(old: str) -> str:
    found = _QUOTED.match(old)
    if found is None:
        return _stars(old)
    start, content, end = found.group(1), found.group(3), found.group(4)
    if "\n" in content or len(content) <= len(MASK):
        return f"{start}{_stars(content)}{end}"
    return f"{start}{MASK}{end}"


def _partly_hidden(old: str) -> str:
    found = _QUOTED.match(old)
    if found is None:
        return old
    start, content, end = found.group(1), found.group(3), found.group(4)
    if len(content) < _SHORTEST:
        return old
    new = _HEADER.sub(lambda found: f"{found[1] or found[3]}{MASK}", content)
    new = _SETTING.sub(rf"\1{MASK}", new)
    new = _KNOWN.sub(MASK, _IN_ADDRESS.sub(rf"\1{MASK}", new))
    if len(new) > len(content) or new.count("\n") != content.count("\n"):
        return _hidden(old)
    return f"{start}{new}{end}"


def _stars(text: str) -> str:
    return re.sub(r"[^\n]", "*", text)


# Statements that later ones may depend on.
_DATA: Final = (
    exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.MultitableInserts, exp.Alter, exp.Drop,
    exp.Declare, exp.Cache,
)  # fmt: skip
_MADE: Final = frozenset({"TABLE", "VIEW"})


class StoredText:
    """Collects the part of a script that may be stored."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._needless: list[Sequence[Token]] = []
        self._doubtful: list[Sequence[Token]] = []

    def leave_out(self, tokens: Sequence[Token]) -> None:
        """Leave out tokens that are irrelevant to lineage."""
        self._needless.append(tokens)

    def doubt(self, tokens: Sequence[Token]) -> None:
        """Mask the literals of tokens that were not understood."""
        self._doubtful.append(tokens)

    def end(self, text: str, tokens: Sequence[Token]) -> None:
        """Add a part of the text; tokens keep their lines, comments are removed."""
        needless = {id(token) for some in self._needless for token in some}
        doubtful = [token for some in self._doubtful for token in some if id(token) not in needless]
        safe = mask_literals(text, doubtful)
        self._parts.append("".join(_stored_pieces(safe, tokens, needless)))
        self._needless, self._doubtful = [], []

    def leave_out_part(self, text: str) -> None:
        """Add a part of the text without any tokens."""
        self._parts.append(_blank(text))

    @property
    def text(self) -> str:
        """The text to store; separately read parts are statements."""
        return ";".join(self._parts)


def is_needed(node: exp.Expr, *, writes: bool, in_routine: bool, is_tsql: bool) -> bool:
    """Whether a statement, or a later one that depends on it, is relevant to lineage."""
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


def _stored_pieces(text: str, tokens: Iterable[Token], needless: set[int]) -> Iterator[str]:
    at = 0
    for token in tokens:
        # Between tokens there are white space and comments.
        yield _blank(text[at : max(at, token.start)])
        at = max(at, token.start)
        if at <= token.end:
            word = text[at : token.end + 1]
            yield _blank(word) if id(token) in needless else word
            at = token.end + 1
    yield _blank(text[at:])


def _blank(text: str) -> str:
    """Only the line breaks of a text; pure white space is unchanged."""
    if not text or text.isspace():
        return text
    return "\n" * text.count("\n") or " "
