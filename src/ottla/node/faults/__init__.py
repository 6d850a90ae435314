"""Faults on request, for the tests of clients in any language: `ottla start --faults PORT`.

Theory of operation. A node is given its world and one function that handles requests. With faults, it is given a disk
that can be full, a clock that can be moved, and a function around its own that fails, delays or drops the requests that
a test has named. Nothing inside the node knows of it, and a node without `--faults` imports nothing of this room.

node_faults            all of it together, for one node, over its restarts
control_server         HTTP and JSON on a loopback port, with a token
commands               what can be asked for there, by name
parameters             what a command was given, checked
request_faults         the function around the node's own
fault_kinds            errors, dropped connections, delays, throttling
held_requests          requests that wait before they are handled
error_replies          an error where clients of that API look for it: at the partition, if it has partitions
fetch_errors           the same for Fetch, whose requests leave out what a session knows
named_topics           which topics a request names
coordinator_faults     a coordinator that moves, a member whose session is over
faulty_disk            a disk that is full
moved_time             a clock, and timers with it, that go ahead
"""
