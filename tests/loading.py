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


def run_command(*command, fails=False, stderr=subprocess.PIPE, **options):
    """Runs a command to its end; its output, or its errors where it is to fail."""
    options.update(stdout=subprocess.PIPE, stderr=stderr, text=True)
    done = subprocess.run(list(map(str, command)), **options)
    assert (done.returncode != 0) == fails, f'{done.stdout}{done.stderr}'[-4000:]
    return (fails and done.stderr) or done.stdout


def load_backbone(kind, checkpoint, *args, **options):
    """A backbone loaded like by a detector's config."""
    init_cfg = dict(type='Pretrained', checkpoint=str(checkpoint))
    model = kind(*args, init_cfg=init_cfg, **options)
    model.init_weights()
    return model.eval()


# code that lets imports of ``blocked`` packages fail from then on
BLOCK = """
import sys


class Blocker:
    blocked = {blocked}

    def find_spec(self, name, path=None, target=None):
        if any(name == b or name.startswith(b + '.') for b in self.blocked):
            raise ModuleNotFoundError(f'No module named {{name!r}}', name=name)


sys.meta_path.insert(0, Blocker())
"""
