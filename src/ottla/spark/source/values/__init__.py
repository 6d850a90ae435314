"""Values that are decoded where they are read, on the executors, a column at a time.

value_options    what was asked for: raw, string, json, or a decoder of the user's own
undecodable      which values of a batch are bad, and what is done with them
"""
