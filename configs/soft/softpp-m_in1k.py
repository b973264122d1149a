"""SOFT++-Medium on ImageNet-1k, 300 epochs at 224 x 224.

Paper: top-1 83.7, 48M parameters.

    python tools/train.py configs/soft/softpp-m_in1k.py
"""

_base_ = './softpp-t_in1k.py'

model = dict(backbone=dict(arch='medium'), head=dict(in_channels=768))
