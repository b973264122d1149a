"""UperNet with Pola-Swin-T on ADE20K, 1x (160k iterations).
python tools/train.py configs/attention_zoo/upernet_swin-t-polaformer_1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_swin-t.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
model = dict(backbone=dict(attention='polaformer'))
