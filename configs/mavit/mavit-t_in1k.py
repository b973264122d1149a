"""MAViT-T on ImageNet-1k, 300 epochs at 224 x 224.
The paper: top-1 82.9.
    python tools/train.py configs/mavit/mavit-t_in1k.py
"""

_base_ = ['../_base_/models/classifier_mavit-t.py', '../_base_/settings/in1k-224_ravlt-300e.py']
