"""How far one replaced row can move what is released."""
