"""RetinaNet with Agent-CSWin-T on COCO, 1x (12 epochs).
python tools/train.py configs/attention_zoo/retinanet_cswin-t-agent_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/retinanet_cswin-t-agent.py', '../_base_/settings/coco-detection_swin-1x.py']
