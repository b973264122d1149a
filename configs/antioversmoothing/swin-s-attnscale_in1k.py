"""Swin-S + AttnScale on ImageNet-1k, 300 epochs at 224 x 224.

Paper: top-1 83.4 (83.0 without AttnScale), 49.606M + 282 parameters.

    python tools/train.py configs/antioversmoothing/swin-s-attnscale_in1k.py
"""

_base_ = [
    '../_base_/models/image_classifier.py',
    '../_base_/datasets/in1k_224.py',
    '../_base_/schedules/in1k_300e_swin.py',
    '../_base_/cls_runtime.py',
]

model = dict(
    backbone=dict(
        type='mmlinattn.SwinTransformer',
        arch='small',
        out_type='avg_featmap',
        drop_path_rate=0.3,
        attn_scale=True,
    ),
    head=dict(in_channels=768),
)
