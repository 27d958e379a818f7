"""Finds the values in a name: dates, numbers, identifiers and codes; all other parts are words."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

# Kinds of dates and times.
TIME_KINDS: Final = frozenset(
    ("yyyy", "mm", "dd", "hh", "mi", "ss", "ddd", "yyyy-mm", "quarter", "week", "date", "time",
     "epoch")
)  # fmt: skip
# Words that programs use to name output files: `part-00000`, `shard-3`. See docs/GROUPING.md.
WRITER_WORDS: Final = frozenset(
    ("part", "parts", "partition", "data", "load", "chunk", "shard", "batch", "bucket", "slice",
     "split", "file", "files", "output", "out", "run", "attempt", "copy", "of")
)  # fmt: skip
# Letters that writers add to these words: part-m-00000, part-00000-c000.
_WRITER_MARKS: Final = frozenset({"m", "r", "c", "tid"})
# Placeholders for literal braces in a name.
BRACES: Final = {"open": "{", "close": "}"}

_YEAR = r"(?:19|20)\d\d"
_MONTH = r"(?:0[1-9]|1[0-2])"
_DAY = r"(?:0[1-9]|[12]\d|3[01])"
_LOOSE_MONTH = r"(?:1[0-2]|0?[1-9])"
_LOOSE_DAY = r"(?:3[01]|[12]\d|0?[1-9])"
_HOUR = r"(?:[01]\d|2[0-3])"
# Also for seconds.
_MINUTE = r"[0-5]\d"
_MONTH_NAME = (
    r"(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_WORD_END = r"(?![0-9A-Za-z])"
_QUARTER = r"[QqHh][1-4](?:[-_]?[QqHh][1-4])?"

# Patterns of values that start at the beginning of a word.
_AT_WORD_START: Final = {
    "uuid": r"[0-9a-fA-F]{8}(?P<u>[-_])[0-9a-fA-F]{4}(?P=u)[0-9a-fA-F]{4}(?P=u)[0-9a-fA-F]{4}(?P=u)"
    r"[0-9a-fA-F]{12}",
    "region": r"(?:[a-z]{2}|africa|asia|australia|europe|me|northamerica|southamerica)"
    r"-(?:gov-|iso[a-z]?-)?(?:north|south|east|west|central)(?:east|west)?(?:-\d|\d{1,2})"
    + _WORD_END,
    "ip": r"\d{1,3}(?:\.\d{1,3}){3}" + _WORD_END,
    # Identifiers that query engines assign to a statement: 20240105_010203_00042_x7k2p.
    "query": r"\d{8}_\d{6}_\d{5}_[a-z0-9]{5}" + _WORD_END,
    # The suffix of a pod of a Kubernetes deployment: checkout-7d9f8b6c5-x2k4p.
    "pod": r"(?<=-)(?=[a-z0-9]*[0-9])[bcdfghjklmnpqrstvwxz2456789]{8,10}"
    r"-[bcdfghjklmnpqrstvwxz2456789]{5}" + _WORD_END,
    "lettered": rf"[yY]{_YEAR}[-_]?[mM]{_LOOSE_MONTH}(?:[-_]?[dD]{_LOOSE_DAY})?" + _WORD_END,
    "fiscal": rf"(?:FY|fy|CY)[-_]?{_YEAR}" + _WORD_END,
    "quarter_first": rf"{_QUARTER}[-_ ]?{_YEAR}(?!\d)",
    "named": rf"(?:(?:{_LOOSE_DAY}[-_ ]?)?{_MONTH_NAME}[-_ ,]{{0,2}}{_YEAR}"
    rf"|{_MONTH_NAME}[-_ ]?{_LOOSE_DAY}[-_ ,]{{1,2}}{_YEAR}"
    rf"|{_YEAR}[-_ ]?{_MONTH_NAME}(?:[-_ ]?{_LOOSE_DAY})?)" + _WORD_END,
    "clock": rf"{_HOUR}:{_MINUTE}(?::{_MINUTE})?" + _WORD_END,
}
# Patterns of dates that may follow letters: events20240105.
_DATES: Final = {
    # Digits after a date and a separator may also count files, so they are not a time.
    "time": rf"{_YEAR}(?P<s1>[-_.]?){_MONTH}(?P=s1){_DAY}"
    rf"(?:T{_HOUR}(?:[-_:.h]?{_MINUTE}(?:[-_:.m]?{_MINUTE}(?:[.,]?\d{{3,9}})?)?)?"
    rf"|[-_ ]?{_HOUR}:{_MINUTE}(?::{_MINUTE}(?:[.,]\d{{3,9}})?)?"
    rf"|{_HOUR}(?:{_MINUTE}(?:{_MINUTE})?)?)(?:Z|\+\d\d[:_-]?\d\d)?" + _WORD_END,
    "date": rf"(?:{_YEAR}(?:{_MONTH}{_DAY}|(?P<s2>[-_. ]){_LOOSE_MONTH}(?P=s2){_LOOSE_DAY})"
    rf"|(?:{_LOOSE_DAY}(?P<s3>[-_.]){_LOOSE_MONTH}|{_LOOSE_MONTH}(?P<s4>[-_.]){_LOOSE_DAY})"
    rf"(?:(?P=s3)|(?P=s4)){_YEAR})(?!\d)",
    # With two digits for the year: 23-12-31, 31.12.23.
    "short_date": rf"(?<![0-9][-_.])(?:\d\d(?P<s5>[-_.]){_MONTH}(?P=s5){_DAY}"
    rf"|{_DAY}(?P<s6>[-_.]){_MONTH}(?P=s6)\d\d)(?![-_.]?\d)",
    "week": rf"{_YEAR}[-_]?[Ww](?:0[1-9]|[1-4]\d|5[0-3])(?!\d)",
    # French and Spanish halves and quarters are 2024-S1 and 2024-T1.
    "quarter": rf"{_YEAR}[-_ ]?(?:{_QUARTER}(?!\d)|(?:[Tt][1-4]|[Ss][12]){_WORD_END})",
    # A year and two digits: a month, but also a week, or a season such as 2012-13.
    "month": rf"(?:{_YEAR}(?:{_MONTH}|[-_.]\d\d?)|{_MONTH}[-_.]{_YEAR}(?![-_.]\d\d?(?!\d)))(?!\d)",
}
# Patterns of values that consist of digits only.
_DIGITS: Final = {
    "epoch": r"1[0-9]\d{8}(?:\d{3}|\d{6})?" + _WORD_END,
    "year": _YEAR + _WORD_END,
    "number": r"\d+" + _WORD_END,
}


def _any_of(patterns: dict[str, str]) -> str:
    return "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in patterns.items())


_TOKEN: Final = re.compile(
    rf"(?<![0-9A-Za-z])(?:{_any_of(_AT_WORD_START)})"
    rf"|(?=[0-9])(?<![0-9])(?:{_any_of(_DATES)})"
    rf"|(?<![0-9A-Za-z])(?:{_any_of(_DIGITS)})"
    r"|(?<![0-9A-Za-z])(?P<word>[0-9A-Za-z]+)"
    r"|(?P<brace>[{}])",
    re.ASCII,
)
_PLACEHOLDER_KINDS: Final = {
    "month": "yyyy-mm", "year": "yyyy", "fiscal": "yyyy", "clock": "time", "number": "n",
    "quarter_first": "quarter", "query": "id", "pod": "id", "short_date": "date",
}  # fmt: skip
_MONTH_NAMES: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov",
                       "dec")  # fmt: skip
_MAY_VARY: Final = re.compile(r"[0-9{}]|[A-Za-z]{10}")
_NUMBERS: Final = re.compile(r"\d+", re.ASCII)
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_LETTER_OR_DIGIT_RUNS: Final = re.compile(r"[A-Za-z]+|\d+", re.ASCII)
_SEPARATORS_AND_DIGITS: Final = re.compile(r"[-_. +~,()\[\]\d]*")
# Ordinary words, one or several in camel case, with an optional number at the end.
_REGULAR_WORDS: Final = re.compile(
    r"(?:[a-z]{3,})?(?:[A-Z][a-z]{2,}|[A-Z]{2,}(?=[A-Z][a-z]|\d*\Z))*\d*\Z", re.ASCII
)
_CAMEL_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", re.ASCII)
_PLACEHOLDER: Final = re.compile(r"\{[a-z-]+\}")
_VERSION: Final = re.compile(r"[vV]\d+\Z|[A-Za-z]*(?<![cpt]s)[vV][1-9]\d?\Z", re.ASCII)
_DATE_INSIDE: Final = re.compile(rf"(?<![0-9])(?:{_any_of(_DATES)})", re.ASCII)
_TRAILING_NUMBER: Final = re.compile(r"(?<=[A-Za-z])\d+\Z", re.ASCII)
_SHORT_HEX: Final = re.compile(r"(?:[0-9a-f]{5,}|[0-9A-F]{5,})\Z", re.ASCII)
_HEX: Final = re.compile(r"(?:[0-9a-f]{7,}|[0-9A-F]{7,})\Z", re.ASCII)
_REGISTRATION: Final = re.compile(r"[A-Z]{1,4}\d{5,}\Z", re.ASCII)
_WRITER_WORD_BEFORE: Final = re.compile(
    rf"(?<![A-Za-z])(?:{'|'.join(sorted(WRITER_WORDS))})[-_. ]?\Z", re.ASCII | re.IGNORECASE
)
_VOWEL: Final = re.compile(r"[aeiouyAEIOUY]")
_MIN_RANDOM_LENGTH: Final = 16
# Names such as eBayPayPalTx change their case as often as random letters do.
_MIN_RANDOM_LETTERS: Final = 13
_ACCOUNT_DIGITS: Final = 12
# With this many digits, a number without leading zeros is an identifier, not a count.
_IDENTIFIER_DIGITS: Final = 7
# After each letter, the letters that commonly follow it in words; random text has other pairs.
_COMMON_PAIRS: Final = (
    "abcdgilmnprstuvwy baeiloruys cacehiklortuy dadeiorsuy eacdefgilmnpqrstvwxy faefiloru "
    "gaeghilnorsu haeiortuy iabcdefglmnoprstvz jaeou keinsy ladefiklmopstuvy maebimopsuy "
    "nacdefgiknostuvy oabcdefgiklmnoprstuvw paehiloprstuy qu racdegiklmnoprstuvy "
    "sacehiklmnopqstuwy tacehilorstuwy uabcdegilmnprst vaeio waehinors xaceipt yelmopst zaeioz"
)
_COMMON_NEXT_LETTERS: Final = {letters[0]: letters[1:] for letters in _COMMON_PAIRS.split()}


class NameValue(NamedTuple):
    """A value in a name: its kind and position."""

    kind: str
    start: int
    end: int


class ValueTemplate(NamedTuple):
    """A name with placeholders such as `{date}` for its values, and the values."""

    text: str
    kinds: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    @classmethod
    def of_one(cls, kind: str, value: str) -> "ValueTemplate":
        """A name that consists of a single value."""
        return cls(f"{{{kind}}}", (kind,), (value,))

    @property
    def has_value(self) -> bool:
        """Whether the name contains a value."""
        return any(kind not in BRACES for kind in self.kinds)

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the name in lower case, without values, digits and separators."""
        return tuple(word.lower() for word in _LETTERS.findall(_PLACEHOLDER.sub("0", self.text)))

    @property
    def is_writer_name(self) -> bool:
        """Whether the name consists only of values and words of writers, such as `part-00000`."""
        words = set(self.words)
        named = words - _WRITER_MARKS if self.has_value else words
        if not named <= WRITER_WORDS or not (named or (self.has_value and not words)):
            return False
        # Other characters are part of a name, too: 🎉1 and $1 are not only numbers.
        return (
            _SEPARATORS_AND_DIGITS.fullmatch(_LETTERS.sub("", _PLACEHOLDER.sub("", self.text)))
            is not None
        )


