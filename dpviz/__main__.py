"""`python -m dpviz`: the same as the command `dpviz`."""

from dpviz.cli.start import main

if __name__ == "__main__":
    raise SystemExit(main())
