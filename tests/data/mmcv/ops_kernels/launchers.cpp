// Launches mmcv's kernels for GPUs on a CPU, with the sizes that mmcv gives them.
#include <torch/extension.h>

#include "pytorch_cuda_helper.hpp"

#include "carafe_naive_cuda_kernel.cuh"
#include "deform_roi_pool_cuda_kernel.cuh"
#include "masked_conv2d_cuda_kernel.cuh"
#include "ms_deform_attn_cuda_kernel.cuh"
#include "sigmoid_focal_loss_cuda_kernel.cuh"

using at::Tensor;

static float* f(const Tensor& x) { return x.numel() ? x.data_ptr<float>() : nullptr; }
static int64_t* l(const Tensor& x) { return x.data_ptr<int64_t>(); }
static int* i(const Tensor& x) { return x.data_ptr<int>(); }

void carafe_naive_forward(Tensor features, Tensor masks, Tensor output, int kernel,
                          int groups, int scale) {
  carafe_naive_forward_cuda_kernel<float>(
      output.numel(), f(features), f(masks), f(output), kernel, groups, scale,
      output.size(1), output.size(2), output.size(3));
}

void carafe_naive_backward(Tensor grad, Tensor features, Tensor masks, Tensor by_features,
                           Tensor by_masks, int kernel, int groups, int scale) {
  carafe_naive_backward_cuda_kernel<float>(
      grad.numel(), f(grad), f(features), f(masks), f(by_features), f(by_masks), kernel,
      groups, scale, grad.size(1), grad.size(2), grad.size(3));
}

void deform_roi_pool_forward(Tensor input, Tensor rois, Tensor offset, Tensor output,
                             int height, int width, float scale, int ratio,
                             float gamma) {
  deform_roi_pool_forward_cuda_kernel<float>(
      output.numel(), f(input), f(rois), f(offset), f(output), height, width, scale,
      ratio, gamma, input.size(1), input.size(2), input.size(3));
}

void deform_roi_pool_backward(Tensor grad, Tensor input, Tensor rois, Tensor offset,
                              Tensor by_input, Tensor by_offset, int height, int width,
                              float scale, int ratio, float gamma) {
  deform_roi_pool_backward_cuda_kernel<float>(
      grad.numel(), f(grad), f(input), f(rois), f(offset), f(by_input), f(by_offset),
      height, width, scale, ratio, gamma, input.size(1), input.size(2), input.size(3));
}

void masked_im2col_forward(Tensor im, Tensor rows, Tensor columns, Tensor col, int kh,
                           int kw, int ph, int pw) {
  MaskedIm2colForward<float>(rows.size(0) * im.size(1), f(im), im.size(2), im.size(3), kh,
                             kw, ph, pw, l(rows), l(columns), rows.size(0), f(col));
}

void masked_col2im_forward(Tensor col, Tensor rows, Tensor columns, Tensor im, int height,
                           int width, int channels) {
  MaskedCol2imForward<float>(rows.size(0) * channels, f(col), height, width, channels,
                             l(rows), l(columns), rows.size(0), f(im));
}

Tensor ms_deform_attn_forward(Tensor value, Tensor shapes, Tensor starts, Tensor points,
                              Tensor weights, int step) {
  int images = value.size(0), heads = value.size(2), channels = value.size(3);
  int queries = points.size(1);
  Tensor output = at::zeros({images, queries, heads * channels}, value.options());
  ms_deformable_im2col_gpu_kernel<float>(
      output.numel(), f(value), l(shapes), l(starts), f(points), f(weights), images,
      value.size(1), heads, channels, shapes.size(0), queries, points.size(4), f(output));
  return output;
}

void ms_deform_attn_backward(Tensor value, Tensor shapes, Tensor starts, Tensor points,
                             Tensor weights, Tensor grad, Tensor by_value,
                             Tensor by_points, Tensor by_weights, int step) {
  ms_deformable_col2im_gpu_kernel_gm<float>(
      grad.numel(), f(grad), f(value), l(shapes), l(starts), f(points), f(weights),
      value.size(0), value.size(1), value.size(2), value.size(3), shapes.size(0),
      points.size(1), points.size(4), f(by_value), f(by_points), f(by_weights));
}

void sigmoid_focal_loss_forward(Tensor input, Tensor target, Tensor weight, Tensor output,
                                float gamma, float alpha) {
  sigmoid_focal_loss_forward_cuda_kernel<float>(output.numel(), f(input), l(target),
                                                f(weight), f(output), gamma, alpha,
                                                input.size(1));
}

void sigmoid_focal_loss_backward(Tensor input, Tensor target, Tensor weight, Tensor grad,
                                 float gamma, float alpha) {
  sigmoid_focal_loss_backward_cuda_kernel<float>(grad.numel(), f(input), l(target),
                                                 f(weight), f(grad), gamma, alpha,
                                                 input.size(1));
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  using py::arg;
  m.def("carafe_naive_forward", &carafe_naive_forward, arg(), arg(), arg(),
        arg("kernel_size"), arg("group_size"), arg("scale_factor"));
  m.def("carafe_naive_backward", &carafe_naive_backward, arg(), arg(), arg(), arg(),
        arg(), arg("kernel_size"), arg("group_size"), arg("scale_factor"));
  m.def("deform_roi_pool_forward", &deform_roi_pool_forward, arg(), arg(), arg(), arg(),
        arg("pooled_height"), arg("pooled_width"), arg("spatial_scale"),
        arg("sampling_ratio"), arg("gamma"));
  m.def("deform_roi_pool_backward", &deform_roi_pool_backward, arg(), arg(), arg(), arg(),
        arg(), arg(), arg("pooled_height"), arg("pooled_width"), arg("spatial_scale"),
        arg("sampling_ratio"), arg("gamma"));
  m.def("masked_im2col_forward", &masked_im2col_forward, arg(), arg(), arg(), arg(),
        arg("kernel_h"), arg("kernel_w"), arg("pad_h"), arg("pad_w"));
  m.def("masked_col2im_forward", &masked_col2im_forward, arg(), arg(), arg(), arg(),
        arg("height"), arg("width"), arg("channels"));
  m.def("ms_deform_attn_forward", &ms_deform_attn_forward, arg(), arg(), arg(), arg(),
        arg(), arg("im2col_step"));
  m.def("ms_deform_attn_backward", &ms_deform_attn_backward, arg(), arg(), arg(), arg(),
        arg(), arg(), arg(), arg(), arg(), arg("im2col_step"));
  m.def("sigmoid_focal_loss_forward", &sigmoid_focal_loss_forward, arg(), arg(), arg(),
        arg(), arg("gamma"), arg("alpha"));
  m.def("sigmoid_focal_loss_backward", &sigmoid_focal_loss_backward, arg(), arg(), arg(),
        arg(), arg("gamma"), arg("alpha"));
}
