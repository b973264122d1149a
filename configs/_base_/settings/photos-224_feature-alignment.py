"""Photos without labels at 224 x 224, 10 epochs, batch 32: a student, run whole, learns the outputs of its teacher.
Still to be given: teacher and backbone of the model, photos, and load_from, a checkpoint of the attentions' alignment.

Source: the stages are those of ViT-AdaLA (arXiv 2603.16063). The rate is ours, for all weights.
"""

_base_ = './photos-224_attention-alignment.py'

model = dict(type='mmlinattn.FeatureAlignment')
optim_wrapper = dict(optimizer=dict(lr=5e-4))
