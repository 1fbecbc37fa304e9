"""Fan-out: one job becomes many, goes on when all are done, and tells its progress.

It prints:

    album of 4 pages: 10 bytes
    4/4
"""

from __future__ import annotations

from qmodel import App, Context

app = App()


@app.job(queue="album")
def thumbnail(file: str) -> int:
    """Make a small picture; give how many bytes it has."""
    return len(file)


@app.job(queue="album")
def album(context: Context, files: list[str]) -> str:
    """Let each file be made small; then put them together. It is run twice, and holds no worker in between."""
    if not context.waited:
        context.progress(0, len(files))
        context.wait_for(*(thumbnail.make(file) for file in files))
    context.progress(len(files), len(files))
    return f"album of {len(files)} pages: {sum(context.results.values())} bytes"


if __name__ == "__main__":
    from running import running

    job = album.put(["a", "bb", "ccc", "dddd"])
    with running(app, "album", concurrency=4):
        print(job.wait(timeout=30))
    print(job.refresh().progress_text)
