"""Finds the parts of a file's or folder's name that are values: dates, numbers, ids and codes."""

import re
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

# Placeholders that tell when something happened, in the form their values are kept in.
TIMES: Final = frozenset(
    {"yyyy", "mm", "dd", "hh", "mi", "ddd", "yyyy-mm", "quarter", "week", "date", "time"}
)
# Words in capitals that name a stage of processing or a file format rather than a value.
_NO_CODES: Final = re.compile(
    r"(?:RAW|STG|STAGE|PROD|DEV|TEST|UAT|TMP|TEMP|ARCH|OUT|OLD|NEW|DATA|FILE|INFO|LOGS?|ALL"
    r"|GOLD|CSV|TSV|JSON|XML|TXT|ORC|AVRO|GZ|ZIP|TODO)\Z"
)

_YEAR = r"(?:19|20)\d\d"
_MONTH = r"(?:0[1-9]|1[0-2])"
_DAY = r"(?:0[1-9]|[12]\d|3[01])"
_HOUR = r"(?:[01]\d|2[0-3])"
_SIXTY = r"[0-5]\d"
_MONTH_NAME = (
    r"(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_END = r"(?![0-9A-Za-z])"
# Also of several: Q1Q2, Q1-Q3.
_QUARTER = r"[QqHh][1-4](?:[-_]?[QqHh][1-4])?"
# What follows a number that only counts: 3rd, 2part.
_COUNTED = r"(?:st|nd|rd|th|parts?|files?|chunk|batch|shard|run|copy|fold|page|of)\b"

# Values that begin where a word begins.
_WHOLE: Final = {
    "uuid": r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
    "region": r"[aceimnsu][a-z]+-(?:gov-|iso-)?(?:north|south|east|west|central)(?:east|west)?-?\d"
    + _END,
    # What a cluster calls a process: checkout-7d9f8b6c5-x2k4p.
    "pod": r"(?<=-)(?=[a-z0-9]*[0-9][a-z]*[0-9])(?=[a-z0-9]*[a-z][0-9]*[a-z])"
    r"[a-z0-9]{8,10}-[a-z0-9]{5}" + _END,
    "hash": r"(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,}" + _END,
    # The names that query engines give to a statement: 20240105_010203_00042_x7k2p.
    "query": r"\d{8}_\d{6}_\d{5}_[a-z0-9]{5}" + _END,
    "clock": rf"{_HOUR}:{_SIXTY}(?::{_SIXTY})?" + _END,
    # What follows the kind of a device: GW-7F3A, node-4f2a.
    "tag": rf"(?<=[A-Za-z][-_])(?!{_YEAR})(?:(?=[0-9]*[A-F])(?=[A-F]*[0-9])[0-9A-F]{{4,8}}"
    rf"|(?<=-)(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{{4,8}})" + _END,
    "lettered": rf"[yY]{_YEAR}[-_]?[mM]\d\d?(?:[-_]?[dD]\d\d?)?" + _END,
    # Where on Earth: 051d50N, 12.5W.
    "coordinate": r"\d{1,3}(?:[dp.]\d{1,6})?[NSEW]" + _END,
    "fiscal": rf"(?:FY|fy|CY)[-_]?{_YEAR}" + _END,
    "quarter_first": rf"{_QUARTER}[-_ ]?{_YEAR}(?!\d)",
    "named": rf"(?:(?:\d\d?[-_ ]?)?{_MONTH_NAME}[-_ ,]{{0,2}}{_YEAR}"
    rf"|{_YEAR}[-_ ]?{_MONTH_NAME}(?:[-_ ]?\d\d?)?)" + _END,
    # 25m, 100k, 1h, sf10 and 2gram are sizes that people tell datasets apart by.
    "unit": r"(?<!=)(?:sf\d+|\d{1,4}(?:[kKmMbBgGhHdDwWyY]|min|mo|km|mb|gb|hz)"
    rf"|[1-9](?!{_COUNTED}|{_MONTH_NAME}|[a-fx]+{_END})[a-z]{{3,}})" + _END,
}
# Values that may follow letters: events20240105.
_DIGITS: Final = {
    "time": rf"{_YEAR}(?P<s1>[-_.]?){_MONTH}(?P=s1){_DAY}(?:T|[-_ .]{{1,2}})?{_HOUR}"
    rf"(?:[-_:.h]?{_SIXTY}(?:[-_:.m]?{_SIXTY}(?:[.,]?\d{{3,9}})?)?)?(?:Z|\+\d\d[:_-]?\d\d)?" + _END,
    "date": rf"(?:{_YEAR}(?:{_MONTH}{_DAY}|(?P<s2>[-_. ])\d\d?(?P=s2)\d\d?)"
    rf"|\d\d?(?P<s3>[-_.])\d\d?(?P=s3){_YEAR})(?!\d)",
    "week": rf"{_YEAR}[-_]?[Ww](?:0[1-9]|[1-4]\d|5[0-3])(?!\d)",
    # French and Spanish halves and quarters are 2024-S1 and 2024-T1.
    "quarter": rf"{_YEAR}[-_ ]?(?:{_QUARTER}(?!\d)|(?:[Tt][1-4]|[Ss][12])" + _END + ")",
    "month": rf"(?:{_YEAR}[-_.]?{_MONTH}|{_MONTH}[-_.]{_YEAR}(?![-_.]\d\d?(?!\d)))(?!\d)",
    "epoch": r"1\d{9}(?:\d{3}|\d{6})?(?!\d)",
    "year": rf"{_YEAR}(?!\d)",
}


def _either(patterns: dict[str, str]) -> str:
    return "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in patterns.items())


# Digits after a capital letter belong to an identifier: USC20240105 is a station.
_IN_WORDS: Final = rf"(?=[0-9])(?<![0-9A-Z])(?:{_either(_DIGITS)})"
_ANY_TOKEN: Final = (
    rf"(?<![0-9A-Za-z])(?:{_either(_WHOLE)})|{_IN_WORDS}"
    r"|(?<![0-9A-Za-z])(?P<word>(?:(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[0-9A-Za-z]{6,}"
    r"|[A-Za-z]{10,})(?![0-9A-Za-z]))"
    r"|(?P<n>\d+)|(?P<brace>[{}])"
)
_TOKEN: Final = re.compile(_ANY_TOKEN, re.ASCII)
# With types told with their namespace: AWS::EC2::Instance.
_QUALIFIED_TOKEN: Final = re.compile(
    rf"(?<![0-9A-Za-z])(?P<qualified>[A-Za-z][0-9A-Za-z]*(?:::[A-Za-z][0-9A-Za-z]*)+){_END}"
    rf"|{_ANY_TOKEN}",
    re.ASCII,
)
_ONE_YEAR: Final = re.compile(rf"{_YEAR}\Z")
_TOKEN_IN_WORD: Final = re.compile(rf"{_IN_WORDS}|(?P<n>\d+)", re.ASCII)
# A date between words in capitals, which are none of an identifier: T202401ADDRESS.
_DATE_IN_CAPITALS: Final = re.compile(
    rf"[A-Z]{{1,8}}(?P<date>{_YEAR}{_MONTH}(?P<day>{_DAY})?)[A-Z]{{3,}}\Z", re.ASCII
)
# Words, and the number of one of several: LoanStats3a.
_COUNTED_WORDS: Final = re.compile(r"[A-Z]?[a-z]{2,}(?:[A-Z][a-z]{2,})*\d{1,3}[a-z]?\Z", re.ASCII)
_SIZE: Final = re.compile(rf"(?<![0-9A-Za-z])(?:{_WHOLE['unit']})", re.ASCII)
_MAY_VARY: Final = re.compile(r"[0-9A-Z{}]|[a-z]{16}")
_SPARK_PART: Final = re.compile(
    r"part-\d{5}-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?:[-.]c\d{3})?\Z"
)
_SHORTEST_RANDOM: Final = 16
# Which letters commonly follow each letter in words; of a random word most pairs are others.
_PAIRS: Final = (
    "abcdgilmnprstuvwy baeiloruys cacehiklortuy dadeiorsuy eacdefgilmnpqrstvwxy faefiloru "
    "gaeghilnorsu haeiortuy iabcdefglmnoprstvz jaeou keinsy ladefiklmopstuvy maebimopsuy "
    "nacdefgiknostuvy oabcdefgiklmnoprstuvw paehiloprstuy qu racdegiklmnoprstuvy "
    "sacehiklmnopqstuwy tacehilorstuwy uabcdegilmnprst vaeio waehinors xaceipt yelmopst zaeioz"
)
_FOLLOWING: Final = {letters[0]: letters[1:] for letters in _PAIRS.split()}
_SHORTEST_MIXED: Final = 15
_WORDS_IN_CASE: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", re.ASCII)
_RUNS: Final = re.compile(r"[A-Z]+|[a-z]+|\d+", re.ASCII)
_CODE: Final = re.compile(r"(?<![0-9A-Za-z])[A-Z]{1,5}(?:[.-][A-Z]{1,2})?(?![0-9A-Za-z])", re.ASCII)
# The M of März is none.
_WHOLE_CODE: Final = re.compile(r"(?<![^\W_])[A-Z]{1,5}(?:[.-][A-Z]{1,2})?(?![^\W_])")
_LOWER: Final = re.compile(r"[a-z]{2}")
_WORDS: Final = re.compile(r"[^\W\d_]+")
_NUMBERS: Final = re.compile(r"\d+", re.ASCII)
_SHOWN_AS: Final = {
    "month": "yyyy-mm", "year": "yyyy", "fiscal": "yyyy", "clock": "time", "epoch": "time",
    "quarter_first": "quarter", "query": "id", "word": "id", "tag": "id", "pod": "id",
    "qualified": "code", "coordinate": "n",
}  # fmt: skip
_MONTH_NAMES: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov",
                       "dec")  # fmt: skip


