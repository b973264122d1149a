"""Our configs as bases of configs elsewhere."""

import os
from pathlib import Path

import pytest
from mmengine.config import Config
from our_configs import PATHS, build

import mmlinattn
from mmlinattn.configs import library_config
from mmlinattn.utils import load_config

pytestmark = pytest.mark.openmmlab

INSTALLED = Path(mmlinattn.__file__).parent / '.mim' / 'configs'


@pytest.fixture
def child(tmp_path):
    """Writes a config in a folder of its own, and returns its path."""

    def write(base, text=''):
        path = tmp_path / 'project' / 'child.py'
        path.parent.mkdir()
        path.write_text(f'_base_ = {base!r}\n{text}\n')
        return str(path)

    return write


@pytest.mark.parametrize('relative', [True, False])
def test_by_path(child, tmp_path, relative):
    base = PATHS['mask2former_softpp-s_lsj-50e_coco']
    expected = Config.fromfile(str(base))
    if relative:
        base = os.path.relpath(base, tmp_path / 'project')
    # as `mim train mmdet` reads it
    cfg = Config.fromfile(child(str(base), "pretrained = 'mine.pth'"))
    assert cfg.pretrained == 'mine.pth'
    assert cfg.model == expected.model


@pytest.mark.skipif(not INSTALLED.is_dir(), reason='mmlinattn is not installed')
@pytest.mark.parametrize(
    'base',
    [
        'mask-rcnn_softpp-s_fpn_3x_coco',
        'upernet_softpp-s_1x_ade20k-512x512',
        'soft-m_in1k',
    ],
)
def test_by_scope(child, base):
    change = 'model = dict(backbone=dict(drop_path_rate=0.25))'
    path = child(f'mmlinattn::soft/{base}.py', change)
    cfg = load_config(path, {'pretrained': 'mine.pth'})
    expected = load_config(str(INSTALLED / 'soft' / f'{base}.py'))
    expected.model.backbone.drop_path_rate = 0.25
    expected.pretrained = 'mine.pth'
    assert cfg.to_dict() == expected.to_dict()
    assert "'_scope_': 'mmlinattn'" not in repr(cfg.to_dict())
    backbone = build(cfg, 'meta').backbone
    assert type(backbone).__module__ == 'mmlinattn.models.backbones.soft'


def test_config_of_a_library_that_is_not_there():
    with pytest.raises(ModuleNotFoundError, match='needs mmnothing, which is not'):
        library_config('mmnothing::a.py')
    with pytest.raises(FileNotFoundError, match='no_such.py'):
        library_config('mmdet::no_such.py')


def test_custom_hooks_of_an_heir_leave_pretrained_alone(child):
    base = PATHS['retinanet_softpp-t_fpn_1x_coco']
    cfg = load_config(child(str(base), "custom_hooks = [dict(type='EMAHook')]"))
    assert [hook.type for hook in cfg.custom_hooks] == ['EMAHook']
    assert cfg.default_hooks.pretrained.type == 'mmlinattn.PretrainedBackboneHook'
