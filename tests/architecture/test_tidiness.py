"""The house rules that a machine can hold: they keep the tree small, portable and readable."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src" / "ottla").rglob("*.py"))

BASES = (ROOT / "src" / "ottla", ROOT)

LONGEST_FILE = 400
NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "manager", "managers", "misc", "common"}
TEXT = {".py", ".pyi", ".pyx", ".md", ".toml", ".json", ".java", ".txt", ".cfg", ".yml", ".yaml", ""}

every_source = pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))


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


@every_source
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), "a module begins with its docstring"


@every_source
def test_a_file_is_one_idea(path: Path) -> None:
    lines = path.read_text().count("\n")
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    # A machine, say, whose transitions belong in one place.
    says_why = re.search(r"(one file|longer than most files),? because", " ".join(docstring.split()).lower())
    assert lines <= LONGEST_FILE or says_why, (
        f"{lines} lines: split it, or say in its docstring why it is (“One file because …”)"
    )


@every_source
def test_a_module_is_named_after_what_it_holds(path: Path) -> None:
    words = set(path.stem.strip("_").split("_"))
    assert not words & NAMES_THAT_SAY_NOTHING


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


def test_modules_of_tests_have_names_of_their_own() -> None:
    """Test files import their neighbours by bare name, so two of one name would be taken for each other."""
    packaged = {path.parent for path in (ROOT / "tests").rglob("__init__.py")}
    names = [
        path.name
        for path in committed_files()
        if path.is_relative_to(ROOT / "tests") and path.suffix == ".py" and path.parent not in packaged
    ]
    repeated = sorted({name for name in names if names.count(name) > 1} - {"conftest.py"})
    assert repeated == []
