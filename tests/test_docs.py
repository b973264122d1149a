"""What the pages show runs as it stands there, and what they name is there."""

import importlib
import re
import sys
from pathlib import Path

import pytest
import torch
from mmengine.optim import build_optim_wrapper
from mmengine.registry import DefaultScope

import mmlinattn.models
from mmlinattn.registry import MODELS
from mmlinattn.utils import load_config

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / 'README.md',
    ROOT / 'CONTRIBUTING.md',
    ROOT / 'CHANGELOG.md',
    ROOT / 'SECURITY.md',
    *sorted(ROOT.glob('docs/*.md')),
    *sorted(ROOT.glob('docs/*/*.md')),
    *sorted(ROOT.glob('configs/*/README.md')),
]
# Files that a sentence or a command names, from the project's root.
NAMED = re.compile(
    r'(?<![\w./-])(?:\.ci|benchmarks|configs|docs|mmlinattn|requirements|tests|tools)'
    r'/[\w./+-]*\.(?:py|sh|md|yml|json|txt|npz)\b'
)


BLOCKS = {
    f'{page.relative_to(ROOT)}, block {i}': block
    for page in PAGES
    for i, block in enumerate(
        re.findall(r'^```python\n(.*?)^```$', page.read_text('utf-8'), re.M | re.S)
    )
}
CONFIGS = [
    name
    for name, x in BLOCKS.items()
    if re.search(r'model = dict\(|_base_ =|read_base', x)
]
# Configs of projects with a library of OpenMMLab: a whole model and its backbone.
OF_LIBRARIES = [
    name
    for name in CONFIGS
    if re.search(r"_base_ = 'mm(det|seg|pretrain)::", BLOCKS[name])
]
SCRIPTS = [name for name in BLOCKS if name not in CONFIGS]
# Rooms whose names are all in docs/api.
ROOMS = (
    'analysis',
    'deployment',
    'engine',
    'functional',
    'models.attentions',
    'models.backbones',
    'models.layers',
    'models.necks',
    'weights',
)
# One interpreter for all scripts: most of the time goes into imports.
RUN_ALL = """
for name, script in {scripts}.items():
    print(name)
    exec(compile(script, name, 'exec'), dict(__name__=name))
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


@pytest.mark.parametrize('name', CONFIGS)
def test_configs_load(name, tmp_path, my_attention):
    path = tmp_path / 'config.py'
    path.write_text(BLOCKS[name])
    backbone = load_config(str(path)).model.backbone
    if '_base_' in BLOCKS[name]:
        assert backbone.type.startswith('mmlinattn.')


@pytest.mark.parametrize('name', OF_LIBRARIES)
def test_configs_of_libraries_run(name, tmp_path):
    """The model builds, its neck takes the maps, and each parameter has a rate."""
    path = tmp_path / 'config.py'
    path.write_text(BLOCKS[name])
    cfg = load_config(str(path))
    # fewer blocks and channels would be another config: one image is all that is small
    with DefaultScope.overwrite_default_scope(cfg.default_scope):
        model = MODELS.build(cfg.model).eval()
        with torch.no_grad():
            maps = model.extract_feat(torch.rand(1, 3, 64, 96))
            if cfg.default_scope == 'mmseg':
                logits = model.decode_head(maps)
                assert logits.shape[1] == 150
                assert model.auxiliary_head(maps).shape[1] == 150
            if cfg.default_scope == 'mmpretrain':
                assert model.head(maps).shape == (1, 1000)
            if cfg.default_scope == 'mmdet':
                assert [x.size(1) for x in maps] == [256] * 5
        optimizer = build_optim_wrapper(model, cfg.optim_wrapper).optimizer
    trained = {id(p) for group in optimizer.param_groups for p in group['params']}
    assert {id(p) for p in model.parameters() if p.requires_grad} <= trained


def test_scripts_run(run_python):
    """They print what their comments promise."""
    scripts = {name: BLOCKS[name] for name in SCRIPTS}
    promised = []
    for name, script in scripts.items():
        promised += [name, *re.findall(r'^# (\[.*\])$', script, re.M)]
    printed = run_python(RUN_ALL.format(scripts=scripts), cwd=ROOT)
    assert printed.splitlines() == promised


def test_own_attention_learns(tmp_path, my_attention):
    """The page's attention has no parameter that training leaves out."""
    (config,) = (x for x in BLOCKS.values() if 'mmlinattn.LinearAttention' in x)
    path = tmp_path / 'mine.py'
    path.write_text(config)
    backbone = MODELS.build(load_config(str(path)).model.backbone)
    outs = backbone(torch.randn(2, 3, 64, 64))
    sum((out * torch.randn_like(out)).sum() for out in outs).backward()
    types = [type(stage.blocks[0].attn).__name__ for stage in backbone.stages]
    assert types == ['LinearAttention'] * 3 + ['SoftmaxAttention']
    attns = [stage.blocks[0].attn for stage in backbone.stages]
    for name, parameter in attns[0].named_parameters():
        assert parameter.grad.abs().max() > 0, name
    assert all(attn.omega.grad.abs().max() > 0 for attn in attns)


