"""What pages are put together from: the sidebar, cached runs, the address, and parts that look the same everywhere.

Besides app.py and pages/ the only room that imports streamlit.
"""
