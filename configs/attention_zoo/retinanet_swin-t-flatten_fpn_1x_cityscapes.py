"""RetinaNet with FLatten-Swin-T on Cityscapes, 1x (8 epochs of 8 repetitions).
python tools/train.py configs/attention_zoo/retinanet_swin-t-flatten_fpn_1x_cityscapes.py
"""

_base_ = ['../_base_/models/retinanet_swin-t-flatten.py', '../_base_/settings/cityscapes-detection_swin-1x.py']
model = _base_.cityscapes_model
