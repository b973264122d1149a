"""Configs in MMEngine's new style say what their old twins say."""

from pathlib import Path

import pytest
from mmengine.config import Config

from mmlinattn.engine import check_pretrained
from mmlinattn.utils import load_config

pytestmark = pytest.mark.modern

NEW = Path(__file__).parents[2] / 'mmlinattn/configs'
PATHS = {path.stem: path for path in sorted(NEW.glob('[!_]*/[!_]*.py'))}
# variables that only help to write an old config
HELPERS = {'dataset_type'}


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


@pytest.fixture
def twin(config_path_of, names):
    """Gives the old config of a new one's name, which no test has built from."""

    def get(name):
        (old,) = [x for x in names if x.replace('-', '_') == name]
        return load_config(str(config_path_of(old)))

    return get


def test_each_family_has_one(config_path_of, names):
    families = {config_path_of(name).parent.name for name in names}
    assert {path.parent.name for path in PATHS.values()} == families


@pytest.mark.parametrize('new_name', PATHS)
def test_twins(new_name, twin):
    new = plain(Config.fromfile(str(PATHS[new_name])).to_dict())
    old = plain(twin(new_name).to_dict())
    assert set(old) - set(new) == HELPERS
    for key, value in new.items():
        assert value == old[key], key


@pytest.mark.parametrize('new_name', PATHS)
def test_it_builds(new_name, build_model):
    pytest.importorskip('mmdet')
    cfg = load_config(str(PATHS[new_name]))
    check_pretrained(cfg)
    model = build_model(cfg, 'meta')
    assert type(model).__name__ == 'MaskRCNN'
    assert type(model.backbone).__module__.startswith('mmlinattn.')


def test_a_config_of_ones_own(tmp_path):
    path = tmp_path / 'mine.py'
    name = 'mask_rcnn_softpp_t_fpn_1x_coco'
    path.write_text(f"""
from mmengine.config import read_base

with read_base():
    from mmlinattn.configs.soft.{name} import *

model.backbone.drop_path_rate = 0.3
""")
    cfg = load_config(str(path), {'pretrained': 'mine.pth'})
    assert cfg.model.backbone.drop_path_rate == 0.3
    assert cfg.pretrained == 'mine.pth'
    expected = Config.fromfile(str(PATHS[name]))
    assert cfg.model.roi_head.to_dict() == expected.model.roi_head.to_dict()