class _Span(NamedTuple):
    kind: str
    start: int
    end: int

    def begins(self) -> int:
        return self.start


class Template(NamedTuple):
    """A name with placeholders such as `{date}` for its variable parts, and what stood there."""

    text: str
    kinds: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    @classmethod
    def of_one(cls, kind: str, value: str) -> "Template":
        """A name that is a value as a whole."""
        return cls(f"{{{kind}}}", (kind,), (value,))


@lru_cache(maxsize=65536)
def template_of(name: str) -> Template:
    """The name of a folder, or of a file without its ending, as a template."""
    if _SPARK_PART.match(name):
        return Template.of_one("part", name)
    if not _MAY_VARY.search(name):
        return Template(name)
    spans = _spans(name)
    if _CODE.search(name):
        spans = sorted([*spans, *_codes(name, spans)], key=_Span.begins)
    if not spans:
        return Template(name)
    pieces: list[str] = []
    end = 0
    for kind, start, stop in spans:
        pieces += (name[end:start], "{", kind, "}")
        end = stop
    pieces.append(name[end:])
    return Template(
        "".join(pieces),
        tuple([span[0] for span in spans]),
        tuple([name[start:stop] for _, start, stop in spans]),
    )


def month_number(text: str) -> str | None:
    """`01` for the name of January, written out or in three letters."""
    lowered = text.lower()
    is_name = re.fullmatch(_MONTH_NAME, lowered)
    return f"{_MONTH_NAMES.index(lowered[:3]) + 1:02d}" if is_name else None


