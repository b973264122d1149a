"""Our configs as bases of configs elsewhere."""

import os
from pathlib import Path

import pytest
from mmengine.config import Config

import mmlinattn
from mmlinattn.utils import load_config

pytestmark = pytest.mark.modern

ROOT = Path(__file__).parents[2]
INSTALLED = Path(mmlinattn.__file__).parent / '.mim' / 'configs'
BASES = [
    'mask-rcnn_softpp-s_fpn_3x_coco',
    'upernet_softpp-s_1x_ade20k-512x512',
    'soft-m_in1k',
]
needs_install = pytest.mark.skipif(
    not INSTALLED.is_dir(), reason='mmlinattn is not installed'
)


@pytest.fixture
def child(tmp_path):
    """Writes a config in a folder of its own, and returns its path."""

    def write(base, text=''):
        path = tmp_path / 'project' / 'child.py'
        path.parent.mkdir()
        path.write_text(f'_base_ = {base!r}\n{text}\n')
        return str(path)

    return write


def scopes(node):
    """All values of `_scope_` in a config."""
    if isinstance(node, dict):
        found = {node['_scope_']} if '_scope_' in node else set()
        return found.union(*map(scopes, node.values()))
    if isinstance(node, (list, tuple)):
        return set().union(*map(scopes, node))
    return set()


@pytest.mark.parametrize('relative', [True, False])
def test_by_path(child, tmp_path, relative):
    base = ROOT / 'configs/soft/retinanet_softpp-t_fpn_1x_coco.py'
    if relative:
        base = os.path.relpath(base, tmp_path / 'project')
    path = child(str(base), "pretrained = 'mine.pth'")
    # as `mim train mmdet` reads it
    cfg = Config.fromfile(path)
    assert cfg.pretrained == 'mine.pth'
    expected = Config.fromfile(
        str(ROOT / 'configs/soft/retinanet_softpp-t_fpn_1x_coco.py')
    )
    assert cfg.model == expected.model


@needs_install
@pytest.mark.parametrize('base', BASES)
def test_by_scope(child, base):
    path = child(f'mmlinattn::soft/{base}.py')
    cfg = load_config(path)
    expected = load_config(str(INSTALLED / 'soft' / f'{base}.py'))
    assert cfg.to_dict() == expected.to_dict()
    assert 'mmlinattn' not in scopes(cfg.to_dict())


@needs_install
def test_by_scope_override(child):
    path = child(
        'mmlinattn::soft/mask-rcnn_softpp-s_fpn_3x_coco.py',
        "model = dict(backbone=dict(arch='tiny'))",
    )
    cfg = load_config(path, {'pretrained': 'mine.pth'})
    assert cfg.model.backbone.arch == 'tiny'
    assert cfg.pretrained == 'mine.pth'


@needs_install
@pytest.mark.parametrize('base', BASES)
def test_by_scope_builds(child, base, build_model):
    model = build_model(load_config(child(f'mmlinattn::soft/{base}.py')), 'meta')
    assert type(model.backbone).__module__ == 'mmlinattn.models.backbones.soft'
