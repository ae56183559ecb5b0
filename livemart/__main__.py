"""Runs the command line where no script is on the path: `python -m livemart build`."""

from livemart.cli.commands import main

if __name__ == "__main__":
    main()
