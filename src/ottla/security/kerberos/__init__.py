"""SASL GSSAPI (RFC 4752): clients that a Kerberos realm vouches for. Both ends, and what Kafka makes of their names.

    gss_context     a GSS-API context as the two ends need it, and how it fails
    layers          the last two messages: which layer protects what follows. Kafka's protocol has none
    gssapi_client   a client's end
    gssapi_server   a server's end
    principals      Kerberos principals, and the rules that make short names of them
    kerberos_login  the login that JAAS options ask for: a key table or a cache of tickets
    library         the system's Kerberos, through the extra `gssapi`: the only module that imports it

The two ends are pure: a context is given to them, and tests give them one of their own. Import from the modules: a node
and a client without Kerberos load none of them.
"""
