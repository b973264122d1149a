"""UperNet with InLine-Swin-T on ADE20K, 1x (160k iterations).
python tools/train.py configs/attention_zoo/upernet_swin-t-inline_1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_swin-t.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/32810869fcc34410966b/?dl=1#/inline_swin_t.pth'
model = dict(backbone=dict(attention='inline'))
