"""The commands: a module or a room each, with a `main` that takes its arguments.

    main             `ottla`; kafka finds Kafka's tools by the names that they are called by; completion for shells

Nodes and directories: start, storage, server_stop, certificates, dump_log (dump), metadata_shell, doctor, verify,
daemon, local_cluster (`ottla cluster`), sim, demo, node_demo.

Against a cluster: topics, groups, configs, cluster, acls, tokens, transactions, reassign, console, top, performance,
records (`ottla tail`, `consume`, `produce`, `copy`), short (`ottla topic`, `group`, `config`), backup
(`ottla backup`, `restore`), balance (`ottla balance`, `node`), pipelines, health. To be watched by others: dashboards.
Schemas: registry (`ottla registry`). Connectors: connect (`ottla connect`, Kafka's `connect-…`).

What they share:

    options          command lines in Kafka's manner; help_format how wide a `--help` is
    sessions         clients of a tool, from its options; client_settings from a file
    notices          what is said while the cluster cannot be reached
    failures         how a tool says that it could not do its work; java_names by the names of Java's classes
    stopping         Ctrl-C and TERM in tools; node_signals in a node; node_processes the nodes of this machine
    bars             how far something is, how fast, and how long yet
    text_tables      tables of text; json_output `--json`; json_files those that tools are given
    colours          on a terminal; log_format and warning_lines how lines look there
    feature_lines    what two tools tell of features
"""
