"""The page Paper claims."""
