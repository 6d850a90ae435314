"""Records in and out of a cluster from the command line: `ottla tail`, `consume`, `produce` and `copy`.

`tail`, `consume`, `produce`, `copy_command`   the commands
`connecting`        the options that name a cluster, and clients made from them
`reading_range`     where reading begins and ends: offsets from ends, counts and times
`moments`           times as people write them
`record_filter`     which records are wanted
`decoding`          bytes to something to look at, with plug-ins
`record_format`     what is written of a record, by a format as kcat has it
`record_json`       records as JSON lines, there and back
`json_colours`      JSON on a terminal
`progress`          how many and how fast, on a terminal
`copied_topics`     the two topics of a copy: which they are, and settings that the destination has from the source
`kept_offsets`      a copy in which every record has the offset that it has in the source
`copy_progress`     where a copy continues after it was stopped
"""
