"""Connections from this node to others, over the network of its world: the channels that cross them.

    served_versions     what the other node serves, and so in which version a request goes to it
    node_connection     one connection: requests out and responses in, in order
    node_login          one authentication, where the other node asks who this one is
    node_connections    all of a node's; pauses after failures; nothing is left when it stops
    remote_peers        `PeerChannel`: asking brokers, this one among them
    remote_controller   `ControllerChannel`: asking the active controller, wherever it is
    envelopes           a client's request inside one of the broker's (KIP-590)

Import from the modules.
"""
