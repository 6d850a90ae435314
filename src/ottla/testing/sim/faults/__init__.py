"""What goes wrong in a simulated cluster, drawn from the seed before it happens.

    fault            one of them, as data
    fault_kinds      what each kind does, and what ends it
    network_cuts     those of the network
    disk_errors      those of disks and files
    drawn_faults     which faults a seed has, and when
    promises         what faults must leave alone, because nobody promises to survive it
    nemesis          has them happen, and starts nodes again

Import from the modules.
"""