def sizes_of(name: str) -> tuple[str, ...]:
    """The sizes in a name, such as `25m`, `1h` and `sf10`, which tell datasets apart."""
    return tuple(_SIZE.findall(name))


@lru_cache(maxsize=65536)
def sortable(kind: str, value: str) -> str:
    """A value of time in a form that sorts by age: 2024-01-05 for 20240105 and 05.01.2024."""
    numbers = _NUMBERS.findall(value)
    name = re.search(_MONTH_NAME, value)
    if name is not None:
        year = next(number for number in numbers if len(number) == 4)
        days = [number.zfill(2) for number in numbers if number != year]
        return "-".join([year, month_number(name.group()) or "", *days])
    if len(numbers) > 1 and len(numbers[-1]) == 4 and len(numbers[0]) < 4:
        first, second = (numbers[0], numbers[1]) if len(numbers) == 3 else ("", numbers[0])
        # 13.01.2024 can only be a day before a month; the other way round is more usual.
        month, day = (second, first) if not first or int(first) > 12 else (first, second)
        numbers = [numbers[-1], month, *([day] if day else [])]
    digits = "".join(number.zfill(2) for number in numbers)
    if kind == "date":
        return f"{digits[:4]}-{digits[4:6]}-{digits[6:8]}"
    return f"{digits[:4]}-{digits[4:6]}" if kind == "yyyy-mm" else digits


