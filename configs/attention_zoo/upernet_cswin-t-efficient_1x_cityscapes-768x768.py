"""UperNet with CSWin-T with efficient attention on Cityscapes, 1x (40k iterations).
python tools/train.py configs/attention_zoo/upernet_cswin-t-efficient_1x_cityscapes-768x768.py \
    --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_cswin-t.py', '../_base_/settings/cityscapes-768x768_swin-1x.py']
model = dict(backbone=dict(attention='efficient'), **_base_.cityscapes_model)
