"""A node's place in its cluster.

registration             one life of a broker: registering, heartbeats, failed directories, leaving
taken_node_id            another controller with this one's id: then it does not start
waiting_for_quorum       what a node says while it waits for a leader
controller_registration  a controller tells the others of itself; what both kinds of nodes tell
"""
