"""Code and commands on the pages run unchanged."""

import re
import shlex
import sys
from functools import partial

import pytest
import torch
from loading import ROOT, run_command
from mmengine.optim import build_optim_wrapper
from mmengine.registry import DefaultScope

from mmlinattn.registry import MODELS
from mmlinattn.utils import load_config

pytestmark = pytest.mark.openmmlab

PAGES = {
    str(page.relative_to(ROOT)): page.read_text('utf-8')
    for pattern in ('*.md', 'docs/*.md', 'docs/*/*.md', 'configs/*/README.md')
    for page in sorted(ROOT.glob(pattern))
}
# Code blocks of the pages, without the comments with their output.
BLOCKS = {
    f'{page}, block {i}': block
    for page, text in PAGES.items()
    if page != 'docs/use/hosts.md'  # tests/test_tools/test_hosts.py runs them
    for i, block in enumerate(re.findall(r'^```python\n(.*?)^```$', text, re.M | re.S))
}
CONFIGS = [
    name
    for name, block in BLOCKS.items()
    if re.search(r'model = dict\(|_base_ =|read_base', block)
]
# Configs of projects with a library of OpenMMLab: a whole model and its backbone.
OF_LIBRARIES = [
    name
    for name in CONFIGS
    if re.search(r"_base_ = 'mm(det|seg|pretrain)::", BLOCKS[name])
]
# One interpreter for all scripts, and one for all commands: imports take the time.
RUN_ALL = """
for name, script in {}.items():
    print(name)
    exec(compile(script, name, 'exec'), dict(__name__=name))
"""
# Reads the arguments as the program does, and stops before the work.
PARSE_ALL = """
import argparse, os, runpy, sys
from mim.cli import cli

class Parsed(BaseException):
    pass

def parse_args(self, *args, **kwargs):
    real(self, *args, **kwargs)
    raise Parsed

real = argparse.ArgumentParser.parse_args
argparse.ArgumentParser.parse_args = parse_args
for sys.argv in {}:
    print('$', *sys.argv, file=sys.stderr)
    program, *words = sys.argv
    try:
        if program == 'mim':
            cli.get_command(None, words[0]).make_context(words[0], words[1:])
        else:
            sys.path[0] = os.path.dirname(program)
            runpy.run_path(program, run_name='__main__')
    except Parsed:
        pass
    except SystemExit as stop:
        if stop.code or '--help' not in words:
            raise
"""


@pytest.fixture
def my_attention(tmp_path, monkeypatch):
    """The module that a page says to save, where Python finds it."""
    (script,) = (x for x in BLOCKS.values() if 'class LinearAttention' in x)
    (tmp_path / 'my_attention.py').write_text(script)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop('my_attention', None)
    MODELS.module_dict.pop('LinearAttention', None)


def load(name, tmp_path):
    (tmp_path / 'config.py').write_text(BLOCKS[name])
    return load_config(str(tmp_path / 'config.py'))


@pytest.mark.parametrize('name', sorted(set(CONFIGS) - set(OF_LIBRARIES)))
def test_configs_load(name, tmp_path, my_attention):
    if 'mmrotate::' in BLOCKS[name]:
        pytest.importorskip('mmrotate')
    assert load(name, tmp_path).model.backbone


@pytest.mark.parametrize('name', OF_LIBRARIES)
def test_configs_of_libraries_run(name, tmp_path):
    """The model builds, its neck takes the maps, and each parameter has a rate."""
    cfg = load(name, tmp_path)
    assert cfg.model.backbone.type.startswith('mmlinattn.')
    with DefaultScope.overwrite_default_scope(cfg.default_scope):
        model = MODELS.build(cfg.model).eval()
        with torch.no_grad():
            maps = model.extract_feat(torch.rand(1, 3, 64, 96))
            if cfg.default_scope == 'mmseg':
                assert model.decode_head(maps).shape[1] == 150
                assert model.auxiliary_head(maps).shape[1] == 150
            if cfg.default_scope == 'mmpretrain':
                assert model.head(maps).shape == (1, 1000)
            if cfg.default_scope == 'mmdet':
                assert [x.size(1) for x in maps] in ([256] * 4, [256] * 5)
        optimizer = build_optim_wrapper(model, cfg.optim_wrapper).optimizer
    trained = {id(p) for group in optimizer.param_groups for p in group['params']}
    assert {id(p) for p in model.parameters() if p.requires_grad} <= trained


