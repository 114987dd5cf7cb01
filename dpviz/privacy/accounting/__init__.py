"""Accountants: what many noisy steps cost together, and the noise that a budget needs."""
