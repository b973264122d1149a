_base_ = './mask-rcnn_cswin-t.py'
# blocks of 196 tokens in every level, as in all of the paper's tables but the first; weights with 49, 49, 196 fit
pretrained = 'https://github.com/microsoft/CSWin-Transformer/releases/download/v0.1.0/cswin_tiny_224.pth'
model = dict(backbone=dict(attention='elfatt'))
