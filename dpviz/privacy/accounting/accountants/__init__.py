"""One module per accountant; every one that has an `ACCOUNTANT` is found by `registry`, and nothing else lists them."""
