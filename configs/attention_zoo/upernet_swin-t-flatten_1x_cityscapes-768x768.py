"""UperNet with FLatten-Swin-T on Cityscapes, 1x (40k iterations).
python tools/train.py configs/attention_zoo/upernet_swin-t-flatten_1x_cityscapes-768x768.py \
    --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_swin-t.py', '../_base_/settings/cityscapes-768x768_swin-1x.py']
model = dict(backbone=dict(attention='flatten'), **_base_.cityscapes_model)
