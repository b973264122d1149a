"""What the README shows runs as it stands there."""

import re
from pathlib import Path

import pytest

from mmlinattn.utils import load_config

README = Path(__file__).resolve().parents[1] / 'README.md'
BLOCKS = re.findall(r'^```python\n(.*?)^```$', README.read_text(), re.M | re.S)
CONFIGS = [block for block in BLOCKS if '_base_' in block]
SCRIPTS = [block for block in BLOCKS if '_base_' not in block]


def first_word(block):
    return re.search(r"type='(\S+?)'|'mmlinattn::(\S+?)'", block)[0]


@pytest.mark.parametrize('config', CONFIGS, ids=first_word)
def test_configs_load(config, tmp_path):
    path = tmp_path / 'config.py'
    path.write_text(config)
    backbone = load_config(str(path)).model.backbone
    assert backbone.type == 'mmlinattn.SOFTPlusPlus'


@pytest.mark.parametrize('script', SCRIPTS, ids=first_word)
def test_scripts_run(script, run_python):
    printed = run_python(script).splitlines()
    promised = re.findall(r'^# (\[.*\])$', script, re.M)
    assert printed == promised


def test_paths_exist():
    links = re.findall(r'\]\((?!http|#)(\S+?)\)', README.read_text())
    named = re.findall(r'(?:configs|tools)/[\w./+-]+\.(?:py|sh)', README.read_text())
    missing = [path for path in links + named if not (README.parent / path).exists()]
    assert links and named and not missing
