"""Parts of pages: charts, tables, guarantee badges, words."""
