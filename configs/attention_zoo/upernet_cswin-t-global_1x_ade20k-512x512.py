"""UperNet with CSWin-T with softmax attention on ADE20K, 1x (160k iterations).
ELFATT paper: mIoU 48.8, 50M parameters.
    python tools/train.py configs/attention_zoo/upernet_cswin-t-global_1x_ade20k-512x512.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_cswin-t.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
model = dict(backbone=dict(attention='global'))
