"""Clients whose calls wait: `ottla.Producer`, `ottla.Consumer`, `ottla.Admin`, `ottla.SchemaRegistryClient`."""
