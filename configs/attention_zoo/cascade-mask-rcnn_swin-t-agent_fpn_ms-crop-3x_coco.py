"""Cascade Mask R-CNN with Agent-Swin-T on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
Authors' README: box AP 51.4, mask AP 44.5, 86M parameters, 755 GFLOPs.
    python tools/train.py configs/attention_zoo/cascade-mask-rcnn_swin-t-agent_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/cascade-mask-rcnn_swin-t-agent.py', '../_base_/settings/coco-instance_swin-ms-crop-3x.py']
