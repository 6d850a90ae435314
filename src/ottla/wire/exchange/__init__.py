"""The talk over one connection without I/O, for nodes and clients alike.

frames              bytes as they arrive to whole frames; large buffers that are used again
replies             a node's side: replies leave in the order of their requests
client_end          a client's side, be it a producer, a tool or another node: versions, login, deadlines
client_connection   the same over a transport and timers, whatever they are; made again after a pause when it failed
open_request        a client's request until its one outcome
api_versions        what a node serves, and so which version a request takes
login               proving to a node who the client is
correlation         which request a response answers
outgoing            a client's bytes, as far as they have not left
"""
