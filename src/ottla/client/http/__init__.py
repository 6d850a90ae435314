"""HTTP for clients, without knowing of a loop: over the ports of a `ClientWorld`.

    http_client       connections that are kept, one request at a time on each, with time limits

What a message is, is in `ottla.wire.http`.
"""
