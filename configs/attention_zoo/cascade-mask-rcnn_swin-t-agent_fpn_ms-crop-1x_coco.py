"""Cascade Mask R-CNN with Agent-Swin-T on COCO, 1x (12 epochs, multi-scale with crops).
Authors' README: box AP 49.2, mask AP 42.7, 86M parameters, 755 GFLOPs.
    python tools/train.py configs/attention_zoo/cascade-mask-rcnn_swin-t-agent_fpn_ms-crop-1x_coco.py
"""

_base_ = ['../_base_/models/cascade-mask-rcnn_swin-t-agent.py', '../_base_/settings/coco-instance_mlla-ms-crop-1x.py']
