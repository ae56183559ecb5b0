"""The server under test: `python -m tests.e2e.serve_store FOLDER PORT EVERY`."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import uvicorn

from livemart.publish.reader import StoreReader
from livemart.serve.app import create_app
from livemart.serve.tokens import TokenStore
from livemart.settings import Settings


def main() -> None:
    """Serve the store of a folder until a signal comes."""
    folder, port, every = sys.argv[1:]
    settings = Settings(
        project_dir=Path(folder), warehouse=Path(folder), every=timedelta(seconds=float(every))
    )
    url = settings.store_url
    assert url is not None
    app = create_app(settings, StoreReader.open(url), TokenStore(url))
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning", server_header=False)


if __name__ == "__main__":
    main()
