"""The papers' figures as settings, with what each paper says that its figure shows."""
