"""A replica's place in the metadata quorum.

quorum_of_directory which quorum a directory belongs to, and who leads it
quorum_driver       performs what Raft orders
quorum_network      what is sent to other replicas
quorum_answers      what other replicas ask: votes, and who leads
quorum_log          elections as lines of the log, and controllers that are not those that settings name
same_id             whether another controller has this one's id
quorum_view         what the node knows of the quorum, for clients and metrics
voter_changes       adding and removing voters; raising kraft.version
voter_place         what a controller asks of the quorum for itself
"""
