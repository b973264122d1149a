"""What the pages show runs as it stands there, and what they name is there."""

import re
from pathlib import Path

import pytest
import torch

from mmlinattn.registry import MODELS
from mmlinattn.utils import load_config

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / 'README.md',
    ROOT / 'CONTRIBUTING.md',
    ROOT / 'CHANGELOG.md',
    ROOT / 'SECURITY.md',
    *sorted(ROOT.glob('docs/*.md')),
    ROOT / 'docs/benchmarks/README.md',
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
    name for name, x in BLOCKS.items() if re.search(r'model = dict\(|read_base', x)
]
SCRIPTS = [name for name in BLOCKS if name not in CONFIGS]
# One interpreter for all scripts: most of the time goes into imports.
RUN_ALL = """
for name, script in {scripts}.items():
    print(name)
    exec(compile(script, name, 'exec'), dict(__name__=name))
"""


@pytest.mark.parametrize('name', CONFIGS)
def test_configs_load(name, tmp_path):
    path = tmp_path / 'config.py'
    path.write_text(BLOCKS[name])
    backbone = load_config(str(path)).model.backbone
    if '_base_' in BLOCKS[name]:
        assert backbone.type.startswith('mmlinattn.')


def test_scripts_run(run_python):
    """They print what their comments promise."""
    scripts = {name: BLOCKS[name] for name in SCRIPTS}
    promised = []
    for name, script in scripts.items():
        promised += [name, *re.findall(r'^# (\[.*\])$', script, re.M)]
    printed = run_python(RUN_ALL.format(scripts=scripts), cwd=ROOT)
    assert printed.splitlines() == promised


def test_own_attention_learns():
    """The README's attention has no parameter that training leaves out."""
    (script,) = (x for x in BLOCKS.values() if 'class LinearAttention' in x)
    namespace = dict(__name__='readme')
    try:
        exec(script, namespace)  # noqa: S102
        backbone = namespace['backbone']
        outs = backbone(torch.randn(2, 3, 64, 64))
        sum((out * torch.randn_like(out)).sum() for out in outs).backward()
    finally:
        MODELS.module_dict.pop('LinearAttention', None)
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
