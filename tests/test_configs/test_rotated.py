"""Rotated detectors, where MMRotate is: its configs with our backbones."""

import copy
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from mmengine.structures import InstanceData
from our_configs import ALL_PATHS, build, read
from our_configs import PATHS as OTHERS
from small_configs import draw_shapes

from mmlinattn.utils import load_config

pytestmark = pytest.mark.skipif(not find_spec('mmrotate'), reason='needs mmrotate')
PATHS = {name: path for name, path in ALL_PATHS.items() if name not in OTHERS}
ENTRIES = {
    model['Name']: model for model in read('configs/rotated/metafile.yml')['Models']
}
METHODS = ('oriented-rcnn', 'rotated-fcos', 'rotated-retinanet')


def test_names():
    assert set(PATHS) == set(ENTRIES)
    assert {name.partition('_')[0] for name in PATHS} == set(METHODS)


@pytest.mark.parametrize('config', PATHS)
def test_models(config):
    """Counts, the optimizer, and a neck that fits the backbone."""
    cfg = load_config(str(PATHS[config]))
    model = build(cfg, 'meta')
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == ENTRIES[config]['Metadata']['Parameters']
    assert list(model.backbone.feature_channels) == cfg.model.neck.in_channels
    assert cfg.optim_wrapper.optimizer.type == 'AdamW'
    assert cfg.default_hooks.pretrained.type == 'mmlinattn.PretrainedBackboneHook'


def small(method):
    """A detector with few channels, and its config."""
    cfg = load_config(str(PATHS[f'{method}_softpp-t-linear_fpn_1x_dota']))
    cfg.model.backbone.update(arch='micro', norm_cfg=dict(type='BN'))
    maps = len(cfg.model.neck.in_channels)
    cfg.model.neck.update(in_channels=[32, 64, 96, 160][-maps:], out_channels=32)
    if 'rpn_head' in cfg.model:
        cfg.model.rpn_head.update(in_channels=32, feat_channels=32)
        cfg.model.test_cfg.rpn.update(nms_pre=50, max_per_img=50)
        cfg.model.train_cfg.rpn_proposal.update(nms_pre=50, max_per_img=50)
        cfg.model.roi_head.bbox_roi_extractor.out_channels = 32
        cfg.model.roi_head.bbox_head.update(in_channels=32, fc_out_channels=32)
    else:
        cfg.model.bbox_head.update(in_channels=32, feat_channels=32)
    test_cfg = cfg.model.test_cfg.get('rcnn', cfg.model.test_cfg)
    test_cfg.update(nms_pre=50, score_thr=0.0, max_per_img=20)
    return build(cfg), cfg


@pytest.mark.parametrize(
    'method',
    [
        'oriented-rcnn',
        'rotated-retinanet',
        pytest.param('rotated-fcos', marks=pytest.mark.full),
    ],
)
def test_trains_and_predicts(method, tmp_path):
    """On a miniature of DOTA, by MMRotate's data set and pipeline, to its metric."""
    from mmrotate.registry import DATASETS, METRICS

    draw_shapes('dota', tmp_path, num_train=2, num_val=2, size=96)
    torch.manual_seed(0)
    model, cfg = small(method)
    options = copy.deepcopy(cfg.train_dataloader.dataset)
    options.data_root = str(tmp_path)
    options.pipeline[3].scale = (96, 96)
    dataset = DATASETS.build(options)
    batch = [dataset[i] for i in range(2)]
    data = {key: [item[key] for item in batch] for key in batch[0]}
    data = model.data_preprocessor(data, training=True)
    losses = model.loss(data['inputs'], data['data_samples'])
    total, _ = model.parse_losses(losses)
    total.backward()
    assert total.isfinite() and total > 0
    assert all(p.grad.isfinite().all() for p in model.backbone.parameters())

    options = copy.deepcopy(cfg.val_dataloader.dataset)
    options.update(ann_file='val/annfiles/', data_prefix=dict(img_path='val/images/'))
    options.data_root = str(tmp_path)
    options.pipeline[1].scale = (96, 96)
    dataset = DATASETS.build(options)
    batch = [dataset[i] for i in range(2)]
    model.eval()
    with torch.no_grad():
        samples = model.test_step(
            {key: [item[key] for item in batch] for key in batch[0]}
        )
    assert all(isinstance(sample.pred_instances, InstanceData) for sample in samples)
    assert samples[0].pred_instances.bboxes.shape[1] == 5
    metric = METRICS.build(dict(type='DOTAMetric', metric='mAP'))
    metric.dataset_meta = dataset.metainfo
    metric.process(data, [sample.to_dict() for sample in samples])
    assert np.isfinite(metric.evaluate(2)['dota/mAP'])
