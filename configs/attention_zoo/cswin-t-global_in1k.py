"""CSWin-T with softmax attention on ImageNet-1k, 300 epochs at 224 x 224.

ELFATT paper, CSWin-T-GLOBAL: 20M parameters, 7.60 GFLOPs.

    python tools/train.py configs/attention_zoo/cswin-t-global_in1k.py
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
        attention='global',
        out_type='avg_featmap',
        drop_path_rate=0.2,
    ),
    head=dict(in_channels=512),
)

train_dataloader = dict(batch_size=256)
