"""The talk over one connection without I/O, for nodes and clients alike.

frames         bytes as they arrive to whole frames
spare_buffers  large buffers that are used again
replies        a node's side: replies leave in the order of their requests
correlation    a client's side: which request a response answers
outgoing       its requests, as far as they have not left
"""
