"""The shape of the source that docs/design.md promises: small files and folders, no cycle, rooms with few public names.

A room is what lies directly in `src/shortlist`: a folder or a single file. Its facade is the `__init__` of the folder,
or the file itself; `__all__` lists the names that others may use. A folder inside a room may have a facade, too.
`internal` is no room but what all rooms share and no user needs: every room imports its modules by name.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "shortlist"
FILES = sorted(SOURCE.rglob("*.py"))
INTERNAL = SOURCE / "internal"


def module(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def exported(path: Path) -> list[str] | None:
    """What `__all__` lists; None where there is none."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return list(ast.literal_eval(node.value))
    return None


def facades() -> dict[str, list[str] | None]:
    rooms = [path for path in FILES if path.parent == SOURCE and path.name != "__main__.py"]
    rooms += [path for path in FILES if path.parent.parent == SOURCE and path.name == "__init__.py"]
    rooms.remove(INTERNAL / "__init__.py")
    inner = [path for path in FILES if path.name == "__init__.py" and path not in rooms and exported(path) is not None]
    return {module(path): exported(path) for path in [*rooms, *inner]}


def test_files_are_short() -> None:
    texts = [path for path in SOURCE.rglob("*") if path.suffix in (".py", ".cu", ".cuh", ".js", ".css", ".html")]
    lines = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in texts}
    assert {name: count for name, count in lines.items() if count > 400} == {}


def test_folders_are_small() -> None:
    folders = {path.parent for path in FILES}
    modules = {
        str(folder.relative_to(SOURCE)): sum(1 for path in folder.glob("*.py") if path.name != "__init__.py")
        for folder in folders
    }
    assert {name: count for name, count in modules.items() if count > 20} == {}


def test_no_cycle_even_through_imports_inside_functions() -> None:
    grimp = pytest.importorskip("grimp")
    graph = grimp.build_graph("shortlist", cache_dir=None)
    cycles = [
        (name, chain)
        for name in sorted(graph.modules)
        for other in graph.find_modules_directly_imported_by(name)
        if (chain := graph.find_shortest_chain(other, name)) is not None
    ]
    assert "\n".join(" -> ".join((name, *chain)) for name, chain in cycles) == ""


def test_every_room_says_what_others_may_use() -> None:
    assert "\n".join(name for name, names in facades().items() if names is None) == ""


def test_public_names_are_few() -> None:
    """What `shortlist` itself exports is counted in the rooms that it comes from."""
    assert sum(len(names or ()) for room, names in facades().items() if room != "shortlist") <= 150


def imported(path: Path) -> Iterator[str]:
    """The modules from which a file imports; `from a import b` is a.b where that is a module."""
    known = {module(file) for file in FILES}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (full if (full := f"{node.module}.{name.name}") in known else node.module for name in node.names)


def test_rooms_import_each_other_through_facades() -> None:
    allowed = {*facades(), *(module(path) for path in FILES if path.parent == INTERNAL)}
    past = {
        f"{module(path)} -> {name}"
        for path in FILES
        for name in imported(path)
        if name.split(".")[0] == "shortlist" and name.split(".")[1:2] != module(path).split(".")[1:2]
        if name not in allowed
    }
    assert "\n".join(sorted(past)) == ""
