"""UperNet with FLatten-CSWin-T on Cityscapes, 1x (40k iterations).
python tools/train.py configs/attention_zoo/upernet_cswin-t-flatten_1x_cityscapes-768x768.py
"""

_base_ = ['../_base_/models/upernet_cswin-t-flatten.py', '../_base_/settings/cityscapes-768x768_swin-1x.py']
model = _base_.cityscapes_model
