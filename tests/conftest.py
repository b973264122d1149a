import logging
import subprocess
import sys

import pytest
import torch
from mmengine.logging import MMLogger
from mmengine.registry import DefaultScope


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def no_default_scope():
    """A runner leaves its scope behind, where unscoped types are looked up."""
    DefaultScope._instance_dict.clear()
    yield
    DefaultScope._instance_dict.clear()


@pytest.fixture(scope='session', autouse=True)
def quiet():
    """MMEngine's initialization prints every parameter."""
    MMLogger.get_current_instance().setLevel(logging.WARNING)


@pytest.fixture
def run_python(tmp_path):
    """Runs code in an interpreter that has imported nothing yet."""

    def run(code):
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', code],
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
