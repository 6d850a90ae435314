"""What goes wrong in a simulated cluster, drawn from the seed before it happens.

    fault              one of them, as data
    fault_kinds        what each kind does, and what ends it
    network_cuts       those of the network
    disk_errors        those of disks and files
    metadata_damage    those of a controller's metadata at rest
    schedule           faults in several steps, each at its moment
    quorum_schedules   those for controllers: what the rules of Raft are for
    replica_schedules  those for brokers: what epochs, and the order of what is reported, are for
    drawn_faults       which faults a seed has, and when
    promises           what faults must leave alone, because nobody promises to survive it
    nemesis            has them happen, and starts nodes again

Import from the modules.
"""
