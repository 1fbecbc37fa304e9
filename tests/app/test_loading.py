"""Finding an app by name: every mistake is one sentence with a next step."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from qmodel.app import LoadError, load

ROOT = Path(__file__).parents[2]
JOBS = """
from qmodel import App
app = App("memory://")
@app.job
def add(x: int, y: int) -> int: return x + y
number = 3
class Settings:
    app = app
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "jobs_here.py").write_text(JOBS)
    (tmp_path / "two_here.py").write_text(JOBS + "other = App()\ndel app\nthird = App()\n")
    (tmp_path / "empty_here.py").write_text("")
    (tmp_path / "broken_here.py").write_text("import nowhere_to_be_found\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("jobs_here", "two_here", "empty_here", "broken_here"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def test_an_app_is_found(folder: Path) -> None:
    app = load("jobs_here:app")
    assert list(app.jobs) == ["add"]
    assert load("jobs_here") is app
    assert load("jobs_here:Settings.app") is app


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("", "names no module"),
        (":app", "names no module"),
        ("job_here:app", "There is no module 'job_here'.*Did you mean 'jobs_here'"),
        ("package.jobs:app", "There is no module 'package'"),
        ("jobs_here.py:app", "Write jobs_here:app"),
        ("./jobs_here.py", "Write jobs_here:app"),
        ("jobs_here:ap", "has no 'ap'. Did you mean 'app'"),
        ("jobs_here:number", "is an int, and not a qmodel.App"),
        ("two_here", "not clear which app of two_here to use. Found: two_here:other, two_here:third"),
        ("empty_here", "no App in it"),
        ("empty_here:app", "has no 'app'"),
        ("__main__:app", "the running program"),
    ],
)
def test_a_mistake_is_one_sentence(folder: Path, where: str, sentence: str) -> None:
    with pytest.raises(LoadError, match=sentence) as found:
        load(where)
    assert "\n" not in str(found.value)


def test_the_modules_of_an_app_are_loaded_with_it(folder: Path) -> None:
    (folder / "shop_here.py").write_text("from qmodel import App\napp = App(imports=['more_here', 'gone_here'])\n")
    (folder / "more_here.py").write_text("from shop_here import app\n@app.job\ndef more(): ...\n")
    with pytest.raises(LoadError, match="imports 'gone_here'"):
        load("shop_here:app")
    (folder / "gone_here.py").write_text("")
    assert list(load("shop_here:app").jobs) == ["more"]
    for name in ("shop_here", "more_here", "gone_here"):
        del sys.modules[name]


def test_what_a_module_raises_goes_through(folder: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="nowhere_to_be_found"):
        load("broken_here:app")


def test_jobs_of_the_program_itself_can_be_put_and_performed_elsewhere(folder: Path) -> None:
    program = "from qmodel.app import load; print(list(load('jobs_here:app').jobs))"
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "['add']\n", ran.stderr
