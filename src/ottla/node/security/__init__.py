"""How a node's settings become what its listeners ask of clients.

    credentials         SCRAM credentials, as the metadata has them now
    node_logins         how this node says who it is to others
    node_tickets        the same by tickets of Kerberos
    node_tokens         the same by tokens that have to be fetched
    token_checks        which tokens of OAUTHBEARER a listener believes
    provider_keys       the public keys of a token provider, kept fresh
    kerberos_acceptors  a listener's end of GSSAPI: its key, and the rules for its clients' names
    authenticators      a listener's mechanisms, from its settings

Import from the modules: a node without such listeners loads none of it.
"""
