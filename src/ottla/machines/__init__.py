"""Pure state machines: events and time come in, effects and decisions go out. Nothing here touches the world."""
