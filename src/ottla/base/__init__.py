"""What every other part may lean on: errors, ids and the ports through which the world comes in."""
