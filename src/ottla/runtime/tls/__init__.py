"""TLS at the edge of a node: listeners whose clients have their handshake behind them.

    tls_listener      a listener above another; bounds on handshakes that are under way
    handshake_lane    handshakes a few at a time, so that requests do not wait for them
    trust             who a listener is and whom it believes, which may change while it runs

Import from the modules; a node without TLS imports none of them.
"""
