"""Listeners: whether each can be opened here, and whether its name leads anywhere."""

import errno
import socket
from collections.abc import Iterator

from ottla.cli.doctor.findings import NOTE, OK, PROBLEM, WARNING, Finding
from ottla.node.config import NodeConfig
from ottla.node.listeners import EVERY_INTERFACE, Listener

AREA = "ports"


def check_ports(config: NodeConfig, *, is_running: bool) -> list[Finding]:
    """`is_running`: a node holds the data directories, so it may well be this one that holds the ports."""
    findings: list[Finding] = []
    for listener in config.listeners:
        if listener.port == 0:
            findings.append(Finding(AREA, OK, f"{listener}: the system picks a free port"))
        else:
            findings += _check(listener, is_running=is_running)
    findings += _check_advertised(config)
    return findings


def _check(listener: Listener, *, is_running: bool) -> Iterator[Finding]:
    family = socket.AF_INET6 if listener.is_ipv6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((listener.bind_host, listener.port))
            trial.listen(1)
        except socket.gaierror as problem:
            yield Finding(AREA, PROBLEM, f"{listener}: {problem.strerror}", "Name an address of this machine.")
        except OSError as problem:
            yield _refused(listener, problem, is_running=is_running)
        else:
            yield Finding(AREA, OK, f"{listener} can be opened")


def _refused(listener: Listener, problem: OSError, *, is_running: bool) -> Finding:
    if problem.errno == errno.EADDRINUSE:
        if is_running:
            return Finding(AREA, NOTE, f"{listener} is in use, and so are the data directories: the node is running")
        advice = f"Stop what listens there (`ss -ltnp 'sport = :{listener.port}'` names it), or use another port."
        return Finding(AREA, PROBLEM, f"{listener} is in use by another program", advice)
    if problem.errno == errno.EACCES:
        return Finding(AREA, PROBLEM, f"{listener}: ports below 1024 are for root", "Use a higher port.")
    if problem.errno == errno.EADDRNOTAVAIL:
        return Finding(AREA, PROBLEM, f"{listener}: no interface of this machine has this address")
    return Finding(AREA, PROBLEM, f"{listener}: {problem.strerror}")


def _check_advertised(config: NodeConfig) -> Iterator[Finding]:
    """Clients connect to what is advertised; without a setting that is the listener itself."""
    given = config.values["advertised.listeners"]
    for text in config.values.list("advertised.listeners") if given else ():
        host = text.partition("://")[2].rpartition(":")[0].strip("[]")
        try:
            socket.getaddrinfo(host, None)
        except OSError:
            advice = "Clients get this name from the broker: use one that they can resolve."
            yield Finding(AREA, WARNING, f"advertised.listeners: {host} cannot be resolved here", advice)
    if not given:
        for listener in config.listeners:
            if not listener.for_controllers and listener.host in ("", *EVERY_INTERFACE):
                what = f"{listener} listens on every interface, and clients get this machine's own name as its address"
                yield Finding(AREA, NOTE, what, "Set advertised.listeners if clients cannot resolve it.")
