"""FLatten-Swin-B on ImageNet-1k, 30 epochs at 384 x 384 from 224 x 224.
ELFATT paper: top-1 85.0, 91M parameters, 46.49 GFLOPs.
It starts from the official weights for 224 x 224, its head included.
    python tools/train.py configs/attention_zoo/swin-b-flatten_finetune_in1k-384px.py
"""

_base_ = ['../_base_/models/classifier_swin-t.py', '../_base_/settings/in1k-384_cswin-finetune-30e.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/7a9e5186bad04e7fb3a9/?dl=1#/flatten_swin_b.pth'
model = dict(
    backbone=dict(arch='base', attention='flatten', img_size=384, drop_path_rate=0.7),
    head=dict(in_channels=1024),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.1), dict(type='CutMix', alpha=0.1)]),
)
