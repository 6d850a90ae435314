"""A schema registry for tests: `own_registry` has it in a process of its own, beside a broker."""
