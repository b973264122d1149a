"""The first config of each page for users trains unchanged, by our tool and by mim."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest
import torch

from mmlinattn.registry import MODELS
from mmlinattn.utils import load_config

ROOT = Path(__file__).resolve().parents[2]
PAGES = ['README.md', *(f'docs/use/{x.name}' for x in ROOT.glob('docs/use/[a-z]*.md'))]
for page in ('frameworks', 'no_compiler', 'own_data', 'predict'):  # the others do
    PAGES.remove(f'docs/use/{page}.md')
EPOCH = {'train_cfg.max_epochs': 1, 'train_dataloader.dataset.indices': 4}
TWO_STEPS = {
    'mmdet': EPOCH,
    'mmpretrain': {**EPOCH, 'param_scheduler.1.begin': 0},
    'mmseg': {'train_cfg.max_iters': 2, 'default_hooks.checkpoint.interval': 2},
}


def blocks_of(page):
    text = (ROOT / page).read_text('utf-8')
    return re.findall(r'^```(?:python|bash)\n(.*?)^```$', text, re.M | re.S)


def first_config(page):
    """The first config of a page, or one that inherits the config of its first
    command."""
    for block in blocks_of(page):
        trained = re.match(r'python tools/train\.py (configs/\S+)', block)
        if trained:
            return f'_base_ = {str(ROOT / trained[1])!r}\n'
        if '_base_ =' in block:
            return block
    raise AssertionError(f'{page} trains nothing')


@pytest.fixture
def example(request, user, quick, monkeypatch):
    """A page's first config as a file, its library, and options of a short training."""
    text = first_config(request.param)
    config = user.folder / 'mine.py'
    config.write_text(text)
    for module in re.findall(r"custom_imports = dict\(imports=\['(\w+)'\]\)", text):
        (script,) = (x for x in blocks_of(request.param) if 'class Linear' in x)
        (user.folder / f'{module}.py').write_text(script)
        monkeypatch.syspath_prepend(str(user.folder))
        user.env['PYTHONPATH'] = str(user.folder)
    scope = re.search(r"_base_ = '(\w+)::", text)
    cfg = load_config(str(config))
    options = quick(config, **TWO_STEPS[cfg.default_scope])
    if 'pretrained' not in cfg:  # a variable of our configs
        del options['pretrained']
    library = scope[1] if scope else cfg.default_scope
    yield config, 'mmsegmentation' if library == 'mmseg' else library, options
    sys.modules.pop('my_attention', None)
    MODELS.module_dict.pop('LinearAttention', None)


def assert_two_steps(work_dir):
    """Checks that AdamW took two steps."""
    path = Path((work_dir / 'last_checkpoint').read_text())
    optimizer = torch.load(path, map_location='cpu', weights_only=False)['optimizer']
    assert {int(entry['step']) for entry in optimizer['state'].values()} == {2}
    rates = {group['initial_lr'] for group in optimizer['param_groups']}
    assert max(rates) < 0.002


@pytest.mark.parametrize(
    'example',
    # test_docs.py builds all of them
    [pytest.param(x, marks=() if x == PAGES[0] else pytest.mark.full) for x in PAGES],
    indirect=True,
)
def test_our_tool_trains_it(example, user, monkeypatch):
    config, _, options = example
    monkeypatch.chdir(user.folder)
    path = ROOT / 'tools' / 'train.py'
    spec = importlib.util.spec_from_file_location('tool_train', path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    words = [f'{key}={value}' for key, value in options.items()]
    argv = ['train.py', str(config), '--work-dir', 'train', '--cfg-options', *words]
    monkeypatch.setattr(sys, 'argv', argv)
    tool.main()
    assert_two_steps(user.folder / 'train')


@pytest.mark.full
@pytest.mark.parametrize('example', ['README.md'], indirect=True)
def test_mim_trains_it(example, user):
    config, library, options = example
    assert_two_steps(user.train(library, config, options).work_dir)
