_base_ = './mask-rcnn_swin-t.py'
pretrained = 'https://cloud.tsinghua.edu.cn/f/e1518e76703e4e57a7f2/?dl=1#/flatten_swin_t.pth'
model = dict(backbone=dict(attention='flatten'))
