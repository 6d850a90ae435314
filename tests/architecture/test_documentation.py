"""The pages: every link leads somewhere, and every page with code has a test that runs it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

RUN_BY = {
    "README.md": "tests/clients/pages/test_start_pages.py",
    "docs/backup.md": "tests/unit/cli/test_commands_page.py",
    "docs/chaos.md": "tests/clients/pages/test_start_pages.py",
    "docs/clients/admin.md": "tests/clients/pages/test_admin_page.py",
    "docs/clients/coming-from.md": "tests/clients/pages/test_pages_of_tests.py",
    "docs/clients/consumer.md": "tests/clients/pages/test_consumer_page.py",
    "docs/clients/producer.md": "tests/clients/pages/test_producer_page.py",
    "docs/cluster.md": "tests/cluster/test_cluster_page.py",
    "docs/commands.md": "tests/unit/cli/test_commands_page.py",
    "docs/connect/connectors.md": "tests/spark/connect/test_connector_pages.py",
    "docs/connect/lakes.md": "tests/unit/connect/lakes/test_lakes_page.py",
    "docs/logging.md": "tests/clients/pages/test_start_pages.py",
    "docs/registry.md": "tests/clients/pages/test_registry_page.py",
    "docs/registry/compatibility.md": "tests/unit/schemas/test_schema_pages.py",
    "docs/registry/serializers.md": "tests/unit/schemas/test_schema_pages.py",
    "docs/security.md": "tests/clients/pages/test_security_page.py",
    "docs/simulator.md": "tests/sim/test_simulator_page.py",
    "docs/spark.md": "tests/spark/test_spark_pages.py",
    "docs/spark/coming-across.md": "tests/spark/test_spark_pages.py",
    "docs/spark/pipelines.md": "tests/spark/pipelines/test_pages.py",
    "docs/spark/to-parquet.md": "tests/spark/test_spark_pages.py",
    "docs/start/python-programs.md": "tests/clients/pages/test_start_pages.py",
    "docs/testing.md": "tests/clients/pages/test_pages_of_tests.py",
    "docs/tools.md": "tests/unit/cli/test_commands_page.py",
}
"""By page: the test that runs its code."""

SHOWN_ONLY = {"docs/decisions/0010-services-by-name.md": "the signature of a handler"}
"""Code that is no example: what it is."""

LINK = re.compile(r"\[[^\]]+\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)")
CODE = re.compile(r"^```(?:python|sh|bash|console)$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text()):
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), f"{target} is not there"
        assert not anchor or anchor in anchors(found), f"{target} has no heading {anchor}"


def test_every_page_with_code_has_a_test_that_runs_it() -> None:
    with_code = {page.relative_to(ROOT).as_posix() for page in PAGES if CODE.search(page.read_text())}
    assert with_code - RUN_BY.keys() - SHOWN_ONLY.keys() == set()


@pytest.mark.parametrize(("page", "test"), RUN_BY.items())
def test_the_test_of_a_page_names_it(page: str, test: str) -> None:
    assert (ROOT / page).exists()
    name = Path(page).stem
    assert name in (ROOT / test).read_text(), f"{test} says nothing of {name}"
