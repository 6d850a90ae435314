"""The quotas that the metadata has, in force on a node: on connections that come, and on requests over them."""

from ottla.broker.broker import Broker
from ottla.broker.quotas.client_quotas import ClientQuotas
from ottla.config.parse import Values
from ottla.machines.metadata.controller.controller import Controller
from ottla.node.limits.address_quotas import AddressQuotas
from ottla.runtime.metadata.metadata_log import MetadataLog
from ottla.runtime.metering import Metering
from ottla.runtime.server import Server
from ottla.runtime.world import World


def hold_quotas(
    server: Server, world: World, values: Values, metadata: MetadataLog[Controller], broker: Broker | None
) -> None:
    """From now on. A broker follows the quotas of its clients by itself; a controller alone is told of them here."""
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

    of_clients.told = meter
    meter(of_clients.metering)
    apply()
    metadata.listen(lambda delta: apply() if delta.quotas else None)
