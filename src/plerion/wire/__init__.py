"""What travels between hosts and the controller: event datagrams, control messages and how both are framed.

Everything here is pure and made for strangers' bytes: a decoder returns a value that encodes again, or raises
WireError, within time and memory that the length of the input bounds.
"""