@lru_cache(maxsize=65536)
def file_template(stem: str, *, below_year: bool = False) -> ValueTemplate:
    """The template of a file name without its extension; every separate number is a value.

    In a folder of a year, the names of months are values too.
    """
    if not below_year and not _MAY_VARY.search(stem):
        return ValueTemplate(stem)
    return _template(stem, list(_values(stem, below_year=below_year)))


@lru_cache(maxsize=65536)
def folder_template(name: str) -> ValueTemplate:
    """The template of a folder name; a number after a word is a value only if it is a counter."""
    if not _MAY_VARY.search(name):
        return ValueTemplate(name)
    all_values = _template(name, list(_values(name)))
    if all_values.is_writer_name:
        return all_values
    return _template(name, list(_values_in_folder(name)))


def month_number(text: str) -> str | None:
    """The number of a month by its name or abbreviation, such as `01` for January."""
    lowered = text.lower()
    is_name = re.fullmatch(_MONTH_NAME, lowered)
    return f"{_MONTH_NAMES.index(lowered[:3]) + 1:02d}" if is_name else None


@lru_cache(maxsize=65536)
def to_sortable(kind: str, value: str) -> str:
    """A date or time in a sortable form: 2024-01-05 for 20240105 and 01.05.2024."""
    numbers = _NUMBERS.findall(value)
    name = re.search(_MONTH_NAME, value)
    if name is not None:
        year = next((number for number in numbers if len(number) == 4), None)
        if year is None:
            return month_number(name.group()) or ""
        days = [number.zfill(2) for number in numbers if number != year]
        return "-".join([year, month_number(name.group()) or "", *days])
    if len(numbers) > 1 and len(numbers[-1]) == 4 and len(numbers[0]) < 4:
        first, second = (numbers[0], numbers[1]) if len(numbers) == 3 else ("", numbers[0])
        # The month usually comes first; in 13.01.2024, it can only be the second number.
        month, day = (second, first) if not first or int(first) > 12 else (first, second)
        numbers = [numbers[-1], month, *([day] if day else [])]
    digits = "".join(number.zfill(2) for number in numbers)
    if kind == "date":
        return f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}"
    return f"{digits[:4]}-{digits[4:6]}" if kind == "yyyy-mm" else digits


