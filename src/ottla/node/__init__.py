"""The composition root: from a configuration to a running node. The only place that wires the parts together."""
