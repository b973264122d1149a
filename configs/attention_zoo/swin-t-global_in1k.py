"""Swin-T with softmax attention on ImageNet-1k, 300 epochs at 224 x 224.

ELFATT paper, Swin-T-GLOBAL: 28M parameters, 8.81 GFLOPs.

    python tools/train.py configs/attention_zoo/swin-t-global_in1k.py
"""

_base_ = [
    '../_base_/models/image_classifier.py',
    '../_base_/datasets/in1k_224.py',
    '../_base_/schedules/in1k_300e_cswin.py',
    '../_base_/cls_runtime.py',
]

model = dict(
    backbone=dict(
        type='mmlinattn.SwinTransformer',
        arch='tiny',
        attention='global',
        out_type='avg_featmap',
        drop_path_rate=0.2,
    ),
    head=dict(in_channels=768),
)

train_dataloader = dict(batch_size=256)
