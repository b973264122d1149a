_base_ = './mask-rcnn_cswin-t.py'
pretrained = 'https://cloud.tsinghua.edu.cn/f/48ba765ba8b0451d9d5a/?dl=1#/flatten_cswin_t.pth'
model = dict(backbone=dict(attention='flatten'))
