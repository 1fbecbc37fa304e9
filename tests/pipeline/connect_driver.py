"""A program with Spark Connect: read tables and streams, write jobs, and run a command; print what came of it as JSON.

python -m tests.pipeline.connect_driver URL FOLDER PORT
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from qmodel.pipeline.archive.write import archive
from qmodel.pipeline.spark import session
from qmodel.pipeline.spark.live import windows


def main(url: str, folder: Path, port: str) -> None:
    """Do all, and print it."""
    spark: Any = session("connect", f"sc://localhost:{port}")
    source = spark.read.format("qmodel").option("url", url)
    found: dict[str, object] = {"kind": type(spark).__module__}
    for table in ("events", "journal", "jobs"):
        found[table] = source.option("table", table).load().count()
    list(archive(url, str(folder / "archive")))
    archived = spark.read.format("qmodel").option("archive", str(folder / "archive")).load()
    found["archive"] = archived.count()
    found["windows"] = windows(archived).count()
    rows = spark.range(30).selectExpr("id as number").write.format("qmodel").mode("append").option("url", url)
    rows.option("queue", "emails").option("klass", "Send").option("idColumns", "number").save()
    stream = spark.readStream.format("qmodel").option("url", url).load().select("seq")
    written = stream.writeStream.option("checkpointLocation", str(folder / "at")).trigger(availableNow=True)
    written.start(str(folder / "rows"), "parquet").awaitTermination(200)
    found["stream"] = spark.read.parquet(str(folder / "rows")).count()
    command = [sys.executable, "-m", "qmodel", "--json", "statistics", str(folder / "archive"), "--on", "spark"]
    done = subprocess.run([*command, "--master", f"sc://localhost:{port}"], stdout=-1, text=True, check=True)
    found["statistics"] = sum(one["wait_count"] for one in json.loads(done.stdout))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
