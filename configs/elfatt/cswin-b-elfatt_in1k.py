"""CSWin-B-ELFATT on ImageNet-1k, 300 epochs at 224 x 224.

Paper: top-1 84.7, 73M parameters, 15.47 GFLOPs.

    python tools/train.py configs/elfatt/cswin-b-elfatt_in1k.py
"""

_base_ = [
    '../_base_/models/image_classifier.py',
    '../_base_/datasets/in1k_224.py',
    '../_base_/schedules/in1k_300e_cswin-base.py',
    '../_base_/cls_runtime.py',
]

model = dict(
    backbone=dict(
        type='mmlinattn.CSWinTransformer',
        arch='b36292',
        attention='elfatt',
        out_type='avg_featmap',
        drop_path_rate=0.5,
    ),
    head=dict(in_channels=768),
)
