"""Questions that several runs answer: groups, costs, influence, observed sensitivity, answers of lessons."""
