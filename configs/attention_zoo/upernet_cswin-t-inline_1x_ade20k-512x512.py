"""UperNet with InLine-CSWin-T on ADE20K, 1x (160k iterations).
python tools/train.py configs/attention_zoo/upernet_cswin-t-inline_1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_cswin-t.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/49fa2ecc543647c4b970/?dl=1#/inline_cswin_t.pth'
model = dict(backbone=dict(attention='inline'))
