// Launches mmcv's kernels for polygons and rotated boxes that it has for GPUs alone.
#include <torch/extension.h>

#include "pytorch_cuda_helper.hpp"

using std::isinf;
using std::isnan;
namespace convex {
#include "convex_iou_cuda_kernel.cuh"
}
#undef MAXN
namespace rectangles {
#include "min_area_polygons_cuda.cuh"
}
namespace vertices {
#include "diff_iou_rotated_cuda_kernel.cuh"
}
#include "chamfer_distance_cuda_kernel.cuh"
#include "points_in_polygons_cuda_kernel.cuh"
#include "riroi_align_rotated_cuda_kernel.cuh"

using at::Tensor;

static float* f(const Tensor& x) { return x.numel() ? x.data_ptr<float>() : nullptr; }
static int* i(const Tensor& x) { return x.data_ptr<int>(); }

void convex_iou(Tensor sets, Tensor polygons, Tensor ious) {
  convex::convex_iou_cuda_kernel<float>(sets.size(0), polygons.size(0), f(sets),
                                        f(polygons), f(ious));
}

void convex_giou(Tensor sets, Tensor polygons, Tensor output) {
  convex::convex_giou_cuda_kernel<float>(sets.size(0), polygons.size(0), f(sets),
                                         f(polygons), f(output));
}

void min_area_polygons(Tensor sets, Tensor polygons) {
  rectangles::min_area_polygons_cuda_kernel<float>(sets.size(0), f(sets), f(polygons));
}

void points_in_polygons_forward(Tensor points, Tensor polygons, Tensor output) {
  // each thread returns after its first pair
  for (threadIdx.x = 0; threadIdx.x < output.numel(); ++threadIdx.x)
    points_in_polygons_forward_cuda_kernel<float>(output.numel(), f(points), f(polygons),
                                                  points.size(0), polygons.size(0),
                                                  f(output));
  threadIdx.x = 0;
}

Tensor diff_iou_rotated_sort_vertices_forward(Tensor corners, Tensor mask,
                                              Tensor num_valid) {
  int images = corners.size(0), boxes = corners.size(1), num = corners.size(2);
  Tensor order = at::zeros({images, boxes, 9}, num_valid.options());
  for (blockIdx.x = 0; blockIdx.x < images; ++blockIdx.x)
    vertices::diff_iou_rotated_sort_vertices_forward_cuda_kernel(
        images, boxes, num, f(corners), mask.data_ptr<bool>(), i(num_valid), i(order));
  blockIdx.x = 0;
  return order;
}

void chamfer_distance_forward(Tensor first, Tensor second, Tensor distance,
                              Tensor other_distance, Tensor index, Tensor other_index) {
  int images = first.size(0), num = first.size(1), others = second.size(1);
  chamfer_distance_forward_cuda_kernel<float>(images, num, f(first), others, f(second),
                                              f(distance), i(index));
  chamfer_distance_forward_cuda_kernel<float>(images, others, f(second), num, f(first),
                                              f(other_distance), i(other_index));
}

void chamfer_distance_backward(Tensor first, Tensor second, Tensor index,
                               Tensor other_index, Tensor grad, Tensor other_grad,
                               Tensor by_first, Tensor by_second) {
  int images = first.size(0), num = first.size(1), others = second.size(1);
  chamfer_distance_backward_cuda_kernel<float>(images, num, f(first), others, f(second),
                                               f(grad), i(index), f(by_first),
                                               f(by_second));
  chamfer_distance_backward_cuda_kernel<float>(images, others, f(second), num, f(first),
                                               f(other_grad), i(other_index),
                                               f(by_second), f(by_first));
}

void riroi_align_rotated_forward(Tensor maps, Tensor rois, Tensor output, int height,
                                 int width, float scale, int samples, int orientations,
                                 bool clockwise) {
  riroi_align_rotated_forward_cuda_kernel<float>(
      output.numel(), f(maps), f(rois), scale, samples, clockwise,
      maps.size(1) / orientations, maps.size(2), maps.size(3), height, width,
      orientations, f(output));
}

void riroi_align_rotated_backward(Tensor grad, Tensor rois, Tensor by_maps, int height,
                                  int width, float scale, int samples, int orientations,
                                  bool clockwise) {
  riroi_align_rotated_backward_cuda_kernel<float>(
      grad.numel(), f(grad), f(rois), scale, samples, clockwise,
      by_maps.size(1) / orientations, by_maps.size(2), by_maps.size(3), height, width,
      orientations, f(by_maps));
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  using py::arg;
  m.def("convex_iou", &convex_iou);
  m.def("convex_giou", &convex_giou);
  m.def("min_area_polygons", &min_area_polygons);
  m.def("points_in_polygons_forward", &points_in_polygons_forward);
  m.def("diff_iou_rotated_sort_vertices_forward",
        &diff_iou_rotated_sort_vertices_forward);
  m.def("chamfer_distance_forward", &chamfer_distance_forward);
  m.def("chamfer_distance_backward", &chamfer_distance_backward);
  m.def("riroi_align_rotated_forward", &riroi_align_rotated_forward, arg(), arg(), arg(),
        arg("pooled_height"), arg("pooled_width"), arg("spatial_scale"),
        arg("num_samples"), arg("num_orientations"), arg("clockwise"));
  m.def("riroi_align_rotated_backward", &riroi_align_rotated_backward, arg(), arg(),
        arg(), arg("pooled_height"), arg("pooled_width"), arg("spatial_scale"),
        arg("num_samples"), arg("num_orientations"), arg("clockwise"));
}
