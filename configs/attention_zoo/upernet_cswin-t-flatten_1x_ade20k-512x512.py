"""UperNet with FLatten-CSWin-T on ADE20K, 1x (160k iterations).
ELFATT paper: mIoU 49.3, 51M parameters.
    python tools/train.py configs/attention_zoo/upernet_cswin-t-flatten_1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_cswin-t-flatten.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
