"""UperNet with CSWin-T-ELFATT on Cityscapes, 3x (120k iterations).
    python tools/train.py configs/elfatt/upernet_cswin-t-elfatt_3x_cityscapes-768x768.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_cswin-t-elfatt.py', '../_base_/settings/cityscapes-768x768_swin-3x.py']
model = _base_.cityscapes_model
