"""CSWin-T-ELFATT on ImageNet-1k, 300 epochs at 224 x 224.

Paper: top-1 83.1, 20M parameters, 4.44 GFLOPs.

Blocks of 49, 49 and 196 tokens, as in the paper's Table I. Detectors and
segmenters have 196 in every level, as in its other tables; the weights have the
same shapes either way.

    python tools/train.py configs/elfatt/cswin-t-elfatt_in1k.py
"""

_base_ = [
    '../_base_/models/image_classifier.py',
    '../_base_/datasets/in1k_224.py',
    '../_base_/schedules/in1k_300e_cswin.py',
    '../_base_/cls_runtime.py',
]

model = dict(
    backbone=dict(
        type='mmlinattn.CSWinTransformer',
        arch='t24181',
        attention='elfatt',
        block_sizes=(49, 49, 196),
        out_type='avg_featmap',
        drop_path_rate=0.2,
    ),
    head=dict(in_channels=512),
)

train_dataloader = dict(batch_size=256)
