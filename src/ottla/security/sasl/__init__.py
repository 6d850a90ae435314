"""SASL mechanisms, both ends, without I/O: a message of the other side in, our next one out.

    mechanism       what a client's and a server's end look like; how they fail
    jaas            logins as Kafka writes them (`sasl.jaas.config`)
    plain           PLAIN (RFC 4616): name and password as they are
    scram_keys      what SCRAM computes (RFC 5802), and the two mechanisms of it
    scram_messages  the four messages of SCRAM, read and written
    scram_client    a client that proves its password, and that the server knows it
    scram_server    a server that has nothing a thief could log in with
    token_hmac      what a delegation token is proved with
    allowed_urls    which URLs and files the settings of OAUTHBEARER may name
    jwks, jwt       a token provider's public keys; what a broker believes of a token
    oauthbearer_messages, oauthbearer_client, oauthbearer_server    a token from elsewhere (RFC 7628)

Nothing here knows the time or makes chance of its own: nonces are given. Import from the modules: a node that has no
listener with SASL loads none of them.
"""
