"""`ottla health`: a cluster in one screen and one exit code. `ottla doctor -b` shows the same with advice.

    health_command    the command
    cluster_checks    what is looked at, a function for each area

Import from the modules.
"""
