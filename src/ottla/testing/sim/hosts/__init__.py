"""The machines of a simulation: what a program on one of them sees of time, and how it is stopped and ended.

    host_clock       a clock that is wrong: skewed, drifting, set to another hour, standing still
    process          one life of a program on a machine, and its timers
    stepped_thread   a function that continues only when it is told to, and the locks that it may hold

Import from the modules.
"""
