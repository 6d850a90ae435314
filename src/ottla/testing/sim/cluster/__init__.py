"""A cluster of real nodes on simulated machines.

    cluster_settings     how many nodes, and what they are told
    encryption           which listeners have TLS, and its one certificate
    small_sizes          sizes that come to their limits within a run
    machine              one machine: its disk and its clock, and the lives of the node on it
    simulated_cluster    all of them, the network among them, and time
    cluster_health       whether everything is up, led and in sync

Import from the modules.
"""
