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
_SECRET_NAME: Final = re.compile(
    r"passw|passphrase|secret|credential|identified|authorization|bearer"
    r"|(?:^|_)(?:pass|pwd|token|sas)(?:$|_)"
    r"|(?:api|access|private|master|encryption|account|shared|storage|signing|aws)_?key",
    re.IGNORECASE,
)
# A name of a secret before a quoted value, in a text that cannot be tokenised.
_SECRET_ASSIGNMENT: Final = re.compile(
    r"(\w*(?:passw|passphrase|secret|credential|identified|authorization|bearer|pass|pwd|token|sas"
    r"|(?:api|access|private|master|encryption|account|shared|storage|signing|aws)_?key)"
    r"\w*[\"'`\]]?(?:\s|[=:<>!(]|\b(?:in|not|by|like)\b){0,8})"
    r"(['\"])([^'\"\n]*)",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"\w+")
# Functions whose arguments are keys or protected values.
_CRYPTO_FUNCTION: Final = re.compile(r"crypt|hmac|keyset|pgp_sym", re.IGNORECASE)
# Tokens between a name and its value.
_SEPARATORS: Final = frozenset(
    {"=", ":=", "=>", ":", "==", "<>", "!=", "(", "IN", "NOT", "BY", "LIKE"}
)
_MAX_SEPARATORS: Final = 4
# Patterns that reveal a secret anywhere: connection settings, request headers, users in URLs, and
# keys with a known prefix.
_SETTING: Final = re.compile(
    r"((?:passw(?:or)?d|passphrase|pwd|\w*secret\w*|\w*token|sig"
    r"|(?:api|access|private|account|shared|sharedaccess|aws_access|storage)_?key(?:_id)?)"
    r"[\"']*\s*[=:]\s*[\"']*)([^\s;&,\"'}\)]+)",
    re.IGNORECASE,
)
# Request headers. 'basic plan' is not a token: tokens have digits, signs or capitals.
_HEADER: Final = re.compile(
    r"(\bauthorization[\"']*\s*[:=]\s*[\"']*)([^\s\"'][^\"'\n]*)"
    r"|(\b(?:bearer|basic)\s+)(?=[^\s\"']*(?:[\d._~+/=-]|(?-i:[a-z][A-Z])))([^\s\"',;})]{6,})",
    re.IGNORECASE,
)
_URL_PASSWORD: Final = re.compile(r"(\w://[^\s/:@]*:)([^\s/@]+)(?=@)")
_KNOWN_TOKEN: Final = re.compile(
    r"\b(?:AKIA|ASIA)[0-9A-Z]{12,}|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bxox[a-z]-[\w-]{10,}"
    r"|\bglpat-[\w-]{16,}|\bsk-[\w-]{16,}|\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?"
    r"|-----BEGIN[^-]*PRIVATE KEY-----.*",
    re.DOTALL,
)
# The length of `pwd=x`; shorter literals need no search.
_MIN_SECRET_LENGTH: Final = 5
_QUOTED: Final = re.compile(r"\A(\w*(?P<mark>'''|\"\"\"|\$\w*\$|'|\"))(.*)((?P=mark))\Z", re.DOTALL)


def mask_secrets(text: str, tokens: Sequence[Token]) -> str:
    """Mask the secrets of a text."""
    return replace_tokens(text, _masks(text, tokens))


def mask_secrets_without_tokens(text: str) -> str:
    """Mask all probable secrets in a text that cannot be tokenised.

    The value of a key ends at the next quote, or at the end of the line.
    """
    text = _SECRET_ASSIGNMENT.sub(lambda match: f"{match[1]}{match[2]}{_mask_text(match[3])}", text)
    text = _SETTING.sub(lambda match: f"{match[1]}{_mask_text(match[2])}", text)
    text = _HEADER.sub(
        lambda match: f"{match[1] or match[3]}{_mask_text(match[2] or match[4])}", text
    )
    text = _URL_PASSWORD.sub(rf"\1{MASK}", text)
    return _KNOWN_TOKEN.sub(lambda match: _mask_text(match[0]), text)


