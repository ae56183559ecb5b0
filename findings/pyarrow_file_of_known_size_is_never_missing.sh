#!/usr/bin/env bash
# A reader of pyarrow 26.0.1 that knows the size of an object may say so (`make_fragment(...,
# file_size=n)`), which spares a HEAD of S3 for each file. A missing object is another error then:
# without a size it is FileNotFoundError (ENOENT), as on a disk. With a size it is an OSError without
# errno, whose text alone says NO_SUCH_KEY. Whoever catches FileNotFoundError to notice that a file
# was vacuumed away, notices nothing any more once the sizes of a table's log are given.
#
# Exits 1 if the behaviour changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pyarrow==26.0.1 'moto[server]==5.2.2'
"$folder/venv/bin/python" - <<'PY'
import logging

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
from moto.server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(port=0)
server.start()
host, port = server.get_host_and_port()
bucket = fs.S3FileSystem(
    access_key="a-key",
    secret_key="a-secret-key",
    region="us-east-1",
    scheme="http",
    endpoint_override=f"127.0.0.1:{port}",
    allow_bucket_creation=True,
)
bucket.create_dir("mart")
print("pyarrow", pa.__version__)
found = {}
for size in (None, 5_000):
    fragment = ds.ParquetFileFormat().make_fragment("mart/gone.parquet", bucket, file_size=size)
    try:
        fragment.to_table()
    except OSError as error:
        found[size] = (type(error).__name__, error.errno)
        print(f"file_size={size}: {type(error).__name__}, errno {error.errno}: {str(error)[:90]}")
server.stop()
assert found == {None: ("FileNotFoundError", 2), 5_000: ("OSError", None)}
PY
