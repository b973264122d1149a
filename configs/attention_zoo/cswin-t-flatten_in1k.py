"""FLatten-CSWin-T on ImageNet-1k, 300 epochs at 224 x 224.

No result of a paper is quoted for it.

    python tools/train.py configs/attention_zoo/cswin-t-flatten_in1k.py
"""

_base_ = './cswin-t-global_in1k.py'

model = dict(backbone=dict(attention='flatten'))
