"""Mask R-CNN with Agent-CSWin-T on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
ELFATT paper: box AP 49.3, mask AP 43.9, 40M parameters.
    python tools/train.py configs/attention_zoo/mask-rcnn_cswin-t-agent_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_cswin-t-agent.py', '../_base_/settings/coco-instance_swin-ms-crop-3x.py']