def has_secret_name(text: str) -> bool:
    """Whether a text contains the name of a secret, so that any of its words may be the secret."""
    return any(
        _SECRET_NAME.search(word) or _CRYPTO_FUNCTION.search(word) for word in _WORD.findall(text)
    )


def replace_tokens(text: str, replacements: Iterable[tuple[Token, str]]) -> str:
    """Replace tokens of a text by texts of at most the same length, padded with blanks."""
    pieces: list[str] = []
    offset = 0
    for token, replacement in replacements:
        end = token.end + 1
        width = end - token.start
        # Padding next to a blank does not show in excerpts, which have single blanks.
        has_blank = text[max(token.start - 1, 0)].isspace()
        padded = replacement.rjust(width) if has_blank else replacement.ljust(width)
        pieces += [text[offset : token.start], padded]
        offset = end
    return "".join([*pieces, text[offset:]]) if pieces else text


def _masks(text: str, tokens: Sequence[Token]) -> Iterator[tuple[Token, str]]:
    """The tokens that contain secrets, with their masked texts."""
    open_brackets: list[int] = []
    for position, token in enumerate(tokens):
        kind = token.token_type
        if kind is TokenType.L_PAREN:
            open_brackets.append(position)
        elif kind is TokenType.R_PAREN:
            if open_brackets:
                open_brackets.pop()
        elif kind in STRINGS:
            old = _text_of(text, token)
            bracket = open_brackets[-1] if open_brackets else None
            new = (
                _mask_literal(old)
                if _is_secret(tokens, position, bracket)
                else _mask_secret_parts(old)
            )
            if new != old:
                yield token, new
        elif kind is TokenType.IDENTIFIER:
            old = _text_of(text, token)
            new = _URL_PASSWORD.sub(lambda match: f"{match[1]}{_mask_text(match[2])}", old)
            new = _KNOWN_TOKEN.sub(lambda match: _mask_text(match[0]), new)
            if new != old:
                yield token, new


def _is_secret(tokens: Sequence[Token], position: int, bracket: int | None) -> bool:
    """Whether the names around a literal show that it is a secret.

    `bracket` is the index of the bracket around the literal. The name before it may be the key of
    a list of secrets, or a cryptographic function.
    """
    list_name = _name_before(tokens, bracket) if bracket is not None else ""
    names = (_name_before(tokens, position), list_name, _alias_after(tokens, position))
    return bool(_CRYPTO_FUNCTION.search(list_name)) or any(map(_SECRET_NAME.search, names))


def _name_before(tokens: Sequence[Token], position: int) -> str:
    """The name before a value, as in `password = 'x'`, `IDENTIFIED BY 'x'`, `password 'x'`."""
    for index in range(position - 1, max(position - 2 - _MAX_SEPARATORS, -1), -1):
        token = tokens[index]
        if token.text.upper() not in _SEPARATORS:
            # In {'password': 'x'}, the first literal is a key; other literals are values.
            is_key = index + 1 < len(tokens) and tokens[index + 1].text in (":", "=>", "=")
            return token.text if is_key or token.token_type not in STRINGS else ""
    return ""


def _alias_after(tokens: Sequence[Token], position: int) -> str:
    """The alias after a value, as in `'x' AS password`."""
    index = position + 1
    if index < len(tokens) and tokens[index].token_type is TokenType.ALIAS:
        index += 1
        return tokens[index].text if index < len(tokens) else ""
    return ""


def _text_of(text: str, token: Token) -> str:
    return text[token.start : token.end + 1]


def _mask_literal(old: str) -> str:
    match = _QUOTED.match(old)
    if match is None:
        return _mask_text(old)
    start, content, end = match.group(1), match.group(3), match.group(4)
    if "\n" in content or len(content) <= len(MASK):
        return f"{start}{_mask_text(content)}{end}"
    return f"{start}{MASK}{end}"


