"""H-ViT^3-T on ImageNet-1k, 300 epochs at 224 x 224.
Authors' README: top-1 84.0, 29M parameters, 4.9 GFLOPs.
    python tools/train.py configs/vittt/hvittt-t_in1k.py
"""

_base_ = ['../_base_/models/classifier_hvittt-t.py', '../_base_/settings/in1k-224_mlla-300e.py']
