"""Parts of pages: kit, work, shell, and one folder per page. Streamlit is imported here only."""
