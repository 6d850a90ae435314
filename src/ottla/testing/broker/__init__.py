"""A broker for everyone's tests: in a process of its own, or one that is running already.

own_broker       `Broker`: a node that is started for a test and gone after it
own_cluster      `Cluster`: several of them that replicate
secured_listener certificates and a user for a `Broker` or `Cluster` with `security="SASL_SSL"`
given_broker     a broker that somebody else runs, named by an environment variable
faults           what both can be asked for: errors, delays, a full disk, and so on
fault_control    the port that a node takes such requests at
topics           topics made and deleted with one request each, without a client
"""
