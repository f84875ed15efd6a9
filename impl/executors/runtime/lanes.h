// What an operation across lanes gives each of them: from all letter boxes and the mask of the lanes that take part.
#pragma once

#include "letters.h"

namespace assay {

// What a machine says of itself: what a lane gets from one that is not there, and the order of its sums.
template <class T>
T garbage();
template <class T>
T nobody(T own);
template <class T>
T windowless();
template <class Operation>
uint order();

}  // namespace assay

namespace assay {

template <Route route, class T>
struct Shuffle {
  static void complete(Lane* lanes, uint mask) {
    for (uint i = 0; i < kLanes; i++) {
      // The argument of a lane that takes no part is of an operation before.
      if (!((mask >> i) & 1u)) continue;
      const uint from = source(route, i, lanes[i].argument & 0xffffu);
      const uint lane = from == kOwn ? i : from;
      if (lane == kNone)
        leave(lanes[i].result, nobody(take<T>(lanes[i].value)));
      else
        leave(lanes[i].result, (mask >> lane) & 1u ? take<T>(lanes[lane].value) : garbage<T>());
    }
  }
};

// Metal has windows of 2, 4, 8, 16 and 32 lanes, of a quad 2 and 4, and leaves open what any other does. 0 stands for those.
METAL_FUNC constexpr uint window(uint modulo, uint most) {
  return modulo < 2u || modulo > most || (modulo & (modulo - 1u)) ? 0u : modulo;
}
METAL_FUNC constexpr uint filled(uint delta, uint modulo, uint most) { return delta | window(modulo, most) << 16; }

// A window of `modulo` lanes; what would come from beyond its end comes from the other end of the filling.
template <bool down, class T>
struct ShuffleAndFill {
  static void complete(Lane* lanes, uint mask) {
    for (uint i = 0; i < kLanes; i++) {
      if (!((mask >> i) & 1u)) continue;
      const uint delta = lanes[i].argument & 0xffffu, modulo = window(lanes[i].argument >> 16 & 0xffu, kLanes);
      if (!modulo) {
        leave(lanes[i].result, windowless<T>());
        continue;
      }
      const uint base = i / modulo * modulo, at = i - base;
      const bool inside = down ? at + delta < modulo : delta <= at;
      const uint lane = base + (down ? (at + delta) % modulo : (at + modulo - delta % modulo) % modulo);
      const bool active = (mask >> lane) & 1u;
      leave(lanes[i].result, !active ? garbage<T>() : take<T>(inside ? lanes[lane].value : lanes[lane].fill));
    }
  }
};

// Joins what two sets of lanes have; a set without an active lane has nothing.
template <class Operation, class T>
METAL_FUNC void join(T& v, bool& some, T other, bool other_some) {
  if (some && other_some) v = Operation::of(v, other);
  if (!some && other_some) v = other;
  some |= other_some;
}

// The distances of a butterfly, from step 0: 1, 2, 4 ... or ... 4, 2, 1.
METAL_FUNC uint distance(uint order, uint step, uint width) { return order == kDescending ? width >> (step + 1u) : 1u << step; }

// Butterflies: a lane joins the one that differs by xor with the distance; every lane ends with the same tree, since the
// operations commute.
template <class Operation, class T, uint width>
struct Reduce {
  static void complete(Lane* lanes, uint mask) {
    const uint order = assay::order<Operation>();
    for (uint base = 0; base < kLanes; base += width) {
      T v[width];
      bool some[width];
      for (uint i = 0; i < width; i++) {
        const uint lane = base + (order == kReverseSequential ? width - 1u - i : i);
        v[i] = take<T>(lanes[lane].value);
        some[i] = (mask >> lane) & 1u;
      }
      if (order >= kSequential)
        for (uint i = 1; i < width; i++) join<Operation, T>(v[0], some[0], v[i], some[i]);
      else
        for (uint step = 0; 1u << step < width; step++) {
          const uint d = distance(order, step, width), count = order == kDescending ? d : width, stride = order == kDescending ? 1u : 2u * d;
          for (uint i = 0; i < count; i += stride) join<Operation, T>(v[i], some[i], v[i + d], some[i + d]);
        }
      for (uint i = 0; i < width; i++) leave(lanes[base + i].result, v[0]);
    }
  }
};

// What the lanes up to `last` have together, added from its end.
template <class Operation, class T>
METAL_FUNC void join_down(T& v, bool& some, const T* each, const bool* active, uint last) {
  for (int i = int(last); i >= 0; i--) join<Operation, T>(v, some, each[i], active[i]);
}

// Butterflies: a lane joins the one below it at the distance, so the last lane ends with the tree of the reduction.
template <class Operation, class T, bool inclusive, uint width>
struct Scan {
  static void complete(Lane* lanes, uint mask) {
    const uint order = assay::order<Operation>();
    for (uint base = 0; base < kLanes; base += width) {
      T v[width], up_to[width];
      bool some[width], any[width];
      for (uint i = 0; i < width; i++) {
        v[i] = up_to[i] = take<T>(lanes[base + i].value);
        some[i] = any[i] = (mask >> (base + i)) & 1u;
      }
      if (order == kSequential) {
        for (uint i = 1; i < width; i++) {
          up_to[i] = up_to[i - 1u], any[i] = any[i - 1u];
          join<Operation, T>(up_to[i], any[i], v[i], some[i]);
        }
      } else if (order == kReverseSequential) {
        for (uint i = 0; i < width; i++) {
          any[i] = false;
          join_down<Operation, T>(up_to[i], any[i], v, some, i);
        }
      } else {
        for (uint step = 0; 1u << step < width; step++) {
          const uint d = distance(order, step, width);
          for (uint i = width - 1u; i >= d; i--) join<Operation, T>(up_to[i], any[i], up_to[i - d], any[i - d]);
        }
      }
      const T nothing = static_cast<T>(metal::is_same_v<Operation, Product> ? 1 : 0);
      for (uint i = 0; i < width; i++) {
        if (!some[i]) continue;
        const bool before = i && any[i - 1u];
        leave(lanes[base + i].result, inclusive ? up_to[i] : before ? up_to[i - 1u] : nothing);
      }
    }
  }
};

struct Vote {
  static void complete(Lane* lanes, uint mask) {
    ulong yes = 0;
    for (uint i = 0; i < kLanes; i++)
      if (((mask >> i) & 1u) && lanes[i].value[0]) yes |= 1ul << i;
    for (uint i = 0; i < kLanes; i++) {
      lanes[i].result[0] = yes;
      lanes[i].result[1] = mask;
      lanes[i].fill[0] = i;
    }
  }
};

template <class T>
struct First {
  static void complete(Lane* lanes, uint mask) {
    const T v = take<T>(lanes[__builtin_ctz(mask)].value);
    for (uint i = 0; i < kLanes; i++) leave(lanes[i].result, v);
  }
};

template <class T>
struct QuadFirst {
  static void complete(Lane* lanes, uint mask) {
    for (uint i = 0; i < kLanes; i++) {
      const uint quad = (mask >> (i & ~3u)) & 15u;
      if (quad) leave(lanes[i].result, take<T>(lanes[(i & ~3u) + __builtin_ctz(quad)].value));
    }
  }
};

struct Meet {
  static void complete(Lane*, uint) {}
};

// The lanes come together for a matrix that each loads or stores its share of.
struct Transfer {
  static void complete(Lane*, uint) {}
};

}  // namespace assay
