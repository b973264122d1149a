"""RetinaNet with CSWin-B-ELFATT on COCO, 1x (12 epochs).
python tools/train.py configs/elfatt/retinanet_cswin-b-elfatt_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_cswin-b-elfatt.py', '../_base_/settings/coco-detection_swin-1x.py']
