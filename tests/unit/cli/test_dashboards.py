"""`ottla dashboards`: files that Grafana and Prometheus take, about metrics that a node has."""

import json
import re
from pathlib import Path

import promql_parser
import pytest

from ottla.cli.dashboards.alerts import ALERTS
from ottla.cli.dashboards.dashboards_command import all_files, main
from ottla.cli.dashboards.grafana import DASHBOARDS, as_grafana
from ottla.node.metrics.metric_help import METRIC_HELP

ROOT = Path(__file__).parents[3]
EXPRESSIONS = [
    *(
        (f"{one.name}: {panel.title}", query)
        for one in DASHBOARDS
        for panel in one.panels
        for query, _ in panel.queries
    ),
    *((f"{one.name}: ${name}", values) for one in DASHBOARDS for name, values in one.variables),
    *((alert.name, alert.expression) for alert in ALERTS),
]


def metrics_in(expression: str) -> set[str]:
    return set(re.findall(r"\b((?:kafka|ottla|process)_\w+)", re.sub(r'"[^"]*"', "", expression)))


@pytest.mark.parametrize(("where", "expression"), EXPRESSIONS, ids=[where for where, _ in EXPRESSIONS])
def test_an_expression_is_about_metrics_that_there_are(where: str, expression: str) -> None:
    named = metrics_in(expression)
    assert named or expression == 'up{job="ottla"} == 0'
    assert {re.sub("_bucket$", "", name) for name in named} <= METRIC_HELP.keys()


@pytest.mark.parametrize(("where", "expression"), EXPRESSIONS, ids=[where for where, _ in EXPRESSIONS])
def test_an_expression_is_promql(where: str, expression: str) -> None:
    parse_promql(expression)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("sum by (topic kafka_brokers)", "invalid promql"),
        ("rte(kafka_brokers[5m])", "unknown function"),
        ("rate(kafka_brokers)", "expected type"),
        ("kafka_brokers{topic=orders}", "in label matching"),
        ("histogram_quantile(sum(kafka_brokers), 0.9)", "expected type"),
        ("kafka_brokers > > 1", "invalid promql"),
        ("kafka_brokers{, topic", "inside braces"),
    ],
)
def test_a_typing_error_in_an_expression_is_found(expression: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_promql(expression)


def parse_promql(expression: str) -> None:
    """As Prometheus gets it. A variable is `metric, label`, of which Grafana asks for the metric."""
    promql_parser.parse(re.sub(r", \w+$", "", expression).replace("$__rate_interval", "5m"))


def test_panels_of_a_dashboard_lie_side_by_side() -> None:
    for dashboard in DASHBOARDS:
        taken: set[tuple[int, int]] = set()
        for panel in as_grafana(dashboard)["panels"]:
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            assert at["x"] + at["w"] <= 24
            assert not cells & taken, panel["title"]
            taken |= cells


def test_every_alert_has_a_section_of_the_runbook() -> None:
    sections = re.findall(r"^## (\w+)$", (ROOT / "docs" / "runbook.md").read_text(), re.MULTILINE)
    assert sections == [alert.name for alert in ALERTS]


def test_the_files_are_written_where_both_look_for_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "new"), "--target", "a:9100", "--target", "b:9100"]) == 0
    written = {str(path.relative_to(tmp_path / "new")) for path in (tmp_path / "new").rglob("*") if path.is_file()}
    assert written == set(all_files([], "", ""))
    assert f"wrote {len(written)} files" in capsys.readouterr().out
    assert "targets: ['a:9100', 'b:9100']" in (tmp_path / "new/prometheus/prometheus.yml").read_text()
    for name in written:
        if name.endswith(".json"):
            assert json.loads((tmp_path / "new" / name).read_text())["panels"]


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main([str(tmp_path / "file")]) == 1
    assert "cannot write" in capsys.readouterr().err
