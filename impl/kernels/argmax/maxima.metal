// What a reader keeps of its logits: the greatest that is a number, and whether there is a NaN. The score never
// decreases as the logit grows, so this says all that the search needs.
template <typename T>
constexpr constant uint CHUNK = 16 / sizeof(T);

struct Reader {
  float maximum;
  bool nan;
};

inline Reader begun() {
  return {-INFINITY, false};
}

template <uint count, typename T>
inline void take(thread Reader& own, thread const T* logits) {
#pragma unroll
  for (uint e = 0; e < count; ++e) {
    const float logit = float(logits[e]);
    own.maximum = own.maximum < logit ? logit : own.maximum;
    own.nan = own.nan || isnan(logit);
  }
}
