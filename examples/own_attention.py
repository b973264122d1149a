"""An attention of your own in SOFT's pyramid, in Swin, and in a detector.

`attend` gets queries, keys and values (B, N, C) and the size (H, W) of the map. All
else, such as projections, AttnScale and images of any size, is there already.
"""

import time
from pathlib import Path

import torch
from torch.nn.functional import elu

from mmlinattn import ops
from mmlinattn.engine.preflight import build_model as build_detector
from mmlinattn.models import ProjectedAttention
from mmlinattn.registry import MODELS, build_model
from mmlinattn.utils import load_config


@MODELS.register_module()
class LinearAttention(ProjectedAttention):
    """Transformers are RNNs (arXiv 2006.16236), equation 5."""

    def attend(self, q, k, v, hw_shape):
        q, k, v = (self.split_heads(x) for x in (q, k, v))  # (B, h, N, d)
        q, k = elu(q) + 1, (elu(k) + 1).transpose(-2, -1)
        out = q @ (k @ v) / (q @ k.sum(-1, keepdim=True))
        return self.merge_heads(self.scale(out, v))


def seconds(backbone, images):
    """Return the time of a prediction, after a first one."""
    with torch.no_grad():
        backbone(images)
        start = time.perf_counter()
        backbone(images)
    return time.perf_counter() - start


def main():
    ops.enable()  # RetinaNet needs mmcv's operators
    torch.manual_seed(0)
    mine = dict(type='LinearAttention')
    for cfg in (
        dict(type='SOFT', arch='tiny', attention=mine),
        dict(type='SwinTransformer', arch='tiny', attention=mine, attn_scale=True),
        dict(type='SwinTransformer', arch='tiny'),
    ):
        backbone = build_model(dict(cfg)).eval()
        images = torch.rand(1, 3, 200, 333)
        shapes = [tuple(x.shape[1:]) for x in backbone(images)]
        name = cfg.get('attention', dict(type='its own'))['type']
        print(f'{cfg["type"]}, {name}: {seconds(backbone, images):.2f} s, {shapes}')

    config = Path(__file__).parents[1] / 'configs/soft/retinanet_soft-t_fpn_1x_coco.py'
    cfg = load_config(str(config))
    cfg.model.backbone.update(attention=dict(mine, type='mmlinattn.LinearAttention'))
    cfg.model.backbone.init_cfg = None  # no weights of SOFT's
    detector = build_detector(cfg)
    levels = [tuple(x.shape[1:]) for x in detector.extract_feat(images)]
    print(f'{type(detector).__name__}: {levels}')


if __name__ == '__main__':
    main()
