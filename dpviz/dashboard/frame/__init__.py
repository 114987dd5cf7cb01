"""The frame of every page: address, sidebar, links, session, server."""

#: what all pages keep in the address beside the run
KEYS = ("metric",)
