// Names of operations across lanes and of atomics, as numbers, for a counted launch: counting/kinds.py has them as words.
#pragma once

#include "lanes.h"

namespace assay {

constexpr __constant uint kFill = 12, kReduction = 16, kQuadReduction = 24, kScan = 32, kQuadScan = 34, kBallot = 36,
                          kFirst = 37, kQuadFirst = 38, kMeeting = 39, kMatrix = 40, kTransfer = 41;

template <class Operation>
constexpr __constant uint kind_of_joining = 0;
template <>
constexpr __constant uint kind_of_joining<Product> = 1;
template <>
constexpr __constant uint kind_of_joining<Max> = 2;
template <>
constexpr __constant uint kind_of_joining<Min> = 3;
template <>
constexpr __constant uint kind_of_joining<And> = 4;
template <>
constexpr __constant uint kind_of_joining<Or> = 5;
template <>
constexpr __constant uint kind_of_joining<Xor> = 6;

// By what completes it.
template <class A>
constexpr __constant uint kind_of = kMatrix;
template <Route route, class T>
constexpr __constant uint kind_of<Shuffle<route, T>> = route;
template <bool down, class T>
constexpr __constant uint kind_of<ShuffleAndFill<down, T>> = kFill + !down;
template <class Operation, class T, uint width>
constexpr __constant uint kind_of<Reduce<Operation, T, width>> =
    (width == 4u ? kQuadReduction : kReduction) + kind_of_joining<Operation>;
template <class Operation, class T, bool inclusive, uint width>
constexpr __constant uint kind_of<Scan<Operation, T, inclusive, width>> =
    (width == 4u ? kQuadScan : kScan) + kind_of_joining<Operation>;
template <>
constexpr __constant uint kind_of<Vote> = kBallot;
template <class T>
constexpr __constant uint kind_of<First<T>> = kFirst;
template <class T>
constexpr __constant uint kind_of<QuadFirst<T>> = kQuadFirst;
template <>
constexpr __constant uint kind_of<Meet> = kMeeting;
template <>
constexpr __constant uint kind_of<Transfer> = kTransfer;

}  // namespace assay
