"""Checks what linters do not: import cycles, duplicate class names, retired words, adapters.

Every import counts, also those inside functions and under TYPE_CHECKING: a cycle that is only
hidden still makes modules that cannot be understood one at a time.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
# Words with a plainer name in this field.
RETIRED = re.compile(
    r"(^|_)(told|tell|telling|teller|herald|scribe|courier|desk|desks|unsaid|said|reckoned|whoever"
    r"|nobody|carried|carry|helds|tidy|tidies|homes)(_|$)",
    re.IGNORECASE,
)
# Names that do not say what a value is: participles, adverbs, prepositions and superlatives.
VAGUE = re.compile(
    r"_?(there|over|held|shown|how|most|most_bytes|longest|deepest|gone|spelled|stated|placed|liked"
    r"|returned)",
    re.IGNORECASE,
)
ALLOWED = {
    "lumos.profiles.tasks.tell": "a method of Python's file protocol",
    "lumos.store.migrations.versions.0006_lineage._count_what_was_told": "released migrations stay",
    "lumos.lineage.reports.still_told_by": "a name in JSON reports",
    "lumos.discovery.reports.held": "a name in JSON reports",
    "lumos.discovery.reports.gone": "a name in JSON reports",
    "lumos.lineage.reports.held": "a name in JSON reports",
    "lumos.lineage.reports.gone": "a name in JSON reports",
    "lumos.impact.reports.gone": "a name in JSON reports",
    "lumos.snapshots.reports.held": "a name in JSON reports",
    "lumos.catalogs.interface.held": "a field that adapters set",
    "lumos.catalogs.packed_properties.shown": "a parameter that adapters know",
    "lumos.catalogs.openmetadata.entities.shown": "a key of stored properties",
    "lumos.config.platforms.longest": "a key of the configuration",
    "lumos.model.dataset.longest": "the length of the longest value, in snapshots",
    "lumos.profiles.measurements.longest": "the length of the longest value, as stored",
}
# Classes and type aliases that several modules have, and why.
SHARED_NAMES = {
    "Facets": "aliases inside two readers",
    "Forge": "a class, and its names in options",
    "Level": "of findings and of versions",
    "Location": "of a value in a configuration file, and of data",
    "Names": "of sources in the configuration, and for display",
    "Origin": "of a setting, and of a column",
    "Parts": "aliases inside the SQL analysis",
    "Progress": "of the SQL analysis, and of commands",
    "ReportedAnnotations": "the same type on both sides of an import contract",
    "Schemas": "of a database in the configuration, and the feature",
    "TableKind": "the same type on both sides of an import contract",
    "User": "of a connection in the configuration, and of a catalog",
}
CATALOGS = "lumos.catalogs"
# What adapters of catalogs may import of the engine.
ADAPTER_IMPORTS = frozenset(
    f"{CATALOGS}.{name}"
    for name in (
        "adapter", "interface", "three_way_merge", "packed_properties", "escaping",
        "http", "rest", "chunks", "search", "cleanup", "nearest_kinds",
    )
)  # fmt: skip
# Modules that may name a catalog, and why.
NAMES_A_CATALOG = {
    "lumos.config.check": "the extra that a configured catalog needs",
    "lumos.config.load": "variables of the catalogs' own tools",
    "lumos.config.settings": "earlier places of configuration sections",
}


def modules() -> dict[str, ast.Module]:
    """All modules of the package by name."""
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        name = ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        found[name] = ast.parse(file.read_text(encoding="utf-8"))
    return found


def imports(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """The modules that each module imports, wherever the import stands."""
    edges: dict[str, set[str]] = defaultdict(set)
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in trees:
                for alias in node.names:
                    module = f"{node.module}.{alias.name}"
                    edges[name].add(module if module in trees else node.module)
            elif isinstance(node, ast.Import):
                edges[name] |= {alias.name for alias in node.names if alias.name in trees}
        edges[name].discard(name)
    return edges


def declared_names(tree: ast.Module) -> Iterator[str]:
    """The names of classes, functions, parameters, fields and type aliases of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        if isinstance(node, ast.ClassDef | ast.Module):
            for each in node.body:
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                    yield each.target.id


def type_aliases(tree: ast.Module) -> Iterator[str]:
    """The public type aliases of a module."""
    for each in tree.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            is_alias = ast.unparse(each.annotation) == "TypeAlias"
            if is_alias and each.target.id[0] != "_":
                yield each.target.id


def problems() -> list[str]:
    """What is wrong, one line each."""
    trees = modules()
    found = []
    try:
        TopologicalSorter(imports(trees)).prepare()
    except CycleError as cycle:
        found.append(f"import cycle: {' -> '.join(cycle.args[1])}")
    classes: dict[str, list[str]] = defaultdict(list)
    for module, tree in trees.items():
        if RETIRED.search(module.rpartition(".")[2]):
            found.append(f"{module}: retired word in the module's name")
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name[0] != "_":
                classes[node.name].append(module)
        for alias in type_aliases(tree):
            classes[alias].append(module)
        for name in sorted(set(declared_names(tree))):
            words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
            is_vague = VAGUE.fullmatch(name)
            if (RETIRED.search(words) or is_vague) and f"{module}.{name}" not in ALLOWED:
                found.append(f"{module}.{name}: retired word")
    for name, where in sorted(classes.items()):
        if len(where) > 1 and name not in SHARED_NAMES:
            found.append(f"class {name} is defined in {', '.join(where)}")
    found += adapter_problems(trees)
    found += [
        f"class {name} is allowed several times, but is defined once"
        for name in SHARED_NAMES
        if len(classes[name]) < 2
    ]
    return found


def adapter_problems(trees: dict[str, ast.Module]) -> list[str]:
    """Adapters that import each other or the engine, and other modules that name a catalog."""
    adapters = {
        module.removeprefix(f"{CATALOGS}.").partition(".")[0]
        for module in trees
        if module.startswith(f"{CATALOGS}.") and module.endswith(".platform")
    }
    found = []
    for module, imported in imports(trees).items():
        adapter = module.removeprefix(f"{CATALOGS}.").partition(".")[0]
        inside = module.startswith(f"{CATALOGS}.") and adapter in adapters
        for name in sorted(imported):
            if not name.startswith(f"{CATALOGS}."):
                continue
            other = name.removeprefix(f"{CATALOGS}.").partition(".")[0]
            is_allowed = (other == adapter or name in ADAPTER_IMPORTS) if inside else True
            if not is_allowed or (not inside and other in adapters):
                found.append(f"{module} imports {name}")
        if inside or module in NAMES_A_CATALOG:
            continue
        kinds = {*adapters, *(f"{name}-file" for name in adapters)}
        found += [
            f"{module}:{node.lineno}: names the catalog '{node.value}'"
            for node in ast.walk(trees[module])
            if isinstance(node, ast.Constant) and node.value in kinds
        ]
    return found


if __name__ == "__main__":
    for line in (wrong := problems()):
        print(line)  # noqa: T201
    sys.exit(bool(wrong))