def test_scripts_run(run_python):
    """They print what their comments promise. Those that need a trained model run in
    test_new_config.py; ultralytics is under the AGPL."""
    scripts = {
        name: script
        for name, script in BLOCKS.items()
        if name not in CONFIGS
        and 'use/predict.md' not in name
        and 'from ultralytics' not in script
    }
    promised = []
    for name, script in scripts.items():
        promised += [name, *re.findall(r'^# (\[.*\])$', script, re.M)]
    lines = run_python(RUN_ALL.format(scripts), cwd=ROOT).splitlines()
    # libraries print, too
    assert [x for x in lines if x in scripts or x.startswith('[')] == promised


def commands():
    """Commands of the pages' shell blocks, as words, without variables before them."""
    for text in PAGES.values():
        for block in re.findall(r'^```bash\n(.*?)^```$', text, re.M | re.S):
            for line in block.replace('\\\n', ' ').splitlines():
                words = shlex.split(line, comments=True)
                while words and re.match(r'[A-Z_]+=', words[0]):
                    words = words[1:]
                if words:
                    yield words


def test_commands_take_their_arguments(run_python):
    """Their files and the targets of make are there too."""
    targets = re.findall(r'^([a-z-]+):', (ROOT / 'Makefile').read_text('utf-8'), re.M)
    programs = []
    for words in commands():
        for word in words:
            if re.match(r'(configs|tools|benchmarks|docs|tests)/', word):
                assert (ROOT / word).exists(), words
        if words[0] == 'make':
            assert {x for x in words[1:] if '=' not in x} <= set(targets), words
        elif words[0] == 'mmlinattn':
            programs.append(['mmlinattn/__main__.py', *words[1:]])
        elif words[0] == 'mim' or words[1:3] in (['-m', 'mim'], ['-m', 'mmlinattn']):
            programs.append(['mim', *words[1 if words[0] == 'mim' else 3 :]])
        elif words[1:2] == ['-m'] and words[2].startswith('mmlinattn.'):
            path = words[2].replace('.', '/')
            programs.append([f'{path}/__main__.py', *words[3:]])
        elif words[0].endswith('python') and not words[1].startswith('../'):
            programs.append(words[1:])  # not those of another checkout
        elif words[0] == 'torchrun':
            programs.append(words[words.index('tools/train.py') :])
    assert len(programs) > 30
    run_python(PARSE_ALL.format(programs), cwd=ROOT)


def test_commits_exist():
    """Those that pages name, in every clone that has all of its history. A tag does not
    travel with a copy."""
    if not (ROOT / '.git').exists():
        pytest.skip('this is no clone')
    git = partial(run_command, 'git', '-C', ROOT)
    if git('rev-parse', '--is-shallow-repository').strip() == 'true':
        pytest.skip('this clone has no history')
    named = r'\bcommit ([0-9a-f]{7,40})\b|git worktree add \S+ (\S+)|\btag (v[\d.]+\d)'
    links = [x for text in PAGES.values() for x in re.findall(named, text)]
    assert len(links) > 5 and not [tag for *_, tag in links if tag]
    for name in {commit or tree for commit, tree, _ in links}:
        git('merge-base', '--is-ancestor', name, 'HEAD')


def test_named_files_exist():
    """Files that a sentence names; make docs checks the links."""
    folders = 'benchmarks|configs|docs|mmlinattn|requirements|tests|tools'
    pattern = rf'`((?:{folders})/[\w./+-]+\.(?:py|sh|md|yml|json|txt|npz))`'
    for page, text in PAGES.items():
        if page != 'CHANGELOG.md':
            gone = [x for x in re.findall(pattern, text) if not (ROOT / x).exists()]
            assert not gone, page
