"""From the bytes of a table to rows in the unit ball."""
