"""Projects of others, in folders of their own, that build on ours."""

import pytest
from mmengine.config import Config

SHORT = {'train_cfg.max_epochs': 1}
RETINANET = 'soft/retinanet_softpp-t_fpn_1x_coco.py'
CHANGE = 'model = dict(backbone=dict(drop_path_rate=0.25))\n'


@pytest.fixture
def project(user):
    """Writes a config of a project, and returns its path."""

    def write(name, text):
        path = user.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


def assert_changed(training, config):
    """The config that was trained is ours with the project's change."""
    backbone = Config.fromfile(training.work_dir / config.name).model.backbone
    assert backbone.type == 'mmlinattn.SOFTPlusPlus'
    assert backbone.drop_path_rate == 0.25
    assert training.metrics


@pytest.mark.full
def test_paths_in_mim_train_mmdet(user, project, configs, quick):
    project('project/base.py', f"_base_ = '{configs / RETINANET}'\n")
    config = project('another/mine.py', f"_base_ = '../project/base.py'\n{CHANGE}")
    options = quick(config, **SHORT, **{'model.test_cfg.score_thr': 0})
    assert_changed(user.train('mmdet', config, options), config)


@pytest.mark.full
@pytest.mark.modern
def test_foreign_project_names_our_backbone(user, project, quick):
    config = project(
        'project/foreign.py',
        "_base_ = 'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py'\n"
        'model = dict(\n'
        "    backbone=dict(_delete_=True, type='mmlinattn.SOFTPlusPlus', "
        "arch='tiny'),\n"
        '    neck=dict(in_channels=[64, 128, 256, 512]))\n',
    )
    options = quick(config, **SHORT, **{'model.test_cfg.score_thr': 0})
    assert user.train('mmdet', config, options).metrics
