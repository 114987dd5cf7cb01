"""Influence of training rows: influence functions and exact retraining."""
