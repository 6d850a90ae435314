"""`ottla registry`: a schema registry, started and used.

command          the options of all its commands
connecting       the client that they use
start_registry   `ottla registry start`
schemas          list, show, register, check, diff, delete
settings         config and mode
record_schemas   records as JSON and back, for tail, consume and the console tools
copying          export, import, and copy between registries
"""
