"""The entry point from a clone: `python runner.py build`; `livemart` is the same, installed."""

from livemart.cli.commands import main

if __name__ == "__main__":
    main()
