"""Four papers as data: their claims, figures and published rates."""
