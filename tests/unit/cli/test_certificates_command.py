"""`ottla certificates`: what it makes is what nodes and clients take, and nobody else may read the keys."""

import ssl
from pathlib import Path

import pytest

from ottla.cli.certificates import main


def test_the_certificates_vouch_for_each_other_and_keys_are_for_their_owner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "certs"
    assert main([str(directory), "--host", "broker.test", "--client", "alice"]) == 0
    assert sorted(path.name for path in directory.iterdir()) == ["alice.pem", "ca.pem", "node.pem"]
    assert {path.stat().st_mode & 0o777 for path in directory.iterdir()} == {0o600}
    said = capsys.readouterr().out
    assert f"ssl.keystore.location={directory / 'node.pem'}" in said
    assert "User:CN=alice" in said

    client = ssl.create_default_context(cafile=directory / "ca.pem")
    client.load_cert_chain(directory / "alice.pem")
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=directory / "ca.pem")
    server.load_cert_chain(directory / "node.pem")
    server.verify_mode = ssl.CERT_REQUIRED
    for name in ("localhost", "127.0.0.1", "broker.test"):
        handshake(client, server, name)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(client, server, "elsewhere.test")


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> None:
    """Both ends in memory, until both are content."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(5):
        for end in list(ends):
            try:
                end.do_handshake()
                ends.remove(end)
            except ssl.SSLWantReadError:
                pass
    assert not ends


def test_what_is_there_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 0
    before = (tmp_path / "ca.pem").read_bytes()
    assert main([str(tmp_path)]) == 1
    assert "is there already" in capsys.readouterr().err
    assert (tmp_path / "ca.pem").read_bytes() == before
