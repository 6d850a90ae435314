"""Who somebody is and what they may do: pure knowledge that nodes, clients and tools share.

    api_access  what a request may need, and count against
    authorized_operations   what a client may do where everyone may do everything, as a bit field
    acls        rules of access, and the decision that follows from them
    kerberos    the mechanism GSSAPI, both ends, and the short names of principals
    sasl        the other mechanisms by which a client says who it is, both ends
    tls         certificates and keys, and connections that nobody else can read

Nothing here sees a clock, a socket, a thread or chance: they are given as arguments. Libraries for cryptography are
imported where they are used: a plain node loads none. Import from the modules.
"""
