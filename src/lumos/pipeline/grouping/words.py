"""What words in names of files and folders usually mean."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from lumos.pipeline.grouping.gazetteer import KIND_OF, LONGEST_NAME, words_in

_WORD: Final = re.compile(r"[^\W\d_]+")
_TOKEN: Final = re.compile(r"[^\W_]+")


# Names that writers, not people, give: of parts, of runs, of copies.
NOISE: Final = words_in(
    "part parts data file files chunk chunks shard shards output out result results export exports "
    "dump batch run runs load split bucket piece slice partition of r m c s tid attempt task job "
    "delta base copy kopie upload download extract snapshot snapshots flumedata v version ver rev "
    "revision iter epoch fold page seq latest final full tbl bak backup orig release draft wip "
    "revised updated corrected preliminary provisional"
)
VERSIONS: Final = words_in("v version ver rev revision")
# What folders are called that only hold one run, batch or part of everything below them.
FOLDER_NOISE: Final = words_in(
    "run runs batch part parts partition shard bucket load loads job task attempt base delta "
    "export extract dump snapshot v version release iter epoch fold seq chunk split dt date day "
    "month year week hour y m d h alpha beta rc quarter end close closing scheduled manual "
    "backfill triggered"
)
# Names that leave a file nameless even where no number stands beside them.
NAMELESS: Final = words_in("part data file output out result results export dump chunk load")
# Stages, environments and cadences: equal tables below them are different datasets.
STAGES: Final = words_in(
    "raw landing staging stage stg bronze silver gold clean cleaned cleansed curated processed "
    "refined trusted published enriched archive archived archives backup backups prod production "
    "dev development test testing qa uat sandbox tmp temp input output in out source target "
    "incoming outgoing inbound outbound rejected error errors failed quarantine good bad valid "
    "invalid current historical history old new latest before after full incremental daily weekly "
    "monthly hourly yearly annual small medium large tiny mini sample samples intraday streaming "
    "realtime csv json parquet avro orc tsv xml text delta iceberg hudi original public private "
    "internal external active inactive actual forecast plan planned budget estimated observed "
    "live online offline"
)
# Hive keys whose values name tables rather than parts of one.
TABLE_KEYS: Final = words_in(
    "t table tablename table_name tbl entity entity_type type theme topic collection dataset "
    "stream object model schema event event_type event_name kind record_type feed"
)
# Folders that hold tables by their names.
OF_TABLES: Final = words_in(
    "topics topic tables table streams stream db database databases schema schemas warehouse dwh "
    "dump dumps cdc entities collections models marts lookup lookups ref reference dims facts"
)
# Columns that tables of any codes have.
OF_LOOKUPS: Final = words_in(
    "id code key name label description desc title abbreviation short_name long_name display_name "
    "sort_order active"
)
# Folders that hold one thing of a kind in each file or folder.
OF_ENTITIES: Final = words_in(
    "stations cities countries regions states provinces counties districts zones areas locations "
    "places stores shops sites branches warehouses devices sensors meters machines vehicles cars "
    "trucks ships vessels users customers clients tenants accounts orgs organizations "
    "organisations patients players teams clubs stocks symbols tickers coins pairs companies "
    "servers hosts nodes clusters rooms buildings plants farms airports airlines routes channels "
    "campaigns projects persons people students schools species genes subjects experiments "
    "languages locales categories brands suppliers vendors merchants partners agents employees "
    "games seasons leagues tournaments wells turbines inverters buoys gauges cells patients "
    "participants portfolios funds currencies exchanges markets instruments assets lots venues "
    "garages junctions intersections detectors counters tanks reservoirs dams furnaces racks reps "
    "replicates trials takes squads crews"
)
# Those whose singular may mean something else in a file's name, such as train or bank.
_ALSO_OF_ENTITIES: Final = words_in(
    "parks museums hotels restaurants hospitals clinics pharmacies banks stadiums circuits "
    "theaters theatres libraries universities colleges laboratories labs factories depots "
    "terminals ports harbors harbours mines rigs reactors substations feeders pumps motors "
    "engines lifts elevators batteries chargers panels cameras drones robots satellites "
    "telescopes beacons gateways routers probes loggers boards trains buses bikes scooters "
    "flights aircraft boats vans lakes rivers basins catchments islands mountains glaciers "
    "volcanoes forests fields plots parcels houses homes apartments households villages towns "
    "municipalities boroughs neighborhoods neighbourhoods precincts wards prefectures cantons "
    "continents territories drivers riders pilots athletes doctors nurses authors artists "
    "animals birds chromosomes genomes tissues cohorts wikis subreddits forums repos "
    "repositories tokens chains blockchains wallets commodities indices franchises dealers "
    "resellers distributors publishers advertisers etfs bonds futures"
)
_ENTITY_ENDINGS: Final = (("ies", "y"), ("ches", "ch"), ("ships", "ship"), ("s", ""))
DAYTIMES: Final = words_in("am pm early morning midday noon afternoon late evening night day")
_TABLE_WORDS: Final = words_in(
    "dim fact fct stg vw tbl lookup map mapping list info summary detail details log metadata "
    "history catalog index master header lines items stats report"
)

_TOTALS: Final = words_in(
    "all total totals overall combined merged national nationwide worldwide average "
    "everything index key keys legend template example default"
)

KINDS: Final = frozenset(KIND_OF.values())
_IN_WORDS: Final = {
    "place": "places", "person": "people", "currency": "currencies", "month": "months",
    "split": "parts of a training set", "weekday": "days of the week", "code": "codes",
    "region": "regions", "n": "numbers", "part": "parts", "id": "ids", "uuid": "ids",
    "hash": "ids", "name": "names", "season": "seasons",
}  # fmt: skip


def in_words(kind: str) -> str:
    """What values of a kind are; those without a word of their own tell a time."""
    return _IN_WORDS.get(kind, "dates")


def words_of(text: str) -> tuple[str, ...]:
    """The words of a name in lower case."""
    return tuple(word.lower() for word in _WORD.findall(text))


def tokens_of(text: str) -> tuple[str, ...]:
    """The words of a name in lower case, with the digits that belong to them: `60min`."""
    return tuple(token.lower() for token in _TOKEN.findall(text))


def is_noise(token: str) -> bool:
    """Whether a token is a mark of a writer, counted or not: `part`, `part1`, `v2`."""
    word = token.rstrip("0123456789")
    # c000 is the mark of a writer, c4 and s3 are names.
    is_mark = len(word) > 1 or word == token or word in VERSIONS or len(token) > 3
    return word in NOISE and is_mark


def is_nameless(token: str) -> bool:
    """Whether a token, counted or not, says nothing of what a file holds."""
    return token.rstrip("0123456789") in NAMELESS


def is_value(token: str) -> bool:
    """Whether a token stands for a value, such as a place or a month."""
    return token in KIND_OF


def known_words(text: str) -> Iterator[tuple[str, int, int]]:
    """Kind, start and end of words that stand for a value, such as a place or a month."""
    found = list(_WORD.finditer(text))
    index = 0
    while index < len(found):
        for length in range(min(LONGEST_NAME, len(found) - index), 0, -1):
            some = found[index : index + length]
            kind = KIND_OF.get(" ".join(match.group().lower() for match in some))
            if kind is not None and _are_neighbours(some):
                yield kind, some[0].start(), some[-1].end()
                index += length
                break
        else:
            index += 1


def _are_neighbours(words: list[re.Match[str]]) -> bool:
    return all(left.end() + 1 == right.start() for left, right in pairwise(words))


def looks_like_table(name: str) -> bool:
    """Whether a name is one that people give to tables: a plural, or a word such as `log`."""
    words = words_of(name)
    if not words:
        return False
    if not _TABLE_WORDS.isdisjoint(words):
        return True
    last = words[-1]
    return len(last) > 3 and last.endswith("s") and not last.endswith(("ss", "us", "is"))


def is_total(name: str) -> bool:
    """Whether a name stands for all of several things rather than one of them."""
    return not _TOTALS.isdisjoint(words_of(name))


def holds_entities(folder: str) -> bool:
    """Whether a folder's name says that each name in it is one thing of a kind."""
    words = words_of(folder)
    if not words or words[0] in ("by", "per"):
        return bool(words)
    return words[-1] in OF_ENTITIES or words[-1] in _ALSO_OF_ENTITIES


def names_entity(words: tuple[str, ...]) -> bool:
    """Whether one of the words is a kind of thing, such as `sensor` in sensor_kitchen."""
    return any(
        word.removesuffix(one) + plural in OF_ENTITIES
        for word in words
        for plural, one in _ENTITY_ENDINGS
        if word.endswith(one)
    )