def _template(name: str, values: list[NameValue]) -> ValueTemplate:
    parts: list[str] = []
    end = 0
    for kind, start, stop in values:
        parts += (name[end:start], "{", kind, "}")
        end = stop
    parts.append(name[end:])
    texts = tuple(name[start:stop] for _, start, stop in values)
    return ValueTemplate("".join(parts), tuple(value.kind for value in values), texts)


def _values_in_folder(name: str) -> Iterator[NameValue]:
    """The values that may differ between the folders of one dataset."""
    end_of_date = -1
    for value in _values(name):
        # A value after a date is its time or a counter for that day: orders_20240301_093000.
        follows_date = end_of_date >= 0 and not name[end_of_date : value.start].strip("-_. ")
        if follows_date or _is_folder_value(name, value):
            end_of_date = value.end if follows_date or value.kind in TIME_KINDS else -1
            yield value


def _is_folder_value(name: str, value: NameValue) -> bool:
    """Whether a value that does not follow a date may differ between folders of one dataset."""
    if name[value.start : value.end].isdigit() and value.kind in ("n", "number"):
        return value.end - value.start == _ACCOUNT_DIGITS
    if value.kind == "id" and _is_short_hash(name[value.start : value.end]):
        return is_identifier(name[value.start : value.end])
    # orders_2024 has a year; in ds2024 the number is part of the name.
    return value.kind != "yyyy" or not name[: value.start][-1:].isalnum()


