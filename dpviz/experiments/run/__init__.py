"""One run: its fields, the check against the data, the train/test split, training, and the measures of its models."""
