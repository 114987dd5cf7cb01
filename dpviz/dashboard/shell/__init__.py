"""What every page stands in: address, sidebar, links, session, server."""
