"""Mask R-CNN with FPN on COCO, 12 epochs, batch 16 (8 GPUs x 2). Still to be given:
backbone and neck.in_channels.

MMDetection's wheels have none of its configs in the new style, so its own is read in
the old one."""

from mmengine.optim import OptimWrapper
from torch.optim import AdamW

from mmlinattn.engine import (
    AtomicCheckpointHook,
    PretrainedBackboneHook,
    ReleaseMemoryHook,
)

__theirs = __import__('mmlinattn.configs').configs.library_config(
    'mmdet::mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py'
)
globals().update(__theirs)
pretrained = None
model = __theirs.model
model.backbone = dict()
default_hooks = __theirs.default_hooks
default_hooks.checkpoint.update(type=AtomicCheckpointHook, max_keep_ckpts=3)
default_hooks.update(
    pretrained=dict(type=PretrainedBackboneHook),
    release_memory=dict(type=ReleaseMemoryHook),
)
optim_wrapper = dict(
    type=OptimWrapper,
    optimizer=dict(type=AdamW, lr=1e-4, betas=(0.9, 0.999), weight_decay=0.01),
    paramwise_cfg=dict(
        norm_decay_mult=0.0,
        custom_keys={
            key: dict(decay_mult=0.0)
            for key in (
                *('pos_embed', 'relative_position_bias_table', 'agent_bias'),
                *('query_bias', 'focus_scale', 'cls_token', 'omega', 'dc_scale'),
                *('hc_scale', 'scale1', 'scale2'),
            )
        },
    ),
)
