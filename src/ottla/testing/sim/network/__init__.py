"""The network of a simulation: machines, the links between them, and connections that behave as TCP's do.

    fabric           the machines, how they reach each other, and connecting
    links            one direction between two machines: latency, bandwidth, loss, a partition
    connection_end   one end of a connection: a transport
    passing_frames   frames on their way, one of which may come twice
    plaintext        what is encrypted, in the trace
    host_network     what a process sees: listening, dialing, turns

Bytes arrive late, in pieces, behind a partition long after they were sent, or not at all because the connection was
reset; but never in another order. Within one connection they come once, unless a fault repeats a frame. Import from the
modules.
"""
