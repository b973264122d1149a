"""CSWin-T with ELFATT in levels 1 and 2 only on ImageNet-1k, 300 epochs at 224 x 224.
ELFATT paper, Table IV: top-1 83.0, 20M parameters, 4.63 GFLOPs.
The FLOPs tell which levels are meant.
    python tools/train.py configs/elfatt/cswin-t-elfatt-levels12_in1k.py
"""

_base_ = ['../_base_/models/classifier_cswin-t.py', '../_base_/settings/in1k-224_cswin-300e.py']
model = dict(
    backbone=dict(
        attention=[dict(type='mmlinattn.ELFATT', block_size=196)] * 2
        + [dict(type='mmlinattn.SoftmaxAttention', lepe=True)] * 2
    )
)
