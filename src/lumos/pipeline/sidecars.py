"""Files that accompany data: checksums, manifests, descriptions, unfinished copies."""

import re
from collections.abc import Collection
from typing import Final

from lumos.pipeline.values import file_template

_MARKS: Final = {
    "a checksum": "md5 sha1 sha256 sha512 crc crc32 sum sig asc",
    "a marker or manifest of a writer": "manifest ctl done ok success lock marker trigger",
    "an unfinished or put-aside copy": "tmp temp bak swp orig part partial filepart crdownload "
    "inprogress pending incomplete",
    "a description": "schema ddl md rst html htm pdf",
    "a program or its settings": "py ipynb sql sh bat ps1 js css r jl java jar class toml ini cfg "
    "conf properties yaml yml",
}
_BY_ENDING: Final = {ending: what for what, some in _MARKS.items() for ending in some.split()}
_DESCRIBING: Final = re.compile(
    r"(?:metadata|.*\.metadata|(?:.*[-_.])?(?:manifest|schema|data[-_]schema)"
    r"|datapackage|dataset[-_](?:infos?|metadata|description)|package(?:-lock)?"
    r"|config|configuration|settings|croissant|checksums?|model|.*[-_.]?entity[-_]?metadata"
    r"|.+\.(?:mapping|settings|analyzer|template|alias|aliases|policy|indexes)"
    r"|(?:dataset|table|column)[-_](?:stats|statistics|profile|dictionary)|data[-_]dictionary"
    r"|.+\.cdm)(?:[-_.]?v?\d+)?"
    r"\.(?:json|avsc|xml)(?:\.gz)?\Z",
    re.IGNORECASE,
)
# What services tell of an export: orders_manifest, manifest-files.json, export_info_x.json.
_OF_EXPORT: Final = re.compile(
    r"(?:.*[-_.])?manifest(?:\.txt)?\Z|manifest[-_.].*\.(?:json|xml|txt)(?:\.gz)?\Z"
    r"|(?:export|unload|snapshot|backup|dump)[-_](?:[a-z]+[-_])*"
    r"(?:info|metadata|summary|status|manifest)(?:[-_.].*)?\.(?:json|xml)(?:\.gz)?\Z",
    re.IGNORECASE,
)
# What a job leaves behind to tell how it went: shredding_complete.json, run_results.json.
_OF_JOB: Final = re.compile(
    r"(?:run[-_]results|semantic[-_]manifest|partial[-_]parse|graph[-_]summary"
    r"|(?:[a-z]+ing|job|run|load|batch|export|import|transfer|sync|copy|backup|etl|ingest|upload)"
    r"[-_](?:completed?|done|finished|success|succeeded)"
    r"|(?:job|run|load|export|import|sync|backup|etl|ingest)[-_](?:status|state|summary|info))"
    r"(?:[-_.]\d+)?\.json(?:\.gz)?\Z",
    re.IGNORECASE,
)
_OF_NOTHING_BUT_VALUES: Final = re.compile(r"(?:\{[a-z-]+\}|[-_.])*manifest\.(?:csv|tsv|txt)\Z")
_READ_ME: Final = re.compile(
    r"(?:.*[-_.])?(?:(?:readme|read[-_]me|licen[cs]e|copyright|checksums?|md5sums?|sha\d+sums?"
    r"|disclaimer|terms[-_]of[-_]use)(?:\.(?:txt|md|rst|html|json|csv))?"
    # As tables these are what they are called.
    r"|(?:notice|changelog|changes|citation|authors|contributing|requirements|version)"
    r"(?:\.(?:txt|md|rst|html))?)\Z",
    re.IGNORECASE,
)
_OF_DATAFLOW: Final = re.compile(r"model\.json@snapshot=", re.IGNORECASE)
_OF_ICEBERG: Final = re.compile(r"(?:.*/)?metadata\Z")
# What describes the folder that it is called after: orders/orders_metadata.json.
_OF_FOLDER: Final = re.compile(r"(.+)[-_ ]metadata\.json(?:\.gz)?\Z", re.IGNORECASE)
# What dbt writes beside its manifest; elsewhere such names are those of tables.
_OF_DBT: Final = frozenset({"catalog.json", "sources.json", "index.json"})
_BESIDE_DBT: Final = frozenset({"manifest.json", "run_results.json"})


def why_sidecar(name: str, format: str) -> str | None:
    """What a file is, in words, if by its name and format it only accompanies data."""
    # Streams of Spark keep their id in a file of that name.
    if name == "metadata" and format == "json":
        return "a marker or manifest of a writer"
    ending = name.rpartition(".")[2].lower() if "." in name else ""
    if ending in _BY_ENDING:
        return _BY_ENDING[ending]
    if name.endswith("~"):
        return "an unfinished or put-aside copy"
    if _DESCRIBING.match(name) or _READ_ME.match(name) or _OF_DATAFLOW.match(name):
        return "a description"
    if (
        _OF_EXPORT.match(name)
        or _OF_JOB.match(name)
        or ("manifest" in name and _OF_NOTHING_BUT_VALUES.match(file_template(name).text))
    ):
        return "a marker or manifest of a writer"
    return None


def is_known_of_tables(name: str, folder: str, names: Collection[str]) -> bool:
    """Whether a file, by the folder and what is beside it, is what a tool knows of its tables."""
    if name in _OF_DBT and not _BESIDE_DBT.isdisjoint(names):
        return True
    # What MySQL Shell writes beside the rows of a dump.
    if "@.json" in names and name.endswith(".json"):
        return True
    described = _OF_FOLDER.match(name)
    if described is not None and described[1].lower() in folder.rpartition("/")[2].lower():
        return True
    return bool(_OF_ICEBERG.match(folder)) and any(
        other.endswith(".metadata.json") for other in names
    )
