"""CSWin-B on ImageNet-1k, 30 epochs at 384 x 384 from 224 x 224.
ELFATT paper: top-1 85.5, 73M parameters, 47.06 GFLOPs.
WEIGHTS: a checkpoint of cswin-b-local_in1k.py. Its head is needed, so it is `load_from` that names it.
    python tools/train.py configs/attention_zoo/cswin-b-local_finetune_in1k-384px.py --cfg-options load_from=WEIGHTS
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-384_cswin-finetune-30e.py']
model = dict(
    backbone=dict(arch='b36292', attention='local', img_size=384, drop_path_rate=0.7),
    head=dict(in_channels=768),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.1), dict(type='CutMix', alpha=0.1)]),
)
