"""What pages are put together from: kit, work, shell, and one folder per page. Streamlit is imported here only."""