def _mask_secret_parts(old: str) -> str:
    match = _QUOTED.match(old)
    if match is None:
        return old
    start, content, end = match.group(1), match.group(3), match.group(4)
    if len(content) < _MIN_SECRET_LENGTH:
        return old
    new = _HEADER.sub(lambda match: f"{match[1] or match[3]}{MASK}", content)
    new = _SETTING.sub(rf"\1{MASK}", new)
    new = _KNOWN_TOKEN.sub(MASK, _URL_PASSWORD.sub(rf"\1{MASK}", new))
    if len(new) > len(content) or new.count("\n") != content.count("\n"):
        return _mask_literal(old)
    return f"{start}{new}{end}"


def _mask_text(text: str) -> str:
    return re.sub(r"[^\n]", "*", text)


# Statements that later statements may depend on.
_DATA_STATEMENTS: Final = (
    exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.MultitableInserts, exp.Alter, exp.Drop,
    exp.Declare, exp.Cache,
)  # fmt: skip
_RELATION_KINDS: Final = frozenset({"TABLE", "VIEW"})


class StoredText:
    """Collects the text of a script that may be stored, part by part."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        # Tokens of the next part.
        self._omitted: list[Token] = []
        self._unparsed: list[Token] = []

    def omit(self, tokens: Sequence[Token]) -> None:
        """Omit tokens of the next part that are irrelevant to lineage."""
        self._omitted += tokens

    def mask_literals_of(self, tokens: Sequence[Token]) -> None:
        """Mask the literals of tokens of the next part that could not be parsed."""
        self._unparsed += tokens

    def add(self, text: str, tokens: Sequence[Token]) -> None:
        """Add a part without its comments; the tokens stay on their lines."""
        omitted = {id(token) for token in self._omitted}
        unparsed = [token for token in self._unparsed if id(token) not in omitted]
        masked = replace_tokens(
            text,
            (
                (token, _mask_literal(_text_of(text, token)))
                for token in unparsed
                if token.token_type in STRINGS
            ),
        )
        self._parts.append("".join(_stored_pieces(masked, tokens, omitted)))
        self._omitted, self._unparsed = [], []

    def add_blank(self, text: str) -> None:
        """Add the line breaks of a part whose text is not stored."""
        self._parts.append(_blank(text))

    @property
    def text(self) -> str:
        """The text to store, with a semicolon between parts."""
        return ";".join(self._parts)


def affects_lineage(node: exp.Expr, *, writes: bool, in_routine: bool, is_tsql: bool) -> bool:
    """Whether a statement, or a later one that depends on it, is relevant to lineage."""
    if writes or isinstance(node, _DATA_STATEMENTS):
        return True
    if isinstance(node, exp.Create):
        return str(node.args.get("kind")).upper() in _RELATION_KINDS or node.expression is not None
    if isinstance(node, exp.Query):
        fills_variable = node.args.get("into") is not None or node.find(exp.Parameter) is not None
        return in_routine or fills_variable
    if isinstance(node, exp.Set):
        return in_routine or is_tsql or node.find(exp.Query) is not None
    return False


def _stored_pieces(text: str, tokens: Iterable[Token], omitted: set[int]) -> Iterator[str]:
    offset = 0
    for token in tokens:
        # Between tokens there are white space and comments.
        yield _blank(text[offset : max(offset, token.start)])
        offset = max(offset, token.start)
        if offset <= token.end:
            token_text = text[offset : token.end + 1]
            yield _blank(token_text) if id(token) in omitted else token_text
            offset = token.end + 1
    yield _blank(text[offset:])


def _blank(text: str) -> str:
    """The line breaks of a text, or one blank; white space is returned unchanged."""
    if not text or text.isspace():
        return text
    return "\n" * text.count("\n") or " "
