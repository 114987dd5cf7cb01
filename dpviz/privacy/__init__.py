"""Budgets, noise scales, sensitivities and what they guarantee."""
