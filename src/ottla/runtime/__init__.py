"""The I/O shell: connections, timers, disk workers, and the drivers that perform what machines decide."""
