"""Mask R-CNN with Agent-CSWin-T on COCO, 1x (12 epochs).
ELFATT paper: box AP 46.8, mask AP 42.3, 40M parameters.
    python tools/train.py configs/attention_zoo/mask-rcnn_cswin-t-agent_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_cswin-t-agent.py', '../_base_/settings/coco-instance_swin-1x.py']
