"""RetinaNet with Agent-Swin-T on COCO, 3x (36 epochs, multi-scale).
python tools/train.py configs/attention_zoo/retinanet_swin-t-agent_fpn_3x_coco.py
"""

_base_ = ['../_base_/models/retinanet_swin-t-agent.py', '../_base_/settings/coco-detection_swin-3x.py']
