"""Runs the command line where its script is not on the path: `python -m livemart build`."""

from livemart.cli.commands import main

if __name__ == "__main__":
    main()
