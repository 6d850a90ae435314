"""The quotas that the metadata has, in force on a node: on connections that come, and on requests over them."""

import logging
from collections.abc import Callable, Mapping
from typing import Final

from ottla.base.addresses import is_address
from ottla.base.ports import HostNames, Workers
from ottla.broker.broker import Broker
from ottla.broker.quotas.client_quotas import ClientQuotas
from ottla.config.parse import Values
from ottla.machines.metadata.controller.controller import Controller
from ottla.machines.metadata.image.quotas_image import QuotasImage
from ottla.machines.quota.limits import IP
from ottla.runtime.admission import AddressRates
from ottla.runtime.metadata.metadata_log import MetadataLog
from ottla.runtime.server import Server
from ottla.runtime.session import Metering
from ottla.runtime.world import World

# How often clients of an address may connect, as the metadata has it (KIP-612): `kafka-configs --entity-type ips`.
#
# An operator may have named a host instead of an address. Its addresses are looked up on a worker whenever quotas
# change; until they are known, and if they cannot be found, the limit is not held.

_log = logging.getLogger(__name__)

CONNECTION_RATE: Final = "connection_creation_rate"


class AddressQuotas:
    """`hold` is called with the limits whenever they change."""

    def __init__(self, host_names: HostNames, workers: Workers, hold: Callable[[AddressRates], None]) -> None:
        self._host_names = host_names
        self._workers = workers
        self._hold = hold
        self._changes = 0

    def apply(self, quotas: QuotasImage) -> None:
        self._changes += 1
        change = self._changes
        given = {
            dict(entity)[IP]: values[CONNECTION_RATE]
            for entity, values in quotas.by_entity.items()
            if IP in dict(entity) and CONNECTION_RATE in values
        }
        default = given.pop(None, None)
        of_address = {name: rate for name, rate in given.items() if name is not None and is_address(name)}
        of_host = {name: rate for name, rate in given.items() if name is not None and name not in of_address}
        self._hold(AddressRates(of_address, default))
        if not of_host:
            return

        def looked_up(found: dict[str, float]) -> None:
            if change == self._changes:
                self._hold(AddressRates({**found, **of_address}, default))

        self._workers.run(lambda: self._look_up(of_host), looked_up, key=AddressQuotas)

    def _look_up(self, of_host: Mapping[str, float]) -> dict[str, float]:
        """Asks the network, and may wait for it: not for the loop."""
        found: dict[str, float] = {}
        for host, rate in of_host.items():
            try:
                addresses = self._host_names.addresses_of(host)
            except OSError as problem:
                _log.warning("ignored the connection limit of %s: %s", host, problem)
            else:
                found.update(dict.fromkeys(addresses, rate))
        return found


def hold_quotas(
    server: Server, world: World, values: Values, metadata: MetadataLog[Controller], broker: Broker | None
) -> None:
    """From now on. A broker follows the quotas of its clients by itself; a controller alone gets them here."""
    image = metadata.image
    of_addresses = AddressQuotas(world.host_names, world.workers, server.set_address_rates)
    follow = [of_addresses.apply]
    if broker is None:
        of_clients = ClientQuotas(world.timers, values)
        follow.append(of_clients.apply)
    else:
        of_clients = broker.client_quotas

    def meter(metering: Metering | None) -> None:
        server.metering = metering

    def apply() -> None:
        for one in follow:
            one(image.quotas)

    of_clients.on_metering = meter
    meter(of_clients.metering)
    apply()
    metadata.listen(lambda delta: apply() if delta.quotas else None)
