"""Reading and downloading tables in processes of their own."""
