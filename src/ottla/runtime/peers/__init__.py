"""Connections from this node to others, over the network of its world: the channels that cross them.

    node_connections    all of a node's (`wire.exchange.client_connection`); pauses after failures; the end
    remote_peers        `PeerChannel`: asking brokers, this one among them; a client's request in a broker's (KIP-590)
    remote_controller   `ControllerChannel`: asking the active controller, wherever it is

Import from the modules.
"""
