"""`ottla top`: topics and groups of a cluster, live: throughput, and how far groups are behind in records and seconds.

`top`            the command: on a screen, as plain tables, or as JSON
`sampling`       what is asked of the cluster
`unread_ages`    when the oldest record was written that a group has not read
`rates`          two samples to rows: what changed in between
`tables`         rows to plain text
`screen`         rows on a terminal; the only importer of rich
"""
