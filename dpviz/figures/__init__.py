"""Pictures: tidy data in, plotly Figure out. Nothing here knows a dataset, a mechanism or a page."""
