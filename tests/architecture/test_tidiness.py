"""The house rules that a machine can hold: they keep the tree small, portable and readable."""

import ast
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src" / "ottla").rglob("*.py"))

BASES = (ROOT / "src" / "ottla", ROOT)

NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "manager", "managers", "misc", "common"}
TEXT = {".py", ".pyi", ".pyx", ".md", ".toml", ".json", ".java", ".txt", ".cfg", ".yml", ".yaml", ""}


def committed_files() -> list[Path]:
    """What git knows, or would know with the next `git add`."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [path for line in listing.splitlines() if (path := ROOT / line).is_file()]


class Module(NamedTuple):
    name: str
    docstring: str


@cache
def modules() -> list[Module]:
    read = [(path.relative_to(ROOT).as_posix(), path.read_text()) for path in SOURCES]
    return [Module(name, ast.get_docstring(ast.parse(text)) or "") for name, text in read]


def test_every_module_says_what_it_is() -> None:
    assert len(modules()) > 500
    assert [one.name for one in modules() if not one.docstring] == [], "a module begins with its docstring"


def test_a_map_of_files_has_all_of_them() -> None:
    """ARCHITECTURE.md sends readers to `__init__.py` of each part. One that names any of its files names each."""
    missing: list[str] = []
    for path in SOURCES:
        if path.name != "__init__.py" or path.parent == ROOT / "src" / "ottla":
            continue
        files = [one.stem for one in path.parent.glob("*.py") if not one.stem.startswith("_")]
        rooms = [one.parent.name for one in path.parent.glob("*/__init__.py")]
        words = set(re.findall(r"\w+", path.read_text()))
        unnamed = [name for name in (*files, *rooms) if name not in words]
        if len(unnamed) < len(files) + len(rooms):
            missing += [f"{path.parent.relative_to(ROOT / 'src')}: {name}" for name in sorted(unnamed)]
    assert missing == [], "add a line about it to the docstring of its package"


def test_a_module_is_named_after_what_it_holds() -> None:
    assert [path for path in SOURCES if NAMES_THAT_SAY_NOTHING & set(path.stem.strip("_").split("_"))] == []


def test_no_committed_file_knows_a_machine() -> None:
    # A home, a working directory or a cache of somebody's; written in pieces, so that this file knows none either.
    of_a_machine = re.compile(rb"/(?:home|Users|root|work)" + rb"/[\w.]+")
    known = [
        f"{path.relative_to(ROOT)}: {found[0].decode()}"
        for path in committed_files()
        if path.suffix in TEXT and (found := of_a_machine.search(path.read_bytes()))
    ]
    assert known == []


def test_no_committed_file_is_large() -> None:
    large = {str(path.relative_to(ROOT)) for path in committed_files() if path.stat().st_size > 1_500_000}
    assert large == set()


def test_the_version_is_written_the_same_everywhere() -> None:
    import tomllib

    from ottla import __version__

    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == __version__
    newest, *_ = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest == __version__


def test_every_link_between_our_pages_leads_somewhere() -> None:
    links = [
        (page, target)
        for page in committed_files()
        if page.suffix == ".md"
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    ]
    broken = [
        f"{page.relative_to(ROOT)} -> {target}"
        for page, target in links
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert broken == []


def file_map() -> dict[str, str]:
    """The paths of the map in ARCHITECTURE.md, and what is said of each."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|(.*)\|$", page.partition("## File map")[2].partition("\n## ")[0], re.MULTILINE)
    return {path: purpose.strip() for paths, purpose in rows for path in re.findall("`([^`]+)`", paths)}


def test_the_file_map_has_every_folder_and_its_purpose() -> None:
    mapped = file_map()
    places = {path.rstrip("/") for path in mapped} | {str(Path(path).parent) for path in mapped}
    folders = {str(path.parent.relative_to(ROOT / "src" / "ottla")) for path in SOURCES} - {"."}
    assert sorted(folders - places) == []
    assert [path for path, purpose in mapped.items() if not purpose] == []


def test_every_path_that_the_architecture_names_is_there() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    named = {*file_map(), *re.findall(r"`((?:\w+/)+[\w.]*)`", page)}
    assert len(named) > 80
    assert [name for name in sorted(named) if not any((base / name).exists() for base in BASES)] == []


def test_what_is_beside_apache_kafka_is_marked_so() -> None:
    """`make test` does not even look into the folder: importing it all takes a second of every worker."""
    files = (ROOT / "tests" / "interop").rglob("test_*.py")
    assert [file.name for file in files if "\npytestmark = pytest.mark.interop" not in file.read_text()] == []


def test_every_directory_of_tests_is_a_package() -> None:
    """Tests import each other by their whole names, and two of one name in two rooms are two modules."""
    rooms = {path.parent for path in committed_files() if path.is_relative_to(ROOT / "tests") and path.suffix == ".py"}
    assert {room for room in rooms if not (room / "__init__.py").exists()} == set()
