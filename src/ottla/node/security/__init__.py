"""How a node's settings become what its listeners ask of clients.

    credentials         SCRAM credentials, as the metadata has them now
    node_logins         how this node says who it is to others
    authenticators      a listener's mechanisms, from its settings

Import from the modules: a node without such listeners loads none of it.
"""
