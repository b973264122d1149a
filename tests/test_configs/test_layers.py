"""How configs are put together."""

import ast
from pathlib import Path

import pytest

from mmlinattn.utils import load_config

pytestmark = pytest.mark.modern

ROOT = Path(__file__).parents[2]
BASE = ROOT / 'configs' / '_base_'


def top_level(path):
    """Names that a config assigns, and its bases."""
    tree = ast.parse(path.read_text())
    names = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            (target,) = node.targets
            names[ast.unparse(target)] = node.value
    bases = ast.literal_eval(names.pop('_base_')) if '_base_' in names else []
    return set(names), bases if isinstance(bases, list) else [bases]


def test_leaf(name, config_path):
    """A leaf is a docstring, a model, a setting, and what its row alone says."""
    names, bases = top_level(config_path)
    model, setting = bases
    assert model.startswith('../_base_/models/')
    assert setting.startswith('../_base_/settings/')
    assert names <= {'model'}
    docstring = ast.get_docstring(ast.parse(config_path.read_text()))
    assert f'tools/train.py configs/{config_path.parent.name}/{name}.py' in docstring


def test_models_hold_a_model_and_what_it_starts_from():
    paths = sorted(BASE.glob('models/*.py'))
    assert paths
    for path in paths:
        names, bases = top_level(path)
        assert names and names <= {'model', 'pretrained'}, path
        assert len(bases) <= 1, path


def test_settings_hold_no_model():
    paths = sorted(BASE.glob('settings/*.py'))
    assert paths
    for path in paths:
        cfg = load_config(str(path))
        assert cfg.keys().isdisjoint({'model', 'pretrained'}), path
        assert {'train_dataloader', 'train_cfg', 'default_hooks'} <= set(cfg), path


def test_bases_are_all_in_use(names, config_path_of):
    """Of schedules, settings and models none is left over."""
    used, ahead = set(), {config_path_of(name).resolve() for name in names}
    while ahead:
        path = ahead.pop()
        used.add(path)
        _, bases = top_level(path)
        ahead |= {(path.parent / base).resolve() for base in bases if '::' not in base}
        ahead -= used
    assert {path.resolve() for path in BASE.rglob('*.py')} <= used


def test_custom_hooks_of_an_heir_leave_pretrained_alone(tmp_path):
    path = tmp_path / 'heir.py'
    base = ROOT / 'configs/soft/retinanet_softpp-t_fpn_1x_coco.py'
    hooks = [dict(type='EMAHook')]
    path.write_text(f'_base_ = {str(base)!r}\ncustom_hooks = {hooks}\n')
    cfg = load_config(str(path))
    assert cfg.custom_hooks == hooks
    assert cfg.default_hooks.pretrained.type == 'mmlinattn.PretrainedBackboneHook'
