#!/bin/bash
# deltalake 1.6.6: while its file system for pyarrow waits for a bucket, no other Python thread runs.
#
# `DeltaStorageHandler` is documented as the file system of `to_pyarrow_dataset`, and a good engineer
# reads several files at once by threads. Each request holds Python's lock until it is answered, so
# the reads come one after another and everything else in the process waits as well. obstore and
# pyarrow's own S3 file system, asked for the same object of the same server, let the others run.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet deltalake==1.6.6 pyarrow==26.0.1 obstore==0.12.1
cat > "$folder/server.py" <<'PY'
"""Answers each request after a second, as a slow bucket of one object would."""
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Bucket(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        time.sleep(1)
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Wed, 25 Nov 2026 12:00:00 GMT")
        self.end_headers()

    def do_GET(self):
        self.do_HEAD()
        self.wfile.write(b"text")

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
print(server.server_port, flush=True)
server.serve_forever()
PY
cat > "$folder/clients.py" <<'PY'
import subprocess
import sys
import threading
import time

import deltalake
import obstore
import pyarrow as pa
import pyarrow.fs as pfs
from deltalake.fs import DeltaStorageHandler
from obstore.store import S3Store

server = subprocess.Popen([sys.executable, sys.argv[1]], stdout=subprocess.PIPE, text=True)
port = server.stdout.readline().strip()
options = {
    "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
    "AWS_ALLOW_HTTP": "true",
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "x",
}
store = S3Store("mart", config={name.lower(): value for name, value in options.items()})
of_pyarrow = pfs.S3FileSystem(
    access_key="x", secret_key="x", region="us-east-1", scheme="http",
    endpoint_override=f"127.0.0.1:{port}",
)  # fmt: skip
handler = DeltaStorageHandler("s3://mart", options)
READERS = {
    "deltalake's handler": lambda: handler.open_input_file("a.parquet"),
    "pyarrow's S3FileSystem": lambda: of_pyarrow.open_input_file("mart/a.parquet"),
    "obstore": lambda: obstore.head(store, "a.parquet"),
}


def longest_stop(ask):
    """Return the seconds of a request, and the longest time in which another thread did not run."""
    stops, is_over = [0.0], threading.Event()

    def tick():
        last = time.perf_counter()
        while not is_over.is_set():
            time.sleep(0.01)
            now = time.perf_counter()
            stops[0], last = max(stops[0], now - last), now

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    ask()
    took = time.perf_counter() - start
    is_over.set()
    thread.join()
    return took, stops[0]


print("deltalake", deltalake.__version__, "pyarrow", pa.__version__, "obstore", obstore.__version__)
shares = {}
for name, ask in READERS.items():
    took, stop = longest_stop(ask)
    shares[name] = stop / took
    print(f"{name}: a request of {took:.2f} s, in which another thread stood still for {stop:.2f} s")
server.kill()
stopped = [name for name, share in shares.items() if share > 0.8]
sys.exit(0 if stopped == ["deltalake's handler"] else 1)
PY
"$folder/venv/bin/python" "$folder/clients.py" "$folder/server.py"
