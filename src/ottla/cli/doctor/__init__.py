"""`ottla doctor`: looks at what a node would start with, and says what it finds and what to do about it.

`doctor`            the command
`findings`          what a check says
`settings_check`    the configuration, by itself
`storage_check`     data directories: whose they are, who uses them, and what room they have
`system_check`      limits on files, memory, the clock, and how this package is installed
`port_check`        whether the node's listeners can be opened, and found by others
"""