def _values(name: str, *, below_year: bool = False) -> Iterator[NameValue]:
    """The values of a name, from left to right; literal braces are treated as values, too."""
    after_time = after_date = is_service_name = False
    numbers_after_date = 0
    for match in _TOKEN.finditer(name):
        kind, start, text = match.lastgroup or "", match.start(), match.group()
        # Only cloud services write accounts, regions and IP addresses into file names.
        is_account = kind == "number" and len(text) == _ACCOUNT_DIGITS
        is_service_name = is_service_name or is_account or kind in ("region", "ip")
        if kind == "word":
            if below_year and month_number(text) is not None:
                yield NameValue("mm", start, match.end())
            # Cloud services append random text to the time of writing.
            elif (
                after_time and _is_random_suffix(text) and (is_service_name or not text.isalpha())
            ) or (
                after_date
                and _is_hex_mix(text)
                and (numbers_after_date > 1 or _is_mixed_hash(text))
            ):
                yield NameValue("id", start, match.end())
            else:
                word_values = list(_values_of_word(name, start, text))
                after_time = after_time and bool(word_values)
                after_date = after_date and bool(word_values)
                yield from word_values
        elif kind == "brace":
            yield NameValue("open" if text == "{" else "close", start, match.end())
        elif kind == "lettered":
            yield NameValue("date" if "d" in text.lower() else "yyyy-mm", start, match.end())
        elif kind == "named":
            has_day = len(_NUMBERS.findall(text)) > 1
            yield NameValue("date" if has_day else "yyyy-mm", start, match.end())
        elif kind == "number" and len(text) >= _IDENTIFIER_DIGITS and text[0] != "0":
            is_count = _WRITER_WORD_BEFORE.search(name, 0, start) is not None
            yield NameValue("n" if is_count else "number", start, match.end())
        else:
            yield NameValue(_PLACEHOLDER_KINDS.get(kind, kind), start, match.end())
            numbers_after_date += after_date
            after_time = after_time or kind == "time"
            after_date = after_date or kind in ("date", "time")


