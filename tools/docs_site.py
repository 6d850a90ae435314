"""Builds the site of the documentation in build/site: the pages, and a reference that is made from the program itself.

The pages of `docs` and those at the root of the repository are copied to build/docs, where links between them are made
to fit; the reference of commands comes from `--help`, that of metrics from a node that is started for it, that of the
Python API from docstrings (mkdocstrings). Then MkDocs builds the site, and takes a link to nowhere for an error.
"""

import inspect
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import ottla
from ottla.testing.free_ports import free_ports
from ottla.testing.node import RunningNode

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "build" / "docs"
SITE = ROOT / "build" / "site"

OF_THE_ROOT = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-policy.md",
    "README.md": "readme.md",
}
"""Pages beside `docs`, and what they are called in the site."""

LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)#\s]+)(#[^)]*)?\)")


def main() -> None:
    shutil.rmtree(ROOT / "build" / "docs", ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES)
    (PAGES / "README.md").rename(PAGES / "index.md")
    for name, page in OF_THE_ROOT.items():
        shutil.copyfile(ROOT / name, PAGES / page)
    (PAGES / "decisions" / "index.md").write_text(decisions())
    (PAGES / "examples.md").write_text(examples())
    for path in PAGES.rglob("*.md"):
        path.write_text(LINK.sub(partial(fitted, path), path.read_text()))
    write_reference(PAGES / "reference")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--config-file", str(ROOT / "mkdocs.yml")]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True)
    print(f"built {sum(1 for _ in SITE.rglob('*.html'))} pages; open {SITE.relative_to(ROOT)}/index.html")


def fitted(page: Path, link: re.Match[str]) -> str:
    """The link, from where its page is now to where its target is; what is not in the site is no link any more."""
    text, target, anchor = link[1], link[2], link[3] or ""
    relative = page.relative_to(PAGES)
    was_at_the_root = relative.name in OF_THE_ROOT.values()
    origin = ROOT if was_at_the_root else ROOT / "docs" / relative.parent
    found = (origin / target).resolve().relative_to(ROOT).as_posix()
    if found in OF_THE_ROOT:
        found = f"docs/{OF_THE_ROOT[found]}"
    elif found == "docs/README.md":
        found = "docs/index.md"
    elif found.startswith("examples"):
        found = "docs/examples.md"
    elif (ROOT / found).is_dir():
        found += "/index.md"
    if not found.startswith("docs/"):
        return text
    return f"[{text}]({'../' * (len(relative.parts) - 1)}{found.removeprefix('docs/')}{anchor})"


def title_of(page: Path) -> str:
    return page.read_text().partition("\n")[0].removeprefix("# ")


def decisions() -> str:
    rows = [f"- [{title_of(page)}]({page.name})" for page in sorted((ROOT / "docs" / "decisions").glob("0*.md"))]
    return "\n".join(["# Decisions", "", "What was chosen, what else there was, and what was measured.", "", *rows, ""])


def examples() -> str:
    parts = ["# Examples", ""]
    for path in sorted((ROOT / "examples").glob("*.py")):
        parts += [f"## {path.stem.replace('_', ' ')}", "", "```python", path.read_text().rstrip(), "```", ""]
    return "\n".join(parts)


def write_reference(directory: Path) -> None:
    directory.mkdir()
    (directory / "python.md").write_text(api("Python API", "The clients that wait.", _names(ottla._PUBLIC)))
    from ottla import admin, aio
    from ottla.client import errors

    (directory / "aio.md").write_text(api("Asyncio", "The same clients for asyncio.", _names(aio._PLACES)))
    values = {name: getattr(admin, name) for name in sorted(dir(admin)) if not name.startswith("_")}
    given = {name: f"{value.__module__}.{name}" for name, value in values.items() if is_ours(value)}
    (directory / "admin.md").write_text(api("Admin's values", "What an admin is given, and gives back.", given))
    raised = {name: f"{errors.__name__}.{name}" for name, found in vars(errors).items() if is_ours(found)}
    (directory / "errors.md").write_text(api("Errors", "What clients raise.", raised))
    testing = {
        "Broker": "ottla.testing.broker.own_broker.Broker",
        "Cluster": "ottla.testing.broker.own_cluster.Cluster",
    }
    (directory / "testing.md").write_text(api("Testing", "Brokers for tests; see also the fixtures.", testing))
    (directory / "command-lines.md").write_text(command_lines())
    (directory / "metrics.md").write_text(metrics())


def is_ours(value: object) -> bool:
    return isinstance(value, type) and value.__module__.startswith("ottla.")


def _names(places: dict[str, str]) -> dict[str, str]:
    return {name: f"{module}.{name}" for name, module in places.items()}


def api(title: str, summary: str, names: dict[str, str]) -> str:
    return "\n".join([f"# {title}", "", summary, "", *(f"::: {path}\n" for path in names.values())])


def on_startup(**_: object) -> None:
    """MkDocs calls it in its own process, before mkdocstrings looks at the classes.

    An admin's methods are made when they are first named. The fields of a named tuple have docstrings that say nothing;
    they are listed with their types instead.
    """
    from ottla import admin, aio

    for face in (ottla.Admin, aio.Admin):
        for name in list(vars(face)):
            show_as_method(face, getattr(face, name))
    for module in (ottla, admin):
        for value in [getattr(module, name) for name in dir(module) if not name.startswith("_")]:
            if is_ours(value) and hasattr(value, "_fields"):
                list_fields(value)


def show_as_method(face: type, method: Any) -> None:
    """A call of an admin is a function of `Asking`, which the admin gives it; its method has no such argument."""
    if hasattr(method, "__wrapped__"):
        signature = inspect.signature(method)
        itself, *others = signature.parameters.values()
        itself = itself.replace(name="self", annotation=inspect.Parameter.empty)
        method.__signature__ = signature.replace(parameters=[itself, *others])
        method.__module__, method.__qualname__ = face.__module__, f"{face.__name__}.{method.__name__}"
        del method.__wrapped__


def list_fields(record: Any) -> None:
    fields = [f"- `{name}`: `{type_text(record.__annotations__.get(name, ''))}`" for name in record._fields]
    for name in record._fields:
        getattr(record, name).__doc__ = None
    record.__doc__ = "\n".join([inspect.cleandoc(record.__doc__ or ""), "", *fields])


def type_text(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def command_lines() -> str:
    """Every command of `ottla`, with its `--help`."""
    commands = re.findall(r"^  ([a-z][a-z0-9-]+)  ", run_ottla("--help"), re.MULTILINE)
    parts = ["# Command lines", "", "Kafka's tools are there as `kafka-…` and `kafka-….sh`, too.", ""]
    for command in commands:
        parts += [f"## ottla {command}", "", "```text", run_ottla(command, "--help").rstrip(), "```", ""]
    return "\n".join(parts)


def run_ottla(*words: str) -> str:
    command = [sys.executable, "-m", "ottla.cli.main", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout or done.stderr


def metrics() -> str:
    """What a node shows to Prometheus, from the page of one that was just started."""
    [port] = free_ports(1)
    with RunningNode(options=("--metrics", str(port))), urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        text = page.read().decode()
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    helps = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE))
    rows = [f"| `{name}` | {kind} | {helps.get(name, '')} |" for name, kind in sorted(types.items())]
    head = ["# Metrics", "", "What a node shows at `--metrics PORT`.", "", "| metric | type | what it is |"]
    return "\n".join([*head, "| --- | --- | --- |", *rows, ""])


if __name__ == "__main__":
    main()
