"""The commands: one module each, named as the command is, with a `main` that takes its arguments."""
