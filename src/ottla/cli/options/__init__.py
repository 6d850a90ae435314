"""Command lines in Kafka's manner: tables of options, how words are read by them, and the help that is printed.

`table`        what an option is, and what all of a tool's options are
`reading`      words to values, by the rules of joptsimple, which most of Kafka's tools use
`help_text`    the two columns that they print
`checks`       what must be given, and what may not be given together
`subcommands`  the other kind of tool, with a command of its own (argparse4j)
"""
