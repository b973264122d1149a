"""Mask R-CNN with Agent-Swin-T on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
ELFATT paper: box AP 47.3, mask AP 42.7, 48M parameters.
    python tools/train.py configs/attention_zoo/mask-rcnn_swin-t-agent_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_swin-t-agent.py', '../_base_/settings/coco-instance_swin-ms-crop-3x.py']