def _spans(name: str) -> list[_Span]:
    """The variable parts of a name, codes aside."""
    spans: list[_Span] = []
    after_time = -1
    token = _QUALIFIED_TOKEN if "::" in name else _TOKEN
    for match in token.finditer(name):
        kind, start = match.lastgroup, match.start()
        if kind == "n":
            spans.append(_Span("n", start, match.end()))
        elif kind == "word" and (dated := _DATE_IN_CAPITALS.match(match.group())):
            time = "date" if dated["day"] else "yyyy-mm"
            spans.append(_Span(time, start + dated.start("date"), start + dated.end("date")))
        # After the time of writing, services put something random.
        elif kind == "word" and start != after_time and not _is_identifier(match.group()):
            for inner in _TOKEN_IN_WORD.finditer(match.group()):
                # In words, a year may follow a capital: FARS2016NationalCSV.
                is_year = inner.lastgroup == "n" and _ONE_YEAR.match(inner.group())
                found = "yyyy" if is_year else _placeholder(inner.lastgroup, inner.group())
                spans.append(_Span(found, start + inner.start(), start + inner.end()))
        elif kind != "unit":
            spans.append(_Span(_placeholder(kind, match.group()), start, match.end()))
            if kind == "time":
                after_time = match.end() + 1
    return spans


def _placeholder(kind: str | None, text: str) -> str:
    match kind:
        case "lettered":
            return "date" if "d" in text.lower() else "yyyy-mm"
        case "named":
            return "date" if len(_NUMBERS.findall(text)) > 1 else "yyyy-mm"
        case "brace":
            return "open" if text == "{" else "close"
        case _:
            return _SHOWN_AS.get(kind or "n", kind or "n")


def _is_identifier(word: str) -> bool:
    """Whether letters and digits are mixed as only a machine, or a register, mixes them."""
    runs = _RUNS.findall(word)
    digits = sum(map(str.isdigit, word))
    if _COUNTED_WORDS.match(word):
        return False
    if 2 * len(runs) >= len(word) >= 10:
        return True
    if not digits:
        return word.islower() and _is_unspeakable(word)
    if word.isupper():
        return len(word) >= 8 or digits >= 3
    if word.islower():
        return (len(word) >= 8 and len(runs) >= 5) or _is_unspeakable(word)
    if len(word) >= _SHORTEST_MIXED and 3 * len(_WORDS_IN_CASE.findall(word)) > len(word):
        return True
    return len(word) >= 10 and max(len(run) for run in runs if run.islower()) <= 3


def _is_unspeakable(word: str) -> bool:
    """Whether no language has such a word, however many it is made of."""
    if len(word) < _SHORTEST_RANDOM:
        return False
    pairs = [(left, right) for left, right in pairwise(word) if left.isalpha() and right.isalpha()]
    odd = sum(right not in _FOLLOWING.get(left, "") for left, right in pairs)
    return 3 * odd > len(pairs)


def _codes(name: str, spans: list[_Span]) -> list[_Span]:
    """Short words in capitals, where they are the only word or stand among other ones."""
    free = name
    for span in reversed(spans):
        free = free[: span.start] + "0" * (span.end - span.start) + free[span.end :]
    codes = [
        _Span("code", match.start(), match.end())
        for match in _WHOLE_CODE.finditer(free)
        if not _NO_CODES.match(match.group())
    ]
    words = _WORDS.findall(free)
    is_only_word = (
        len(codes) == 1
        and _CODE.fullmatch("".join(words[:1]))
        and (len(words) == 1 or (len(words) == 2 and codes[0].end - codes[0].start > len(words[0])))
    )
    return codes if is_only_word or _LOWER.search(free) else []
