#!/bin/bash
# Hadoop 3.5.0: S3A's `create(path, overwrite = false)` replaces what another client wrote meanwhile.
#
# S3A sends conditional writes since 3.4.2 (HADOOP-19256), and its release notes say that an output
# stream checks at its end that nothing is overwritten: an atomic creation, switched on by default
# (`fs.s3a.create.conditional.enabled`). Measured with two clients, as two drivers of Spark are: both
# closes succeed and the first content is lost, for `create` and for the builder's
# `overwrite(false)`. Only the builder's option `fs.option.create.conditional.overwrite` sends
# If-None-Match. Delta's log store for S3 calls `create`, so it still needs one driver a table.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet 'moto[s3]==5.2.5' flask==3.1.3 flask-cors==6.0.5
cat > "$folder/pom.xml" <<'XML'
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId>
  <artifactId>s3a</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.hadoop</groupId><artifactId>hadoop-client-api</artifactId><version>3.5.0</version></dependency>
    <dependency><groupId>org.apache.hadoop</groupId><artifactId>hadoop-client-runtime</artifactId><version>3.5.0</version></dependency>
    <dependency>
      <groupId>org.apache.hadoop</groupId><artifactId>hadoop-aws</artifactId><version>3.5.0</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>
    <dependency><groupId>org.apache.commons</groupId><artifactId>commons-lang3</artifactId><version>3.20.0</version></dependency>
    <dependency><groupId>software.amazon.awssdk</groupId><artifactId>s3</artifactId><version>2.35.4</version></dependency>
    <dependency><groupId>software.amazon.awssdk</groupId><artifactId>sts</artifactId><version>2.35.4</version></dependency>
    <dependency><groupId>software.amazon.awssdk</groupId><artifactId>s3-transfer-manager</artifactId><version>2.35.4</version></dependency>
    <dependency><groupId>software.amazon.awssdk</groupId><artifactId>apache-client</artifactId><version>2.35.4</version></dependency>
    <dependency><groupId>software.amazon.s3.analyticsaccelerator</groupId><artifactId>analyticsaccelerator-s3</artifactId><version>1.3.1</version></dependency>
  </dependencies>
</project>
XML
mvn --quiet --batch-mode --no-transfer-progress -Dstyle.color=never --file "$folder/pom.xml" \
    org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
    -DincludeScope=runtime "-DoutputDirectory=$folder/jars"
cat > "$folder/TwoClients.java" <<'JAVA'
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.util.VersionInfo;

public class TwoClients {
    static FSDataOutputStream open(FileSystem client, Path path, String how) throws Exception {
        if (how.equals("create")) {
            return client.create(path, false);
        }
        FSDataOutputStreamBuilder<?, ?> builder = client.createFile(path).overwrite(false);
        if (how.equals("option")) {
            builder.must("fs.option.create.conditional.overwrite", true);
        }
        return (FSDataOutputStream) builder.build();
    }

    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        settings.set("fs.s3a.endpoint", arguments[0]);
        settings.set("fs.s3a.endpoint.region", "us-east-1");
        settings.set("fs.s3a.path.style.access", "true");
        settings.set("fs.s3a.input.stream.type", "classic");
        URI bucket = URI.create("s3a://mart");
        FileSystem first = FileSystem.newInstance(bucket, settings);
        FileSystem second = FileSystem.newInstance(bucket, settings);
        System.out.println("hadoop " + VersionInfo.getVersion());
        for (String how : new String[] {"create", "builder", "option"}) {
            Path path = new Path("s3a://mart/log/" + how);
            FSDataOutputStream one = open(first, path, how);
            FSDataOutputStream two = open(second, path, how);
            one.write("one".getBytes());
            two.write("two".getBytes());
            one.close();
            String end = "both closed";
            try {
                two.close();
            } catch (Exception error) {
                end = "the second close failed";
            }
            byte[] content = first.open(path).readAllBytes();
            System.out.println(how + ": " + end + ", it holds " + new String(content));
        }
        System.exit(0);
    }
}
JAVA
cat > "$folder/run.py" <<'PY'
import logging
import os
import subprocess
import sys
from urllib.request import Request, urlopen

from moto.server import ThreadedMotoServer

folder = sys.argv[1]
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
endpoint = f"http://{host}:{port}"
urlopen(Request(f"{endpoint}/mart", method="PUT")).close()
keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
command = ["java", "-cp", f"{folder}/jars/*", f"{folder}/TwoClients.java", endpoint]
run = subprocess.run(command, env=os.environ | keys, capture_output=True, text=True)
server.stop()
print(run.stdout, end="")
expected = [
    "hadoop 3.5.0",
    "create: both closed, it holds two",
    "builder: both closed, it holds two",
    "option: the second close failed, it holds one",
]
if run.stdout.splitlines() != expected:
    sys.exit(run.stderr[-2000:] or "it behaves otherwise now")
PY
"$folder/venv/bin/python" "$folder/run.py" "$folder"
# Seen:
#   hadoop 3.5.0
#   create: both closed, it holds two
#   builder: both closed, it holds two
#   option: the second close failed, it holds one
