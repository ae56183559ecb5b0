"""Runs the command line from a clone: `python runner.py build`; installed, it is `livemart`."""

from livemart.cli.commands import main

if __name__ == "__main__":
    main()
