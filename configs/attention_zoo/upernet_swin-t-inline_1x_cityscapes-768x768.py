"""UperNet with InLine-Swin-T on Cityscapes, 1x (40k iterations).
python tools/train.py configs/attention_zoo/upernet_swin-t-inline_1x_cityscapes-768x768.py
"""

_base_ = ['../_base_/models/upernet_swin-t.py', '../_base_/settings/cityscapes-768x768_swin-1x.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/32810869fcc34410966b/?dl=1#/inline_swin_t.pth'
model = dict(backbone=dict(attention='inline'), **_base_.cityscapes_model)
