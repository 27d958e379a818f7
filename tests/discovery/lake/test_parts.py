"""Which parts of a manifest may hold files of a place."""

from lumos.discovery.lake.parts import ManifestPart, PartIndex
from lumos.storage import KeyRange


def key_range(after: str, until: str) -> KeyRange:
    path = "s3://lake/raw/"
    return KeyRange("s3://lake/raw", after and path + after, until and path + until)


def part(
    name: str, *places: KeyRange, first: str = "s3://lake/raw/a", last: str = "s3://lake/raw/z"
) -> ManifestPart:
    return ManifestPart(name, places, first, last, 10)


def test_ranges_of_one_folder_are_distinguished_even_where_they_alternate() -> None:
    a, b, c, d = (key_range(*pair) for pair in (("", "g"), ("g", "m"), ("m", "s"), ("s", "")))
    index = PartIndex([part("odd", a, c), part("even", b, d)])
    assert [found.path for found in index.find([a, c])] == ["odd"]
    assert [found.path for found in index.find([d])] == ["even"]
    assert [found.path for found in index.find([key_range("f", "h")])] == ["odd", "even"]
    assert [found.path for found in index.find([KeyRange("s3://lake/raw")])] == ["odd", "even"]


def test_a_folder_finds_what_lies_above_and_below_it() -> None:
    index = PartIndex([part("above", KeyRange("/lake")), part("top", KeyRange("/lake", deep=False)),
                       part("below", KeyRange("/lake/a/b")), part("beside", KeyRange("/lake/ab"))])  # fmt: skip
    assert [found.path for found in index.find([KeyRange("/lake/a")])] == ["above", "below"]
