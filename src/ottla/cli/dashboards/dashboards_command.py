"""`ottla dashboards DIR`: dashboards and rules as files, in the places where Grafana and Prometheus look for them."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Final

from ottla.cli.dashboards.alerts import rules_text
from ottla.cli.dashboards.grafana import DASHBOARDS, as_grafana
from ottla.cli.help_format import CommandParser
from ottla.cli.text_tables import counted

_RUNBOOK: Final = "docs/runbook.md"
_READ_AFTER: Final = """\
grafana    copy {directory}/grafana/provisioning to /etc/grafana, and {directory}/grafana/dashboards to /var/lib/grafana
prometheus name {directory}/prometheus/ottla-rules.yml in rule_files; prometheus.yml there is a whole example"""


def argument_parser() -> ArgumentParser:
    parser = CommandParser(
        prog="ottla dashboards",
        description="Writes dashboards for Grafana, rules for Prometheus, and the files with which both load them.",
    )
    parser.add_argument("directory", metavar="DIR", help="where to; it is made if it is not there")
    parser.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="a node's metrics listener, for prometheus.yml; may be repeated (default: localhost:9100)",
    )
    parser.add_argument(
        "--prometheus", default="http://localhost:9090", metavar="URL", help="for Grafana (default: %(default)s)"
    )
    parser.add_argument("--runbook", default=_RUNBOOK, metavar="URL", help="what alerts link to (default: %(default)s)")
    return parser


def main(arguments: list[str]) -> int:
    options = argument_parser().parse_args(arguments)
    files = all_files(options.target or ["localhost:9100"], options.prometheus, options.runbook)
    directory = Path(options.directory)
    try:
        for name, text in files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    except OSError as problem:
        print(f"ottla: cannot write {problem.filename}: {problem.strerror}", file=sys.stderr)
        return 1
    print(f"wrote {counted(len(files), 'file')} to {directory}")
    print(_READ_AFTER.format(directory=directory))
    return 0


def all_files(targets: list[str], prometheus: str, runbook: str) -> dict[str, str]:
    """By their place in the directory."""
    found = {
        f"grafana/dashboards/{dashboard.name}.json": json.dumps(as_grafana(dashboard), indent=2) + "\n"
        for dashboard in DASHBOARDS
    }
    found["grafana/provisioning/dashboards/ottla.yaml"] = _PROVIDER
    found["grafana/provisioning/datasources/prometheus.yaml"] = _DATA_SOURCE.format(url=prometheus)
    found["prometheus/ottla-rules.yml"] = rules_text(runbook)
    found["prometheus/prometheus.yml"] = _PROMETHEUS.format(targets=", ".join(f"'{target}'" for target in targets))
    return found


_PROVIDER: Final = """\
apiVersion: 1
providers:
  - name: ottla
    folder: Ottla
    type: file
    options:
      path: /var/lib/grafana/dashboards
"""

_DATA_SOURCE: Final = """\
apiVersion: 1
datasources:
  - name: Prometheus
    type: prometheus
    access: proxy
    url: {url}
    isDefault: true
"""

_PROMETHEUS: Final = """\
global:
  scrape_interval: 15s
rule_files:
  - ottla-rules.yml
scrape_configs:
  - job_name: ottla
    # Where the listener has TLS: `scheme: https`, and `tls_config: {{ca_file: …}}`.
    # Where it has logins (ottla.metrics.basic.auth): `basic_auth: {{username: …, password_file: …}}`.
    static_configs:
      - targets: [{targets}]
"""
