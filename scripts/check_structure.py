"""Checks what linters do not: import cycles, duplicate class names, retired words, adapters.

Every import counts, also those inside functions and under TYPE_CHECKING: a cycle that is only
hidden still makes modules that cannot be understood one at a time.
"""

import ast
import re
import sys
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
# Words with a plainer name in this field.
RETIRED = re.compile(
    r"(^|_)(told|tell|telling|teller|herald|scribe|courier|desk|desks|unsaid|reckoned|whoever"
    r"|nobody)(_|$)",
    re.IGNORECASE,
)
ALLOWED = {
    "lumos.profiles.tasks.tell": "a method of Python's file protocol",
    "lumos.store.migrations.versions.0006_lineage._count_what_was_told": "released migrations stay",
}
# Class names that several modules have, and why.
SHARED_NAMES: dict[str, str] = {}
CATALOGS = "lumos.catalogs"
# What adapters of catalogs may import of the engine.
ADAPTER_IMPORTS = frozenset(
    f"{CATALOGS}.{name}"
    for name in (
        "interface", "three_way_merge", "plain_merge", "packed_properties", "escaping", "http",
        "rest", "chunks", "search", "cleanup",
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
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node in tree.body and node.name[0] != "_":
                classes[node.name].append(module)
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node.name)
                if RETIRED.search(words) and f"{module}.{node.name}" not in ALLOWED:
                    found.append(f"{module}.{node.name}: retired word")
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
