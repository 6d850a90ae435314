"""`ottla cluster start` and its sisters: a cluster of several nodes on this machine.

    command             the commands
    cores               `ottla start --cores N`: brokers of one replica each, for one machine's cores
    cluster_layout      the directory of a cluster: one folder a node, with its settings, data and log
    cluster_security    certificates and logins of a new cluster, and what its clients need
    cluster_making      new clusters, and new nodes
    node_process        one node's process: started, asked to stop, killed
    supervisor          the nodes together: started, watched, started again, stopped
    supervisor_lock     that there is one supervisor, and which process it is
    cluster_status      what is shown of it
    rolling             `ottla cluster roll`: nodes restarted one at a time, when all is in sync

A node is an ordinary one, with a server.properties of its own: `kafka-server-start` starts it as well.
"""
