"""Finds a file's format and reads it: by its magic bytes if it has some, else by name and text."""

from typing import Final, TypeAlias

from lumos.formats.compression import Compressed, Compression, Plain, compression_of
from lumos.formats.interface import (
    BinaryFormat,
    Content,
    FileFacts,
    Format,
    RangedBytes,
    Remark,
    Sample,
    TextFormat,
    UnreadableFile,
    check_width,
)
from lumos.formats.naming import BINARY, CSV, JSON, Promise, promise_of
from lumos.formats.strangers import stranger
from lumos.formats.text import first_character, is_text
from lumos.formats.window import Window

Found: TypeAlias = tuple[Format, FileFacts]

_HEAD: Final = 64 * 1024
# Enough for magic bytes.
_GLANCE: Final = 16


def identify(name: str, head: bytes) -> Format | None:
    """The format of a file with that name and beginning, or nothing if it is no data file."""
    promise = promise_of(name)
    marked = _marked(head)
    if marked is not None or promise.format is not None or promise.is_other:
        return marked or promise.format
    return _recognised(Sample(head, whole=False, total=None), promise)


def read_file(name: str, file: RangedBytes, *, column_stats: bool = False) -> Found | None:
    """A data file's format and facts, nothing for other files; raises UnreadableFile.

    A file that is what its name says costs one ranged read, unless its footer is very long.
    """
    found = _read(name, file, column_stats=column_stats)
    if found is not None:
        check_width(len(found[1].known.leaves))
    return found


def _read(name: str, file: RangedBytes, *, column_stats: bool) -> Found | None:
    promise = promise_of(name)
    promised = promise.format
    if file.size == 0:
        if promised is None:
            return None
        raise UnreadableFile("empty_file", "The file has no bytes.")
    window = Window(file)
    if isinstance(promised, BinaryFormat) and promised.claims(window):
        facts = promised.read(window, column_stats=column_stats)
        return promised, _remarked(facts, promise, promised, None)
    head = window.head(_GLANCE if promise.is_other else _HEAD)
    marked = _marked(head)
    if marked is not None and marked.claims(window):
        facts = marked.read(window, column_stats=column_stats)
        return marked, _remarked(facts, promise, marked, None)
    if promise.is_other:
        return None
    found = _read_text(promise, window, compression_of(head))
    if found is not None:
        return found
    # What is left may be a binary file without its end; to read it tells what is wrong.
    cut_off = promised if isinstance(promised, BinaryFormat) else marked
    if cut_off is None or (cut_off is not promised and is_text(head)):
        return None
    return cut_off, cut_off.read(window)


def _marked(head: bytes) -> BinaryFormat | None:
    return next((format for format in BINARY if format.claims_head(head)), None)


def _read_text(
    promise: Promise, file: RangedBytes, compression: Compression | None
) -> Found | None:
    content: Content = Plain(file) if compression is None else Compressed(file, compression)
    sample = content.sample(_HEAD)
    promised = promise.format
    try:
        if compression is not None:
            _refuse_second_layer(sample, compression)
        elif promise.compression_suffix:
            _refuse_unsupported(sample, promise)
        _refuse_stranger(sample, promise)
    except UnreadableFile:
        # Without a name that says so, it need not be data at all.
        if promised is None:
            return None
        raise
    if isinstance(promised, TextFormat):
        format: TextFormat | None = _really(promised, sample)
    else:
        format = _recognised(sample, promise)
    if format is None:
        return None
    facts = format.read(content, suffix=promise.suffix)
    return format, _remarked(facts, promise, format, compression)


def _refuse_second_layer(sample: Sample, compression: Compression) -> None:
    if compression_of(sample.data) is not None:
        raise UnreadableFile("nested_compression", "The file is compressed twice.")
    inside = _marked(sample.data)
    if inside is not None and not is_text(sample.data):
        raise UnreadableFile(
            "compressed_container",
            f"It is {inside.title} inside {compression.name}, which no engine reads: "
            f"{inside.title} compresses itself.",
        )


def _refuse_unsupported(sample: Sample, promise: Promise) -> None:
    if promise.compression is None and not is_text(sample.data):
        raise UnreadableFile(
            "unsupported_compression",
            f"Its compression {promise.compression_suffix} is not read; gzip, zstd and bzip2 are.",
        )


def _refuse_stranger(sample: Sample, promise: Promise) -> None:
    found = stranger(sample.data)
    if found is not None:
        raise UnreadableFile("mislabelled", f"It is named {promise.ending} but is {found}.")


def _really(promised: TextFormat, sample: Sample) -> TextFormat:
    """The text's format: the promised one unless the text is clearly of another."""
    looks_like_json = first_character(sample) in ("{", "[")
    other = JSON if looks_like_json else CSV
    return other if other is not promised and other.recognises(sample) else promised


def _recognised(sample: Sample, promise: Promise) -> TextFormat | None:
    """The format of text that no ending speaks for."""
    if not is_text(sample.data):
        return None
    for format in (JSON, CSV):
        try:
            if format.recognises(sample):
                return format
        except UnreadableFile:
            # What cannot be read as this format may be another, or no data at all.
            continue
    # Of a part of a table, however short it is, little evidence is enough.
    return CSV if promise.is_part and CSV.divides(sample) else None


def _remarked(
    facts: FileFacts, promise: Promise, format: Format, compression: Compression | None
) -> FileFacts:
    """The facts, with a remark for each way in which the name is wrong."""
    promised = promise.compression_suffix != ""
    as_named = compression is promise.compression and (compression is not None) == promised
    if format is promise.format and as_named:
        return facts
    remarks = list(facts.remarks)
    if format is not promise.format and (promise.format is not None or promise.is_other):
        remarks.append(_mislabelled(promise.suffix, format.title))
    if compression is None and promise.compression_suffix:
        remarks.append(_mislabelled(promise.compression_suffix, "not compressed"))
    elif compression is not None and not as_named:
        named = promise.compression_suffix or (promise.suffix if promise.format else "")
        if named:
            remarks.append(_mislabelled(named, f"compressed with {compression.name}"))
    return facts._replace(remarks=tuple(remarks))


def _mislabelled(suffix: str, found: str) -> Remark:
    return Remark("mislabelled", f"It is named {suffix} but is {found}.")
