"""AlterClientQuotas 0-1 (KIP-546). A quota of an address may name a host, which must be one that there is.

They are kept in the metadata log. Each node holds its clients to them: see `ottla.broker.quotas`.
"""

from collections.abc import Callable, Container, Sequence
from typing import Final

from ottla.base.addresses import is_address
from ottla.controller.committed_decisions import decide
from ottla.controller.controller_server import ControllerRequest, ControllerServer
from ottla.runtime.channels import Failed, Then

_IP: Final = "ip"


def alter_client_quotas(server: ControllerServer, asked: ControllerRequest, then: Then, failed: Failed) -> None:
    request = asked.request
    hosts = {part.entity_name for entry in request.entries for part in entry.entity if part.entity_type == _IP}
    names = sorted(host for host in hosts if host and not is_address(host))
    if not names:
        decide(server, asked, then, failed)
        return

    def looked_up(unknown_hosts: Container[str]) -> None:
        server.log.submit(
            lambda controller, _now_ms: controller.alter_client_quotas(request, unknown_hosts), then, failed
        )

    # One at a time: a name server that does not answer must not keep all threads from their disks.
    look_up = server.world.host_names.addresses_of
    server.workers.run(lambda: {name for name in names if not _resolves(look_up, name)}, looked_up, key=_resolves)


def _resolves(addresses_of: Callable[[str], Sequence[str]], name: str) -> bool:
    """Asks the network, and may wait for it: not for the loop."""
    try:
        addresses_of(name)
    except OSError:
        return False
    return True
