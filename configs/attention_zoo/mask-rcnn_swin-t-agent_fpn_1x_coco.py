"""Mask R-CNN with Agent-Swin-T on COCO, 1x (12 epochs).
ELFATT paper: box AP 44.6, mask AP 40.7, 48M parameters.
    python tools/train.py configs/attention_zoo/mask-rcnn_swin-t-agent_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_swin-t-agent.py', '../_base_/settings/coco-instance_swin-1x.py']
