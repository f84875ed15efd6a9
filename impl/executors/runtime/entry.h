// Where a thread of an NVIDIA GPU stands in Metal's grid. A threadgroup at the grid's edge is smaller, and its threads are
// numbered as such: those of the block that are over have nothing to do. A grid with more threadgroups along y or z than
// the GPU takes comes as one row of them.
#pragma once

#include "launch.h"

namespace assay {

// The most threadgroups that a launch has along y or z.
constexpr __constant uint kMostGroups = 65535;

METAL_FUNC bool placed(__private Position& p, uint x, uint y, uint z) {
  const uint grid[3] = {x, y, z};
  uint block[3] = {uint(__nvvm_read_ptx_sreg_ctaid_x()), uint(__nvvm_read_ptx_sreg_ctaid_y()),
                   uint(__nvvm_read_ptx_sreg_ctaid_z())};
  const uint size[3] = {uint(__nvvm_read_ptx_sreg_ntid_x()), uint(__nvvm_read_ptx_sreg_ntid_y()),
                        uint(__nvvm_read_ptx_sreg_ntid_z())};
  const uint at[3] = {uint(__nvvm_read_ptx_sreg_tid_x()), uint(__nvvm_read_ptx_sreg_tid_y()),
                      uint(__nvvm_read_ptx_sreg_tid_z())};
  uint groups[3] = {uint(__nvvm_read_ptx_sreg_nctaid_x()), uint(__nvvm_read_ptx_sreg_nctaid_y()),
                    uint(__nvvm_read_ptx_sreg_nctaid_z())};
  uint extent[3] = {size[0], size[1], size[2]};
  uint own[3] = {at[0], at[1], at[2]};
  uint number = at[0] + size[0] * (at[1] + size[1] * at[2]), threads = size[0] * size[1] * size[2];
#ifndef ASSAY_WHOLE
  // Integer division takes as long as a short kernel: it is kept to grids in one row and to threadgroups at an edge.
  if (grid[1] > kMostGroups * size[1] || grid[2] > kMostGroups * size[2]) {
    for (int i = 0; i < 3; i++) groups[i] = grid[i] / size[i] + (grid[i] % size[i] != 0);
    const uint flat = block[0];
    block[0] = flat % groups[0];
    block[1] = flat / groups[0] % groups[1];
    block[2] = flat / groups[0] / groups[1];
  }
  bool whole = true;
  for (int i = 0; i < 3; i++) {
    const uint left = grid[i] - block[i] * size[i];
    extent[i] = left < size[i] ? left : size[i];
    whole &= extent[i] == size[i];
  }
  threads = extent[0] * extent[1] * extent[2];
  if (number >= threads) return false;
  if (!whole) {
    own[0] = number % extent[0];
    own[1] = number / extent[0] % extent[1];
    own[2] = number / extent[0] / extent[1];
  }
#endif
  for (int i = 0; i < 3; i++) {
    p.thread_position_in_grid[i] = block[i] * size[i] + own[i];
    p.thread_position_in_threadgroup[i] = own[i];
    p.threadgroup_position_in_grid[i] = block[i];
    p.threadgroups_per_grid[i] = groups[i];
    p.threads_per_grid[i] = grid[i];
    p.threads_per_threadgroup[i] = extent[i];
    p.dispatch_threads_per_threadgroup[i] = size[i];
  }
  p.thread_index_in_threadgroup = number;
  p.thread_index_in_simdgroup = number % kLanes;
  p.simdgroup_index_in_threadgroup = number / kLanes;
  p.simdgroups_per_threadgroup = (threads + kLanes - 1u) / kLanes;
  p.dispatch_simdgroups_per_threadgroup = (size[0] * size[1] * size[2] + kLanes - 1u) / kLanes;
  return true;
}

// Threadgroup memory, whole rows of four words, holds the pattern in every word before the kernel begins.
METAL_FUNC void poison(__local uint* words, uint count, uint pattern) {
  const uint threads = uint(__nvvm_read_ptx_sreg_ntid_x() * __nvvm_read_ptx_sreg_ntid_y() * __nvvm_read_ptx_sreg_ntid_z());
  const uint number = uint(__nvvm_read_ptx_sreg_tid_x()) +
                      uint(__nvvm_read_ptx_sreg_ntid_x()) *
                          (uint(__nvvm_read_ptx_sreg_tid_y()) +
                           uint(__nvvm_read_ptx_sreg_ntid_y()) * uint(__nvvm_read_ptx_sreg_tid_z()));
  __local uint4* fours = (__local uint4*)words;
  for (uint i = number; i < count / 4; i += threads) fours[i] = uint4(pattern);
  __nvvm_bar_sync(0);
}

}  // namespace assay
