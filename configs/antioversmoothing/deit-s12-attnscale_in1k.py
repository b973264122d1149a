"""DeiT-S12 + AttnScale on ImageNet-1k, 300 epochs at 224 x 224.

Paper: top-1 80.7 (79.8 without AttnScale), 22.051M + 72 parameters.

    python tools/train.py configs/antioversmoothing/deit-s12-attnscale_in1k.py
"""

_base_ = [
    '../_base_/models/image_classifier.py',
    '../_base_/datasets/in1k_224.py',
    '../_base_/schedules/in1k_300e_deit.py',
    '../_base_/cls_runtime.py',
]

model = dict(
    backbone=dict(
        type='mmlinattn.VisionTransformer',
        arch='deit-small',
        num_layers=12,
        out_type='cls_token',
        drop_path_rate=0.1,
        attn_scale=True,
    ),
    head=dict(in_channels=384),
)

train_dataloader = dict(sampler=dict(type='RepeatAugSampler'))
