"""UperNet with InLine-CSWin-T on Cityscapes, 1x (40k iterations).
python tools/train.py configs/attention_zoo/upernet_cswin-t-inline_1x_cityscapes-768x768.py
"""

_base_ = ['../_base_/models/upernet_cswin-t.py', '../_base_/settings/cityscapes-768x768_swin-1x.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/49fa2ecc543647c4b970/?dl=1#/inline_cswin_t.pth'
model = dict(backbone=dict(attention='inline'), **_base_.cityscapes_model)
