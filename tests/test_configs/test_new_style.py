"""Configs in MMEngine's new style equal their old twins."""

from pathlib import Path

import pytest

from mmlinattn.configs import library_config
from mmlinattn.engine import check_pretrained
from mmlinattn.utils import load_config

pytestmark = pytest.mark.modern

NEW = Path(__file__).parents[2] / 'mmlinattn/configs'
PATHS = {path.stem: path for path in sorted(NEW.glob('[!_]*/[!_]*.py'))}


def plain(node):
    """A config without scopes, and with a type's bare name."""
    if isinstance(node, dict):
        node = {key: plain(value) for key, value in node.items() if key != '_scope_'}
        if isinstance(node.get('type'), str):
            node['type'] = node['type'].rpartition('.')[2]
        return node
    if isinstance(node, (list, tuple)):
        return [plain(child) for child in node]
    return node


@pytest.mark.parametrize('new_name', PATHS)
def test_twins(new_name, names, config_path_of, build_model):
    (old,) = [name for name in names if name.replace('-', '_') == new_name]
    assert config_path_of(old).parent.name == PATHS[new_name].parent.name
    new = load_config(str(PATHS[new_name]))
    assert plain(new.to_dict()) == plain(
        load_config(str(config_path_of(old))).to_dict()
    )
    check_pretrained(new)
    model = build_model(new, 'meta')
    assert type(model).__name__ == 'MaskRCNN'
    assert type(model.backbone).__module__.startswith('mmlinattn.')


def test_a_config_of_ones_own(tmp_path):
    path = tmp_path / 'mine.py'
    path.write_text("""
from mmengine.config import read_base

with read_base():
    from mmlinattn.configs.soft.mask_rcnn_softpp_t_fpn_1x_coco import *

model.backbone.drop_path_rate = 0.3
""")
    cfg = load_config(str(path), {'pretrained': 'mine.pth'})
    assert cfg.model.backbone.drop_path_rate == 0.3
    assert cfg.pretrained == 'mine.pth'
    assert cfg.model.roi_head.mask_head.num_classes == 80


def test_config_of_a_library_that_is_not_there():
    with pytest.raises(ModuleNotFoundError, match='needs mmnothing, which is not'):
        library_config('mmnothing::a.py')
    with pytest.raises(FileNotFoundError, match='no_such.py'):
        library_config('mmdet::no_such.py')
