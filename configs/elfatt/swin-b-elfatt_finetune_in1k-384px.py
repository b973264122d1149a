"""Swin-B-ELFATT on ImageNet-1k, 30 epochs at 384 x 384 from 224 x 224.

Paper: top-1 85.5, 91M parameters, 52.79 GFLOPs.

Blocks of 24 x 24 tokens instead of 14 x 14. WEIGHTS: a checkpoint of
swin-b-elfatt_in1k.py. Its head is needed, so it is `load_from` that names it.

    python tools/train.py configs/elfatt/swin-b-elfatt_finetune_in1k-384px.py \
        --cfg-options load_from=WEIGHTS
"""

_base_ = [
    '../_base_/models/image_classifier.py',
    '../_base_/datasets/in1k_384.py',
    '../_base_/schedules/in1k_finetune_30e_cswin.py',
    '../_base_/cls_runtime.py',
]

model = dict(
    backbone=dict(
        type='mmlinattn.SwinTransformer',
        arch='base',
        attention='elfatt',
        block_sizes=576,
        out_type='avg_featmap',
        drop_path_rate=0.7,
    ),
    head=dict(in_channels=1024),
    train_cfg=dict(
        augments=[dict(type='Mixup', alpha=0.1), dict(type='CutMix', alpha=0.1)]
    ),
)
