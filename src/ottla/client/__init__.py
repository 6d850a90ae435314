"""Producer, consumer and admin: cores without I/O, and the shells that run them."""
