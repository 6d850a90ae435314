"""HTTP at the edge of a process: the registry, the metrics page, and what tests ask faults for.

    http_server       listeners and connections on any network, TLS or not, with limits on all of it
    pages             replies that take long to make, in pieces

What a request is, is in `ottla.wire.http`. Import from the modules; a node that serves no HTTP imports none of them.
"""
