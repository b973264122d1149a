"""CSWin-T with ELFATT in levels 1 to 3, every block on ImageNet-1k, 300 epochs at 224 x 224.
ELFATT paper, Table IV: top-1 82.6, 20M parameters, 4.48 GFLOPs.
The FLOPs tell which levels are meant.
    python tools/train.py configs/elfatt/cswin-t-elfatt-levels123_in1k.py
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-224_cswin-300e.py']
model = dict(
    backbone=dict(
        attention=[dict(type='mmlinattn.ELFATT', block_size=196)] * 3
        + [dict(type='mmlinattn.SoftmaxAttention', lepe=True)]
    )
)
