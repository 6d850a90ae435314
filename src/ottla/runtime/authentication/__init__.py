"""The gate of listeners with SASL: what happens on a connection before its client is known.

    authenticator       what one listener asks of its clients: mechanisms, limits, how long a session lasts
    conversation        one authentication, from the handshake to the last token (KIP-43, KIP-152, KIP-368), without I/O
    gated_connection    a connection whose client has to authenticate first, and again when its session ends

A node without such a listener loads none of it. Import from the modules.
"""
