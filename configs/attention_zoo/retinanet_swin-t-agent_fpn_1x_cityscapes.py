"""RetinaNet with Agent-Swin-T on Cityscapes, 1x (8 epochs of 8 repetitions).
python tools/train.py configs/attention_zoo/retinanet_swin-t-agent_fpn_1x_cityscapes.py
"""

_base_ = ['../_base_/models/retinanet_swin-t-agent.py', '../_base_/settings/cityscapes-detection_swin-1x.py']
model = _base_.cityscapes_model