def _values_of_word(name: str, start: int, word: str) -> Iterator[NameValue]:
    """The values in a run of letters and digits: the entire run, a date, or a number at its end."""
    end = start + len(word)
    number = _TRAILING_NUMBER.search(word)
    is_counted = number is not None and word[: number.start()].lower() in WRITER_WORDS
    if number is not None and is_counted:
        yield NameValue("n", start + number.start(), end)
        return
    if is_identifier(word) or (start > 0 and _is_short_hash(word)):
        yield NameValue("id", start, end)
        return
    if _VERSION.match(word):
        return
    for inner in _DATE_INSIDE.finditer(word):
        kind = inner.lastgroup or ""
        yield NameValue(
            _PLACEHOLDER_KINDS.get(kind, kind), start + inner.start(), start + inner.end()
        )
        return
    # The number may be a counter at the end of the name: table1.
    if number is not None and end == len(name):
        yield NameValue("n", start + number.start(), end)


@lru_cache(maxsize=65536)
def is_identifier(word: str) -> bool:
    """Whether letters and digits alternate as in generated or registered identifiers."""
    runs = _LETTER_OR_DIGIT_RUNS.findall(word)
    alternations = len(runs) - 1
    digits = sum(map(str.isdigit, word))
    if not digits:
        # Letters without digits are words or abbreviations, unless their case is random.
        return len(word) >= _MIN_RANDOM_LETTERS and _has_random_case(word)
    if _DATE_INSIDE.search(word):
        return False
    # A single number after letters does not make the letters an identifier.
    is_unpronounceable = alternations >= 2 and _is_unpronounceable(word)
    # feed2024 is a word with a year, face2face two words; a hash has more digits between letters.
    if _HEX.match(word) and (
        (alternations >= 2 and digits >= 2)
        or len(word) >= _MIN_RANDOM_LENGTH
        or (len(word) >= 8 and word[0].isdigit())
    ):
        return True
    if word.isupper() or word.isdigit():
        # Stations, parcels, articles: USW00094728, US1COAD0001, I7FD0.
        return (
            _REGISTRATION.match(word) is not None
            or (alternations >= 3 and digits >= 4)
            or (alternations >= 3 and max(map(len, _LETTERS.findall(word))) < 4)
            or (len(word) >= 12 and is_unpronounceable)
        )
    if word.islower():
        has_word = any(len(run) > 2 and _VOWEL.search(run) for run in runs)
        if alternations >= 3 and len(word) >= 4 and not has_word:
            return True
        return len(word) >= _MIN_RANDOM_LENGTH and (alternations >= 4 or is_unpronounceable)
    return len(word) >= 10 and (_has_random_case(word) or is_unpronounceable)


def _has_random_case(word: str) -> bool:
    """Whether the case of letters changes more often than in camel case."""
    return not _REGULAR_WORDS.match(word) and 5 * len(_CAMEL_WORDS.findall(word)) > 2 * len(word)


def _is_short_hash(word: str) -> bool:
    return len(word) >= 8 and _is_hex_mix(word)


def _is_hex_mix(word: str) -> bool:
    is_mixed = not word.isdigit() and not word.isalpha()
    return is_mixed and _SHORT_HEX.match(word) is not None


def _is_mixed_hash(word: str) -> bool:
    """Whether hexadecimal digits are more than a word with a number: 3f2a9, but not feed1."""
    return len(word) >= 8 or len(_LETTER_OR_DIGIT_RUNS.findall(word)) > 2


def _is_random_suffix(word: str) -> bool:
    return len(word) >= 6 and (not _REGULAR_WORDS.match(word) or _is_unpronounceable(word))


def _is_unpronounceable(word: str) -> bool:
    """Whether more than a third of the pairs of adjacent letters are unusual in words."""
    pairs = [
        (left.lower(), right.lower())
        for left, right in pairwise(word)
        if left.isalpha() and right.isalpha() and (left.isupper() or right.islower())
    ]
    uncommon = sum(right not in _COMMON_NEXT_LETTERS.get(left, "") for left, right in pairs)
    return 3 * uncommon > len(pairs)