@pytest.mark.parametrize('page', PAGES, ids=lambda x: str(x.relative_to(ROOT)))
def test_paths_exist(page):
    text = page.read_text('utf-8')
    links = re.findall(r'\]\((?!http|#)([^\s)#]+)[^)]*\)', text)
    places = [page.parent / link for link in links]
    places += [ROOT / name for name in NAMED.findall(text)]
    assert not [str(place) for place in places if not place.exists()]


@pytest.mark.parametrize('page', PAGES, ids=lambda x: str(x.relative_to(ROOT)))
def test_anchors_exist(page):
    """As GitHub and the site name headings; names of the API are the site's alone."""
    links = re.findall(r'\]\((?!http)([^\s)#]*)#([^\s)]+)\)', page.read_text('utf-8'))
    for path, anchor in links:
        target = page.parent / path if path else page
        if anchor.startswith('mmlinattn.'):
            assert f'::: {anchor}\n' in target.read_text('utf-8')
            continue
        text = re.sub(r'^```.*?^```', '', target.read_text('utf-8'), flags=re.M | re.S)
        headings = re.findall(r'^#+ (.*)$', text, re.M)
        slugs = [re.sub(r'[^\w\- ]', '', x.lower()).replace(' ', '-') for x in headings]
        assert anchor in slugs, f'{path}#{anchor}'


def test_the_api_has_every_public_name():
    pages = ''.join(x.read_text('utf-8') for x in ROOT.glob('docs/api/*.md'))
    shown = re.findall(r'^::: mmlinattn\.(\S+)$', pages, re.M)
    public = ['register']
    for room in ROOMS:
        if room in shown:  # with all that its modules have
            public.append(room)
            continue
        names = importlib.import_module(f'mmlinattn.{room}').__all__
        public += [f'{room}.{name}' for name in names]
    assert sorted(shown) == sorted(public)


def test_the_site_has_every_page():
    config = (ROOT / 'mkdocs.yml').read_text('utf-8')
    nav = re.findall(r'^ +- (?:.*: )?(\S+\.md)$', config.partition('\nnav:')[2], re.M)
    outside = ['index.md', 'contributing.md', 'changelog.md', 'security.md']
    outside += [str(x.relative_to(ROOT)) for x in ROOT.glob('configs/*/README.md')]
    pages = [x.relative_to(ROOT / 'docs').as_posix() for x in ROOT.glob('docs/**/*.md')]
    pages = [x for x in pages if not x.startswith('claims/')]  # all in claims.md
    assert sorted(nav) == sorted(pages + outside)


def test_the_readme_has_every_size():
    rows = re.findall(
        r'^\| `(\w+)` \| ([^|]*) \|', (ROOT / 'README.md').read_text('utf-8'), re.M
    )
    sizes = {name: set(text.split(', ')) for name, text in rows}
    found = {
        name: set(getattr(mmlinattn.models, name).arch_zoo)
        for name in mmlinattn.models.backbones.__all__
        if getattr(getattr(mmlinattn.models, name), 'arch_zoo', None)
    }
    assert sizes == found
