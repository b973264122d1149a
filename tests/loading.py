"""The project's folder, files of it that are no modules of a package, and commands."""

import importlib.util
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def load_module(path):
    """A file as a module, named as the file; the path may begin at ROOT."""
    path = ROOT / path
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_command(*command, fails=False, **options):
    """Runs a command to its end; its output, or its errors where it is to fail."""
    command = list(map(str, command))
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert (done.returncode != 0) == fails, f'{done.stdout}{done.stderr}'[-4000:]
    return done.stderr if fails else done.stdout
