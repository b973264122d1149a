"""SOFT-Tiny on ImageNet-1k, 300 epochs at 224 x 224.

Paper: 13M parameters.

This is the model of the NeurIPS paper, without normalization. Weights for
the detection and segmentation configs need the normalized kernel: add
`--cfg-options model.backbone.attn_norm=True`.

    python tools/train.py configs/soft/soft-t_in1k.py
"""

_base_ = [
    '../_base_/models/image_classifier.py',
    '../_base_/datasets/in1k_224.py',
    '../_base_/schedules/in1k_300e.py',
    '../_base_/cls_runtime.py',
]

model = dict(
    backbone=dict(
        type='mmlinattn.SOFT', arch='tiny', out_type='cls_token', drop_path_rate=0.1
    ),
    head=dict(in_channels=512),
)
