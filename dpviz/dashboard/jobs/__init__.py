"""Background work: one pool of jobs, and the runs that are kept."""
