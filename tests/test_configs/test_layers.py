"""The layers of configs."""

import ast
from pathlib import Path

import pytest

from mmlinattn.utils import load_config

pytestmark = pytest.mark.modern

BASE = Path(__file__).parents[2] / 'configs/_base_'


def bases_of(path):
    """Paths of the bases of a config, in its own words."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == '_base_':
            bases = ast.literal_eval(node.value)
            return bases if isinstance(bases, list) else [bases]
    return []


def test_leaves(names, config_path_of):
    """A leaf is a docstring, a model, a setting, and its row's own entries."""
    for path in map(config_path_of, names):
        model, setting = bases_of(path)
        assert model.startswith('../_base_/models/'), path
        assert setting.startswith('../_base_/settings/'), path
        docstring = ast.get_docstring(ast.parse(path.read_text()))
        assert f'tools/train.py configs/{path.parent.name}/{path.name}' in docstring


def test_bases_are_all_in_use(names, config_path_of):
    used, ahead = set(), {config_path_of(name).resolve() for name in names}
    while ahead:
        path = ahead.pop()
        used.add(path)
        ahead |= {(path.parent / x).resolve() for x in bases_of(path) if '::' not in x}
        ahead -= used
    assert {path.resolve() for path in BASE.rglob('*.py')} <= used


def test_custom_hooks_of_an_heir_leave_pretrained_alone(tmp_path, config_path_of):
    path = tmp_path / 'heir.py'
    base = config_path_of('retinanet_softpp-t_fpn_1x_coco')
    path.write_text(f"_base_ = {str(base)!r}\ncustom_hooks = [dict(type='EMAHook')]\n")
    cfg = load_config(str(path))
    assert [hook.type for hook in cfg.custom_hooks] == ['EMAHook']
    assert cfg.default_hooks.pretrained.type == 'mmlinattn.PretrainedBackboneHook'
