"""`ottla sim`: clusters in a simulation, under faults, from seeds.

    sim             the command and its options
    runs            runs in processes side by side
    run_report      what is printed of a run

Import from the modules.
"""
