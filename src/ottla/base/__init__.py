"""What every other part may lean on: errors, ids and the ports through which the world comes in.

errors            the families of exceptions
ids               UUIDs and partitions
ports             the world as protocols: Clock, Disk, Timers, Workers, Entropy, Network, …
lent              bytes that are only lent, and what holds that rule
addresses         addresses of hosts as text and bytes
tcp_connect       connecting by TCP, for clients and nodes
checksum          CRC-32C, without the cost of its package
pacing            pauses that grow with each failure; how often something that persists is reported
processors        how many processors this process may keep busy
installing        how to install what is missing
freed_memory      memory that is freed and soon needed again
"""
