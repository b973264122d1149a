"""AttnScale and FeatScale on a detector that others have trained."""

import sys
from pathlib import Path

import pytest
import torch
from loading import ROOT
from mmengine.registry import MODELS
from mmengine.runner import load_checkpoint
from mmengine.structures import InstanceData
from own_folders import OUTLINE, coco, grow, photo

from mmlinattn.commands import new_config
from mmlinattn.own_config import Devices
from mmlinattn.utils import load_config

pytestmark = pytest.mark.openmmlab
TREE = {'{i}.jpg': photo, 'all.json': coco(**OUTLINE)}
# a miniature of mmdet's Swin-T, by its options and by ours
CHANNELS = [16, 32, 64, 128]
THEIRS = dict(
    type='mmdet.SwinTransformer',
    embed_dims=16,
    depths=[2, 1, 1, 1],
    num_heads=[1, 2, 4, 8],
    window_size=7,
    convert_weights=False,
)
OURS = dict(embed_dims=16, depths=[2, 1, 1, 1], num_heads=[1, 2, 4, 8])


def shrink(model):
    """Few channels behind the backbone."""
    model.neck.update(in_channels=CHANNELS, out_channels=16)
    model.rpn_head.update(in_channels=16, feat_channels=16)
    for name in ('bbox', 'mask'):
        model.roi_head[f'{name}_roi_extractor'].out_channels = 16
    model.roi_head.bbox_head.update(in_channels=16, fc_out_channels=16)
    model.roi_head.mask_head.update(
        in_channels=16, conv_out_channels=16, num_convs=1, num_classes=3
    )
    model.roi_head.bbox_head.num_classes = 3
    model.test_cfg.rcnn.score_thr = 0.0
    return model


def boxes_of(model, x):
    from mmdet.structures import DetDataSample

    sample = DetDataSample(gt_instances=InstanceData())
    sample.set_metainfo(
        dict(img_shape=(96, 128), ori_shape=(96, 128), scale_factor=(1.0, 1.0))
    )
    with torch.no_grad():
        (sample_result,) = model.eval().predict(x, [sample])
    return sample_result.pred_instances


@pytest.fixture
def written(tmp_path, monkeypatch):
    """The config that new-config writes for options."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Devices, 'find', lambda: Devices(1, 12))
    monkeypatch.setattr(sys, 'argv', [str(ROOT / 'tools/misc/new_config.py')])
    grow(Path('my'), TREE)

    def write(*options):
        argv = ['--data', 'my', '--task', 'det', '--out', 'mine.py', '--overwrite']
        argv.append('--no-estimate')
        new_config.main([*argv, '--backbone', 'swin-t-local', *options])
        return load_config('mine.py', warn=pytest.fail)

    return write


def test_it_starts_with_the_same_boxes(written):
    """To the last bit those of the detector without it, and up to rounding those of
    mmdet's own Swin, whose checkpoint all load."""
    torch.manual_seed(0)
    vectors = {'--attn-scale': 'omega', '--feat-scale': 'dc_scale'}
    configs = [written(), *map(written, vectors)]
    assert 'mask_rcnn_swin-t-p4-w7' in configs[2].load_from
    theirs = shrink(load_config('mine.py').model)
    theirs.backbone = THEIRS
    theirs = MODELS.build(theirs)
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, 0, 0.2)
    torch.save(dict(state_dict=theirs.state_dict()), 'theirs.pth')
    x, models = torch.rand(1, 3, 96, 128), []
    for cfg in configs:
        model = shrink(cfg.model)
        model.backbone.arch = OURS
        models.append(MODELS.build(model))
        load_checkpoint(models[-1], 'theirs.pth', 'cpu')
    plain, *scaled = [boxes_of(model, x) for model in models]
    expected = boxes_of(theirs, x)
    assert len(expected) > 10 and expected.masks.any()
    torch.testing.assert_close(plain.scores, expected.scores, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(plain.bboxes, expected.bboxes, rtol=1e-3, atol=1e-2)
    for model, boxes, name in zip(models[1:], scaled, vectors.values()):
        for key in ('bboxes', 'scores', 'labels', 'masks'):
            assert boxes[key].equal(plain[key])
        vectors = [x for key, x in model.named_parameters() if key.endswith(name)]
        assert len(vectors) == 5
        with torch.no_grad():  # trained, they change the boxes
            for vector in vectors:
                vector.fill_(0.5)
        assert not boxes_of(model, x).scores.equal(plain.scores)
