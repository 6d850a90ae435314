"""Requests of very many entries, which are decoded and handled in steps, so that other clients are served meanwhile.

slow_lane       takes the steps, a few milliseconds at every turn of the loop
large_frames    bytes to requests, in steps where they are many
parts           which requests are handled in parts; such a request as several of few entries
joined          the answers to the parts, as the answer to the whole
divided         a request that is handled in parts: the steps that a dispatcher has it go through
"""
