"""SOFT++-Tiny with another inverse on ImageNet-1k, 300 epochs at 224 x 224: Cholesky's method with a ridge in place
of Newton's steps. No paper has it; docs/claims.md compares the two in small models.
python tools/train.py configs/soft/softpp-t-ridge_in1k.py
"""

_base_ = ['../_base_/models/classifier_softpp-t.py', '../_base_/settings/in1k-224_soft-300e.py']
model = dict(backbone=dict(solver='cholesky', ridge=0.001))
