"""A node's place in its cluster.

registration             one life of a broker: registering, heartbeats, leaving
registration_refusals    why a controller does not take it, in words
failed_directories       log directories that have failed, until the controller knows
taken_node_id            another controller with this one's id: then it does not start
waiting_for_quorum       what a node says while it waits for a leader
controller_registration  a controller tells the others of itself
self_description         what both tell: where they listen, which features they serve
"""
