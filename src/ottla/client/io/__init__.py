"""The real world of a client: the only place in `client` with sockets, threads, clocks and chance.

event_loop      readiness of sockets, timers and calls from other threads, in turns
locks           what guards a blocking client, and is never left taken by Ctrl-C
loop_thread     the event loop of a blocking client: run by its own thread, or by a caller who waits
short_waits     how a caller waits: looking again for a moment before it sleeps
asyncio_world   the same ports over a running asyncio loop
log_writer      what clients tell, to the application's log, from a thread without locks
real_ports      the system's clocks and chance
tcp             plain TCP as a transport, and what connects it
tls             TLS (`security.tls`) over it; tls_failures says why it did not come about
dialers         which of the two a client uses
token_endpoint  asking a token provider by HTTP
"""
