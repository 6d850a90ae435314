"""Tools that find no broker end, and say so."""

from pathlib import Path

import pytest

from ottla.cli.kafka import run


def test_api_versions_of_no_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kafka's tool ends at once, too; ours asked for ever."""
    (tmp_path / "soon.properties").write_text("request.timeout.ms=300\n")
    words = ["--bootstrap-server", "127.0.0.1:1", "--command-config", str(tmp_path / "soon.properties")]
    assert run("broker-api-versions", words) == 1
    told = capsys.readouterr().err
    assert "Request METADATA failed on brokers [127.0.0.1:1]: cannot connect to 127.0.0.1:1: connection refused" in told
