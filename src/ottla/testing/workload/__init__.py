"""One workload of everything that a producer can send, drawn from a seed, and what must be readable afterwards.

plans            what is sent, as data
drawing          the program of a seed
variants         the same where nodes are killed meanwhile, or some lanes have fewer rights
conversations    the requests of a lane, without I/O
ledger           what became of each batch, held against what readers have seen
reading          whole partitions read back, by Fetch and from files
simulated_lanes  conversations in the simulator, all at once

Nothing here has a socket, a real clock or a thread: `tests/integrity` drives it over sockets, `tests/sim` in the
simulator. Import from the modules.
"""
